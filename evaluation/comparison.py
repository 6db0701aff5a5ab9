"""Compares sets of pieces by every musical statistic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from common.arrays import Ints, Reals
from data.score import Score
from data.statistics import NAMES, Music, statistics
from evaluation.classifier import Told, by_forest, by_regression, tell_apart
from evaluation.moves import by_moves, kept_back


class PieceSet(NamedTuple):
    """What is counted in some pieces."""

    statistics: Reals  # (pieces, F)
    moves: list[Ints]  # the moves of each piece that no critic weighs

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Self:
        """Count all this in pieces."""
        return cls(statistics_of(scores), [kept_back(score) for score in scores])


class RealPieces(NamedTuple):
    """Real pieces, at least one in each set."""

    held_out: PieceSet
    train: PieceSet


@dataclass(frozen=True)
class SetSummary:
    """A statistic over a set of pieces; its mean is over those for which it is defined."""

    mean: float
    sd: float
    undefined: int  # for how many pieces it is not defined


@dataclass(frozen=True)
class StatisticRow:
    """A statistic of two sets, and how well it separates them."""

    name: str
    generated: SetSummary
    held_out: SetSummary
    area: float  # under the ROC curve, by this statistic alone


@dataclass(frozen=True)
class Comparison:
    """Generated pieces compared with held-out ones, by every statistic."""

    pieces: dict[str, int]  # how many there are: generated, held_out, train
    rows: list[StatisticRow]  # those that separate best come first
    by_forest: Told  # by all statistics
    by_regression: Told  # by all statistics
    by_moves: Told  # that no critic weighs
    seed: int  # of the classifiers


def compare(scores: Sequence[Score], real: RealPieces, seed: int) -> Comparison:
    """Measure how far generated pieces are from held-out ones, by every statistic.

    What is not defined for most of the held-out pieces means nothing for such music, and is left
    out. At the end, classifiers that see everything try to separate the sets; for reference, they
    also try to separate training pieces from held-out ones.

    Args:
        scores: generated pieces, at least one.
        real: real pieces, on the same grid.
        seed: of the classifiers.
    """
    generated = PieceSet.of(scores)
    sets = {"generated": generated, **real._asdict()}
    own, held_out, train = (pieces.statistics for pieces in sets.values())
    is_defined = np.isnan(held_out).mean(axis=0) <= 0.5
    rows = [
        StatisticRow(name, _summary(ours), _summary(theirs), area_alone(ours, theirs))
        for name, ours, theirs, kept in zip(NAMES, own.T, held_out.T, is_defined, strict=True)
        if kept
    ]
    rows.sort(key=lambda row: -np.nan_to_num(row.area))
    counts = {name: len(pieces.moves) for name, pieces in sets.items()}
    kept = [[*figures[:, is_defined]] for figures in (own, held_out, train)]
    forest, regression = (
        tell_apart(by, kept[0], kept[1], kept[2], seed) for by in (by_forest, by_regression)
    )
    moves = tell_apart(by_moves, generated.moves, real.held_out.moves, real.train.moves, seed)
    return Comparison(counts, rows, forest, regression, moves, seed)


def statistics_of(pieces: Sequence[Score]) -> Reals:
    """Return (pieces, F): the statistics of each piece."""
    return np.array([statistics(Music(score)) for score in pieces]).reshape(len(pieces), len(NAMES))


def area_alone(ours: Reals, theirs: Reals) -> float:
    """Return the area under the ROC curve of one statistic, 0.5 to 1; NaN: a set has none.

    It is the area of the better of two classifiers: higher means real, or lower means real.
    """
    ours, theirs = ours[~np.isnan(ours)], np.sort(theirs[~np.isnan(theirs)])
    if not len(ours) or not len(theirs):
        return float("nan")
    below, up_to = (np.searchsorted(theirs, ours, side) for side in ("left", "right"))
    area = float((below + up_to).mean()) / (2 * len(theirs))
    return max(area, 1 - area)


def distance(real: Reals, written: Reals) -> float:
    """Return how far pieces are from real ones; 0: not at all.

    For each statistic, every written piece has a rank among the real ones, from 0 to 1. If the
    pieces were real, the ranks would be evenly spread. The result is the Wasserstein distance (of
    order 1) from such ranks, averaged over all statistics; NaN if there are none.

    Args:
        real: (N, F). A statistic that is not defined for most of them means nothing for such music,
            and is left out.
        written: (M, F). A statistic that is not defined for a piece ranks lowest.
    """
    even, distances = (np.arange(len(written)) + 0.5) / len(written), list[float]()
    for theirs, ours in zip(real.T, written.T, strict=True):
        known = np.sort(theirs[~np.isnan(theirs)])
        if 2 * len(known) < len(theirs):
            continue
        below, up_to = (np.searchsorted(known, ours, side) for side in ("left", "right"))
        ranks = np.where(np.isnan(ours), 0.0, (below + up_to) / (2 * len(known)))
        distances.append(float(np.abs(np.sort(ranks) - even).mean()))
    return float(np.mean(distances)) if distances else float("nan")


def _summary(values: Reals) -> SetSummary:
    """Summarize (P,) values, some of which may be NaN."""
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    sd = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return SetSummary(mean, sd, len(values) - len(known))
