"""A critic says how much a piece is like real pieces, by its statistics and its voices' moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from common.arrays import Reals
from common.options import Count
from data.moves import MOVES, moves_of
from data.score import Score
from data.statistics import IS_OF_ENDING, NAMES, VERSION, Music, statistics

MOST_DEVIATIONS = 5.0  # the most by which a statistic counts
FULL_BARS, LENGTH_POWER = 12, 1.5  # with fewer bars, statistics say less: with 4 bars a fifth


def deviations_from(means: Reals, deviations: Reals, figures: Reals) -> Reals:
    """Return how many deviations statistics (..., F) lie from their means; 0 if undefined."""
    apart = np.nan_to_num((figures - means) / deviations)
    return np.asarray(np.clip(apart, -MOST_DEVIATIONS, MOST_DEVIATIONS))


@dataclass(frozen=True)
class Critic:
    """Linear discriminants that separate real pieces from those that a model writes.

    Attributes:
        means, deviations: of each statistic over both kinds of pieces (data/statistics.py);
            deviations are above 0.
        weights: what each statistic adds to the score when it lies one deviation above its mean.
        version: of the statistics.
        moves: the moves that have weights (data/moves.py).
        move_weights: what each of these moves adds to the score every time it occurs.

    Raises:
        ValueError: the numbers do not fit the statistics or moves that this program computes.
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
        """Whether this critic weighs the statistics that this program computes."""
        return self.version == VERSION

    def likeness(self, score: Score, is_whole: bool = True) -> float:
        """Return how much a piece is like real ones: a number like a logit, higher for more.

        Args:
            score: the piece.
            is_whole: whether the piece has come to its end. If not, its ending says nothing.
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
