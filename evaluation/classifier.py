"""How well classifiers that see every statistic of a piece separate pieces from real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from common.arrays import Bools, Reals
from data.critic import deviations_from

Piece = TypeVar("Piece")  # what a judge sees of a piece

FOLDS = 5
REAL_DRAWS = 3  # draws of training pieces that a judge must separate from held-out ones
TREES = 200
WEIGHT_PENALTY = 0.01  # C of the logistic regression: there are many statistics and few pieces


@dataclass(frozen=True)
class Told:
    """How well a judge separates pieces from held-out ones.

    The numbers are areas under the ROC curve: 0.5 if the judge guesses, 1 if it is never wrong. The
    area is the chance that, of one piece from each set, the judge thinks the right one likelier to
    be real.
    """

    generated: float
    real: float  # training pieces: the mean over REAL_DRAWS draws of as many


def tell_apart(
    judge: Callable[[Sequence[Piece], Sequence[Piece], int], float],
    generated: Sequence[Piece],
    held_out: Sequence[Piece],
    train: Sequence[Piece],
    seed: int,
) -> Told:
    """Let a judge separate sets of pieces, with cross-validation by piece in FOLDS folds.

    This is the classifier two-sample test of Lopez-Paz & Oquab 2017, "Revisiting classifier
    two-sample tests".

    Args:
        judge: returns the area for two sets and a random seed.
        generated, held_out, train: what the judge sees of each piece.
        seed: of the judge, and of the draws of training pieces.

    Returns:
        NaN if a set has fewer pieces than there are folds.
    """
    draw, size = np.random.default_rng(seed).permutation, len(generated)
    drawn = [[train[n] for n in draw(len(train))[:size].tolist()] for _ in range(REAL_DRAWS)]
    areas = [
        judge(ours, held_out, seed) if min(len(ours), len(held_out)) >= FOLDS else float("nan")
        for ours in (generated, *drawn)
    ]
    return Told(areas[0], float(np.mean(areas[1:])))


def by_forest(ours: Sequence[Reals], real: Sequence[Reals], seed: int) -> float:
    """Return how well a random forest (Breiman 2001) separates pieces by their statistics."""
    from sklearn.ensemble import RandomForestClassifier  # here, for it takes a second to import

    forest = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed % 2**32)
    return area(forest, comparable(np.array([*ours, *real])), len(ours), seed)


def by_regression(ours: Sequence[Reals], real: Sequence[Reals], seed: int) -> float:
    """Return how well a logistic regression separates pieces by their statistics."""
    figures = comparable(np.array([*ours, *real]))
    return area(regression(WEIGHT_PENALTY), figures, len(ours), seed)


def regression(penalty: float) -> Any:
    """Return a logistic regression of sklearn in which both sets have the same weight.

    Args:
        penalty: C, the inverse of how strongly weights are held down.
    """
    from sklearn.linear_model import LogisticRegression  # here, for it takes a second to import

    return LogisticRegression(C=penalty, class_weight="balanced", max_iter=1000)


def area(classifier: Any, figures: Any, count: int, seed: int) -> float:
    """Return how well a classifier of sklearn separates the first `count` pieces from the rest.

    `figures` are (pieces, F); `seed` is that of the folds.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    is_real: Bools = np.arange(figures.shape[0]) >= count
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**32)  # it takes no more
    chances = cross_val_predict(classifier, figures, is_real, cv=folds, method="predict_proba")
    return float(roc_auc_score(is_real, chances[:, 1]))


def comparable(figures: Reals) -> Reals:
    """Return statistics (pieces, F) in deviations from their means over all pieces, (pieces, G).

    What is not defined for a piece becomes the mean. What is never defined, or the same for all, is
    left out. The last column is the number of undefined statistics.
    """
    undefined = np.isnan(figures)
    figures, missing = figures[:, ~undefined.all(axis=0)], undefined.sum(axis=1, keepdims=True)
    figures = np.concatenate([figures, missing], axis=1)
    figures = np.where(np.isnan(figures), np.nanmean(figures, axis=0), figures)
    deviation = figures.std(axis=0)
    figures, deviation = figures[:, deviation > 0], deviation[deviation > 0]
    return deviations_from(figures.mean(axis=0), deviation, figures)
