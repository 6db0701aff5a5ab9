"""The grammar of a vocabulary, narrowed by a length, constraints and given notes.

Sampling sees it as it sees the grammar. It only takes ids away from what the grammar allows (and
forces those of given notes), so that what is sampled is grammatical. It takes them away early
enough that a way to the end that is asked for is always left: there are no dead ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.keys import Key, key_number
from data.tokens.features import SideArrays, SideFeatures
from data.tokens.grammar import Grammar
from data.tokens.vocabulary import NEVER, Kind, Vocabulary
from data.tokens.windows import read_windows
from generation.avoid_copying import AvoidCopying
from generation.constrained_state import ConstrainedState, LatestNotes, Window
from generation.constraints import NO_RESTS, STRICT, UNCONSTRAINED, ConstraintError, Constraints
from generation.counterpoint import (
    FinalTriad,
    OneNoteAtATime,
    Seams,
    StrictCounterpoint,
    VoiceRanges,
    narrow_or_yield,
)
from generation.given import GivenTokens
from generation.length import Length, LengthPlan
from generation.no_rests import NoRests
from generation.seeds import Seed, no_seed

LONGEST_NOTE = 32  # in longest Durations: sampling that only takes the likeliest may Extend forever
EMPTY_BARS = 16  # and, where no end is asked for, begin empty bars forever
KEY_GUIDANCE = 0.5  # benchmarks/RESULTS.md: with 1 pieces become unlikely

# The kinds of the latest id after which a rule has something to mask; after others it is skipped.
_BAR_HEAD = {Kind.BAR, Kind.LENGTH}
_NOTE_END = {Kind.DURATION, Kind.VELOCITY}
_BEFORE_POSITION = {Kind.START, Kind.BAR, Kind.LENGTH, Kind.TEMPO, *_NOTE_END}
_BEFORE_NOTE = {Kind.POSITION, *_NOTE_END}
_BEFORE_DURATION = {Kind.NOTE, Kind.EXTEND}

Rule = Callable[[NDArray[np.bool_], ConstrainedState], None]  # takes ids away from a mask (B, V)


class ConstrainedGrammar:
    """The grammar of a vocabulary under a length, constraints and given notes.

    How it avoids dead ends: each piece has a deadline, the last step that it can still reach.
    As long as its last bar has no note, every note ends by the deadline, and some note that the
    model may play can still begin before it; durations and bars that would break this are masked.
    So the last bar always gets a note. Where the model begins a bar after the last, the piece is
    over: that Bar stands for End (`whole` replaces it). So a bar is full when the model finds it
    full, not when it happens to think of the end.

    Args:
        vocabulary: of the model.
        length: how long the piece is, with what is given; None: the model ends it.
        constraints: what the model may play; None: anything.
        seed: the notes that are kept, and where the model may write others; None: it begins.

    Attributes:
        grammar: the grammar that is narrowed.
        given: what is given, as tokens.
        plan: where the piece may end.
        guidance: with which `sample` leads the model to the key where it goes on after given voices
            that it joins, or in a key that is asked for; else 0.

    Raises:
        ConstraintError: no piece can be as it is asked for.
        VocabularyError: the vocabulary has no token for something that is given.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        length: Length | None = None,
        constraints: Constraints | None = None,
        seed: Seed | None = None,
    ) -> None:
        constraints = constraints or UNCONSTRAINED
        seed = seed or no_seed(vocabulary)
        self.vocabulary = vocabulary
        self.length = length or Length()
        self.grammar = Grammar(vocabulary)
        self.features = SideFeatures(vocabulary)
        self._tempo = constraints.tempo_number(vocabulary)
        self._meter = constraints.meter_number(vocabulary)
        if self._tempo is not None:
            seed = seed.at_tempo(vocabulary.tempos[self._tempo])
        self.given = GivenTokens(seed, vocabulary)
        self._given_notes = self.features.gathered([self.given.notes])
        self._key = constraints.parsed_key or self.given.key
        is_open = self.given.notes.is_open
        is_joined = bool((is_open.any(axis=0) & ~is_open.all(axis=0)).any())
        goes_on = self.length.bars != self.given.bars
        is_asked = bool(constraints.parsed_key and self.given.bars)
        self.guidance = KEY_GUIDANCE if self._key and (is_joined or is_asked) and goes_on else 0.0
        self._is_barred = ~constraints.candidates(vocabulary)  # (N,)
        runs = constraints.avoided_runs
        self._avoid = AvoidCopying(runs, self.given, self._is_barred) if runs else None
        self._reads_latest = constraints.counterpoint == STRICT or constraints.rests == NO_RESTS
        polyphony = constraints.max_polyphony or NEVER
        self._max_polyphony = polyphony if polyphony < len(self._is_barred) else NEVER
        self.plan = LengthPlan(
            vocabulary=vocabulary,
            length=self.length,
            last_bar=self.length.bars or NEVER,
            meter=self._meter,
            given=self.given,
            is_regular=bool(constraints.regular_bars and vocabulary.grid.has_meter),
        )
        self._last_rules = self._last_rules_in_force(constraints)
        self._numbers = np.arange(vocabulary.size)
        self._program_of = self.features.layout.program_of
        self._needs_last_note, self._last_chance = True, NEVER
        self._check_given(constraints)
        self._rules = self._rules_in_force()

    @property
    def meter(self) -> tuple[int, int] | None:
        """The time signature that is asked for or given last; None: the model's choice."""
        if self._meter is not None:
            return self.vocabulary.meters[self._meter]
        bars = self.given.seed.score.bars
        return (int(bars["numerator"][-1]), int(bars["denominator"][-1])) if len(bars) else None

    def _rules_in_force(self) -> list[tuple[set[Kind], Rule]]:
        """Return the rules that narrow the mask, in order, each with the kinds it comes after."""
        rules: list[tuple[set[Kind], Rule]] = []
        length = self.length
        if self._tempo is not None or length.seconds:
            rules.append((_BAR_HEAD, self._mask_tempos))
        if self._meter is not None:
            rules.append((_BEFORE_POSITION, self._mask_meters))
        if length.seconds:
            rules.append((_BEFORE_POSITION, self._mask_positions_after_limit))
        if self._max_polyphony < NEVER:
            rules.append((_BEFORE_POSITION, self._mask_full_positions))
            rules.append((_BEFORE_NOTE, self._mask_notes_too_many))
        rules.append((_BEFORE_DURATION, self._mask_long_durations))
        if length.bars:
            rules.append((_BEFORE_POSITION, self._mask_short_bars))
            rules.append(({Kind.BAR}, self._mask_all_but_rest_of_upbeat))
        if length.bars or length.seconds:
            rules.append((_BEFORE_POSITION, self._mask_end_before_last_bar))
        else:
            if length.notes or length.endless:
                rules.append((_BEFORE_POSITION, self._mask_end_before_last_note))
            rules.append((_BEFORE_POSITION, self._mask_empty_bars))
        if self.given.notes.is_open.any():
            rules.append((_BEFORE_POSITION, self._mask_positions_of_closed))
        rules.append(({Kind.BAR}, self._mask_all_after_end))
        return rules

    def _last_rules_in_force(self, constraints: Constraints) -> list[tuple[set[Kind], Rule]]:
        """Return the rules that come after all others, and yield where nothing else is left."""
        rules: list[tuple[set[Kind], Rule]] = []
        by_program = self._is_barred.reshape(-1, self.vocabulary.pitch_count)
        plays = np.asarray(~by_program.all(axis=1))  # (P,)
        if self.plan.is_regular:
            rules.append((_BEFORE_POSITION, self._keep_bars_regular))
        if constraints.counterpoint == STRICT:
            one_note = OneNoteAtATime(self.given, plays)
            rules.append((_BEFORE_POSITION | _BEFORE_NOTE, one_note.narrow))
        if constraints.rests == NO_RESTS:
            no_rests = NoRests(self.given, plays)
            rules.append((_BEFORE_POSITION | _BEFORE_NOTE, no_rests.narrow))
        if constraints.counterpoint == STRICT:
            counterpoint = StrictCounterpoint(self.given)
            ranges = VoiceRanges(self.given, constraints.ranges or {})
            playable = ranges.is_within & ~self._is_barred
            final_triad = FinalTriad(self.given, self.plan, plays, playable, counterpoint)
            rules.append((_BEFORE_NOTE, counterpoint.narrow))
            before = _BEFORE_POSITION | _BEFORE_NOTE | _BEFORE_DURATION
            rules.append((before, final_triad.narrow))
            if self.given.bars:
                rules.append((_BEFORE_NOTE | _BEFORE_DURATION, Seams(self.given).narrow))
            if constraints.ranges:
                rules.append((_BEFORE_NOTE, ranges.narrow))
        if self._avoid:
            rules.append((_BEFORE_POSITION | _BEFORE_NOTE, self._avoid.narrow))
        rules.append((_BEFORE_POSITION | _BEFORE_NOTE, self._leave_end_alone))
        return rules

    def start(
        self,
        batch: int,
        final_position: NDArray[np.int64] | int = -1,
        keys: Sequence[Key | None] = (),
    ) -> ConstrainedState:
        """Return the state of `batch` rows after the prompt: what is given before any choice.

        Args:
            batch, final_position, keys: as in `begin`.
        """
        state = self.begin(batch, final_position, keys)
        for _ in self.read(state, self.given.prompt[1:]):
            pass
        return state

    def begin(
        self,
        batch: int,
        final_position: NDArray[np.int64] | int = -1,
        keys: Sequence[Key | None] = (),
    ) -> ConstrainedState:
        """Return the state of `batch` rows after Start alone.

        Args:
            batch: B.
            final_position: (B,) steps from the last bar line to where the model shall think that
                the final chord begins, where no given note says so; -1: nowhere in particular.
            keys: (B,) which key it shall think that a piece is in, where none is asked for and
                nothing given says so.
        """
        given = self.given
        if given.has_note_in_last_bar and self.length.bars == given.bars:
            final_position = int(given.notes.onset.max()) - given.last_bar_start
        start = self.grammar.start(batch)
        rows = np.zeros(batch, dtype=np.int64)
        state = ConstrainedState(
            at=start.at,
            free_at=start.free_at,
            note_ends=start.free_at,  # one array for both, as long as the model may play all notes
            last_end=rows + given.last_ends.max(initial=0),
            whole_bar=rows.copy(),
            upbeat=rows.copy(),
            owed=rows.copy(),
            final_position=rows + final_position,
            keys=[self._key] * batch if self._key or not keys else keys,
            limit=rows + (self.plan.limit if self.length.seconds else NEVER),
            new_notes=rows.copy(),
            bar_notes=rows.copy(),
            past_notes=rows.copy(),
            next_given=rows.copy(),
            sounding=np.tile(given.sounding, (batch, 1)),
            written=self._avoid.start(batch) if self._avoid else [],
            latest=LatestNotes.none(batch, len(self.vocabulary.programs)),
        )
        if self._is_barred.any():
            state.note_ends = state.free_at.copy()
            state.free_at[:, self._is_barred] = NEVER
        given.advance(state.next_given, np.full(batch, given.prompt[0]))
        return state

    def read(self, state: ConstrainedState, ids: NDArray[np.int64]) -> Iterator[None]:
        """Take the ids (T,), the same in each row, into the state, and yield after each of them."""
        for token in ids:
            self.advance(state, np.full(len(state.at.kind), token))
            yield

    def allowed(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """Return whether each id may come next, (B, V): one or more a row, at its end Pad."""
        mask = self.grammar.allowed(state)
        latest = set(state.at.kind.tolist())
        is_due = ~self.given.is_done(state.next_given)
        is_given_near = is_due.any() or state.at.bar_start.min() < self.given.reach
        bars = slice(self.vocabulary.first(Kind.END), self.vocabulary.first(Kind.POSITION))
        of_grammar = mask[is_due, bars]  # a copy: given bars are as they are
        for kinds, narrow in self._rules:
            if latest & kinds:
                narrow(mask, state)
        if is_given_near:
            mask[is_due, bars] = of_grammar
            at = state.at
            self.given.narrow(mask, at.kind, at.now, at.bar_start, state.next_given)
        for kinds, narrow in self._last_rules:
            if latest & kinds:
                narrow(mask, state)
        return mask

    def advance(self, state: ConstrainedState, ids: ArrayLike) -> None:
        """Take each row's next id, (B,), into the state; the ids must be allowed."""
        ids = np.asarray(ids, dtype=np.int64)
        before = state.next_given.copy()
        self.given.advance(state.next_given, ids)
        self.grammar.advance(state, ids)
        latest = set(state.at.kind.tolist())
        self.plan.advance(state, latest)
        if Kind.DURATION not in latest:
            return
        if self._avoid:
            self._avoid.advance(state)
        if self._reads_latest:
            state.latest.read(state, self.vocabulary.pitch_count)
        rows = np.flatnonzero(state.at.kind == Kind.DURATION)
        note, end = state.at.note[rows], state.at.note_end[rows]
        state.last_end[rows] = np.maximum(state.last_end[rows], end)
        is_new = state.next_given[rows] == before[rows]  # what is given sounds already
        step = np.arange(state.sounding.shape[1])
        now = state.at.now[rows, None]
        state.sounding[rows] += (step >= now) & (step < end[:, None]) & is_new[:, None]
        if state.note_ends is not state.free_at:
            state.note_ends[rows, note] = end
            is_barred = self._is_barred[note]
            state.free_at[rows[is_barred], note[is_barred]] = NEVER

    def whole(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the ids (T,) of a piece as far as its last whole note, and End.

        This drops Pad, the Bar that stands for End, and what was begun where sampling stopped.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        last = Kind.VELOCITY if len(self.vocabulary.velocities) > 1 else Kind.DURATION
        notes = np.flatnonzero(kinds == last)
        size = int(notes[-1]) + 1 if len(notes) else 1
        return np.append(ids[:size], self.vocabulary.first(Kind.END))

    def side(self, state: ConstrainedState, ids: ArrayLike) -> SideArrays:
        """Return the side input of the ids that the decoder reads next.

        It holds how many bars follow, where the length tells. One id a row, T = 1, follows those
        of the calls since the last with more.

        Args:
            state: after the last of the ids.
            ids: (B, T) the latest ids of each row, Pad at the left end.

        Returns:
            Of B rows; with guidance of 2 B, the second half of which is not told the key.
        """
        ids = np.asarray(ids, dtype=np.int64)
        if ids.shape[1] > 1 or state.window is None:
            state.window = self._window(state, ids)
        window = state.window
        follow, onset = self.plan.bars_to_follow(state), self.plan.final_onset(state)
        context = window.context._replace(
            bars=np.where(follow < 0, -1, state.at.bar_count + follow - window.bars_before),
            final=np.where(onset < 0, -1, onset - window.context.begin),
        )
        if self.guidance:
            ids = np.concatenate([ids, ids])
            context = context.of_rows(np.tile(np.arange(len(ids) // 2), 2))
            context.key[len(ids) // 2 :] = -1
        window.heard = self.features.with_room(window.heard, ids.shape[1])
        return self.features.read(ids, context, window.heard)

    def _window(self, state: ConstrainedState, ids: NDArray[np.int64]) -> Window:
        """Return the window that begins with ids (B, T)."""
        batch, length = ids.shape
        read = read_windows(ids, self.vocabulary)
        bars = np.count_nonzero(read.kind == Kind.BAR, axis=1)
        piece = np.full(batch, 0 if self.given.is_told else -1)
        context = self.features.nothing(batch)._replace(
            final_position=state.final_position,
            key=np.array([key_number(key) for key in state.keys]),
            piece=piece,
            begin=state.at.now - read.now[:, -1],
            given=self._given_notes,
        )
        heard = self.features.start(2 * batch if self.guidance else batch, length)
        return Window(heard, context, bars_before=state.at.bar_count - bars)

    def _check_given(self, constraints: Constraints) -> None:
        """Refuse given notes with which no piece can be as it is asked for."""
        given, length = self.given, self.length
        if not given.bars:
            return
        most_sounding = int(given.sounding.max(initial=0))
        if given.is_told and most_sounding > self._max_polyphony:
            raise ConstraintError(
                f"of the given notes {most_sounding} sound at once: "
                f"a polyphony of {self._max_polyphony} is too few"
            )
        is_last = (length.bars or NEVER) == given.bars
        meters = {*map(tuple, given.seed.score.bars[["numerator", "denominator"]].tolist())}
        if is_last and constraints.time_signature and meters != {constraints.time_signature}:
            raise ConstraintError(
                "the given notes have bars of their own: ask for no time signature"
            )
        last_end = int(given.last_ends.max(initial=0))
        limit = self.plan.limit if length.seconds else NEVER
        last_onset = max(given.last_bar_start, int(given.notes.onset.max(initial=0)))
        if given.bars > self.plan.last_bar or last_onset >= limit:
            raise ConstraintError("the seed is already longer than the piece that is asked for")
        rest = (length.bars or given.bars) - given.bars
        most = given.end + rest * self.plan.longest_bar
        if not is_last and last_end > (most if length.bars else max(given.end, limit)):
            raise ConstraintError(
                "the notes of the seed sound on past the end that is asked for: ask for a longer "
                "piece or keep less of the seed"
            )
        is_last |= given.end >= limit
        step = np.arange(given.end)
        room = given.notes.may_begin(step)  # (S, P)
        room &= given.leaves_free(~self._is_barred)
        sounding = np.pad(given.sounding, (0, given.end))[: given.end]
        room &= ((sounding < self._max_polyphony) & (step < limit))[:, None]
        if is_last and not room.any():
            raise ConstraintError(
                "the given notes leave no room for others: ask for a higher polyphony, or for more "
                "instruments or bars"
            )
        self._needs_last_note = not (is_last and given.has_note_in_last_bar)
        if is_last and self._needs_last_note:
            self._last_chance = int(np.flatnonzero(room.any(axis=1))[-1])
            if self._last_chance < given.last_bar_start:
                raise ConstraintError("no note can begin in the last bar: open more of the piece")
        elif not is_last and (length.bars or length.seconds):
            end = most if length.bars else limit
            is_good = (given.last_ends < end) & ~self._is_barred
            if not is_good.any() or (given.sounding[end - 1 :] >= self._max_polyphony).any():
                raise ConstraintError(
                    "the seed leaves no room for a note before the end that is asked for: ask for "
                    "a longer piece or keep less of the seed"
                )

    # What the rules ask.

    def _nth_end(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the step (B,) from which fewer notes sound than may, if they end so, (B, N)."""
        nth = ends.shape[1] - self._max_polyphony
        return np.asarray(np.partition(ends, nth, axis=1)[:, nth])

    def _is_voice_free(
        self, state: ConstrainedState, steps: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether fewer notes sound than may, at steps (B, K), none before the latest."""
        is_free = steps >= self._nth_end(state.note_ends)[:, None]
        size = state.sounding.shape[1]
        if not size:
            return np.asarray(is_free)
        sounding = np.take_along_axis(state.sounding, np.minimum(steps, size - 1), axis=1)
        return np.where(steps < size, sounding < self._max_polyphony, is_free)

    def _first_free(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) from which the model could begin a note, all that is given over."""
        free = np.maximum(state.free_at, self.given.last_ends).min(axis=1)
        if self._max_polyphony < NEVER:
            ends = np.maximum(state.note_ends, self.given.last_ends)
            free = np.maximum(free, self._nth_end(ends))
        return np.asarray(free)

    def _earliest_end(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the first step (B,) at which the piece could end with one more note."""
        return np.maximum(state.last_end, self._first_free(state) + 1)

    def _deadline(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) by which notes have to end.

        It is the piece's end in bars of this meter, or in the longest bars where that is too soon.
        """
        expected = self.plan.expected_end(state)
        if not self.length.bars:
            return expected
        is_enough = expected >= self._earliest_end(state)
        return np.where(is_enough, expected, self.plan.latest_end(state))

    def _note_deadline(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) by which the latest note, which begins now, has to end.

        At the last chance for a note of the last bar another must be free to begin. Given notes
        need their place in the polyphony from where they begin.
        """
        now, note, rows = state.at.now, state.at.note, np.arange(len(state.at.now))
        deadline = self._deadline(state)
        has_limit = self._max_polyphony < NEVER
        size = state.sounding.shape[1]
        if self._needs_last_note:
            chance = np.minimum(deadline - 1, self._last_chance).clip(0)
            is_free = np.maximum(state.free_at, self.given.last_ends) <= chance[:, None]
            is_free &= self.given.notes.may_begin(chance)[:, self._program_of]
            is_other_free = is_free.sum(axis=1) > is_free[rows, note]
            if has_limit:
                sounding = (state.note_ends > chance[:, None]).sum(axis=1)
                if size:
                    of_piece = state.sounding[rows, np.minimum(chance, size - 1)]
                    sounding = np.where(chance < size, of_piece, sounding)
                is_other_free &= sounding < self._max_polyphony - 1
            deadline = np.where(is_other_free | self.plan.is_last_bar(state), deadline, chance)
        if has_limit and size:
            is_full = (state.sounding >= self._max_polyphony) & (np.arange(size) > now[:, None])
            full = np.where(is_full.any(axis=1), is_full.argmax(axis=1), NEVER)
            deadline = np.minimum(deadline, full)
        return np.minimum(deadline, self.given.note_deadline(note, now))

    # The rules. Each takes ids away from the mask (B, V).

    def _mask_tempos(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask tempi but the one asked for; with a length in seconds, every change of tempo."""
        tempos = self.vocabulary.ids(Kind.TEMPO)
        if self._tempo is None:
            mask[:, tempos] &= (state.at.tempo < 0)[:, None]
            return
        mask[:, tempos] &= self._numbers[: tempos.stop - tempos.start] == self._tempo
        is_due = (state.at.tempo != self._tempo) & np.isin(state.at.kind, (Kind.BAR, Kind.LENGTH))
        for kind in (Kind.POSITION, Kind.BAR):
            mask[is_due, self.vocabulary.ids(kind)] = False

    def _mask_meters(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask bars of other time signatures than the one asked for, and shortened bars."""
        mask[:, self.vocabulary.ids(Kind.LENGTH)] = False
        bars = self.vocabulary.ids(Kind.BAR)
        mask[:, bars] &= self._numbers[: bars.stop - bars.start] == self._meter

    def _mask_positions_after_limit(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask positions from the step on at which the seconds asked for are over."""
        positions = self.vocabulary.ids(Kind.POSITION)
        before = (state.limit - state.at.bar_start)[:, None]
        mask[:, positions] &= self._numbers[: positions.stop - positions.start] < before

    def _mask_full_positions(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask positions at which as many notes sound as the polyphony limit allows."""
        positions = self.vocabulary.ids(Kind.POSITION)
        steps = self._numbers[: positions.stop - positions.start]
        steps = state.at.bar_start[:, None] + steps
        mask[:, positions] &= self._is_voice_free(state, steps)

    def _mask_notes_too_many(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask notes once the polyphony limit is reached."""
        now = state.at.now[:, None]
        mask[:, self.vocabulary.ids(Kind.NOTE)] &= self._is_voice_free(state, now)

    def _mask_long_durations(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask durations, and Extends, with which a note would end after its deadline."""
        longest = self.vocabulary.longest_duration
        now = state.at.now
        extended = state.at.extends * longest
        if now.min() >= self.given.reach:  # and far from the end: nothing to mask
            room = self.plan.expected_end(state) - now - extended
            if room.min() > longest + 1 and state.at.extends.max() < LONGEST_NOTE:
                return
        room = self._note_deadline(state) - now - extended
        durations = self.vocabulary.ids(Kind.DURATION)
        mask[:, durations] &= self._numbers[:longest] < room[:, None]
        is_extendable = (room > longest) & (state.at.extends < LONGEST_NOTE)
        mask[:, self.vocabulary.first(Kind.EXTEND)] &= is_extendable

    def _mask_short_bars(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask bars, and bar lengths, so short that the notes could not end in the last bar."""
        longest_bar = self.plan.longest_bar
        latest_end = self.plan.latest_end(state)
        before_this = latest_end - state.at.bar_length  # the end less this bar
        if (before_this - longest_bar >= state.last_end).all():
            return  # the bars that follow the next one are enough
        earliest_end = self._earliest_end(state)[:, None]
        bars = self.vocabulary.ids(Kind.BAR)
        end = (latest_end - longest_bar)[:, None] + self.vocabulary.whole_bars
        mask[:, bars] &= (end >= earliest_end) | (state.at.bar_count >= self.plan.last_bar)[:, None]
        lengths = self.vocabulary.ids(Kind.LENGTH)
        length = self._numbers[: lengths.stop - lengths.start] + 1
        mask[:, lengths] &= before_this[:, None] + length >= earliest_end

    def _mask_all_but_rest_of_upbeat(
        self, mask: NDArray[np.bool_], state: ConstrainedState
    ) -> None:
        """Mask all but the Length with which the last bar and an upbeat make a whole bar."""
        is_due = (state.upbeat > 0) & (state.at.bar_count == self.plan.last_bar)
        is_due &= (state.at.kind == Kind.BAR) & (state.upbeat < state.at.bar_length)
        is_due &= state.at.bar_count > self.given.bars  # given bars are as they are
        rows = np.flatnonzero(is_due)
        rest = self.vocabulary.first(Kind.LENGTH) + (state.at.bar_length - state.upbeat)[rows] - 1
        rows, rest = rows[mask[rows, rest]], rest[mask[rows, rest]]
        mask[rows] = False
        mask[rows, rest] = True

    def _keep_bars_regular(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask bars of another length than the one before, and shortened ones inside of the piece.

        After a shortened bar that is given there comes the rest of it.
        """
        kept, lengths = mask.copy(), self.vocabulary.ids(Kind.LENGTH)
        if self._meter is None:
            is_other = self.vocabulary.whole_bars != state.whole_bar[:, None]  # (B, M)
            kept[:, self.vocabulary.ids(Kind.BAR)] &= ~is_other | (state.at.bar_count == 0)[:, None]
        begins = (state.at.kind == Kind.BAR) & (state.at.bar_count > max(self.given.bars, 1))
        begins &= state.at.bar_count < self.plan.last_bar
        length = self._numbers[: lengths.stop - lengths.start] + 1
        is_due = begins & (state.owed > 0)
        kept[is_due] = False
        kept[begins, lengths] = False
        kept[is_due, lengths] = (length == state.owed[:, None])[is_due] & mask[is_due, lengths]
        narrow_or_yield(mask, kept, np.arange(len(mask)), self.given, state)

    def _mask_end_before_last_bar(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask End before the last bar; and there, while it has no note, End and another bar."""
        end = self.vocabulary.first(Kind.END)
        is_last = self.plan.is_last_bar(state)
        if not is_last.any():
            mask[:, end] = False
            return
        has_note = state.at.note_bar == state.at.bar_count
        mask[:, end] &= is_last & has_note
        mask[is_last & ~has_note, self.vocabulary.ids(Kind.BAR)] = False

    def _leave_end_alone(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask the bars that stand for End where nothing else is left: it is no choice."""
        end, first_position = (self.vocabulary.first(kind) for kind in (Kind.END, Kind.POSITION))
        is_over = mask[:, end] & self.plan.is_last_bar(state)
        is_over &= ~mask[:, first_position:].any(axis=1)
        mask[is_over, end + 1 :] = False

    def _mask_end_before_last_note(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask End before the last of the notes asked for, and all else after it."""
        end = self.vocabulary.first(Kind.END)
        if self.length.notes is None:  # endless
            mask[:, end] = False
            return
        # the grammar offers End only after a whole note
        is_done = mask[:, end] & (state.new_notes >= self.length.notes)
        is_done &= self.given.is_done(state.next_given)
        mask[is_done] = False
        mask[:, end] = is_done

    def _mask_empty_bars(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask another bar after many empty ones, where a note can begin."""
        is_empty = state.at.bar_count - state.at.note_bar > EMPTY_BARS
        if is_empty.any():
            is_empty &= mask[:, self.vocabulary.ids(Kind.POSITION)].any(axis=1)
            mask[is_empty, self.vocabulary.ids(Kind.BAR)] = False

    def _mask_positions_of_closed(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask positions at which no note that may begin is free."""
        if state.at.bar_start.min() >= self.given.reach:
            return
        positions = self.vocabulary.ids(Kind.POSITION)
        steps = self._numbers[: positions.stop - positions.start]
        steps = (state.at.bar_start[:, None] + steps)[..., None]  # (B, steps, 1)
        free_at = state.free_at.reshape(len(mask), -1, self.vocabulary.pitch_count).min(axis=2)
        is_free = self.given.notes.may_begin(steps[..., 0]) & (free_at[:, None] <= steps)
        mask[:, positions] &= is_free.any(axis=2)

    def _mask_all_after_end(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask all but Pad where a bar after the last has begun."""
        is_over = self.plan.is_over(state)
        if is_over.any():
            mask[is_over] = self._numbers == self.vocabulary.first(Kind.PAD)
