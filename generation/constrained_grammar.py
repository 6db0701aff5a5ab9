"""The guide: a grammar that also ends the piece where it should and plays what was asked for.

Sampling sees it as the grammar's verbs. It only ever takes ids away from what the grammar allows
(and forces those of a tune that is kept), so that what it leads to is grammatical; and it takes
them away early enough that some way to the asked-for end is always left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.keys import ConstraintError
from data.score import Score
from data.tokens.features import SideFeatures
from data.tokens.grammar import Grammar
from data.tokens.step_features import FeatureStepper
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constraints import Constraints
from generation.given import GivenNotes
from generation.length import NEVER, ConstrainedState, Length, LengthPlan

LONGEST_NOTE = 32  # in longest Durations: sampling that only takes the likeliest may Extend forever
EMPTY_BARS = 16  # and, where no end is asked for, begin empty bars forever

_HEADS = {Kind.BAR, Kind.LENGTH}
_NOTE_END = {Kind.DURATION, Kind.VELOCITY}
_BAR_END = {Kind.START, Kind.BAR, Kind.LENGTH, Kind.TEMPO, *_NOTE_END}
_BEFORE_NOTE = {Kind.POSITION, *_NOTE_END}
_BEFORE_DURATION = {Kind.NOTE, Kind.EXTEND}

Rule = Callable[[NDArray[np.bool_], ConstrainedState], None]


class ConstrainedGrammar:
    """The grammar of a vocabulary under a length, constraints and a tune to keep.

    The end. `reach` is the last step that the piece can still have. As long as the last bar has
    no note, every note ends by then, and some note that is asked for can still begin before it:
    durations, bars and lengths that would break this are not offered. So the last bar always
    takes a note. Where the model would begin a bar after that one, the piece is over: that Bar
    stands for End (`ending` puts it so), so that a bar is full when the model finds it full, not
    when it happens to think of the end.

    Args:
        vocabulary: of the model.
        length: where the piece ends.
        constraints: what to play.
        tune: a voice that is kept; its bars and tempi are the piece's, and no other note is of
            its program. The piece ends with it.

    Raises:
        ConstraintError: nothing can ever be as it is asked for.
        VocabularyError: the vocabulary cannot spell the tune.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        length: Length | None = None,
        constraints: Constraints | None = None,
        tune: Score | None = None,
    ) -> None:
        constraints = constraints or Constraints()
        self.vocabulary = vocabulary
        self.length = length or Length()
        self.grammar = Grammar(vocabulary)
        self.features = SideFeatures(vocabulary)
        self.walker = FeatureStepper(self.features)
        self._tempo = constraints.tempo_number(vocabulary)
        self._meter = constraints.meter_number(vocabulary)
        self._tune = self._keep(tune, constraints) if tune is not None else None
        kept_program = self._tune.program if self._tune else None
        self._is_barred = ~constraints.candidates(vocabulary, kept_program)  # (N,)
        voices = constraints.max_polyphony or NEVER
        self._voices = voices if voices < len(self._is_barred) else NEVER
        self._bars = self._tune.bars if self._tune else self.length.bars or NEVER
        whole_bars = vocabulary.whole_bars
        self._longest_bar = int(
            whole_bars.max() if self._meter is None else whole_bars[self._meter]
        )
        self.horizon = LengthPlan(
            vocabulary=vocabulary,
            length=self.length,
            tune=self._tune,
            bars=self._bars,
            voices=self._voices,
            longest_bar=self._longest_bar,
            tempo=self._tempo,
        )
        self._numbers = np.arange(vocabulary.size)
        self._rules = self._rules_in_force()

    def _keep(self, score: Score, constraints: Constraints) -> GivenNotes:
        """The tune, at the tempo that is asked for."""
        if self.length != Length():
            raise ConstraintError(
                "the piece is as long as the tune that is kept: ask for no length"
            )
        tempo = None if self._tempo is None else self.vocabulary.tempos[self._tempo]
        tune = GivenNotes(score, self.vocabulary, tempo)
        meters = {*map(tuple, score.bars[["numerator", "denominator"]].tolist())}
        if constraints.time_signature and meters != {constraints.time_signature}:
            raise ConstraintError(
                "the tune that is kept has bars of its own: ask for no time signature"
            )
        most = int(tune.kept_sounding.max())
        if constraints.max_polyphony and most > constraints.max_polyphony:
            raise ConstraintError(
                f"the tune that is kept has {most} notes at once: "
                f"a polyphony of {constraints.max_polyphony} is too few"
            )
        if constraints.max_polyphony and int(tune.kept_sounding.min()) >= constraints.max_polyphony:
            raise ConstraintError(
                f"a polyphony of {constraints.max_polyphony} leaves no room beside the tune that "
                "is kept: ask for more"
            )
        return tune

    def _rules_in_force(self) -> list[tuple[set[Kind], Rule]]:
        """What narrows the grammar's mask, in this order, each after the kinds that it is for."""
        rules: list[tuple[set[Kind], Rule]] = []
        length, has_tune = self.length, self._tune is not None
        if not has_tune and (self._tempo is not None or length.seconds):
            rules.append((_HEADS, self._hold_tempo))
        if not has_tune and self._meter is not None:
            rules.append((_BAR_END, self._keep_meter))
        if length.seconds:
            rules.append((_BAR_END, self._begin_before_limit))
        if self._voices < NEVER:
            rules.append((_BAR_END, self._wait_for_voices))
            rules.append((_BEFORE_NOTE, self._limit_voices))
        rules.append((_BEFORE_DURATION, self._end_in_time))
        if length.bars:
            rules.append((_BAR_END, self._fit_bars))
        if length.bars or length.seconds:
            rules.append((_BAR_END, self._fill_last_bar))
        elif not has_tune:
            rules.append((_BAR_END, self._go_on))
        return rules

    # The verbs of sampling.

    def start(self, batch: int) -> ConstrainedState:
        """The state of `batch` rows after Start."""
        return self.begin([self.vocabulary.first(Kind.START)], batch)

    def begin(self, prompt: ArrayLike, batch: int, end_step: int = 0) -> ConstrainedState:
        """The state of `batch` rows after a prompt.

        Args:
            prompt: (T,) the ids of a piece without its End; a tune goes on from Start alone.
            batch: how many rows.
            end_step: nothing new begins before this step of the prompt's last bar.

        Raises:
            ConstraintError: after this prompt nothing can be as it is asked for.
            ValueError: a prompt before a tune.
        """
        prompt = np.asarray(prompt, dtype=np.int64)
        if self._tune and len(prompt) > 1:
            raise ValueError("a piece around a tune begins with it: there can be no other prompt")
        place = self.grammar.start(batch)
        rows = np.zeros(batch, dtype=np.int64)
        state = ConstrainedState(
            place=place,
            ends=place.free_at,  # one array for both, as long as every note is asked for
            last_end=rows.copy(),
            whole_bar=rows.copy(),
            limit=rows + NEVER,
            new_notes=rows.copy(),
            bar_notes=rows.copy(),
            past_notes=rows.copy(),
            tune=self._tune.start(batch) if self._tune else None,
        )
        for token in prompt[1:]:
            self._follow(state, np.full(batch, token))
        self.grammar.wait(place, end_step)
        state.new_notes[:] = 0
        if self.length.seconds:
            state.limit[:] = self.horizon.limit_after(prompt)
        if self._is_barred.any():
            state.ends = place.free_at.copy()
            place.free_at[:, self._is_barred] = NEVER
        if len(prompt) > 1:
            self.horizon.check(state)
        return state

    def allowed(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """(B, V) whether each id may come next; in every row at least one, after the end Pad."""
        place = state.place
        mask = self.grammar.allowed(place)
        latest = set(place.kind.tolist())
        for kinds, narrow in self._rules:
            if latest & kinds:
                narrow(mask, state)
        if state.tune is not None and self._tune is not None:
            self._tune.narrow(mask, place, state.tune)
        if Kind.BAR in latest:
            is_over = (place.bar_count > self._bars) | (place.bar_start >= state.limit)
            if is_over.any():
                mask[is_over] = self._numbers == self.vocabulary.first(Kind.PAD)
        return mask

    def advance(self, state: ConstrainedState, ids: ArrayLike) -> None:
        """Takes each row's next id, (B,), into the state; the ids must be allowed."""
        ids = np.asarray(ids, dtype=np.int64)
        latest = self._follow(state, ids)
        place = state.place
        if state.tune is not None and self._tune is not None:
            self._tune.advance(state.tune, ids)
        if Kind.DURATION in latest and state.ends is not place.free_at:
            rows = np.flatnonzero(place.kind == Kind.DURATION)
            note = place.note[rows]
            end = place.free_at[rows, note]
            state.ends[rows, note] = end
            is_kept = self._is_barred[note]
            place.free_at[rows[is_kept], note[is_kept]] = NEVER
            if state.tune is not None and self._tune is not None:
                begin = place.bar_start[rows] + place.position[rows]
                self._tune.add_sounding(state.tune, rows[~is_kept], begin[~is_kept], end[~is_kept])

    def wait(self, state: ConstrainedState, step: int) -> None:
        """As the grammar's."""
        self.grammar.wait(state.place, step)

    def ending(self, ids: ArrayLike) -> NDArray[np.int64]:
        """The new ids of a row, as far as they have come, with End after the last whole note.

        This takes off Pad, the Bar that stands for End, and what was begun where sampling stopped.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        whole = Kind.VELOCITY if len(self.vocabulary.velocities) > 1 else Kind.DURATION
        notes = np.flatnonzero(kinds == whole)
        size = int(notes[-1]) + 1 if len(notes) else 0
        return np.append(ids[:size], self.vocabulary.first(Kind.END))

    def side(self, state: ConstrainedState, ids: ArrayLike) -> NDArray[np.int16]:
        """(B, T, S) what the model is told beside each id it reads: bearings, and what follows.

        Where the length is in seconds or notes, the bars that follow are reckoned from the bars or
        the notes so far. The bearings of one id, T = 1, go on from those of all that was read
        since more ids than one were.

        Args:
            state: where the last of the ids leads to.
            ids: (B, T) the latest ids of each row, Pad at the left end.
        """
        ids = np.asarray(ids)
        follow = self.horizon.bars_to_follow(state)[:, None]
        if ids.shape[1] > 1 or state.walks is None:
            state.walks = self.walker.after(ids)
            side = self.features.of(ids)
            is_bar = self.vocabulary.kind_of[ids] == Kind.BAR
            begun_later = is_bar.sum(axis=1, keepdims=True) - is_bar.cumsum(axis=1)
            follow = np.where(follow >= 0, follow + begun_later, -1)
        else:
            self.walker.advance(state.walks, ids[:, 0])
            side = self.walker.at(state.walks)
        self.features.tell(side, np.where(ids == 0, -1, follow))
        return side

    # The state.

    def _follow(self, state: ConstrainedState, ids: NDArray[np.int64]) -> set[int]:
        """Takes ids into the grammar's state and what is counted beside it; gives their kinds."""
        place = state.place
        self.grammar.advance(place, ids)
        latest = set(place.kind.tolist())
        if Kind.NOTE in latest and self.length.notes:
            is_note = place.kind == Kind.NOTE
            state.new_notes += is_note
            state.bar_notes += is_note
        if Kind.DURATION in latest:
            rows = np.flatnonzero(place.kind == Kind.DURATION)
            end = place.free_at[rows, place.note[rows]]
            state.last_end[rows] = np.maximum(state.last_end[rows], end)
        if Kind.BAR in latest:
            rows = np.flatnonzero(place.kind == Kind.BAR)
            state.whole_bar[rows] = place.bar_length[rows]
            if self.length.notes:
                state.past_notes[rows] += state.bar_notes[rows]
                state.bar_notes[rows] = 0
        if Kind.TEMPO in latest and self.length.seconds:
            rows = np.flatnonzero((place.kind == Kind.TEMPO) & (state.limit == NEVER))
            tempo = np.array(self.vocabulary.tempos)[place.tempo[rows]]
            steps = self.length.seconds * tempo * self.vocabulary.grid.steps_per_beat / 60
            state.limit[rows] = np.maximum(np.rint(steps), 1)
        return latest

    # The rules. Each takes ids away from (B, V).

    def _hold_tempo(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        place, tempos = state.place, self.vocabulary.ids(Kind.TEMPO)
        if self._tempo is None:
            mask[:, tempos] &= (place.tempo < 0)[:, None]
            return
        mask[:, tempos] &= self._numbers[: tempos.stop - tempos.start] == self._tempo
        is_due = (place.tempo != self._tempo) & np.isin(place.kind, (Kind.BAR, Kind.LENGTH))
        for kind in (Kind.POSITION, Kind.BAR):
            mask[is_due, self.vocabulary.ids(kind)] = False

    def _keep_meter(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        mask[:, self.vocabulary.ids(Kind.LENGTH)] = False
        bars = self.vocabulary.ids(Kind.BAR)
        mask[:, bars] &= self._numbers[: bars.stop - bars.start] == self._meter

    def _begin_before_limit(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        positions = self.vocabulary.ids(Kind.POSITION)
        before = (state.limit - state.place.bar_start)[:, None]
        mask[:, positions] &= self._numbers[: positions.stop - positions.start] < before

    def _wait_for_voices(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """A position is offered where fewer notes sound than may."""
        place, positions = state.place, self.vocabulary.ids(Kind.POSITION)
        step = place.bar_start[:, None] + self._numbers[: positions.stop - positions.start]
        if state.tune is None:
            mask[:, positions] &= step >= self.horizon.voice_free(state)[:, None]
        else:
            sounding = state.tune.sounding
            step = np.minimum(step, sounding.shape[1] - 1)
            mask[:, positions] &= np.take_along_axis(sounding, step, axis=1) < self._voices

    def _limit_voices(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """And another note, where still fewer do."""
        now = state.place.bar_start + state.place.position
        if state.tune is None:
            sounding = (state.ends > now[:, None]).sum(axis=1)
        else:
            step = np.minimum(now, state.tune.sounding.shape[1] - 1)
            sounding = state.tune.sounding[np.arange(len(now)), step]
        mask[:, self.vocabulary.ids(Kind.NOTE)] &= (sounding < self._voices)[:, None]

    def _end_in_time(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Durations that leave the piece its end, and the kept notes their room."""
        place, longest = state.place, self.vocabulary.longest_duration
        now = place.bar_start + place.position
        told = place.extends * longest
        if self._tune is None or self._voices == NEVER:
            room = self.horizon.near_reach(state) - now - told
            if room.min() > longest + 1 and place.extends.max() < LONGEST_NOTE:
                return
        reach = self.horizon.reach(state)
        if self._tune is None:
            others_free = (place.free_at < reach[:, None]).sum(axis=1) > 1  # this one is free too
            if self._voices < NEVER:
                others_free &= (state.ends >= reach[:, None]).sum(axis=1) < self._voices - 1
            reach = reach - ~(others_free | self.horizon.is_last(state))
        elif state.tune is not None and self._voices < NEVER:
            sounding = state.tune.sounding
            is_full = (sounding >= self._voices) & (np.arange(sounding.shape[1]) > now[:, None])
            reach = np.where(is_full.any(axis=1), is_full.argmax(axis=1), reach)
        room = reach - now - told
        durations = self.vocabulary.ids(Kind.DURATION)
        mask[:, durations] &= self._numbers[:longest] < room[:, None]
        more = (room > longest) & (place.extends < LONGEST_NOTE)
        mask[:, self.vocabulary.first(Kind.EXTEND)] &= more

    def _fit_bars(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Bars, and lengths, that leave the piece an end in its last bar."""
        place = state.place
        after_this = (self._bars - place.bar_count) * self._longest_bar
        after_next = after_this - self._longest_bar
        # with what follows alone there is an end, whatever this bar and the next are
        if (place.bar_start + after_next >= state.last_end).all():
            return
        bar_end = place.bar_start + place.bar_length
        earliest = self.horizon.earliest_end(state)[:, None]
        bars = self.vocabulary.ids(Kind.BAR)
        reach = (bar_end + after_next)[:, None] + self.vocabulary.whole_bars
        mask[:, bars] &= (reach >= earliest) | (place.bar_count >= self._bars)[:, None]
        lengths = self.vocabulary.ids(Kind.LENGTH)
        length = self._numbers[: lengths.stop - lengths.start] + 1
        mask[:, lengths] &= (place.bar_start + after_this)[:, None] + length >= earliest

    def _fill_last_bar(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """End in the last bar, and not before that has a note."""
        place, end = state.place, self.vocabulary.first(Kind.END)
        is_last = self.horizon.is_last(state)
        if not is_last.any():
            mask[:, end] = False
            return
        has_note = place.note_bar == place.bar_count
        mask[:, end] &= is_last & has_note
        mask[is_last & ~has_note, self.vocabulary.ids(Kind.BAR)] = False

    def _go_on(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """End with the last of the notes, or never; and no more than so many empty bars."""
        place, end = state.place, self.vocabulary.first(Kind.END)
        if self.length.endless:
            mask[:, end] = False
        elif self.length.notes:
            # the grammar offers End after a whole note alone
            is_done = mask[:, end] & (state.new_notes >= self.length.notes)
            mask[is_done] = False
            mask[:, end] = is_done
        is_empty = place.bar_count - place.note_bar > EMPTY_BARS
        if is_empty.any():
            is_empty &= mask[:, self.vocabulary.ids(Kind.POSITION)].any(axis=1)
            mask[is_empty, self.vocabulary.ids(Kind.BAR)] = False
