"""A critic: how like real pieces a piece is, by its musical statistics and its voices' moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from common.arrays import Reals
from common.options import Count
from data.moves import MOVES, moves_of
from data.score import Score
from data.statistics import IS_OF_ENDING, NAMES, VERSION, Music, statistics

MOST_DEVIATIONS = 5.0  # so far a statistic counts
FULL_BARS, LENGTH_POWER = 12, 1.5  # of fewer bars statistics say less, of 4 a fifth


def deviations_from(means: Reals, deviations: Reals, figures: Reals) -> Reals:
    """Return statistics (..., F) in deviations from their means, 0 for what is not defined."""
    apart = np.nan_to_num((figures - means) / deviations)
    return np.asarray(np.clip(apart, -MOST_DEVIATIONS, MOST_DEVIATIONS))


@dataclass(frozen=True)
class Critic:
    """Linear discriminants that tell real pieces from those that a model writes.

    Attributes:
        means, deviations: of each statistic in both (data/statistics.py); a deviation is above 0.
        weights: what each says, a deviation above the mean.
        version: of the statistics.
        moves: those that say something (data/moves.py).
        move_weights: what each says, once.

    Raises:
        ValueError: numbers of other statistics than this program computes, or of other moves.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    version: Count = VERSION
    moves: tuple[Count, ...] = ()
    move_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.moves) != len(self.move_weights) or max(self.moves, default=0) >= MOVES:
            raise ValueError(f"a critic weighs {MOVES} moves at most, each with one number")
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
        music = Music(score)
        figures = np.where(IS_OF_ENDING & (not is_whole), np.nan, statistics(music))
        apart = deviations_from(np.array(self.means), np.array(self.deviations), figures)
        trust = min(1.0, len(score.bars) / FULL_BARS) ** LENGTH_POWER
        moves, _ = moves_of(music)
        return float(trust * (apart @ np.array(self.weights)) + self._weight_of_move[moves].sum())

    @cached_property
    def _weight_of_move(self) -> Reals:
        weights = np.zeros(MOVES)
        weights[list(self.moves)] = self.move_weights
        return weights
