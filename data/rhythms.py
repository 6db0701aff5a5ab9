"""On which steps of a beat notes begin: sixteenths in one piece, triplets in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from common.options import Count
from data.score import Score

HARDLY_USED = 0.01  # a piece uses no step on which a smaller share of its notes begins


@dataclass(frozen=True)
class Rhythm:
    """The steps after a beat, rising, on which notes begin, and in how many pieces."""

    pieces: Count
    steps: tuple[Count, ...]


def rhythms_of(scores: Iterable[Score]) -> tuple[Rhythm, ...]:
    """Return the steps on which notes begin in pieces with a meter, the most frequent first.

    Here a beat is a quarter note, counted from the bar line.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for score in scores:
        if score.grid.has_meter and len(score.notes):
            begun = np.bincount(score.bar_positions[1] % score.grid.steps_per_beat)
            counts[tuple(np.flatnonzero(begun >= HARDLY_USED * begun.sum()).tolist())] += 1
    return tuple(Rhythm(count, steps) for steps, count in counts.most_common())
