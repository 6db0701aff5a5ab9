"""Pieces that a trained model writes: continued, harmonized, ranked, or heard note by note.

Python programs import these from generate.py, the command that uses them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import numpy as np
import pretty_midi
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from data.forms import Form
from data.keys import parse_key
from data.midi.io import to_pretty_midi, write_midi
from data.score import Score, canonical
from data.tokens.spans import NEVER
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.constrained_state import ConstrainedState
from generation.constraints import STRICT, UNCONSTRAINED, ConstraintError, Constraints
from generation.counterpoint import has_parallels_at
from generation.defaults import DEFAULT_LENGTH
from generation.given import GivenTokens
from generation.length import Length
from generation.model import Model
from generation.note_stream import NoteStream, StreamedNote
from generation.seeds import (
    Seed,
    Voice,
    accompanied,
    given_from_midi,
    no_seed,
    repeating,
    rewrite_from_midi,
    seed_from_midi,
    seed_from_notes,
)
from model.config import SamplingOptions
from model.decoding import Ids
from model.sampling import sample
from rendering.audio import has_sound, write_wav
from rendering.notation import has_notation, write_notation
from rendering.piano_roll import draw_piano_roll
from rendering.png import write_png

Notes: TypeAlias = list[tuple[int, StreamedNote]]  # each with the number of its piece, from 0
Result = TypeVar("Result")

ENDLESS = Length(endless=True)

PROGRESS_EVERY = 16  # tokens
MOST_GIVEN_HOURS = 1
MOST_GIVEN_TOKENS = 100_000
SIDE_BY_SIDE = 128  # pieces at most; their caches take 300 MB at width 128, guided twice that


@dataclass(frozen=True)
class Piece:
    """A piece that a model wrote, and what it was given.

    Attributes:
        ids: (T,) its tokens, from Start to End.
        score: the music that they encode.
        given: what was given, all of which is in it.
        nats_per_note: how unlikely the model finds the new notes, in nats per note; nan before
            `rank_by_likelihood`.
    """

    ids: NDArray[np.int64]
    score: Score
    given: GivenTokens
    nats_per_note: float = float("nan")

    @property
    def is_given(self) -> NDArray[np.bool_]:
        """Whether each note of the score, (N,), was given."""
        names = ["onset", "program", "pitch"]
        return np.isin(self.score.notes[names], self.given.seed.score.notes[names])

    def new_notes(self) -> Score:
        """Return the model's own notes alone, from the bar in which they may begin."""
        score = self.score
        new = dataclasses.replace(score, notes=score.notes[~self.is_given])
        bar = np.searchsorted(score.bar_starts, self.given.seed.first_open_step, side="right") - 1
        return new.excerpt(min(int(bar), len(score.bars) - 1), len(score.bars))


def compose(
    model: Model,
    seed: Seed | None = None,
    length: Length | None = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions | None = None,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Write pieces, side by side, that keep what is given and go on as asked.

    Args:
        model: from `load`.
        seed: notes that every piece keeps, and where new ones may begin (see generation/seeds.py);
            None: the model begins.
        length: of what is written after the seed; None: the piece ends with the seed's bars.
        constraints: key, pitch range, instruments and so on of what is written.
        sampling: temperature and filters; None: the model's own (`Model.sampling`).
        samples: how many pieces, at least 1.
        random_seed: the same number gives the same pieces.
        progress: whether to show a progress bar on stderr.

    Raises:
        ConstraintError: something that can never be; before anything is written.
    """
    prepared, grammar = prepare(model, seed, length, constraints)
    sampling = sampling or model.sampling
    if samples < 1:
        raise ValueError(f"samples must be 1 or more, not {samples}")
    generator = torch.Generator().manual_seed(random_seed)
    pieces: list[Piece] = []
    forms: list[dict[int, Form]] = []
    while len(pieces) < samples:  # in turns, which take no more memory the more they are
        count = min(SIDE_BY_SIDE, samples - len(pieces))
        drawn = _draw_forms(prepared, grammar, count, generator)
        pieces += _write(prepared, grammar, sampling, drawn, generator, progress)
        forms += drawn
    if not _takes_repeats(model, grammar):
        return pieces
    return [
        _result(_with_repeats(model, piece, its, constraints, sampling, (random_seed, number)))
        for number, (piece, its) in enumerate(zip(pieces, forms, strict=True))
    ]


def _draw_forms(
    model: Model, grammar: ConstrainedGrammar, samples: int, generator: torch.Generator
) -> list[dict[int, Form]]:
    """Draw the forms of pieces."""
    return model.draw_forms(samples, generator, grammar.meter, grammar.length.bars)


def _takes_repeats(model: Model, grammar: ConstrainedGrammar) -> bool:
    """Return whether pieces take repeats from the training set: from nothing, of some bars."""
    is_from_nothing = bool(grammar.length.bars and not grammar.given.bars)
    return is_from_nothing and any(form.repeats for form in model.style.forms)


def _with_repeats(
    model: Model,
    piece: Piece,
    drawn: dict[int, Form],
    constraints: Constraints,
    sampling: SamplingOptions,
    random_seed: tuple[int, int],
) -> Generator[Notes, None, Piece]:
    """Return a piece from nothing with the repeats of a training piece; yield once a token.

    Args:
        model, constraints, sampling: as in `compose`.
        piece: that the model wrote; what follows a repeat is written anew.
        drawn: the forms that were drawn for it.
        random_seed: and the number of the piece.
    """
    rng = np.random.default_rng(random_seed)
    score, writing = piece.score, None
    second, bars = score.bars[min(1, len(score.bars) - 1)], len(score.bars)
    meter = int(second["numerator"]), int(second["denominator"])
    form = model.form_for(drawn, meter, int(score.bars["length"][0]), bars, rng)
    if not form:
        return piece
    is_strict = constraints.in_style(model.style).counterpoint == STRICT
    for repeat in form.repeats:
        if writing:
            written = yield from writing.until(repeat.begin_step)
            score = _spliced(written.score, score)
        seed = repeating(score, repeat, model.vocabulary)
        if seed is None or (is_strict and has_parallels_at(seed.score, repeat.begin_step)):
            continue
        length = Length(bars=len(score.bars) - len(seed.score.bars))
        again = int(rng.integers(2**31))
        with suppress(ConstraintError):  # what is asked for leaves no way to go on
            writing = _Writing(*prepare(model, seed, length, constraints), sampling, form, again)
    if writing:
        written = yield from writing.until(NEVER)
        piece = dataclasses.replace(written, given=piece.given)
    return piece


class _Writing:
    """A piece that is written as far as is asked for.

    Args:
        model, grammar: from `prepare`.
        form: that the piece has.
        sampling, random_seed: as in `compose`.
    """

    def __init__(
        self,
        model: Model,
        grammar: ConstrainedGrammar,
        sampling: SamplingOptions,
        form: Form,
        random_seed: int,
    ) -> None:
        self._grammar, self._columns = grammar, list[Ids]()
        self._row = NoteStream(model.vocabulary)
        forms = [{model.vocabulary.grid.bar_steps(*form.meter): form}]
        generator = torch.Generator().manual_seed(random_seed)
        state = _result(_start(model, grammar, forms, generator, [self._row]))
        self._steps = _stream(model, grammar, sampling, [self._row], state, generator)

    def until(self, step: int) -> Generator[Notes, None, Piece]:
        """Write to the end of the bar of a step, or of the piece, and return what there is."""
        while self._row.bar_start <= step and (taken := next(self._steps, None)):
            self._columns.append(taken[0])
            yield []
        return _pieces(self._grammar, self._columns)[0]


def _spliced(new: Score, old: Score) -> Score:
    """Return a piece that has the bars of one, and then those of another."""
    count = len(new.bars)
    begin = old.bar_starts[count]
    after = old.notes[old.notes["onset"] >= begin].copy()
    after["onset"] += new.bar_starts[-1] - begin
    notes = np.concatenate([new.notes, after])
    bars = np.concatenate([new.bars, old.bars[count:]])
    tempo_bpm = np.concatenate([new.tempo_bpm, old.tempo_bpm[count:]])
    return canonical(notes, bars, tempo_bpm, old.grid)[0]


def _result(steps: Generator[object, None, Result]) -> Result:
    """Return what a generator returns at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast(Result, stop.value)


def rank_by_likelihood(model: Model, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces, the likeliest first, each with its nats per note.

    Last come those that no training piece is like (`Style.is_exceeded_by`): loops and walls of
    notes are likely, one note after the other.

    The likelihood is the model's own, as model/scoring.py defines it, from the first choice on and
    with nothing given: the notes that were kept after it count too, for they have to follow from
    what was written before them.
    """
    scored: list[Piece] = []
    nats: list[NDArray[np.float64]] = []
    for first in range(0, len(pieces), SIDE_BY_SIDE):
        nats += model.token_nats([piece.ids for piece in pieces[first : first + SIDE_BY_SIDE]])
    for piece, each in zip(pieces, nats, strict=True):
        chosen = each[len(piece.given.prompt) - 1 :]
        notes = int((piece.score.notes["onset"] >= piece.given.seed.first_open_step).sum())
        scored.append(dataclasses.replace(piece, nats_per_note=float(chosen.sum()) / max(notes, 1)))
    return sorted(
        scored, key=lambda piece: (model.style.is_exceeded_by(piece.score), piece.nats_per_note)
    )


def stream(
    model: Model,
    seed: Seed | None = None,
    length: Length = ENDLESS,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions | None = None,
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
    writing = stream_pieces(
        model, seed, length, constraints, sampling=sampling, random_seed=random_seed
    )
    for notes in writing:
        yield from (note for _, note in notes)


def stream_pieces(
    model: Model,
    seed: Seed | None = None,
    length: Length | None = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    sampling: SamplingOptions | None = None,
    samples: int = 1,
    random_seed: int = 0,
) -> Generator[Notes, None, list[Piece]]:
    """Write the pieces of `compose`, yielding once a token; whoever stops asking, stops it.

    It yields for each token that is given, too: a long piece has thousands.

    Args:
        model, seed, length, constraints, sampling, samples, random_seed: as in `compose`.

    Yields:
        The new notes that the latest tokens complete, each with the number of its piece, from 0.

    Returns:
        The pieces.

    Raises:
        ConstraintError: something that can never be; before the first token.
    """
    prepared, grammar = prepare(model, seed, length, constraints)
    sampling = sampling or model.sampling
    takes_repeats, columns = _takes_repeats(model, grammar), []
    begins: dict[int, int] = {}  # when what is repeated first begins, by piece
    streams = [NoteStream(prepared.vocabulary) for _ in range(samples)]
    generator = torch.Generator().manual_seed(random_seed)
    forms = _draw_forms(prepared, grammar, samples, generator)
    state = yield from _start(prepared, grammar, forms, generator, streams)
    for ids, notes in _stream(prepared, grammar, sampling, streams, state, generator):
        if not grammar.length.endless:
            columns.append(ids)
        for number, row in enumerate(streams if takes_repeats else []):
            if number not in begins and row.cursor.bar_count.item() == 2:
                meter = model.vocabulary.meters[ids[number] - model.vocabulary.first(Kind.BAR)]
                first_bar, bars = row.cursor.bar_start.item(), grammar.length.bars or 0
                rng = np.random.default_rng((random_seed, number))
                form = model.form_for(forms[number], meter, first_bar, bars, rng)
                begins[number] = form.repeats[0].begin_step if form and form.repeats else NEVER
        yield [each for each in notes if each[1].onset_steps < begins.get(each[0], NEVER)]
    pieces = _pieces(grammar, columns)
    for number, begin in begins.items():
        if begin < NEVER:
            mine = pieces[number], forms[number]
            again = _with_repeats(model, *mine, constraints, sampling, (random_seed, number))
            pieces[number] = yield from again
            row = NoteStream(prepared.vocabulary)
            added = [note for note in map(row.add, pieces[number].ids.tolist()) if note]
            yield [(number, note) for note in added if note.onset_steps >= begin]
    return pieces


def _stream(
    model: Model,
    grammar: ConstrainedGrammar,
    sampling: SamplingOptions,
    streams: Sequence[NoteStream],
    state: ConstrainedState,
    generator: torch.Generator,
) -> Iterator[tuple[Ids, Notes]]:
    """Yield the ids (B,) of each step, and the new notes that they complete, each with its row."""
    given = grammar.given
    kept = {*map(tuple, given.seed.score.notes[["onset", "program", "pitch"]].tolist())}
    for ids in _sample(model, grammar, state, sampling, generator):
        notes = [row.add(token) for row, token in zip(streams, ids.tolist(), strict=True)]
        yield (
            ids,
            [
                (number, note)
                for number, note in enumerate(notes)
                if note and (note.onset_steps, note.program, note.note.pitch) not in kept
            ],
        )


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


def continue_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI | str | None = None,
    length: Length = DEFAULT_LENGTH,
    constraints: Constraints = UNCONSTRAINED,
    *,
    alone: bool = False,
    sampling: SamplingOptions | None = None,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Return music that begins with all of `midi` and goes on: `compose` for pretty_midi.

    Args:
        midi: the beginning, or seed notes such as "C4 E4 G4 C5"; None: the model begins.
        alone: whether a beginning of few voices stays as it is; else others join it.
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
    seed = seed if alone else accompany(model, seed)
    return _best(model, seed, length, constraints, sampling, best_of, random_seed)


def harmonize_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voices: Sequence[Voice] = (),
    sampling: SamplingOptions | None = None,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Return voices of `midi` with others around them, which know what comes in three beats.

    Args:
        midi: a voice, or several of which these are kept (see `voices_of` in generation/seeds.py).
        voices: which of the model's instruments play them; by default its first, or the first of
            its parts that `midi` names.
        model, constraints, sampling, best_of, random_seed: as in `continue_midi`.

    Raises:
        MidiError: no such voice in it.
        ConstraintError: something that can never be.
    """
    seed = given_from_midi(midi, model.vocabulary, voices=voices)
    return _best(model, seed, None, constraints, sampling, best_of, random_seed)


def rewrite_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI,
    bars: tuple[int, int | None] | None = None,
    constraints: Constraints = UNCONSTRAINED,
    *,
    voices: Sequence[Voice] = (),
    sampling: SamplingOptions | None = None,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Return `midi` with some bars written anew, which lead into what follows; the rest is kept.

    Args:
        midi: the piece.
        bars, voices: which bars and whose (see `rewrite_from_midi` in generation/seeds.py).
        model, constraints, sampling, best_of, random_seed: as in `continue_midi`.

    Raises:
        MidiError, SeedError: no such bar or voice in it.
        ConstraintError: something that can never be.
    """
    seed = rewrite_from_midi(midi, model.vocabulary, bars=bars, voices=voices)
    return _best(model, seed, None, constraints, sampling, best_of, random_seed)


def _best(
    model: Model,
    seed: Seed,
    length: Length | None,
    constraints: Constraints,
    sampling: SamplingOptions | None,
    best_of: int,
    random_seed: int,
) -> pretty_midi.PrettyMIDI:
    """Return the likeliest of some pieces."""
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
        write_wav(piece.score, wav)
    roll = draw_piano_roll(piece.score, piece.given.seed.is_closed, piece.is_given)
    write_png(roll.svg, picture)
    written = [midi, wav, picture] if has_sound() else [midi, picture]
    if has_notation(piece.score.grid):
        notation = parse_key(key) if key else None
        written += write_notation(piece.score, stem, notation, piece.is_given)
    return written


def prepare(
    model: Model, seed: Seed | None, length: Length | None, constraints: Constraints
) -> tuple[Model, ConstrainedGrammar]:
    """Return the model at the tempo asked for, and the grammar of the piece.

    Raises:
        ConstraintError: more is given than can be written in minutes, or what can never be.
    """
    model = model.retimed(constraints)
    constraints = constraints.in_style(model.style)
    vocabulary = model.vocabulary
    seed = seed or no_seed(vocabulary)
    tempo = constraints.tempo_number(vocabulary)
    if tempo is not None:
        seed = seed.at_tempo(vocabulary.tempos[tempo])
    _check_size(seed.score, vocabulary)
    if length is None:
        length = Length(bars=len(seed.score.bars))
    else:  # of the whole piece; notes are the new ones
        bars, seconds = length.bars, length.seconds
        if bars is not None:
            bars += len(seed.score.bars)
        if seconds is not None:
            seconds = _seconds_with_seed(seconds, seed)
        length = dataclasses.replace(length, bars=bars, seconds=seconds)
    return model, ConstrainedGrammar(vocabulary, length, constraints, seed)


def _check_size(given: Score, vocabulary: Vocabulary) -> None:
    """Refuse music in which bars or notes go on for hours: each of their tokens costs a step."""
    hours = float(given.step_seconds(given.end_step)) / 3600
    if hours > MOST_GIVEN_HOURS:
        raise ConstraintError(f"what is given lasts {hours:.1f} hours: keep one at most")
    extends = given.notes["duration"] // vocabulary.longest_bar
    tokens = len(given.bars) + int((3 + extends).sum())
    if tokens > MOST_GIVEN_TOKENS:
        raise ConstraintError(
            f"what is given takes {tokens:,} tokens: keep {MOST_GIVEN_TOKENS:,} at most"
        )


def _seconds_with_seed(seconds: float, seed: Seed) -> float:
    """Return how long a piece is that goes on for so many seconds after a seed."""
    score = seed.score
    begin = float(score.step_seconds(seed.end_step))
    if len(score.bars):
        left = float(score.step_seconds(score.bar_starts[-1])) - begin
        if seconds <= left:  # where End could come at once
            raise ConstraintError(
                f"the seed's last bar goes on for {left:.2f} seconds: ask for more than {seconds:g}"
            )
    return begin + seconds


def _sample(
    model: Model,
    grammar: ConstrainedGrammar,
    state: ConstrainedState,
    sampling: SamplingOptions,
    generator: torch.Generator,
) -> Iterator[Ids]:
    """Yield the ids (B,) that follow the prompt, step by step; the state is changed in place."""
    return sample(
        model.steps,
        [grammar.given.prompt] * len(state.kind),
        grammar,
        state,
        generator=generator,
        sampling=sampling,
        rebase=model.rebase,
        group=model.choices,
    )


def _start(
    model: Model,
    grammar: ConstrainedGrammar,
    forms: Sequence[dict[int, Form]],
    generator: torch.Generator,
    streams: Sequence[NoteStream] = (),
) -> Generator[Notes, None, ConstrainedState]:
    """Return the state in which pieces of these forms begin; from nothing, keys are drawn.

    What is given is read, by the streams, too; a yield follows each of its tokens.
    """
    finals = [next((form.final_position for form in its.values()), -1) for its in forms]
    keys = [] if grammar.given.bars else model.draw_keys(len(forms), generator)
    state, prompt = grammar.begin(len(forms), np.array(finals), keys), grammar.given.prompt
    for row in streams:
        row.add(int(prompt[0]))
    for token, _ in zip(prompt[1:], grammar.read(state, prompt[1:]), strict=True):
        for row in streams:
            row.add(int(token))
        yield []
    return state


def _write(
    model: Model,
    grammar: ConstrainedGrammar,
    sampling: SamplingOptions,
    forms: Sequence[dict[int, Form]],
    generator: torch.Generator,
    progress: bool,
) -> list[Piece]:
    """Write pieces of these forms side by side."""
    state = _result(_start(model, grammar, forms, generator))
    columns = []
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # None: shown on a terminal alone
        for column in _sample(model, grammar, state, sampling, generator):
            columns.append(column)
            if len(columns) % PROGRESS_EVERY == 0:
                line.update(grammar.plan.progress(state) - line.n)
    return _pieces(grammar, columns)


def _pieces(grammar: ConstrainedGrammar, columns: Sequence[Ids]) -> list[Piece]:
    """Return the pieces whose ids after the prompt are the rows of (T, B)."""
    pieces = []
    for row in np.stack(columns, axis=1):  # (B, T)
        ids = grammar.whole(np.concatenate([grammar.given.prompt, row]))
        pieces.append(Piece(ids, decode(ids, grammar.vocabulary), grammar.given))
    return pieces
