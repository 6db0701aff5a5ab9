"""How far the pieces of a training set go: how often bars repeat, and how dense the notes are.

A piece that goes farther is not such music, however likely each of its notes is. A piece that is
less or more dense than nine in ten of them is unusual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Self

import numpy as np

from common.options import Count, Measure
from data.score import Score
from data.texture import polyphony

FEW_BARS = 8  # in a shorter piece, two equal bars are already a large share
USUAL = (0.05, 0.95)  # quantiles: nine of ten pieces lie between them


@dataclass(frozen=True)
class Extremes:
    """The limits that no piece of a training set exceeds."""

    bar_repetition: Measure  # at most, in pieces with at least FEW_BARS bars
    equal_bars: Count  # at most in a row, in the same pieces
    least_density: Measure  # notes a second
    most_density: Measure

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Self | None:
        """Return the extremes of some pieces; None: none of them is long enough to tell."""
        long = [bars_of(score) for score in scores if len(score.bars) >= FEW_BARS]
        density = [note_density(score) for score in scores if len(score.notes)]
        if not long or not density:
            return None
        in_a_row = max(map(equal_in_a_row, long))
        return cls(max(map(bar_repetition, long)), in_a_row, min(density), max(density))

    def are_exceeded_by(self, score: Score) -> bool:
        """Return whether a piece goes farther: it loops, or has far too few or too many notes."""
        density = note_density(score)
        is_dense_enough = self.least_density <= density <= self.most_density  # not if NaN
        bars = bars_of(score)
        allowed = max(self.bar_repetition, 1 / max(len(bars) - 1, 1))  # each bar may occur twice
        loops = bar_repetition(bars) > allowed or equal_in_a_row(bars) > max(self.equal_bars, 2)
        return loops or not is_dense_enough


@dataclass(frozen=True)
class Usual:
    """The range of nine of ten pieces in a training set: neither nearly empty nor a wall."""

    density: tuple[Measure, Measure]  # notes a second
    polyphony: tuple[Measure, Measure]  # pitches at once, on average; without drums

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Self | None:
        """Return what is usual in some pieces; None: they have no notes with a pitch."""
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
    """Return the density and the polyphony of a piece; NaN if it has none."""
    return note_density(score), polyphony(score)


def note_density(score: Score) -> float:
    """Return the notes per second, with drums, up to the end of the last bar or note.

    This is "Note density" in McKay 2010, "Automatic music classification with jMIR".
    """
    seconds = float(score.step_seconds(score.end_step))
    return len(score.notes) / seconds if seconds else float("nan")


def bars_of(score: Score) -> list[bytes]:
    """Return the bars that have notes; equal ones have the same notes at the same places."""
    bar, place = score.bar_positions
    notes = np.column_stack([place, *(score.notes[n] for n in ("program", "pitch", "duration"))])
    begins = np.searchsorted(bar, np.arange(len(score.bars) + 1))
    return [notes[a:b].tobytes() for a, b in pairwise(begins) if b > a]


def bar_repetition(bars: Sequence[bytes]) -> float:
    """Return the share of the pairs of bars that are equal.

    It is 0 if no bar comes again, and 1 if all bars are the same. It does not depend on how many
    bars there are: if a piece went on as it is, its share would stay.
    """
    counts, total = Counter(bars).values(), len(bars)
    return sum(count * (count - 1) for count in counts) / max(total * (total - 1), 1)


def equal_in_a_row(bars: Sequence[bytes]) -> int:
    """Return the largest number of bars in a row that are equal."""
    return max((len([*same]) for _, same in groupby(bars)), default=0)
