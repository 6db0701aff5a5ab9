"""Whether pieces can be told from real ones: by classifiers that see every statistic of a piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from common.arrays import Bools, Ints, Reals

FOLDS = 5
REAL_DRAWS = 3  # of training pieces, which a classifier is to tell from held-out ones
TREES = 200
WEIGHT_PENALTY = 0.01  # C of the logistic regression: statistics are many, pieces few
MOST_DEVIATIONS = 5.0  # so far a statistic counts


@dataclass(frozen=True)
class Areas:
    """Areas under the ROC curve: 0.5 where a classifier guesses, 1 where it is never wrong.

    It is the chance that, of a piece of each set, it finds the right one the likelier to be real.
    """

    forest: float  # random forest (Breiman 2001)
    logistic: float  # logistic regression


@dataclass(frozen=True)
class ToldApart:
    """How well generated pieces are told from held-out ones, and training pieces likewise."""

    generated: Areas
    real: Areas  # the means of REAL_DRAWS draws of as many training pieces


def tell_apart(generated: Reals, held_out: Reals, train: Reals, seed: int) -> ToldApart:
    """Train classifiers to tell sets of pieces apart, each judged on pieces that it did not see.

    They are cross-validated by piece, FOLDS times; the test of two samples by a classifier is that
    of Lopez-Paz & Oquab 2017, "Revisiting classifier two-sample tests".

    Args:
        generated, held_out, train: (pieces, F) the statistics of each piece; NaN: not defined.
        seed: of the forests, the folds and the draws of training pieces.

    Returns:
        NaN where a set has fewer pieces than there are folds.
    """
    drawn = draws(len(train), len(generated), seed)
    areas = [_areas(train[places], held_out, seed) for places in drawn]
    means = (float(np.mean([getattr(each, name) for each in areas])) for name in vars(areas[0]))
    return ToldApart(_areas(generated, held_out, seed), Areas(*means))


def _areas(ours: Reals, real: Reals, seed: int) -> Areas:
    """Return how well classifiers tell two sets apart."""
    if min(len(ours), len(real)) < FOLDS:
        return Areas(float("nan"), float("nan"))
    # here, for this library takes a second to import
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    figures = comparable(np.concatenate([ours, real]))
    is_real = np.arange(len(figures)) >= len(ours)
    forest = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed)
    logistic = LogisticRegression(C=WEIGHT_PENALTY, class_weight="balanced", max_iter=1000)
    return Areas(*(area(each, figures, is_real, seed) for each in (forest, logistic)))


def draws(count: int, size: int, seed: int) -> list[Ints]:
    """Return the places of REAL_DRAWS draws of so many of the training pieces."""
    draw = np.random.default_rng(seed).permutation
    return [draw(count)[:size] for _ in range(REAL_DRAWS)]


def area(classifier: Any, figures: Any, is_real: Bools, seed: int) -> float:
    """Return how well a classifier of sklearn's tells which of (pieces, F) are real, (pieces,)."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
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
    scaled = (figures - figures.mean(axis=0)) / deviation
    return np.asarray(np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS))
