"""Write pieces with a trained model: continue, harmonize or rewrite music, or stream its notes.

generate.py uses these functions, and Python programs import them from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pretty_midi
from tqdm import tqdm

from common.files import write_file
from data.keys import parse_key
from data.midi.io import to_pretty_midi, write_midi
from generation.constraints import UNCONSTRAINED, Constraints
from generation.defaults import DEFAULT_LENGTH
from generation.length import Length
from generation.model import Model
from generation.note_stream import StreamedNote
from generation.request import ANY_PIECE, Request
from generation.seeds import (
    Seed,
    Voice,
    accompanied,
    given_from_midi,
    no_seed,
    rewrite_from_midi,
    seed_from_midi,
    seed_from_notes,
)
from generation.writing import Piece, Writing, critic_of
from model.config import SamplingOptions
from rendering.audio import has_sound, wav_bytes
from rendering.notation import has_notation, write_notation
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes

PROGRESS_EVERY = 16  # tokens
CANDIDATES = 8  # for each piece, if the model has a critic: 16 are hardly better (RESULTS.md)
TRIES = 4  # at most, for a piece from nothing that turns out unusual (`Style.is_unusual`)


def compose(model: Model, request: Request = ANY_PIECE, *, progress: bool = False) -> list[Piece]:
    """Write the pieces of a request, side by side.

    If nothing is given, and nothing but a length is asked for, a piece that is unusual for the
    training set (`Style.is_unusual`) is rewritten, TRIES - 1 times at most.

    Args:
        model: from `load`.
        request: what is given and asked for.
        progress: whether to show a progress bar on stderr.

    Raises:
        ConstraintError: the request can never be met; raised before anything is written.
    """
    pieces = _written(model, request, progress)
    is_given = request.seed is not None and len(request.seed.score.bars) > 0
    is_free = not is_given and request.constraints == UNCONSTRAINED
    for turn in range(1, TRIES if is_free else 1):
        unusual = [n for n, piece in enumerate(pieces) if model.style.is_unusual(piece.score)]
        if not unusual:
            break
        seed = int(np.random.default_rng((request.random_seed, turn)).integers(2**31))
        again = dataclasses.replace(request, samples=len(unusual), random_seed=seed)
        for number, piece in zip(unusual, _written(model, again, progress), strict=True):
            pieces[number] = piece
    return pieces


def _written(model: Model, request: Request, progress: bool) -> list[Piece]:
    """Return the pieces of a request, unusual ones too."""
    writing = Writing(model, request)
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # disable=None: the bar is shown on a terminal only
        for turn, _ in enumerate(writing, start=1):
            if turn % PROGRESS_EVERY == 0:
                line.update(writing.progress - line.n)
    return writing.pieces


def stream(model: Model, request: Request = ANY_PIECE) -> Iterator[StreamedNote]:
    """Return the notes of a piece while it is written, each as soon as it is complete.

    The seed's notes are left out, but times count from the seed's beginning. `candidates` has no
    effect: notes that are already out cannot be taken back.

    Args:
        model: from `load`.
        request: for one piece; with an `endless` length, the music never ends.

    Raises:
        ConstraintError: the request can never be met; raised before the first note.
    """
    writing = Writing(model, dataclasses.replace(request, candidates=1))
    return (note for notes in writing for _, note in notes)


def candidates(model: Model) -> int:
    """Return the default number of candidates for each piece, of which the best is kept."""
    return 1 if critic_of(model) is None else CANDIDATES


def accompany(model: Model, seed: Seed) -> Seed:
    """Return a seed that other voices may join, if it has fewer than the model's music has.

    Otherwise return the seed itself.
    """
    notes = seed.score.notes
    if not len(notes):
        return seed
    programs = np.unique(notes["program"]).tolist()
    count = len(programs)
    if not model.vocabulary.grid.parts:  # a single instrument may play chords, as many voices
        count = max(count, int(np.median(np.unique(notes["onset"], return_counts=True)[1])))
    joining = model.style.joining(programs, count, model.vocabulary.programs)
    return accompanied(seed, model.vocabulary, joining) if joining else seed


class How(TypedDict, total=False):
    """Options shared by the functions that return pretty_midi objects.

    Attributes:
        sampling: temperature and filters; None: the model's own.
        best_of: how many candidates to write, of which the best is returned; None: as many as
            `candidates` says.
        random_seed: the same number gives the same music.
    """

    sampling: SamplingOptions | None
    best_of: int | None
    random_seed: int


def continue_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI | str | None = None,
    length: Length = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    alone: bool = False,
    **how: Unpack[How],
) -> pretty_midi.PrettyMIDI:
    """Return music that begins with all of `midi` and goes on.

    Args:
        model: from `load`.
        midi: the beginning, or seed notes such as "C4 E4 G4 C5"; None: the model begins.
        length: the length of what is written after it.
        constraints: key, pitch range, instruments and so on of what is written.
        alone: leave a beginning of few voices as it is; otherwise other voices join it.
        how: sampling, best_of and random_seed (`How`).

    Raises:
        MidiError, SeedError: `midi` has no music in it.
        ConstraintError: the request can never be met.
    """
    vocabulary = model.vocabulary
    if isinstance(midi, str):
        seed = seed_from_notes(midi, vocabulary, constraints, style=model.style)
    else:
        tune = model.style.tune
        seed = seed_from_midi(midi, vocabulary, tune=tune) if midi else no_seed(vocabulary)
    seed = seed if alone else accompany(model, seed)
    return _best(model, Request(seed, length, constraints), **how)


def harmonize_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voices: Sequence[Voice] = (),
    **how: Unpack[How],
) -> pretty_midi.PrettyMIDI:
    """Return voices of `midi` with new ones around them, written with three beats of foresight.

    Args:
        midi: the music; `voices_of` in generation/seeds.py says which of its voices are kept.
        voices: which of the model's instruments play the kept voices; by default the one that plays
            tunes, or the first of the model's named parts that `midi` has.
        model, constraints, how: as in `continue_midi`.

    Raises:
        MidiError: `midi` has no such voice.
        ConstraintError: the request can never be met.
    """
    seed = given_from_midi(midi, model.vocabulary, voices=voices, tune=model.style.tune)
    return _best(model, Request(seed, None, constraints), **how)


def rewrite_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI,
    bars: tuple[int, int | None] | None = None,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voices: Sequence[Voice] = (),
    **how: Unpack[How],
) -> pretty_midi.PrettyMIDI:
    """Return `midi` with some bars rewritten so that they lead into what follows; keep the rest.

    Args:
        midi: the piece.
        bars, voices: which bars of which voices (see `rewrite_from_midi` in generation/seeds.py).
        model, constraints, how: as in `continue_midi`.

    Raises:
        MidiError, SeedError: `midi` has no such bar or voice.
        ConstraintError: the request can never be met.
    """
    tune = model.style.tune
    seed = rewrite_from_midi(midi, model.vocabulary, bars=bars, voices=voices, tune=tune)
    return _best(model, Request(seed, None, constraints), **how)


def _best(
    model: Model,
    request: Request,
    sampling: SamplingOptions | None = None,
    best_of: int | None = None,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Write the candidates of a request, and return the best as a pretty_midi object."""
    many = candidates(model) if best_of is None else best_of
    request = dataclasses.replace(
        request, sampling=sampling, candidates=many, random_seed=random_seed
    )
    return to_pretty_midi(compose(model, request)[0].score)


def write_piece(piece: Piece, stem: str | Path, key: str | None = None) -> list[Path]:
    """Write `stem`.mid, .wav, .png, .musicxml and .svg, each whole or not at all.

    Args:
        piece: the piece. On a grid of seconds it has no notation, so no .musicxml and no .svg. On a
            machine that cannot make sound, there is no .wav.
        stem: the path of the files without the ending.
        key: the key of the notation; None: it is estimated.

    Returns:
        The paths of the files that were written, in this order.
    """
    stem = Path(stem)
    midi, wav, picture = (stem.with_name(stem.name + end) for end in (".mid", ".wav", ".png"))
    write_midi(piece.score, midi)
    if has_sound():
        write_file(wav_bytes(piece.score), wav)
    own, harmony = parse_key(key) if key else None, piece.harmony
    closed = piece.given.seed.is_closed
    roll = draw_piano_roll(piece.score, closed, piece.is_given, chords=harmony, key=own)
    write_file(png_bytes(roll.svg), picture)
    written = [midi, wav, picture] if has_sound() else [midi, picture]
    if has_notation(piece.score.grid):
        written += write_notation(piece.score, stem, own, piece.is_given, harmony)
    return written
