"""A critic: how like real pieces a piece is, by its musical statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.arrays import Reals
from common.options import Count
from data.score import Score
from data.statistics import IS_OF_ENDING, NAMES, VERSION, statistics

MOST_DEVIATIONS = 5.0  # so far a statistic counts


def deviations_from(means: Reals, deviations: Reals, figures: Reals) -> Reals:
    """Return statistics (..., F) in deviations from their means, 0 for what is not defined."""
    apart = np.nan_to_num((figures - means) / deviations)
    return np.asarray(np.clip(apart, -MOST_DEVIATIONS, MOST_DEVIATIONS))


@dataclass(frozen=True)
class Critic:
    """A linear discriminant that tells real pieces from those that a model writes.

    Attributes:
        means, deviations: of each statistic in both (data/statistics.py); a deviation is above 0.
        weights: what each says, a deviation above the mean.
        version: of the statistics.

    Raises:
        ValueError: numbers of other statistics than this program computes.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    version: Count = VERSION

    def __post_init__(self) -> None:
        sizes = {len(self.means), len(self.deviations), len(self.weights)}
        if self.version == VERSION and (sizes != {len(NAMES)} or min(self.deviations) <= 0):
            raise ValueError(f"a critic weighs {len(NAMES)} statistics")

    @property
    def is_current(self) -> bool:
        """Whether it weighs the statistics that this program computes."""
        return self.version == VERSION

    def likeness(self, score: Score, is_whole: bool = True) -> float:
        """Return how like real pieces a piece is: the higher, the more; about a logit.

        Args:
            score: the piece.
            is_whole: whether it has come to its end; else how it ends says nothing.
        """
        figures = np.where(IS_OF_ENDING & (not is_whole), np.nan, statistics(score))
        apart = deviations_from(np.array(self.means), np.array(self.deviations), figures)
        return float(apart @ np.array(self.weights))
