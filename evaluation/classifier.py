"""Whether pieces can be told from real ones: by a classifier that sees every figure of a piece."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
REAL_DRAWS = 3  # of training pieces, which a classifier is to tell from held-out ones
TREES = 100


@dataclass(frozen=True)
class ToldApart:
    """Areas under the ROC curve of a classifier: 0.5 where it guesses, 1 where it is never wrong.

    It is the chance that, of a piece of each set, it finds the right one to be the likelier to be
    held-out.

    Attributes:
        generated: of generated pieces beside held-out ones.
        real: of training pieces beside held-out ones, the mean of REAL_DRAWS draws.
    """

    generated: float
    real: float


def tell_apart(
    generated: NDArray[np.float64],
    held_out: NDArray[np.float64],
    train: NDArray[np.float64],
    seed: int,
) -> ToldApart:
    """Train classifiers to tell sets of pieces apart, each judged on pieces that it did not see.

    They are random forests (Breiman 2001), cross-validated by piece, FOLDS times; the test of two
    samples by a classifier is that of Lopez-Paz & Oquab 2017, "Revisiting classifier two-sample
    tests".

    Args:
        generated, held_out, train: (pieces, F) the figures of each piece; NaN: not defined.
        seed: of the forests, the folds and the draws of as many training as generated pieces.

    Returns:
        NaN where a set has fewer pieces than there are folds.
    """
    draw = np.random.default_rng(seed).permutation
    real = [train[draw(len(train))[: len(generated)]] for _ in range(REAL_DRAWS)]
    areas = [_area(pieces, held_out, seed) for pieces in real]
    return ToldApart(_area(generated, held_out, seed), float(np.mean(areas)))


def _area(ours: NDArray[np.float64], real: NDArray[np.float64], seed: int) -> float:
    """Return the area under the ROC curve of a classifier that tells two sets apart."""
    if min(len(ours), len(real)) < FOLDS:
        return float("nan")
    # here, for this library takes a second to import
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    figures = np.concatenate([ours, real])
    is_real = np.arange(len(figures)) >= len(ours)
    forest = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    chances = cross_val_predict(forest, figures, is_real, cv=folds, method="predict_proba")
    return float(roc_auc_score(is_real, chances[:, 1]))
