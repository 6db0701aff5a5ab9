"""Whether pieces can be told from real ones: by classifiers that see every statistic of a piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from common.arrays import Bools, Reals
from data.critic import deviations_from

Piece = TypeVar("Piece")  # what a judge sees of it

FOLDS = 5
REAL_DRAWS = 3  # of training pieces, which a judge is to tell from held-out ones
TREES = 200
WEIGHT_PENALTY = 0.01  # C of the logistic regression: statistics are many, pieces few


@dataclass(frozen=True)
class Told:
    """How well a judge tells pieces from held-out ones.

    These are areas under the ROC curve: 0.5 where it guesses, 1 where it is never wrong. An area is
    the chance that, of a piece of each set, it finds the right one the likelier to be real.
    """

    generated: float
    real: float  # training pieces: the mean of REAL_DRAWS draws of as many


def tell_apart(
    judge: Callable[[Sequence[Piece], Sequence[Piece], int], float],
    generated: Sequence[Piece],
    held_out: Sequence[Piece],
    train: Sequence[Piece],
    seed: int,
) -> Told:
    """Have a judge tell sets of pieces apart, which is cross-validated by piece, FOLDS times.

    The test of two samples by a classifier is that of Lopez-Paz & Oquab 2017, "Revisiting
    classifier two-sample tests".

    Args:
        judge: returns the area for two sets, with a seed.
        generated, held_out, train: what it sees of each piece.
        seed: of the judge, and of the draws of training pieces.

    Returns:
        NaN where a set has fewer pieces than there are folds.
    """
    draw, size = np.random.default_rng(seed).permutation, len(generated)
    drawn = [[train[n] for n in draw(len(train))[:size].tolist()] for _ in range(REAL_DRAWS)]
    areas = [
        judge(ours, held_out, seed) if min(len(ours), len(held_out)) >= FOLDS else float("nan")
        for ours in (generated, *drawn)
    ]
    return Told(areas[0], float(np.mean(areas[1:])))


def by_forest(ours: Sequence[Reals], real: Sequence[Reals], seed: int) -> float:
    """Return how well a random forest (Breiman 2001) tells pieces apart by their statistics."""
    from sklearn.ensemble import RandomForestClassifier  # here, for it takes a second to import

    forest = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed % 2**32)
    return area(forest, comparable(np.array([*ours, *real])), len(ours), seed)


def by_regression(ours: Sequence[Reals], real: Sequence[Reals], seed: int) -> float:
    """Return how well a logistic regression tells pieces apart by their statistics."""
    figures = comparable(np.array([*ours, *real]))
    return area(regression(WEIGHT_PENALTY), figures, len(ours), seed)


def regression(penalty: float) -> Any:
    """Return a logistic regression of sklearn's: both sets weigh as much, however many they are.

    Args:
        penalty: C, the inverse of how much weights are held down.
    """
    from sklearn.linear_model import LogisticRegression  # here, for it takes a second to import

    return LogisticRegression(C=penalty, class_weight="balanced", max_iter=1000)


def area(classifier: Any, figures: Any, count: int, seed: int) -> float:
    """Return how well a classifier of sklearn's tells the first pieces of (pieces, F) apart."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    is_real: Bools = np.arange(figures.shape[0]) >= count
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**32)  # it takes no more
    chances = cross_val_predict(classifier, figures, is_real, cv=folds, method="predict_proba")
    return float(roc_auc_score(is_real, chances[:, 1]))


def comparable(figures: Reals) -> Reals:
    """Return statistics (pieces, F) in deviations from their means over all pieces, (pieces, G).

    What is not defined for a piece is as the mean. What never is, or is alike for all, is left out,
    and last comes how many are not defined.
    """
    undefined = np.isnan(figures)
    figures, missing = figures[:, ~undefined.all(axis=0)], undefined.sum(axis=1, keepdims=True)
    figures = np.concatenate([figures, missing], axis=1)
    figures = np.where(np.isnan(figures), np.nanmean(figures, axis=0), figures)
    deviation = figures.std(axis=0)
    figures, deviation = figures[:, deviation > 0], deviation[deviation > 0]
    return deviations_from(figures.mean(axis=0), deviation, figures)
