"""Whether pieces can be told from real ones by their moves, which no critic counts.

A move is what a pair of voices does from one onset to the next: how far each steps, and which
interval they come to; or two steps of one voice. Critics weigh statistics (data/critic.py), and
what is chosen by them looks better by statistics than it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np

from common.interface import OCTAVE
from data.keys import pitched_notes
from data.score import Score
from data.statistics import REST, VOICES, Music
from evaluation.classifier import FOLDS, area, draws

Moves: TypeAlias = dict[str, float]  # the square root of the share of each

FARTHEST = 9  # semitones; a longer step counts as so many
RARE = 4  # pieces, fewer than which a move must not be in
WEIGHT_PENALTY = 10.0  # C of the logistic regression


@dataclass(frozen=True)
class ToldByMoves:
    """Areas under the ROC curve, by moves: generated pieces beside held-out ones, and real ones."""

    generated: float
    real: float  # the mean of REAL_DRAWS draws of as many training pieces


def tell_by_moves(
    generated: Sequence[Moves], held_out: Sequence[Moves], train: Sequence[Moves], seed: int
) -> ToldByMoves:
    """Train classifiers to tell sets of pieces apart by their moves, as `tell_apart` does.

    Args:
        generated, held_out, train: of each piece.
        seed: of the folds and the draws of training pieces.

    Returns:
        NaN where a set has fewer pieces than there are folds.
    """
    drawn = draws(len(train), len(generated), seed)
    real = [_area([train[n] for n in places.tolist()], held_out, seed) for places in drawn]
    return ToldByMoves(_area(generated, held_out, seed), float(np.mean(real)))


def moves_of(score: Score) -> Moves:
    """Count the moves of up to four voices of a piece."""
    if not len(pitched_notes(score)):
        return {}
    pitch, counts = Music(score).moves, Counter[str]()  # (S, 4)
    for voice in range(len(VOICES)):
        steps = np.diff(pitch[pitch[:, voice] != REST, voice])
        own = steps[steps != 0].clip(-FARTHEST, FARTHEST).tolist()
        counts.update(f"{voice} {one} {two}" for one, two in pairwise(own))
    for high, low in combinations(range(len(VOICES)), 2):
        both = pitch[:, [high, low]]
        sounds = (both != REST).all(axis=1)
        go_on = sounds[:-1] & sounds[1:]
        steps = np.diff(both, axis=0)[go_on].clip(-FARTHEST, FARTHEST)
        to = ((both[1:, 0] - both[1:, 1]) % OCTAVE)[go_on]
        rows = zip(*steps.T.tolist(), to.tolist(), strict=True)
        counts.update(f"{high} {low} {one} {two} {interval}" for one, two, interval in rows)
    return {move: float(np.sqrt(count / counts.total())) for move, count in counts.items()}


def _area(ours: Sequence[Moves], real: Sequence[Moves], seed: int) -> float:
    """Return how well a logistic regression tells two sets apart."""
    if min(len(ours), len(real)) < FOLDS:
        return float("nan")
    # here, for this library takes a second to import
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    shares = DictVectorizer().fit_transform([*ours, *real]).tocsc()
    shares = shares[:, shares.getnnz(axis=0) >= RARE].tocsr()
    is_real = np.arange(shares.shape[0]) >= len(ours)
    if not shares.shape[1]:
        return 0.5
    classifier = LogisticRegression(C=WEIGHT_PENALTY, class_weight="balanced", max_iter=1000)
    return area(classifier, shares, is_real, seed)
