"""Pieces that a trained model writes: continued, harmonized, ranked, or heard note by note.

Python programs import these from generate.py, the command that uses them.
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
CANDIDATES = 8  # for a piece, where a model has a critic: 16 are hardly better (RESULTS.md)
TRIES = 4  # of a piece from nothing that is emptier or fuller than training pieces usually are


def compose(model: Model, request: Request = ANY_PIECE, *, progress: bool = False) -> list[Piece]:
    """Write pieces, side by side, that keep what is given and go on as asked.

    Where nothing is given, and nothing is asked for but a length, what is unusual
    (`Style.is_unusual`) is written anew.

    Args:
        model: from `load`.
        request: what is given and asked for.
        progress: whether to show a progress bar on stderr.

    Raises:
        ConstraintError: something that can never be; before anything is written.
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
    """Return the pieces of a request, as they come."""
    writing = Writing(model, request)
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # None: shown on a terminal alone
        for turn, _ in enumerate(writing, start=1):
            if turn % PROGRESS_EVERY == 0:
                line.update(writing.progress - line.n)
    return writing.pieces


def stream(model: Model, request: Request = ANY_PIECE) -> Iterator[StreamedNote]:
    """Return the notes of a piece while it is written, each as soon as it is complete.

    The seed's notes are not among them, but times count from its beginning. Of candidates none is
    chosen: what has been told is told.

    Args:
        model: from `load`.
        request: for one piece; of a length that is `endless`, the music never ends.

    Raises:
        ConstraintError: something that can never be; before the first note.
    """
    writing = Writing(model, dataclasses.replace(request, candidates=1))
    return (note for notes in writing for _, note in notes)


def candidates(model: Model) -> int:
    """Return how many pieces are written for one that is kept, where nobody says."""
    return 1 if critic_of(model) is None else CANDIDATES


def accompany(model: Model, seed: Seed) -> Seed:
    """Return a seed of fewer voices than the model's music has with room for those that join it."""
    notes = seed.score.notes
    if not len(notes):
        return seed
    count = len(np.unique(notes["program"]))
    if not model.vocabulary.grid.parts:  # one instrument may play the chords of all
        count = max(count, int(np.median(np.unique(notes["onset"], return_counts=True)[1])))
    programs = np.unique(notes["program"]).tolist()
    joining = model.style.joining(programs, count, model.vocabulary.programs)
    return accompanied(seed, model.vocabulary, joining) if joining else seed


class How(TypedDict, total=False):
    """How music is written that goes out as pretty_midi.

    Attributes:
        sampling: temperature and filters; None: the model's own.
        best_of: so many candidates (`Request`) are written; None: as many as `candidates` says.
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
        length: of what is written after it.
        constraints: key, pitch range, instruments and so on of what is written.
        alone: whether a beginning of few voices stays as it is; else others join it.
        how: sampling, best_of and random_seed (`How`).

    Raises:
        MidiError, SeedError: no music in it.
        ConstraintError: something that can never be.
    """
    vocabulary = model.vocabulary
    if isinstance(midi, str):
        seed = seed_from_notes(midi, vocabulary, constraints, style=model.style)
    else:
        seed = seed_from_midi(midi, vocabulary) if midi else no_seed(vocabulary)
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
    """Return voices of `midi` with others around them, which know what comes in three beats.

    Args:
        midi: a voice, or several of which these are kept (see `voices_of` in generation/seeds.py).
        voices: which of the model's instruments play them; by default the one that plays tunes, or
            the first of its parts that `midi` names.
        model, constraints, how: as in `continue_midi`.

    Raises:
        MidiError: no such voice in it.
        ConstraintError: something that can never be.
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
    """Return `midi` with some bars written anew, which lead into what follows; the rest is kept.

    Args:
        midi: the piece.
        bars, voices: which bars and whose (see `rewrite_from_midi` in generation/seeds.py).
        model, constraints, how: as in `continue_midi`.

    Raises:
        MidiError, SeedError: no such bar or voice in it.
        ConstraintError: something that can never be.
    """
    seed = rewrite_from_midi(midi, model.vocabulary, bars=bars, voices=voices)
    return _best(model, Request(seed, None, constraints), **how)


def _best(
    model: Model,
    request: Request,
    sampling: SamplingOptions | None = None,
    best_of: int | None = None,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Return the best of some pieces."""
    many = candidates(model) if best_of is None else best_of
    request = dataclasses.replace(
        request, sampling=sampling, candidates=many, random_seed=random_seed
    )
    return to_pretty_midi(compose(model, request)[0].score)


def write_piece(piece: Piece, stem: str | Path, key: str | None = None) -> list[Path]:
    """Write `stem`.mid, .wav, .png, .musicxml and .svg, each whole or not at all.

    Args:
        piece: music on a grid of seconds has no notation, so no .musicxml and no .svg. Where no
            sound can be made there is no .wav.
        stem: their path without its ending.
        key: the key of the notation; None: it is estimated.

    Returns:
        The paths of the files, in this order.
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
