"""How well moves that no critic weighs separate pieces from real ones (data/moves.py).

Pieces that a critic chose look better than they are by what it weighs. So half of all moves, drawn
at random once, are kept back from critics, and pieces are judged by these.
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

RARE = 4  # a move must be in at least this many pieces
WEIGHT_PENALTY = 10.0  # C of the logistic regression


def by_moves(ours: Sequence[Ints], real: Sequence[Ints], seed: int) -> float:
    """Return how well a logistic regression separates pieces by the root of each move's share.

    Args:
        ours, real: the moves of each piece, from `kept_back`.
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
    """Return how often each move occurs in pieces: a sparse array (pieces, MOVES), by columns."""
    from scipy.sparse import csc_array  # imported here, since it takes long

    rows = np.repeat(np.arange(len(pieces)), [*map(len, pieces)])
    moves = np.concatenate(pieces)
    table = csc_array((np.ones(len(moves)), (rows, moves)), (len(pieces), MOVES))
    table.sum_duplicates()
    return table
