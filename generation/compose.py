"""Pieces that a trained model writes: continued, harmonized, ranked, or heard note by note.

Python programs import these from generate.py, the command that uses them.
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

# At temperature 1 pieces stray from their keys.
DEFAULT_SAMPLING = SamplingOptions(temperature=0.75, top_p=0.95)
DEFAULT_LENGTH = Length(bars=8)
ENDLESS = Length(endless=True)

PROGRESS_EVERY = 16  # tokens


@dataclass(frozen=True)
class Piece:
    """A piece that a model wrote, and which of its notes were given.

    Attributes:
        ids: (T,) its tokens, from Start to End.
        score: the music that they encode.
        prompt_tokens: how many of the ids were given.
        seed_steps: notes with an onset before this grid step are the seed's.
        given_program: notes of this program were given too; None: there are none.
        nats_per_note: how unlikely the model finds the new notes, in nats per note; nan before
            `rank_by_likelihood`.
    """

    ids: NDArray[np.int64]
    score: Score
    prompt_tokens: int
    seed_steps: int = 0
    given_program: int | None = None
    nats_per_note: float = float("nan")

    def without_seed(self) -> Piece:
        """Return the piece with the model's own notes alone, from the bar in which they begin."""
        score = self.score
        if self.given_program is None:
            is_new = score.notes["onset"] >= self.seed_steps
        else:
            is_new = score.notes["program"] != self.given_program
        bar = np.searchsorted(score.bar_starts, self.seed_steps, side="right") - 1
        new = dataclasses.replace(score, notes=score.notes[is_new])
        new = new.excerpt(min(int(bar), len(score.bars) - 1), len(score.bars))
        return dataclasses.replace(self, score=new, seed_steps=0, given_program=None)


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
    """Write pieces, side by side, that begin with a seed and go on as asked.

    Args:
        model: from `load`.
        seed: the beginning of every piece (see generation/seeds.py); None: the model begins.
        length: of what is written after the seed.
        constraints: key, pitch range, instruments and so on of what is written.
        sampling: temperature and filters.
        samples: how many pieces, at least 1.
        random_seed: the same number gives the same pieces.
        progress: whether to show a progress bar on stderr.

    Raises:
        ConstraintError: something that can never be; before anything is written.
    """
    model, seed, grammar = _prepare(model, seed, length, constraints)
    return _write(model, seed, grammar, sampling, samples, random_seed, progress)


def harmonize(
    model: Model,
    given: Seed,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Write pieces that keep every given note, with other voices around them.

    Args:
        given: the notes of one voice (`given_from_midi`, or `voice_of` in generation/seeds.py).
        model, constraints, sampling, samples, random_seed, progress: as in `compose`.

    Raises:
        ConstraintError: something that can never be; before anything is written.
    """
    model = model.retimed(constraints)
    grammar = ConstrainedGrammar(model.vocabulary, constraints=constraints, given=given.score)
    nothing = no_seed(model.vocabulary)
    pieces = _write(model, nothing, grammar, sampling, samples, random_seed, progress)
    program = int(given.score.notes["program"][0])
    return [dataclasses.replace(piece, given_program=program) for piece in pieces]


def rank_by_likelihood(model: Model, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces, the likeliest first, each with its nats per note.

    The likelihood is the model's own of what follows the prompt, as model/scoring.py defines it:
    under the grammar alone, whatever was asked for.
    """
    nats = model.token_nats([piece.ids for piece in pieces])
    scored = []
    for piece, each in zip(pieces, nats, strict=True):
        notes = int((piece.score.notes["onset"] >= piece.seed_steps).sum())
        per_note = float(each[piece.prompt_tokens - 1 :].sum()) / notes
        scored.append(dataclasses.replace(piece, nats_per_note=per_note))
    return sorted(scored, key=lambda piece: piece.nats_per_note)


def stream(
    model: Model,
    seed: Seed | None = None,
    length: Length = ENDLESS,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    random_seed: int = 0,
) -> Iterator[StreamedNote]:
    """Yield the notes of one piece while it is written, each as soon as it is complete.

    The seed's notes are not among them, but times count from its beginning.

    Args:
        length: of what is written; by default the music never ends.
        model, seed, constraints, sampling, random_seed: as in `compose`.

    Raises:
        ConstraintError: something that can never be; before the first note.
    """
    model, seed, grammar = _prepare(model, seed, length, constraints)
    notes = NoteStream(model.vocabulary)
    prompt, state = _begin(model, seed, grammar, samples=1)
    for token in prompt.tolist():
        notes.add(token)
    for ids in _sample(model, prompt, grammar, state, sampling, random_seed):
        note = notes.add(int(ids[0]))
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
    """Return music that begins with all of `midi` and goes on: `compose` for pretty_midi.

    Args:
        midi: the beginning, or seed notes such as "C4 E4 G4 C5"; None: the model begins.
        best_of: write so many pieces and return the likeliest (`rank_by_likelihood`).
        model, length, constraints, sampling, random_seed: as in `compose`.

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
    return to_pretty_midi(rank_by_likelihood(model, pieces)[0].score)


def harmonize_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voice: int = 1,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Return a voice of `midi` with other voices around it: `harmonize` for pretty_midi.

    Args:
        midi: a voice, or several of which one is kept (see `voice_of` in generation/seeds.py).
        voice: which of the model's instruments plays it, from 1.
        model, constraints, sampling, best_of, random_seed: as in `continue_midi`.

    Raises:
        MidiError: no such voice in it.
        ConstraintError: something that can never be.
    """
    given = given_from_midi(midi, model.vocabulary, voice=voice)
    pieces = harmonize(
        model, given, constraints, sampling=sampling, samples=best_of, random_seed=random_seed
    )
    return to_pretty_midi(rank_by_likelihood(model, pieces)[0].score)


def write_piece(piece: Piece, stem: str | Path) -> list[Path]:
    """Write `stem`.mid, .wav and .png, each whole or not at all, and return their paths."""
    stem = Path(stem)
    midi, wav, picture = (stem.with_name(stem.name + end) for end in (".mid", ".wav", ".png"))
    write_midi(piece.score, midi)
    write_wav(piece.score, wav)
    write_png(draw_piano_roll(piece.score, piece.seed_steps, piece.given_program), picture)
    return [midi, wav, picture]


def _prepare(
    model: Model, seed: Seed | None, length: Length, constraints: Constraints
) -> tuple[Model, Seed, ConstrainedGrammar]:
    """Return model and seed at the tempo asked for, and the grammar of what follows the seed."""
    model = model.retimed(constraints)
    vocabulary = model.vocabulary
    seed = seed or no_seed(vocabulary)
    tempo = constraints.tempo_number(vocabulary)
    if tempo is not None:
        seed = seed.at_tempo(vocabulary.tempos[tempo])
    bars, seconds = length.bars, length.seconds  # of the whole piece; notes are the new ones
    if bars is not None:
        bars += len(seed.score.bars)
    if seconds is not None:
        seconds += float(seed.score.step_seconds(seed.end_step))
    length = dataclasses.replace(length, bars=bars, seconds=seconds)
    return model, seed, ConstrainedGrammar(vocabulary, length, constraints)


def _begin(
    model: Model, seed: Seed, grammar: ConstrainedGrammar, samples: int
) -> tuple[NDArray[np.int64], ConstrainedState]:
    """Return the prompt, (T,), and the state after it."""
    prompt = encode(seed.score, model.vocabulary)[:-1]  # the music goes on where End stood
    return prompt, grammar.begin(prompt, samples, seed.end_step)


def _sample(
    model: Model,
    prompt: NDArray[np.int64],
    grammar: ConstrainedGrammar,
    state: ConstrainedState,
    sampling: SamplingOptions,
    random_seed: int,
) -> Iterator[Ids]:
    """Yield the ids (B,) that follow the prompt, a token a step; the state is changed in place."""
    return sample(
        model.decoder,
        [prompt] * len(state.kind),
        grammar,
        state,
        generator=torch.Generator().manual_seed(random_seed),
        sampling=sampling,
        rebase=model.rebase,
        step=model.step,
    )


def _write(
    model: Model,
    seed: Seed,
    grammar: ConstrainedGrammar,
    sampling: SamplingOptions,
    samples: int,
    random_seed: int,
    progress: bool,
) -> list[Piece]:
    """Write pieces side by side."""
    if samples < 1:
        raise ValueError(f"samples must be 1 or more, not {samples}")
    prompt, state = _begin(model, seed, grammar, samples)
    columns = []
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # None: shown on a terminal alone
        for column in _sample(model, prompt, grammar, state, sampling, random_seed):
            columns.append(column)
            if len(columns) % PROGRESS_EVERY == 0:
                line.update(grammar.plan.progress(state) - line.n)
    pieces = []
    for row in np.stack(columns, axis=1):  # (B, T)
        ids = np.concatenate([prompt, grammar.ending(row)])
        pieces.append(Piece(ids, decode(ids, model.vocabulary), len(prompt), seed.end_step))
    return pieces
