"""The grammar of a vocabulary, narrowed by a length, constraints and given notes.

Sampling sees it as it sees the grammar. It only takes ids away from what the grammar allows (and
forces those of given notes), so that what is sampled is grammatical. It takes them away early
enough that a way to the end that is asked for is always left: there are no dead ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.score import Score
from data.tokens.features import SideArrays, SideFeatures
from data.tokens.grammar import Grammar
from data.tokens.spans import NEVER
from data.tokens.step_features import FeatureStepper
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_state import ConstrainedState
from generation.constraints import UNCONSTRAINED, ConstraintError, Constraints
from generation.given import GivenNotes
from generation.length import Length, LengthPlan

LONGEST_NOTE = 32  # in longest Durations: sampling that only takes the likeliest may Extend forever
EMPTY_BARS = 16  # and, where no end is asked for, begin empty bars forever

# The kinds of the latest id after which a rule has something to mask; after others it is skipped.
_ANY = set(Kind)
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
    over: that Bar stands for End (`ending` replaces it). So a bar is full when the model finds it
    full, not when it happens to think of the end.

    Args:
        vocabulary: of the model.
        length: how long the piece is; None: the model ends it.
        constraints: what the model may play; None: anything.
        given: notes of one program that are kept. The piece has their bars and tempi and ends
            with them; the model plays the other programs.

    Attributes:
        grammar: the grammar that is narrowed.
        plan: where the piece may end.

    Raises:
        ConstraintError: no piece can be as it is asked for.
        VocabularyError: the vocabulary has no token for something in the given notes.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        length: Length | None = None,
        constraints: Constraints | None = None,
        given: Score | None = None,
    ) -> None:
        constraints = constraints or UNCONSTRAINED
        self.vocabulary = vocabulary
        self.length = length or Length()
        self.grammar = Grammar(vocabulary)
        self.features = SideFeatures(vocabulary)
        self._stepper = FeatureStepper(self.features)
        self._tempo = constraints.tempo_number(vocabulary)
        self._meter = constraints.meter_number(vocabulary)
        if given is not None and self.length != Length():
            raise ConstraintError("the piece is as long as the given notes: ask for no length")
        self._given = None if given is None else GivenNotes(given, vocabulary, constraints)
        given_program = self._given.program if self._given else None
        self._is_barred = ~constraints.candidates(vocabulary, given_program)  # (N,)
        polyphony = constraints.max_polyphony or NEVER
        self._max_polyphony = polyphony if polyphony < len(self._is_barred) else NEVER
        whole_bars = vocabulary.whole_bars
        self.plan = LengthPlan(
            vocabulary=vocabulary,
            length=self.length,
            last_bar=len(given.bars) if given is not None else self.length.bars or NEVER,
            longest_bar=int(whole_bars.max() if self._meter is None else whole_bars[self._meter]),
            given_end=self._given.end if self._given else None,
        )
        self._numbers = np.arange(vocabulary.size)
        self._rules = self._rules_in_force()

    def _rules_in_force(self) -> list[tuple[set[Kind], Rule]]:
        """Return the rules that narrow the mask, in order, each with the kinds it comes after."""
        rules: list[tuple[set[Kind], Rule]] = []
        length, given = self.length, self._given
        if not given and (self._tempo is not None or length.seconds):
            rules.append((_BAR_HEAD, self._mask_tempos))
        if not given and self._meter is not None:
            rules.append((_BEFORE_POSITION, self._mask_meters))
        if length.seconds:
            rules.append((_BEFORE_POSITION, self._mask_positions_after_limit))
        if self._max_polyphony < NEVER:
            rules.append((_BEFORE_POSITION, self._mask_full_positions))
            rules.append((_BEFORE_NOTE, self._mask_notes_too_many))
        rules.append((_BEFORE_DURATION, self._mask_long_durations))
        if length.bars:
            rules.append((_BEFORE_POSITION, self._mask_short_bars))
        if length.bars or length.seconds:
            rules.append((_BEFORE_POSITION, self._mask_end_before_last_bar))
        elif not given:
            if length.notes or length.endless:
                rules.append((_BEFORE_POSITION, self._mask_end_before_last_note))
            rules.append((_BEFORE_POSITION, self._mask_empty_bars))
        if given:
            rules.append((_ANY, given.narrow))
        rules.append(({Kind.BAR}, self._mask_all_after_end))
        return rules

    def start(self, batch: int) -> ConstrainedState:
        """Return the state of `batch` rows after Start."""
        return self.begin([self.vocabulary.first(Kind.START)], batch)

    def begin(self, prompt: ArrayLike, batch: int, end_step: int = 0) -> ConstrainedState:
        """Return the state of `batch` rows after a prompt.

        Args:
            prompt: (T,) ids of a piece without its End; with given notes it is Start alone.
            batch: how many rows.
            end_step: nothing new begins before this step, counted from the prompt's beginning.

        Raises:
            ConstraintError: after this prompt no piece can be as it is asked for.
            ValueError: a prompt before given notes.
        """
        prompt = np.asarray(prompt, dtype=np.int64)
        if self._given and len(prompt) > 1:
            raise ValueError("a piece begins with its given notes: there can be no other prompt")
        start = self.grammar.start(batch)
        rows = np.zeros(batch, dtype=np.int64)
        sounding = self._given.sounding if self._given else np.zeros(0, dtype=np.int16)
        state = ConstrainedState(
            **vars(start),
            note_ends=start.free_at,  # one array for both, as long as the model may play all notes
            last_end=rows.copy(),
            whole_bar=rows.copy(),
            limit=rows + NEVER,
            new_notes=rows.copy(),
            bar_notes=rows.copy(),
            past_notes=rows.copy(),
            next_given=rows + 1,  # after Start
            sounding=np.tile(sounding, (batch, 1)),
        )
        for token in prompt[1:]:
            self._follow(state, np.full(batch, token))
        self.grammar.wait(state, end_step)
        state.new_notes[:] = 0
        if self.length.seconds:
            tempo = None if self._tempo is None else self.vocabulary.tempos[self._tempo]
            state.limit[:] = self.plan.limit_after(prompt, tempo)
        if self._is_barred.any():
            state.note_ends = state.free_at.copy()
            state.free_at[:, self._is_barred] = NEVER
        if len(prompt) > 1:
            self._check_prompt(state)
        return state

    def allowed(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """Return whether each id may come next, (B, V): one or more a row, at its end Pad."""
        mask = self.grammar.allowed(state)
        latest = set(state.kind.tolist())
        for kinds, narrow in self._rules:
            if latest & kinds:
                narrow(mask, state)
        return mask

    def advance(self, state: ConstrainedState, ids: ArrayLike) -> None:
        """Take each row's next id, (B,), into the state; the ids must be allowed."""
        ids = np.asarray(ids, dtype=np.int64)
        self._follow(state, ids)
        if self._given:
            self._given.advance(state, ids)

    def ending(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the new ids of a row as far as its last whole note, and End.

        This drops Pad, the Bar that stands for End, and what was begun where sampling stopped.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        whole = Kind.VELOCITY if len(self.vocabulary.velocities) > 1 else Kind.DURATION
        notes = np.flatnonzero(kinds == whole)
        size = int(notes[-1]) + 1 if len(notes) else 0
        return np.append(ids[:size], self.vocabulary.first(Kind.END))

    def side(self, state: ConstrainedState, ids: ArrayLike) -> SideArrays:
        """Return the side input of the ids that the decoder reads next.

        It holds how many bars follow, where the length tells. One id a row, T = 1, follows those
        of the calls since the last with more.

        Args:
            state: after the last of the ids.
            ids: (B, T) the latest ids of each row, Pad at the left end.
        """
        ids = np.asarray(ids)
        follow = self.plan.bars_to_follow(state)[:, None]
        if ids.shape[1] > 1 or state.step_state is None:
            state.step_state = self._stepper.read(ids)
            side = self.features.compute(ids)
            is_bar = self.vocabulary.kind_of[ids] == Kind.BAR
            begun_later = is_bar.sum(axis=1, keepdims=True) - is_bar.cumsum(axis=1)
            follow = np.where(follow >= 0, follow + begun_later, -1)
        else:
            self._stepper.advance(state.step_state, ids[:, 0])
            side = self._stepper.compute(state.step_state)
        self.features.set_bars_to_follow(side, np.where(ids == 0, -1, follow))
        return side

    def _follow(self, state: ConstrainedState, ids: NDArray[np.int64]) -> None:
        """Take ids (B,) into the grammar's state, the length so far, and when notes end."""
        self.grammar.advance(state, ids)
        latest = set(state.kind.tolist())
        self.plan.advance(state, latest)
        if Kind.DURATION not in latest:
            return
        rows = np.flatnonzero(state.kind == Kind.DURATION)
        note = state.note[rows]
        end = state.free_at[rows, note]
        state.last_end[rows] = np.maximum(state.last_end[rows], end)
        if state.note_ends is state.free_at:
            return
        state.note_ends[rows, note] = end
        is_barred = self._is_barred[note]
        state.free_at[rows[is_barred], note[is_barred]] = NEVER
        if self._given:
            begin = state.now[rows]
            its = ~is_barred  # what is given sounds already
            self._given.add_sounding(state, rows[its], begin[its], end[its])

    def _check_prompt(self, state: ConstrainedState) -> None:
        """Refuse a prompt, the same in all rows, from which no way leads to the end asked for."""
        bar_end = int(state.bar_start[0] + state.bar_length[0])
        limit, is_over = int(state.limit[0]), bool(self.plan.is_over(state)[0])
        if is_over:
            raise ConstraintError("the seed is already longer than the piece that is asked for")
        deadline = self._deadline(state)[0]
        is_last = state.bar_count[0] == self.plan.last_bar or bar_end >= limit
        if state.last_end[0] > deadline or (
            not is_last and self._earliest_end(state)[0] > deadline
        ):
            raise ConstraintError(
                "the notes of the seed sound on past the end that is asked for: ask for a longer "
                "piece or keep less of the seed"
            )
        first_free = max(self._first_free(state)[0], state.bar_start[0] + state.position[0] + 1)
        if is_last and first_free >= min(bar_end, limit):
            raise ConstraintError(
                "the seed leaves no room for a note before the end that is asked for: ask for "
                "a longer piece or keep less of the seed"
            )

    # What the rules ask.

    def _voice_free(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) from which fewer notes sound than may, if none begins before it."""
        nth = state.note_ends.shape[1] - self._max_polyphony
        return np.asarray(np.partition(state.note_ends, nth, axis=1)[:, nth])

    def _is_voice_free(
        self, state: ConstrainedState, steps: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether fewer notes sound than may, at steps (B, K), none before the latest."""
        if not self._given:
            return np.asarray(steps >= self._voice_free(state)[:, None])
        steps = np.minimum(steps, state.sounding.shape[1] - 1)
        sounding = np.take_along_axis(state.sounding, steps, axis=1)
        return np.asarray(sounding < self._max_polyphony)

    def _first_free(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) from which the model could begin a note, as things stand."""
        free = state.free_at.min(axis=1)
        if self._max_polyphony < NEVER:
            free = np.maximum(free, self._voice_free(state))
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

    def _note_deadline(self, state: ConstrainedState, now: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the step (B,) by which the note that begins `now`, (B,), has to end.

        One step is left at the end of the piece for a note of its last bar, unless another note
        can begin there. Given notes need their voice from where they begin.
        """
        deadline = self._deadline(state)
        has_limit = self._max_polyphony < NEVER
        if not self._given:
            # the note that begins now will be free too, so one more is needed
            is_other_free = (state.free_at < deadline[:, None]).sum(axis=1) > 1
            if has_limit:
                sounding = (state.note_ends >= deadline[:, None]).sum(axis=1)
                is_other_free &= sounding < self._max_polyphony - 1
            deadline = deadline - ~(is_other_free | self.plan.is_last_bar(state))
        elif has_limit:
            step = np.arange(state.sounding.shape[1])
            is_full = (state.sounding >= self._max_polyphony) & (step > now[:, None])
            deadline = np.where(is_full.any(axis=1), is_full.argmax(axis=1), deadline)
        return deadline

    # The rules. Each takes ids away from the mask (B, V).

    def _mask_tempos(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask tempi but the one asked for; with a length in seconds, every change of tempo."""
        tempos = self.vocabulary.ids(Kind.TEMPO)
        if self._tempo is None:
            mask[:, tempos] &= (state.tempo < 0)[:, None]
            return
        mask[:, tempos] &= self._numbers[: tempos.stop - tempos.start] == self._tempo
        is_due = (state.tempo != self._tempo) & np.isin(state.kind, (Kind.BAR, Kind.LENGTH))
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
        before = (state.limit - state.bar_start)[:, None]
        mask[:, positions] &= self._numbers[: positions.stop - positions.start] < before

    def _mask_full_positions(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask positions at which as many notes sound as the polyphony limit allows."""
        positions = self.vocabulary.ids(Kind.POSITION)
        steps = self._numbers[: positions.stop - positions.start]
        steps = state.bar_start[:, None] + steps
        mask[:, positions] &= self._is_voice_free(state, steps)

    def _mask_notes_too_many(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask notes once the polyphony limit is reached."""
        now = state.now[:, None]
        mask[:, self.vocabulary.ids(Kind.NOTE)] &= self._is_voice_free(state, now)

    def _mask_long_durations(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask durations, and Extends, with which a note would end after its deadline."""
        longest = self.vocabulary.longest_duration
        now = state.now
        extended = state.extends * longest
        if not self._given or self._max_polyphony == NEVER:  # far from the end: nothing to mask
            room = self.plan.expected_end(state) - now - extended
            if room.min() > longest + 1 and state.extends.max() < LONGEST_NOTE:
                return
        room = self._note_deadline(state, now) - now - extended
        durations = self.vocabulary.ids(Kind.DURATION)
        mask[:, durations] &= self._numbers[:longest] < room[:, None]
        is_extendable = (room > longest) & (state.extends < LONGEST_NOTE)
        mask[:, self.vocabulary.first(Kind.EXTEND)] &= is_extendable

    def _mask_short_bars(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask bars, and bar lengths, so short that the notes could not end in the last bar."""
        longest_bar = self.plan.longest_bar
        latest_end = self.plan.latest_end(state)
        before_this = latest_end - state.bar_length  # the end less this bar
        if (before_this - longest_bar >= state.last_end).all():
            return  # the bars that follow the next one are enough
        earliest_end = self._earliest_end(state)[:, None]
        bars = self.vocabulary.ids(Kind.BAR)
        end = (latest_end - longest_bar)[:, None] + self.vocabulary.whole_bars
        mask[:, bars] &= (end >= earliest_end) | (state.bar_count >= self.plan.last_bar)[:, None]
        lengths = self.vocabulary.ids(Kind.LENGTH)
        length = self._numbers[: lengths.stop - lengths.start] + 1
        mask[:, lengths] &= before_this[:, None] + length >= earliest_end

    def _mask_end_before_last_bar(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask End before the last bar; and there, while it has no note, End and another bar."""
        end = self.vocabulary.first(Kind.END)
        is_last = self.plan.is_last_bar(state)
        if not is_last.any():
            mask[:, end] = False
            return
        has_note = state.note_bar == state.bar_count
        mask[:, end] &= is_last & has_note
        mask[is_last & ~has_note, self.vocabulary.ids(Kind.BAR)] = False

    def _mask_end_before_last_note(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask End before the last of the notes asked for, and all else after it."""
        end = self.vocabulary.first(Kind.END)
        if self.length.notes is None:  # endless
            mask[:, end] = False
            return
        # the grammar offers End only after a whole note
        is_done = mask[:, end] & (state.new_notes >= self.length.notes)
        mask[is_done] = False
        mask[:, end] = is_done

    def _mask_empty_bars(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask another bar after many empty ones, where a note can begin."""
        is_empty = state.bar_count - state.note_bar > EMPTY_BARS
        if is_empty.any():
            is_empty &= mask[:, self.vocabulary.ids(Kind.POSITION)].any(axis=1)
            mask[is_empty, self.vocabulary.ids(Kind.BAR)] = False

    def _mask_all_after_end(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask all but Pad where a bar after the last has begun."""
        is_over = self.plan.is_over(state)
        if is_over.any():
            mask[is_over] = self._numbers == self.vocabulary.first(Kind.PAD)
