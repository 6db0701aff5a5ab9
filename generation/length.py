"""What a piece can still become: the end it has to reach, and the room that is left before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.keys import ConstraintError
from data.tokens.features import MAX_BARS_TO_FOLLOW
from data.tokens.grammar import GrammarState
from data.tokens.step_features import StepState
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.given import GivenNotes, GivenState

NEVER = 1 << 40  # a step that no piece reaches


@dataclass(frozen=True)
class Length:
    """Where a piece ends: at most one of these; with none the model ends it, or nobody.

    Attributes:
        bars: with its bar of that number, the seed's counted. What is new has ended by its end.
        seconds: in the bar that lasts until then, the seed's time counted. No note begins later,
            and those of earlier bars have ended by then; the tempo holds. To the nearest step.
        notes: with so many new notes.
        endless: the model may not end it.

    Raises:
        ConstraintError: more than one, or nothing to write.
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
            if not 0 < getattr(self, name) < NEVER >> 20:
                raise ConstraintError(f"{name} must be above 0, not {getattr(self, name)}")


@dataclass
class ConstrainedState:
    """Where each of B rows stands. Times are in grid steps.

    Attributes:
        place: the grammar's state. A note that is not asked for is never free there.
        ends: (B, N) when each note ended or will end, asked for or not.
        last_end: (B,) the latest of them.
        whole_bar: (B,) length of a whole bar of the meter in force.
        limit: (B,) nothing begins from here on; NEVER where there is no such step, or not yet.
        new_notes: (B,) notes begun after the prompt.
        bar_notes, past_notes: (B,) notes begun in this bar, and in those before it.
        tune: how far the rows are through the tune that is kept.
        walks: where the rows stand in what the model has read; None before it reads.
    """

    place: GrammarState
    ends: NDArray[np.int64]
    last_end: NDArray[np.int64]
    whole_bar: NDArray[np.int64]
    limit: NDArray[np.int64]
    new_notes: NDArray[np.int64]
    bar_notes: NDArray[np.int64]
    past_notes: NDArray[np.int64]
    tune: GivenState | None
    walks: list[StepState] | None = None


@dataclass(frozen=True)
class LengthPlan:
    """How far a piece may go, and what may sound at once.

    Attributes:
        vocabulary: of the model.
        length: where the piece ends.
        tune: a voice that is kept; the piece ends with it.
        bars: the number of the last bar; NEVER where it is not known.
        voices: notes that may sound at once; NEVER where all may.
        longest_bar: steps of the longest bar that may begin.
        tempo: number of the tempo that is asked for; None: any.
    """

    vocabulary: Vocabulary
    length: Length
    tune: GivenNotes | None
    bars: int
    voices: int
    longest_bar: int
    tempo: int | None

    def first_free(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) the step from which some note that is asked for could begin, as things stand."""
        free = state.place.free_at.min(axis=1)
        if self.voices < NEVER:
            free = np.maximum(free, self.voice_free(state))
        return np.asarray(free)

    def voice_free(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) the step from which fewer notes sound than may at once."""
        nth = state.ends.shape[1] - self.voices
        return np.asarray(np.partition(state.ends, nth, axis=1)[:, nth])

    def earliest_end(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) no `reach` may be less."""
        return np.maximum(state.last_end, self.first_free(state) + 1)

    def near_reach(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) the last step the piece can have in bars of the present meter."""
        place = state.place
        bar_end = place.bar_start + place.bar_length
        if self.tune:
            return np.full(len(bar_end), self.tune.end)
        if self.length.seconds:
            return np.asarray(np.maximum(bar_end, state.limit))
        if not self.length.bars:
            return np.full(len(bar_end), NEVER)
        whole = np.minimum(state.whole_bar, self.longest_bar)
        return np.asarray(bar_end + (self.bars - place.bar_count) * whole)

    def reach(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) that step, or where the piece cannot end by then, the last that it can have."""
        reach = self.near_reach(state)
        if self.length.bars:
            place = state.place
            follow = self.bars - place.bar_count
            farthest = place.bar_start + place.bar_length + follow * self.longest_bar
            reach = np.where(reach >= self.earliest_end(state), reach, farthest)
        return reach

    def is_last(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """(B,) whether the piece has no bar after the one that the row is in."""
        place = state.place
        if self.length.seconds:
            return np.asarray(place.bar_start + place.bar_length >= state.limit)
        return np.asarray(place.bar_count >= self.bars)

    def bars_to_follow(self, state: ConstrainedState) -> NDArray[np.int64]:
        """(B,) bars after the one that each row is in; -1: unknown."""
        place = state.place
        if self.bars < NEVER:
            return np.asarray(np.maximum(self.bars - place.bar_count, 0))
        if self.length.seconds:
            left = state.limit - place.bar_start - place.bar_length
            follow = np.maximum(-(-left // np.maximum(state.whole_bar, 1)), 0)
            return np.where((state.limit == NEVER) | (place.bar_count == 0), -1, follow)
        if self.length.notes:
            a_bar = state.past_notes / np.maximum(place.bar_count - 1, 1)
            beyond = self.length.notes - state.new_notes - np.maximum(a_bar - state.bar_notes, 0)
            follow = np.ceil(np.maximum(beyond, 0) / np.maximum(a_bar, 1e-9))
            told = np.minimum(follow, MAX_BARS_TO_FOLLOW).astype(np.int64)
            return np.where(state.past_notes > 0, told, -1)
        return np.full(len(place.kind), -1)

    def progress(self, state: ConstrainedState) -> float:
        """How much of what is asked for is written, 0 to 1, in the row that has least."""
        place = state.place
        if self.length.notes:
            done = state.new_notes / self.length.notes
        elif self.length.seconds:
            done = (place.bar_start + np.maximum(place.position, 0)) / state.limit
        else:
            done = (place.bar_count - 1) / self.bars
        return float(done.clip(0, 1).min())

    def limit_after(self, prompt: NDArray[np.int64]) -> int:
        """The step that `length.seconds` is, as far as a prompt tells the tempo."""
        assert self.length.seconds is not None
        vocabulary = self.vocabulary
        spb = vocabulary.grid.steps_per_beat
        if len(prompt) == 1:
            return NEVER if vocabulary.tells_tempo else max(1, round(self.length.seconds * spb))
        score = decode(np.append(prompt, vocabulary.first(Kind.END)), vocabulary)
        lines = score.bar_starts
        seconds = score.step_seconds(lines)
        beyond = self.length.seconds - seconds[-1]
        if beyond <= 0:
            return max(1, round(float(np.interp(self.length.seconds, seconds, lines))))
        bpm = score.tempo_bpm[-1] if self.tempo is None else vocabulary.tempos[self.tempo]
        return round(float(lines[-1] + beyond * bpm * spb / 60))

    def check(self, state: ConstrainedState) -> None:
        """Whether the rows, all alike, can come to the end that is asked for."""
        place = state.place
        bar_end = int(place.bar_start[0] + place.bar_length[0])
        limit, bar_count = int(state.limit[0]), int(place.bar_count[0])
        if bar_count > self.bars or place.bar_start[0] >= limit:
            raise ConstraintError("the seed is already longer than the piece that is asked for")
        if state.last_end[0] > self.reach(state)[0] or (
            bar_count < self.bars
            and bar_end < limit
            and self.earliest_end(state)[0] > self.reach(state)[0]
        ):
            raise ConstraintError(
                "the notes of the seed sound on past the end that is asked for: ask for a longer "
                "piece or keep less of the seed"
            )
        if bar_count == self.bars or bar_end >= limit:
            begin = max(self.first_free(state)[0], place.bar_start[0] + place.position[0] + 1)
            if begin >= min(bar_end, limit):
                raise ConstraintError(
                    "the seed leaves no room for a note before the end that is asked for: ask for "
                    "a longer piece or keep less of the seed"
                )
