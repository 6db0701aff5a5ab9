"""Whether pieces can be told from real ones by moves that no critic weighs (data/moves.py).

What a critic chose looks better by what it weighs than it is. So half of all moves are kept back
from critics, drawn once by lot, and pieces are judged by these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.arrays import Ints
from data.moves import IS_KEPT_BACK, MOVES, moves_of
from data.score import Score
from data.statistics import Music
from evaluation.classifier import area, regression

RARE = 4  # pieces, fewer than which a move must not be in
WEIGHT_PENALTY = 10.0  # C of the logistic regression


def by_moves(ours: Sequence[Ints], real: Sequence[Ints], seed: int) -> float:
    """Return how well a logistic regression tells pieces apart by the root of each move's share.

    Args:
        ours, real: the moves of each piece, as `kept_back` has them.
        seed: of the folds.
    """
    counts = counted([*ours, *real])
    shares = counts.multiply(1 / counts.sum(axis=1).clip(min=1)[:, None]).sqrt().tocsc()
    shares = shares[:, np.diff(counts.indptr) >= RARE].tocsr()
    if not shares.shape[1]:
        return 0.5
    return area(regression(WEIGHT_PENALTY), shares, len(ours), seed)


def kept_back(score: Score) -> Ints:
    """Return the moves of a piece that no critic weighs."""
    moves, _ = moves_of(Music(score))
    return moves[IS_KEPT_BACK[moves]]


def counted(pieces: Sequence[Ints]) -> Any:
    """Return how often each move is in some pieces: a sparse array (pieces, MOVES) by columns."""
    from scipy.sparse import csc_array  # here, for it takes long to import

    rows = np.repeat(np.arange(len(pieces)), [*map(len, pieces)])
    moves = np.concatenate(pieces)
    table = csc_array((np.ones(len(moves)), (rows, moves)), (len(pieces), MOVES))
    table.sum_duplicates()
    return table
