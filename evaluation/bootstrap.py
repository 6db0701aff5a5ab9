"""How far a figure over pieces would vary, had other pieces like them been drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
CONFIDENCE = 0.95
SEED = 0
_AT_ONCE = 100  # resamples


def intervals(parts: NDArray[np.float64], wholes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percentile bootstrap intervals of K ratios of sums over the same P pieces.

    Whole pieces are drawn, with replacement (Efron and Tibshirani 1993, "An introduction to the
    bootstrap", chapter 13), RESAMPLES times, the same for all ratios and in every run.

    Args:
        parts, wholes: (P, K) what each piece adds to the sum above and below the line.

    Returns:
        (K, 2) the low and high end, between which CONFIDENCE of the resamples lie; NaN for fewer
        than two pieces, and where a resample has nothing below the line.
    """
    pieces, ratios = parts.shape
    if pieces < 2:
        return np.full((ratios, 2), np.nan)
    rng = np.random.default_rng(SEED)
    drawn = np.empty((RESAMPLES, ratios))
    for begin in range(0, RESAMPLES, _AT_ONCE):
        times = rng.multinomial(pieces, np.full(pieces, 1 / pieces), size=_AT_ONCE)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn[begin : begin + _AT_ONCE] = (times @ parts) / (times @ wholes)
    drawn[~np.isfinite(drawn).all(axis=1)] = np.nan
    tail = (1 - CONFIDENCE) / 2
    return np.quantile(drawn, (tail, 1 - tail), axis=0).T
