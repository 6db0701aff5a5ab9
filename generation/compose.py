"""Where a trained model meets music: pieces continued, harmonized, ranked, and heard as they come.

generate.py is its command, and where Python programs import it from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pretty_midi
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from data.midi.io import to_pretty_midi, write_midi
from data.score import Score
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.constrained_state import ConstrainedState
from generation.constraints import UNCONSTRAINED, Constraints
from generation.length import Length
from generation.model import Model
from generation.note_stream import NoteStream, StreamedNote
from generation.seeds import Seed, given_from_midi, no_seed, seed_from_midi, seed_from_notes
from model.decoding import Ids
from model.sampling import SamplingOptions, sample
from rendering.audio import write_wav
from rendering.piano_roll import draw_piano_roll
from rendering.png import write_png

DEFAULT_SAMPLING = SamplingOptions(
    temperature=0.75, top_p=0.95
)  # at 1, pieces stray from their keys
DEFAULT_LENGTH = Length(bars=8)
ENDLESS = Length(endless=True)

TOLD_EVERY = 16  # tokens


@dataclass(frozen=True)
class Piece:
    """What a model wrote, with what it was given.

    Attributes:
        ids: (T,) its tokens, from Start to End.
        score: what they spell.
        prompt_tokens: so many ids were given.
        seed_steps: notes with an onset before this step were given: the seed.
        kept_program: so were those of this program: a tune that was harmonized.
        nats_per_note: how unlikely the model finds what it wrote, in nats a note (`ranked` tells).
    """

    ids: NDArray[np.int64]
    score: Score
    prompt_tokens: int
    seed_steps: int = 0
    kept_program: int | None = None
    nats_per_note: float = float("nan")

    def without_seed(self) -> Piece:
        """What the model wrote alone, from the bar on in which it begins."""
        score = self.score
        if self.kept_program is None:
            is_new = score.notes["onset"] >= self.seed_steps
        else:
            is_new = score.notes["program"] != self.kept_program
        bar = np.searchsorted(score.bar_starts, self.seed_steps, side="right") - 1
        new = dataclasses.replace(score, notes=score.notes[is_new])
        new = new.excerpt(min(int(bar), len(score.bars) - 1), len(score.bars))
        return dataclasses.replace(self, score=new, seed_steps=0, kept_program=None)


def compose(
    model: Model,
    seed: Seed | None = None,
    length: Length = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Pieces that begin with a seed and go on as asked, written side by side.

    Args:
        model: from `load`.
        seed: what they begin with (see generation/seeds.py); None: the model begins.
        length: of what is written after the seed.
        constraints: key, range, instruments and so on of what is written.
        choice: temperature and filters.
        samples: how many pieces, at least 1.
        random_seed: the same seed gives the same pieces.
        progress: whether a line on stderr tells how far they are.

    Raises:
        ConstraintError: something that can never be; before anything is written.
    """
    model, seed, guide = _guided(model, seed, length, constraints)
    return _pieces(model, seed, guide, sampling, samples, random_seed, progress)


def harmonize(
    model: Model,
    tune: Seed,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Pieces that keep every note of a tune, with other voices around it that the model writes.

    Args:
        tune: of one voice (`given_from_midi` and `voice_of` of generation/seeds.py).
        model, constraints, choice, samples, random_seed, progress: as in `compose`.

    Raises:
        ConstraintError: something that can never be; before anything is written.
    """
    model = _retimed(model, constraints)
    tune = _at_tempo(tune, model.vocabulary, constraints)
    guide = ConstrainedGrammar(model.vocabulary, constraints=constraints, given=tune.score)
    nothing = no_seed(model.vocabulary)
    pieces = _pieces(model, nothing, guide, sampling, samples, random_seed, progress)
    program = int(tune.score.notes["program"][0])
    return [dataclasses.replace(piece, kept_program=program) for piece in pieces]


def ranked(model: Model, pieces: list[Piece]) -> list[Piece]:
    """The pieces, the likeliest first, each with its nats per note.

    That is the model's own likelihood of what comes after the prompt, as model/scoring.py has
    it: under the grammar alone, whatever was asked for.
    """
    nats = model.token_nats([piece.ids for piece in pieces])
    judged = []
    for piece, each in zip(pieces, nats, strict=True):
        notes = int((piece.score.notes["onset"] >= piece.seed_steps).sum())
        per_note = float(each[piece.prompt_tokens - 1 :].sum()) / notes
        judged.append(dataclasses.replace(piece, nats_per_note=per_note))
    return sorted(judged, key=lambda piece: piece.nats_per_note)


def stream(
    model: Model,
    seed: Seed | None = None,
    length: Length = ENDLESS,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    random_seed: int = 0,
) -> Iterator[StreamedNote]:
    """The notes of one piece as they are written, each as soon as it is whole.

    The seed's notes are not among them, but times count from its beginning.

    Args:
        length: of what is written; without one it goes on for as long as one listens.
        model, seed, constraints, choice, random_seed: as in `compose`.

    Raises:
        ConstraintError: something that can never be; before the first note.
    """
    model, seed, guide = _guided(model, seed, length, constraints)
    listener = NoteStream(model.vocabulary)
    prompt, state = _begin(model, seed, guide, samples=1)
    for token in prompt.tolist():
        listener.hear(token)
    for ids in _sampled(model, prompt, guide, state, sampling, random_seed):
        note = listener.hear(int(ids[0]))
        if note is not None:
            yield note


def continue_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI | str | None = None,
    length: Length = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Music that begins with all of `midi`, and goes on: `compose` for pretty_midi.

    Args:
        midi: or seed notes such as "C4 E4 G4 C5"; None: the model begins.
        best_of: writes so many pieces and gives the likeliest (`ranked`).
        model, length, constraints, choice, random_seed: as in `compose`.

    Raises:
        MidiError, SeedError: no music in it.
        ConstraintError: something that can never be.
    """
    vocabulary = model.vocabulary
    if isinstance(midi, str):
        seed = seed_from_notes(midi, vocabulary, constraints)
    else:
        seed = seed_from_midi(midi, vocabulary) if midi else no_seed(vocabulary)
    pieces = compose(
        model,
        seed,
        length,
        constraints,
        sampling=sampling,
        samples=best_of,
        random_seed=random_seed,
    )
    return to_pretty_midi(ranked(model, pieces)[0].score)


def harmonize_midi(
    model: Model,
    tune: pretty_midi.PrettyMIDI,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voice: int = 1,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """A tune with the voices that the model writes around it: `harmonize` for pretty_midi.

    Args:
        tune: a voice, or several of which one is kept (see `voice_of` of generation/seeds.py).
        voice: which of the model's instruments it is, from 1.
        model, constraints, choice, best_of, random_seed: as in `continue_midi`.

    Raises:
        MidiError: no such voice in it.
        ConstraintError: something that can never be.
    """
    kept = given_from_midi(tune, model.vocabulary, voice=voice)
    pieces = harmonize(
        model, kept, constraints, sampling=sampling, samples=best_of, random_seed=random_seed
    )
    return to_pretty_midi(ranked(model, pieces)[0].score)


def write_piece(piece: Piece, stem: str | Path) -> list[Path]:
    """Writes `stem`.mid, .wav and .png, each whole or not at all; gives their paths."""
    stem = Path(stem)
    midi, wav, picture = (stem.with_name(stem.name + end) for end in (".mid", ".wav", ".png"))
    write_midi(piece.score, midi)
    write_wav(piece.score, wav)
    write_png(draw_piano_roll(piece.score, piece.seed_steps, piece.kept_program), picture)
    return [midi, wav, picture]


def _guided(
    model: Model, seed: Seed | None, length: Length, constraints: Constraints
) -> tuple[Model, Seed, ConstrainedGrammar]:
    """Model and seed at the tempo that is asked for, and the guide to what comes after the seed."""
    model = _retimed(model, constraints)
    seed = _at_tempo(seed or no_seed(model.vocabulary), model.vocabulary, constraints)
    return model, seed, ConstrainedGrammar(model.vocabulary, _after(seed, length), constraints)


def _retimed(model: Model, constraints: Constraints) -> Model:
    """The model at the tempo that is asked for, where it knows but one."""
    vocabulary = constraints.retimed(model.vocabulary)
    if vocabulary == model.vocabulary:
        return model
    return dataclasses.replace(model, vocabulary=vocabulary)


def _at_tempo(seed: Seed, vocabulary: Vocabulary, constraints: Constraints) -> Seed:
    """The seed at the tempo that is asked for."""
    number = constraints.tempo_number(vocabulary)
    return seed if number is None else seed.at_tempo(vocabulary.tempos[number])


def _after(seed: Seed, length: Length) -> Length:
    """The length of a whole piece of which so much comes after the seed; notes are the new."""
    bars, seconds = length.bars, length.seconds
    if bars is not None:
        bars += len(seed.score.bars)
    if seconds is not None:
        seconds += float(seed.score.step_seconds(seed.end_step))
    return dataclasses.replace(length, bars=bars, seconds=seconds)


def _begin(
    model: Model, seed: Seed, guide: ConstrainedGrammar, samples: int
) -> tuple[NDArray[np.int64], ConstrainedState]:
    """The prompt, and the state after it."""
    prompt = encode(seed.score, model.vocabulary)[:-1]  # the music goes on where End stood
    return prompt, guide.begin(prompt, samples, seed.end_step)


def _sampled(
    model: Model,
    prompt: NDArray[np.int64],
    guide: ConstrainedGrammar,
    state: ConstrainedState,
    sampling: SamplingOptions,
    random_seed: int,
) -> Iterator[Ids]:
    """What comes after the prompt, (B,) ids at a time; the state goes along."""
    return sample(
        model.decoder,
        [prompt] * len(state.place.kind),
        guide,
        state,
        generator=torch.Generator().manual_seed(random_seed),
        sampling=sampling,
        rebase=model.rebase,
        step=model.step,
    )


def _pieces(
    model: Model,
    seed: Seed,
    guide: ConstrainedGrammar,
    sampling: SamplingOptions,
    samples: int,
    random_seed: int,
    progress: bool,
) -> list[Piece]:
    """Pieces written side by side."""
    if samples < 1:
        raise ValueError(f"samples must be 1 or more, not {samples}")
    prompt, state = _begin(model, seed, guide, samples)
    columns = []
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # None: shown on a terminal alone
        for column in _sampled(model, prompt, guide, state, sampling, random_seed):
            columns.append(column)
            if len(columns) % TOLD_EVERY == 0:
                line.update(guide.plan.progress(state) - line.n)
    pieces = []
    for row in np.stack(columns, axis=1):  # (B, T)
        ids = np.concatenate([prompt, guide.ending(row)])
        pieces.append(Piece(ids, decode(ids, model.vocabulary), len(prompt), seed.end_step))
    return pieces
