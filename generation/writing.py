"""Write the pieces of a request token by token, choose among candidates, and add repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from common.arrays import Bools, Ids, Ints
from common.interface import PAD
from data.canonical import canonical
from data.chords import Span
from data.critic import Critic
from data.ensembles import registers_of
from data.forms import Form
from data.harmony import chords_of
from data.keys import Key
from data.loops import loops_of
from data.score import Score
from data.texture import has_regular_bars
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import NEVER, Kind, Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import UNCONSTRAINED, ConstraintError, Constraints
from generation.counterpoint import has_parallels_at
from generation.given import GivenTokens
from generation.length import Length
from generation.model import Model
from generation.note_stream import NoteStream, StreamedNote, notes_of
from generation.request import Request
from generation.rows import ConstrainedState, Rows
from generation.seeds import no_seed, repeating
from model.sampling import sample

Notes: TypeAlias = list[tuple[int, StreamedNote]]  # each with the number of its piece, from 0

BARS_AT_ONCE = 2  # a critic that weighs moves chooses among the candidates after so many bars
BARS_OF_STATISTICS = 4  # a critic that does not chooses after so many
SIDE_BY_SIDE = 128  # pieces at most; caches take 300 MB at width 128, with guidance twice that


@dataclass(frozen=True)
class Piece:
    """A piece that a model wrote, and what it was given.

    Attributes:
        ids: (T,) its tokens, from Start to End.
        score: the music that the tokens encode.
        given: what was given; the piece contains all of it.
        likeness: how much it resembles training pieces (`rank`); nan if that was not computed.
        chords: the chords that were asked for.
        is_whole: whether it is written to its end.
    """

    ids: Ints
    score: Score
    given: GivenTokens
    likeness: float = float("nan")
    chords: tuple[Span, ...] = ()
    is_whole: bool = True

    @property
    def is_given(self) -> Bools:
        """Bool (N,), which notes of the score were given."""
        names = ["onset", "program", "pitch"]
        return np.isin(self.score.notes[names], self.given.seed.score.notes[names])

    @property
    def harmony(self) -> list[Span]:
        """The chords of the piece: the requested ones, and elsewhere those found in its notes."""
        found = [
            span
            for span in chords_of(self.score)
            if not any(span.begin < own.end and own.begin < span.end for own in self.chords)
        ]
        return sorted([*self.chords, *found])

    @property
    def first_new_bar(self) -> int:
        """The index of the bar in which the model's own notes may begin."""
        starts = self.score.bar_starts[:-1]
        return int(np.searchsorted(starts, self.given.seed.first_open_step, side="right")) - 1

    def new_notes(self) -> Score:
        """Return the model's own notes alone, from the bar in which they may begin."""
        new = replace(self.score, notes=self.score.notes[~self.is_given])
        return new.excerpt(self.first_new_bar, len(self.score.bars))

    def without_given(self, vocabulary: Vocabulary) -> Piece:
        """Return the music of `new_notes` as a piece, with the chords that were asked for in it."""
        begin = int(self.score.bar_starts[self.first_new_bar])
        chords = tuple(
            span._replace(begin=max(span.begin - begin, 0), end=span.end - begin)
            for span in self.chords
            if span.end > begin
        )
        given = GivenTokens(no_seed(vocabulary), vocabulary)
        return replace(self, score=self.new_notes(), given=given, chords=chords)


def rank(
    model: Model, pieces: Sequence[Piece], constraints: Constraints = UNCONSTRAINED
) -> list[Piece]:
    """Return the pieces, best first, each with its likeness.

    Pieces in which fewer of the requested programs are silent come first. Among these, pieces that
    go beyond every training piece (`Style.is_exceeded_by`) come last. The rest is decided by how
    much a piece resembles training pieces (`judged`).
    """
    found = judged(model, pieces)
    return sorted(found, key=lambda piece: standing(model, piece, constraints))


def critic_of(model: Model) -> Critic | None:
    """Return the model's critic, which says how much a piece resembles training pieces, or None."""
    critic = model.style.critic
    return critic if critic is not None and critic.is_current else None


def judged(model: Model, pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with their likeness: the greater, the better.

    The model's critic (data/critic.py) computes it. Without a critic, it is minus the nats per
    note.
    """
    critic = critic_of(model)
    if critic is not None:
        found = [critic.likeness(piece.score, piece.is_whole) for piece in pieces]
    else:
        found = [-nats for nats in _nats_per_note(model, pieces)]
    return [replace(piece, likeness=each) for piece, each in zip(pieces, found, strict=True)]


def standing(model: Model, piece: Piece, constraints: Constraints) -> tuple[int, bool, float]:
    """Return the sort key of a judged piece; the best piece has the smallest (`rank`)."""
    silent = len(silent_programs(piece.score, model.vocabulary, constraints))
    return silent, model.style.is_exceeded_by(piece.score), -piece.likeness


def silent_programs(score: Score, vocabulary: Vocabulary, constraints: Constraints) -> list[int]:
    """Return which of the requested programs play no note in a piece."""
    asked = [] if constraints.programs is None else constraints.playing(vocabulary)
    return sorted({*asked} - {*score.notes["program"].tolist()})


def _nats_per_note(model: Model, pieces: Sequence[Piece]) -> Iterator[float]:
    """Yield how unlikely the model finds the new notes of each piece, in nats per note.

    The likelihood is that of model/scoring.py, from the model's first choice on, as if nothing were
    given. So kept notes after that choice count too: they have to follow from what was written
    before them.
    """
    for first in range(0, len(pieces), SIDE_BY_SIDE):
        some = pieces[first : first + SIDE_BY_SIDE]
        for piece, nats in zip(some, model.token_nats([p.ids for p in some]), strict=True):
            chosen = nats[len(piece.given.prompt) - 1 :]
            new = piece.score.notes["onset"] >= piece.given.seed.first_open_step
            yield float(chosen.sum()) / max(int(new.sum()), 1)


class Writing:
    """The pieces of a request; iterating over this object writes them, token by token.

    Each turn yields the new notes that it completes, or none if there are several candidates. A
    caller stops the writing by no longer iterating.

    A piece from nothing takes the form of a training piece, in which passages repeat. It is first
    written without repeats. Then everything from the first repeat on is rewritten, and those notes
    are yielded at the end.

    A given tune that lies octaves outside the range of its instrument in training pieces is moved
    into that range for the model (`Request.in_ranges`). All that the instrument plays is moved back
    in the result.

    Attributes:
        request, model, sampling: the request, the model, and the options that it samples with.
        pieces: the pieces that are complete; all of them after the last turn.

    Raises:
        ConstraintError: the request can never be met; raised before the first turn.
    """

    def __init__(self, model: Model, request: Request) -> None:
        self._is_strict = request.is_strict(model)
        request, ways = request.in_ranges(model)
        self._back = {program: -way for program, way in ways.items()}
        self.request, self.pieces = request, list[Piece]()
        self.model, self._grammar = request.to(model)
        self.sampling = request.sampling or model.sampling
        self._rows: _Rows | None = None  # the pieces that are being written
        model.compile_reading()

    @property
    def progress(self) -> float:
        """The share that is written, from 0 to 1, not counting what is rewritten for repeats."""
        rows = self._rows
        many = self.request.candidates
        now = rows.count / many * self._grammar.progress(rows.state) if rows else 0
        return (len(self.pieces) + now) / self.request.samples

    @property
    def bars_written(self) -> int:
        """The number of whole bars that every piece being written has."""
        return int(self._rows.state.at["bar_count"].min()) - 1 if self._rows else 0

    @property
    def drafts(self) -> list[Piece]:
        """The complete pieces, and those being written as far as they are."""
        return self.pieces + (self._rows.pieces if self._rows else [])

    def __iter__(self) -> Iterator[Notes]:
        samples, seed = self.request.samples, self.request.random_seed
        candidates, rng = self.request.candidates, np.random.default_rng(seed)
        at_once = max(SIDE_BY_SIDE // candidates, 1)
        for first in range(0, samples, at_once):  # in groups, to bound the memory
            state = self._begin(min(at_once, samples - first), rng)
            drawn = state.rows
            rows = self._rows = _Rows(self, self._grammar, state, rng)
            for notes in rows.turns:
                self._draw_forms(rows, first * candidates)
                yield [
                    (first + number, note.moved(self._back.get(note.program, 0)))
                    for number, note in notes
                    if (form := rows.form_of(number)) is None
                    or note.onset_steps < form.repeats[0].begin_step
                ]
            self._rows, self.pieces = None, [*self.pieces, *map(self._put_back, rows.pieces)]
            for number in range(len(drawn.at)):
                if form := rows.form_of(number):
                    own = Rows._make(array[number : number + 1] for array in drawn)
                    yield from self._write_anew(first + number, form, own)

    def _begin(self, count: int, rng: np.random.Generator) -> ConstrainedState:
        """Begin pieces; draw their key, programs, rhythm and so on, unless given notes decide."""
        grammar, style, asked = self._grammar, self.model.style, self.request.constraints
        vocabulary, given = grammar.vocabulary, grammar.given.seed.score
        finals = style.draw_final_positions(count, rng, grammar.meter)
        if grammar.joined_end >= 0:
            finals[:] = grammar.joined_end
        elif grammar.has_end:  # at the bar line if no training piece ends in this meter
            closes = self._is_strict or style.mostly_closes  # else training pieces fade out
            finals = finals.clip(0) if closes else np.zeros_like(finals)
        beat = vocabulary.grid.steps_per_beat
        keys, loops, regular = list[Key | None](), None, None
        if grammar.given.bars:  # regular given bars are followed by regular bars
            if asked.regular_bars is None and vocabulary.grid.has_meter and has_regular_bars(given):
                regular = np.ones(count, dtype=bool)
            begun = {*(given.bar_positions[1] % beat).tolist()}
            steps = style.draw_rhythms(count, rng, beat, begun)
            ensembles = self._ensembles(count, rng) if grammar.anyone_joins else []
            loops = self._loops_after(count, rng)
        else:
            keys, ensembles = style.draw_keys(count, rng), self._ensembles(count, rng)
            steps = style.draw_rhythms(count, rng, beat)
            playing = ensembles or [tuple(grammar.programs)] * count
            if not asked.chords:  # requested chords decide what repeats
                loops = style.draw_loops(rng, vocabulary.programs, playing)
            if asked.regular_bars is None:
                regular = style.draw_regular(count, rng)
        playable = self._playable(ensembles, rng, count)
        return grammar.begin(count, finals, keys, ensembles, steps, loops, regular, playable)

    def _loops_after(self, count: int, rng: np.random.Generator) -> Ints | None:
        """Draw the loops with which pieces go on after the given bars; None: nothing is known."""
        grammar, style, given = self._grammar, self.model.style, self._grammar.given.seed
        is_free = grammar.goes_on and not self.request.constraints.chords
        if not (style.loops and is_free and has_regular_bars(given.score)):
            return None
        bars = np.searchsorted(given.score.bar_starts, given.end_step, side="right")
        begun = loops_of(given.score.excerpt(0, int(bars) - 1))
        return style.draw_loops_after(rng, grammar.vocabulary.programs, begun, count)

    def choose(self, candidates: Sequence[Piece]) -> int:
        """Return the index of the best candidate, as far as they are written."""
        if len(candidates) == 1:
            return 0
        best = rank(self.model, candidates, self.request.constraints)[0]
        return [piece.ids is best.ids for piece in candidates].index(True)

    def _ensembles(self, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw the programs of each piece, which include the given ones; empty: all may play."""
        grammar = self._grammar
        if not grammar.is_of_many or self.request.constraints.programs is not None:
            return []
        given = {*grammar.given.seed.score.notes["program"].tolist()}
        return self.model.style.draw_ensembles(count, rng, grammar.programs, given)

    def _playable(
        self, ensembles: Sequence[Sequence[int]], rng: np.random.Generator, count: int
    ) -> Bools | None:
        """Draw which notes may be new in each piece, (B, N).

        Music that goes on from given notes of many programs keeps to the registers of these. None:
        any note, because there are no registers or because requested chords may need them.
        """
        grammar = self._grammar
        given, registers = grammar.given, self.model.style.draw_registers(rng, ensembles)
        if given.bars and grammar.is_of_many and grammar.goes_on:
            registers = [registers_of(given.seed.score)] * count
        return grammar.within(registers) if registers and not grammar.chords else None

    def _put_back(self, piece: Piece) -> Piece:
        """Return a piece with moved voices moved back."""
        if not self._back:
            return piece
        score, vocabulary = piece.score.moved(self._back), self._grammar.vocabulary
        given = GivenTokens(piece.given.seed.moved(self._back), vocabulary)
        return replace(piece, ids=encode(score, vocabulary), score=score, given=given)

    def _rng(self, number: int) -> np.random.Generator:
        """Return the random generator of a piece, by its number."""
        return np.random.default_rng((self.request.random_seed, number))

    def _draw_forms(self, rows: _Rows, first: int) -> None:
        """Draw forms for those pieces from nothing whose second bar has just begun."""
        bars, state, vocabulary = self._grammar.length.bars, rows.state, self.model.vocabulary
        if not bars or self._grammar.given.bars or self.request.constraints.chords:
            return  # requested chords decide what repeats
        is_bar = vocabulary.kind_of[rows.ids] == Kind.BAR
        begun = is_bar & (state.at["bar_count"] == 2)
        for row in np.flatnonzero(begun).tolist():
            number = rows.ids[row] - vocabulary.first(Kind.BAR)
            first_bar, final = (int(state.at[row][n]) for n in ("bar_start", "final_position"))
            last_bar = first_bar + (bars - 2) * int(vocabulary.whole_bars[number])
            meter, rng = vocabulary.meters[number], self._rng(first + row)
            form = self.model.style.draw_form(meter, first_bar, bars, final, last_bar, rng)
            if form and form.repeats:
                rows.forms[row] = form

    def _write_anew(self, number: int, form: Form, drawn: Rows) -> Iterator[Notes]:
        """Rewrite a piece from its first repeat on, with each passage copied where it repeats.

        Args:
            number, form: the number of the piece, and its form.
            drawn: the first state of its row, with everything that was drawn for it.
        """
        piece, rows, rng = self.pieces[number], None, self._rng(number)
        asked = self.request.constraints
        score = piece.score
        for repeat in form.repeats:
            if rows:
                yield from rows.until(repeat.begin_step)
                score = _spliced(rows.best.score, score)
            seed = repeating(score, repeat, self.model.vocabulary)
            if seed is None or (
                self._is_strict and has_parallels_at(seed.score, repeat.begin_step)
            ):
                continue
            length = Length(bars=len(score.bars) - len(seed.score.bars))
            with suppress(ConstraintError):  # the repeat leaves no way to meet the request
                again = replace(asked, closes=self._grammar.has_end)
                request = replace(self.request, seed=seed, length=length, constraints=again)
                _, grammar = request.to(self.model)
                state = grammar.begin(
                    1,
                    form.final_position,
                    steps=drawn.steps,
                    loops=drawn.loops,
                    regular=drawn.at["is_regular"],
                    playable=drawn.free_at < NEVER,
                )
                rows = _Rows(self, grammar, state, rng)
        if rows:
            yield from rows.until(NEVER)
            self.pieces[number] = replace(rows.pieces[0], given=piece.given)
        if self.request.candidates == 1:
            notes, begin = notes_of(self.pieces[number].score), form.repeats[0].begin_step
            yield [(number, note) for note in notes if note.onset_steps >= begin]


class _Rows:
    """Pieces of one grammar that are written side by side, with several candidates for each.

    With a critic, the candidates of a piece wait for each other every few bars. One is chosen, and
    all candidates go on from it. The last choice is at the end.

    Args:
        writing: the Writing that the pieces belong to. The candidates of a piece are adjacent rows.
        grammar: from `Request.to`.
        state: the state in which the pieces begin, one row for each.
        generator: for the random choices.

    Attributes:
        state: where each of B rows stands.
        ids: (B,) the latest id of each row.
        forms: the forms with repeats, by row; the Writing draws and sets them.
        turns: an iterator that writes one token a turn. It yields the new notes as soon as they are
            complete, each with the number of its piece, or none if there are several candidates.
    """

    def __init__(
        self,
        writing: Writing,
        grammar: ConstrainedGrammar,
        state: ConstrainedState,
        generator: np.random.Generator,
    ) -> None:
        self._writing, self.state, self._grammar = writing, state, grammar
        self._candidates, self._columns = writing.request.candidates, list[Ids]()
        grammar.read(state, grammar.given.prompt[1:])
        state.take(np.arange(self.count).repeat(self._candidates))
        self.ids, self.forms = np.full(self.count, grammar.given.prompt[-1]), dict[int, Form]()
        self.turns = self._write(generator)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.state.at)

    def form_of(self, number: int) -> Form | None:
        """Return the form of a piece, if it has one with repeats."""
        return self.forms.get(number * self._candidates)

    def _write(self, generator: np.random.Generator) -> Iterator[Notes]:
        model, grammar, state = self._writing.model, self._grammar, self.state
        given, is_alone, is_over = grammar.given, self._candidates == 1, False
        kept = {*map(tuple, given.seed.score.notes[["onset", "program", "pitch"]].tolist())}
        bar_seconds = float(given.seed.score.step_seconds(state.at["bar_start"][0]))
        stream = NoteStream(model.vocabulary, state.at, bar_seconds)
        while not is_over:
            is_over = True
            if (critic := critic_of(model)) and not is_alone:
                bars = BARS_AT_ONCE if critic.moves else BARS_OF_STATISTICS
                state.at["rest_after"] = state.at["bar_count"].max() + bars
            for ids in sample(
                model.steps,
                self._ids_so_far(),
                grammar,
                state,
                generator=generator,
                sampling=self._writing.sampling,
                rebase=model.rebase,
                group=model.choices,
                tilt=grammar.tilt,
                copies=self._candidates,
            ):
                self.ids, is_over = ids, is_alone
                if not grammar.length.endless:
                    self._columns.append(ids)
                yield [
                    (row, note)
                    for row, note in (stream.read(state.at, ids) if is_alone else ())
                    if (note.onset_steps, note.program, note.note.pitch) not in kept
                ]
            if not is_over:
                self._keep_chosen()

    def _keep_chosen(self) -> None:
        """Replace the candidates of each piece by copies of the chosen one."""
        pieces, each = self._as_far_as_written(), self._candidates
        chosen = [
            first + self._writing.choose(pieces[first : first + each])
            for first in range(0, len(pieces), each)
        ]
        order = np.repeat(chosen, each)
        self.state.take(order)
        self._columns = [ids[order] for ids in self._columns]
        self.forms = {row: self.forms[n] for row, n in enumerate(order.tolist()) if n in self.forms}

    def until(self, step: int) -> Iterator[Notes]:
        """Write to the end of the bar that holds a step, or of the pieces; yield no notes."""
        while self.state.at["bar_start"].min() <= step and next(self.turns, None) is not None:
            yield []

    @property
    def best(self) -> Piece:
        """The best of all rows, as far as they are written; the rows do not change."""
        pieces = self._as_far_as_written()
        return pieces[self._writing.choose(pieces)]

    @property
    def pieces(self) -> list[Piece]:
        """The pieces as far as they are written; each is its first candidate."""
        return self._as_far_as_written(self._candidates)

    def _ids_so_far(self) -> list[Ids]:
        """Return the ids of each row, without Pad."""
        columns = np.array(self._columns, np.int64).reshape(-1, self.count)  # (T, B)
        return [np.concatenate([self._grammar.given.prompt, ids[ids != PAD]]) for ids in columns.T]

    def _as_far_as_written(self, each: int = 1) -> list[Piece]:
        """Return the piece of every row, or of every `each`-th one."""
        grammar, pieces = self._grammar, []
        has_ended = grammar.has_ended(self.state).tolist()
        for row, is_whole in zip(self._ids_so_far()[::each], has_ended[::each], strict=True):
            ids, given, chords = grammar.whole(row), grammar.given, grammar.chords
            score = decode(ids, grammar.vocabulary)
            pieces.append(Piece(ids, score, given, chords=chords, is_whole=is_whole))
        return pieces


def _spliced(new: Score, old: Score) -> Score:
    """Return a piece that has the bars of `new`, and then the later bars of `old`."""
    count = len(new.bars)
    begin = old.bar_starts[count]
    after = old.notes[old.notes["onset"] >= begin].copy()
    after["onset"] += new.bar_starts[-1] - begin
    notes = np.concatenate([new.notes, after])
    bars = np.concatenate([new.bars, old.bars[count:]])
    tempo_bpm = np.concatenate([new.tempo_bpm, old.tempo_bpm[count:]])
    return canonical(notes, bars, tempo_bpm, old.grid)[0]
