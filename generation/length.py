"""How long a piece shall be, and where that lets it end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from data.tokens.vocabulary import NEVER, Kind, Vocabulary
from generation.constraints import ConstraintError

if TYPE_CHECKING:
    from generation.constrained_state import ConstrainedState
    from generation.given import GivenTokens

_TOO_LONG = NEVER >> 20  # bars, seconds or notes


@dataclass(frozen=True)
class Length:
    """How long a piece shall be, in at most one of these ways; in none: the model ends it.

    Attributes:
        bars: the piece ends with the bar of this number, the seed's bars counted. What is new has
            ended by its end.
        seconds: it ends with the bar that lasts until this time, the seed's time counted. No note
            begins later, and the notes of earlier bars have ended by then. The tempo does not
            change. Rounded to the nearest step.
        notes: it ends with the last of so many new notes.
        endless: it never ends.

    Raises:
        ConstraintError: more than one of them, or a length that is not above 0.
    """

    bars: int | None = None
    seconds: float | None = None
    notes: int | None = None
    endless: bool = False

    def __post_init__(self) -> None:
        given = [n for n in ("bars", "seconds", "notes") if getattr(self, n) is not None]
        if len(given) + self.endless > 1:
            raise ConstraintError(
                "a piece has one length: give bars, seconds or notes, not several"
            )
        for name in given:
            if not 0 < getattr(self, name) < _TOO_LONG:
                asked = getattr(self, name)
                raise ConstraintError(f"{name} must be above 0 and below {_TOO_LONG}, not {asked}")


@dataclass(frozen=True)
class LengthPlan:
    """Where a piece of a length may end, row by row. Steps are on the grid.

    Attributes:
        vocabulary: of the model.
        length: how long the piece shall be.
        last_bar: number of the last bar, from 1; NEVER where it is not known.
        meter: number of the time signature that is asked for; None: any.
        given: what the piece is given, with its bars.
        is_regular: whether bars after a shortened one make it whole.
    """

    vocabulary: Vocabulary
    length: Length
    last_bar: int
    meter: int | None
    given: GivenTokens
    is_regular: bool = False

    @cached_property
    def longest_bar(self) -> int:
        """Steps of the longest bar that may begin."""
        whole_bars = self.vocabulary.whole_bars
        return int(whole_bars.max() if self.meter is None else whole_bars[self.meter])

    def advance(self, state: ConstrainedState, latest: set[int]) -> None:
        """Count what the ids that were taken last, of these kinds, add to the length so far."""
        if Kind.NOTE in latest and self.length.notes:
            is_note = state.at.kind == Kind.NOTE
            state.new_notes += is_note & (state.at.now >= self.given.seed.end_step)
            state.bar_notes += is_note
        if Kind.BAR in latest:
            rows = np.flatnonzero(state.at.kind == Kind.BAR)
            state.whole_bar[rows] = state.at.bar_length[rows]
            if self.length.notes:
                state.past_notes[rows] += state.bar_notes[rows]
                state.bar_notes[rows] = 0
        if Kind.LENGTH in latest:
            is_first = (state.at.kind == Kind.LENGTH) & (state.at.bar_count == 1)
            state.upbeat[is_first] = state.at.bar_length[is_first]
            if self.is_regular:
                rows = np.flatnonzero((state.at.kind == Kind.LENGTH) & ~is_first)
                owed = np.where(state.owed[rows] > 0, state.owed[rows], state.whole_bar[rows])
                state.owed[rows] = np.maximum(owed - state.at.bar_length[rows], 0)
        if state.owed.any() and latest & {Kind.TEMPO, Kind.POSITION}:
            is_whole = (state.at.bar_length == state.whole_bar) & (state.at.kind != Kind.BAR)
            state.owed[is_whole] = 0  # a whole bar has followed all the same
        if Kind.TEMPO in latest and self.length.seconds:
            rows = np.flatnonzero((state.at.kind == Kind.TEMPO) & (state.limit == NEVER))
            tempo = np.array(self.vocabulary.tempos)[state.at.tempo[rows]]
            steps = self.length.seconds * tempo * self.vocabulary.grid.steps_per_beat / 60
            state.limit[rows] = np.maximum(np.rint(steps), 1)

    def expected_end(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) at which the piece ends if the meter stays as it is."""
        bar_end, bars_left = self._known(state)
        if self.length.seconds:
            return np.asarray(np.maximum(bar_end, state.limit))
        if not self.length.bars:
            return np.full(len(bar_end), NEVER)
        whole = self._whole_bar(state)
        is_shortened = (bars_left > 0) & (state.upbeat < whole)  # the last bar, by the upbeat
        end = bar_end + bars_left * whole - state.upbeat * is_shortened
        return np.asarray(end - self._missing(state, bars_left))

    def latest_end(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the last step (B,) that the piece can reach, if the longest bars follow."""
        bar_end, bars_left = self._known(state)
        return np.asarray(bar_end + bars_left * self.longest_bar)

    def _known(self, state: ConstrainedState) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the step (B,) at which the last bar ends that is known, and how many follow."""
        is_given = state.at.bar_count < self.given.bars
        bar_end = np.where(is_given, self.given.end, state.at.bar_start + state.at.bar_length)
        return bar_end, self.last_bar - np.maximum(state.at.bar_count, self.given.bars)

    def _whole_bar(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the steps (B,) of a whole bar as they follow; 0 before the first."""
        is_given = state.at.bar_count < self.given.bars
        known = np.where(is_given, self.given.whole_bar, state.whole_bar)
        return known if self.meter is None else np.where(known > 0, self.longest_bar, 0)

    def _missing(self, state: ConstrainedState, bars_left: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the steps (B,) by which the next bar is shorter than a whole one."""
        return np.where((state.owed > 0) & (bars_left > 1), state.whole_bar - state.owed, 0)

    def final_onset(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the step (B,) at which the final chord is to begin, if the meter stays as it is.

        It is -1 where that is not known, and NEVER before the first bar.
        """
        bar_end, bars_left = self._known(state)
        here, size = state.at.bar_start, state.at.bar_length  # of the last bar, where it has begun
        if self.given.bars == self.last_bar:
            here = np.full_like(here, self.given.last_bar_start)
            size = self.given.end - here
        whole = self._whole_bar(state)
        before_last = bar_end + (bars_left - 1) * whole - self._missing(state, bars_left)
        last_bar = np.where(bars_left > 0, before_last, here)
        latest = np.maximum(size - self.vocabulary.grid.steps_per_beat, 0)
        position = state.final_position
        position = np.where((bars_left > 0) | (position < size), position, latest)
        onset = np.where(whole > 0, last_bar + position, NEVER)
        return np.where((state.final_position >= 0) & (self.last_bar < NEVER), onset, -1)

    def is_last_bar(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """Return whether each row (B,) is in the last bar of its piece."""
        if self.length.seconds:
            return np.asarray(state.at.bar_start + state.at.bar_length >= state.limit)
        return np.asarray(state.at.bar_count >= self.last_bar)

    def is_over(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """Return whether each row (B,) has begun a bar after the last, which stands for End."""
        at = state.at
        return np.asarray((at.bar_count > self.last_bar) | (at.bar_start >= state.limit))

    def bars_to_follow(self, state: ConstrainedState) -> NDArray[np.int64]:
        """Return the number of bars (B,) after the one that each row is in; -1: unknown.

        For a length in seconds or notes it is an estimate from the bars, or the notes, so far.
        """
        if self.last_bar < NEVER:
            return np.asarray(np.maximum(self.last_bar - state.at.bar_count, 0))
        if self.length.seconds:
            left = state.limit - state.at.bar_start - state.at.bar_length
            follow = np.maximum(-(-left // np.maximum(state.whole_bar, 1)), 0)
            return np.where((state.limit == NEVER) | (state.at.bar_count == 0), -1, follow)
        if self.length.notes:
            per_bar = state.past_notes / np.maximum(state.at.bar_count - 1, 1)
            in_this_bar = np.maximum(per_bar - state.bar_notes, 0)
            left = self.length.notes - state.new_notes - in_this_bar
            follow = np.ceil(np.maximum(left, 0) / np.maximum(per_bar, 1e-9))
            capped = np.minimum(follow, NEVER).astype(np.int64)
            return np.where(state.past_notes > 0, capped, -1)
        return np.full(len(state.at.kind), -1)

    def progress(self, state: ConstrainedState) -> float:
        """Return the share of the length, 0 to 1, that the row which is least far has written."""
        if self.length.notes:
            done = state.new_notes / self.length.notes
        elif self.length.seconds:
            done = (state.at.bar_start + np.maximum(state.at.position, 0)) / state.limit
        else:
            done = (state.at.bar_count - 1) / self.last_bar
        return float(done.clip(0, 1).min())

    @cached_property
    def limit(self) -> int:
        """The step at which `length.seconds` are over; NEVER: the tempo is still open."""
        assert self.length.seconds is not None
        score, grid = self.given.seed.score, self.vocabulary.grid
        if not self.given.bars:
            if grid.has_meter:
                return NEVER
            return max(1, round(self.length.seconds * grid.steps_per_beat))
        lines = score.bar_starts
        seconds = score.step_seconds(lines)
        left = self.length.seconds - seconds[-1]
        if left <= 0:
            return max(1, round(float(np.interp(self.length.seconds, seconds, lines))))
        return round(float(lines[-1] + left * score.tempo_bpm[-1] * grid.steps_per_beat / 60))
