"""How far the pieces of a training set go: how often a bar comes again, how dense their notes are.

What goes farther is no such music, however likely each of its notes is; and what is not as dense
as nine in ten of them is unusual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from common.options import Measure
from data.score import Score
from data.texture import polyphony

FEW_BARS = 8  # in a shorter piece a bar that comes twice is a large share of all
USUAL = (0.05, 0.95)  # quantiles, between which nine of ten pieces are


@dataclass(frozen=True)
class Extremes:
    """What no piece of a training set goes beyond."""

    bar_repetition: Measure  # at most, of pieces of FEW_BARS or more
    least_density: Measure  # notes a second
    most_density: Measure

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Self | None:
        """Return the extremes of some pieces; None where none is long enough to tell."""
        repetition = [bar_repetition(score) for score in scores if len(score.bars) >= FEW_BARS]
        density = [note_density(score) for score in scores if len(score.notes)]
        if not repetition or not density:
            return None
        return cls(max(repetition), min(density), max(density))

    def are_exceeded_by(self, score: Score) -> bool:
        """Return whether a piece goes farther: it loops, or has far too few notes, or too many."""
        density = note_density(score)
        is_dense_enough = self.least_density <= density <= self.most_density  # not if NaN
        allowed = max(self.bar_repetition, 2 / max(len(score.bars), 1))  # each bar may come twice
        return not is_dense_enough or bar_repetition(score) > allowed


@dataclass(frozen=True)
class Usual:
    """Between what nine of ten pieces of a training set are: neither nearly empty nor a wall."""

    density: tuple[Measure, Measure]  # notes a second
    polyphony: tuple[Measure, Measure]  # pitches at once, on average; nothing of drums alone

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Self | None:
        """Return what is usual in some pieces; None where there are no notes with a pitch."""
        with_pitch = [score for score in scores if not np.isnan(polyphony(score))]
        if not with_pitch:
            return None
        low, high = np.quantile(np.array([measures(s) for s in with_pitch]), USUAL, axis=0).tolist()
        return cls((low[0], high[0]), (low[1], high[1]))

    def has(self, score: Score) -> tuple[bool, bool]:
        """Return whether a piece has a usual density, and a usual polyphony."""
        density, at_once = measures(score)
        (least, most), (fewest, highest) = self.density, self.polyphony
        return least <= density <= most, fewest <= at_once <= highest  # not if NaN


def measures(score: Score) -> tuple[float, float]:
    """Return the density and the polyphony of a piece, NaN where there is none."""
    return note_density(score), polyphony(score)


def note_density(score: Score) -> float:
    """Return notes per second, drums too, up to the end of the last bar or note.

    "Note density" of McKay 2010, "Automatic music classification with jMIR".
    """
    seconds = float(score.step_seconds(score.end_step))
    return len(score.notes) / seconds if seconds else float("nan")


def bar_repetition(score: Score) -> float:
    """Return the chance that of two bars, drawn from all that have notes, the one equals the other.

    They are equal if they have the same notes at the same places. It is 1 / bars where none comes
    again, 1 where all are the same; 0 without notes.
    """
    bar, place = score.bar_positions
    notes = np.column_stack([place, *(score.notes[n] for n in ("program", "pitch", "duration"))])
    begins = np.searchsorted(bar, np.arange(len(score.bars) + 1))
    bars = [notes[a:b].tobytes() for a, b in pairwise(begins) if b > a]
    counts = np.array([*Counter(bars).values()])
    return float((counts**2).sum() / max(counts.sum(), 1) ** 2)
