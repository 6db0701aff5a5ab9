"""Bootstrap intervals: how far a ratio over pieces would vary if other pieces had been drawn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 100  # resamples


@dataclass(frozen=True)
class BootstrapSettings:
    """How intervals are found: the share of resamples inside, how many there are, and the seed."""

    confidence: float = 0.95
    resamples: int = 2000
    seed: int = 0


SETTINGS = BootstrapSettings()


@dataclass(frozen=True)
class Estimate:
    """A ratio with the low and high end of its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def estimate_ratios(parts: NDArray[np.float64], whole: NDArray[np.float64]) -> list[Estimate]:
    """Estimate K ratios: each column of `parts`, (P, K), summed, over the sum of `whole`, (P,)."""
    wholes = np.broadcast_to(whole[:, None], parts.shape)
    values = parts.sum(axis=0) / whole.sum()
    ends = bootstrap_intervals(parts, wholes)
    return [Estimate(*row) for row in np.column_stack([values, ends]).tolist()]


def bootstrap_intervals(
    parts: NDArray[np.float64], wholes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return percentile bootstrap intervals of K ratios of sums over the same P pieces.

    Whole pieces are drawn with replacement (Efron and Tibshirani 1993, "An introduction to the
    bootstrap", chapter 13), the same draws for all ratios and in every run. The parts and wholes,
    (P, K), are what each piece adds to the numerator and the denominator. The intervals, (K, 2),
    are NaN for fewer than two pieces, and where the denominator of a resample is 0.
    """
    pieces, ratios = parts.shape
    if pieces < 2:
        return np.full((ratios, 2), np.nan)
    rng = np.random.default_rng(SETTINGS.seed)
    drawn = np.empty((SETTINGS.resamples, ratios))
    for begin in range(0, SETTINGS.resamples, _AT_ONCE):
        times = rng.multinomial(pieces, np.full(pieces, 1 / pieces), size=_AT_ONCE)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn[begin : begin + _AT_ONCE] = (times @ parts) / (times @ wholes)
    drawn[~np.isfinite(drawn).all(axis=1)] = np.nan
    tail = (1 - SETTINGS.confidence) / 2
    return np.quantile(drawn, (tail, 1 - tail), axis=0).T
