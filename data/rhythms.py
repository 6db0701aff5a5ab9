"""On which steps of a beat notes begin in pieces: sixteenths in one, triplets in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from common.options import Count
from data.score import Score

HARDLY_USED = 0.01  # the share of a piece's notes that begin on a step which it does not use


@dataclass(frozen=True)
class Rhythm:
    """Steps after a beat, rising, on which the notes of pieces begin, and how many pieces."""

    pieces: Count
    steps: tuple[Count, ...]


def rhythms_of(scores: Iterable[Score]) -> tuple[Rhythm, ...]:
    """Return the steps on which pieces with a meter use to begin notes, the most frequent first.

    A beat is a quarter note here, counted from the bar line.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for score in scores:
        if score.grid.has_meter and len(score.notes):
            begun = np.bincount(score.bar_positions[1] % score.grid.steps_per_beat)
            counts[tuple(np.flatnonzero(begun >= HARDLY_USED * begun.sum()).tolist())] += 1
    return tuple(Rhythm(count, steps) for steps, count in counts.most_common())
