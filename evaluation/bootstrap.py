"""Bootstrap intervals: how much a ratio over pieces would vary if other pieces had been drawn."""

from dataclasses import dataclass

import numpy as np

from common.arrays import Reals

CONFIDENCE, RESAMPLES = 0.95, 2000  # the share of resamples in an interval; how many there are
_AT_ONCE = 100  # resamples


@dataclass(frozen=True)
class Estimate:
    """A ratio, and the low and high ends of its interval; NaN: there is none."""

    value: float
    low: float
    high: float


def estimate_ratios(parts: Reals, whole: Reals) -> list[Estimate]:
    """Estimate K ratios of sums over P pieces, with percentile bootstrap intervals.

    Whole pieces are drawn with replacement (Efron and Tibshirani 1993, "An introduction to the
    bootstrap", chapter 13), the same draws for all ratios and in every run. There is no interval if
    there are fewer than two pieces, or if the denominator of a resample is 0.

    Args:
        parts: (P, K) what each piece adds to the numerators.
        whole: (P,) what each piece adds to the denominator.
    """
    pieces, ratios = parts.shape
    drawn = np.full((RESAMPLES, ratios), np.nan)
    rng = np.random.default_rng(0)
    for begin in range(0, RESAMPLES if pieces > 1 else 0, _AT_ONCE):
        times = rng.multinomial(pieces, np.full(pieces, 1 / pieces), size=_AT_ONCE)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn[begin : begin + _AT_ONCE] = (times @ parts) / (times @ whole)[:, None]
    drawn[~np.isfinite(drawn).all(axis=1)] = np.nan
    tail = (1 - CONFIDENCE) / 2
    values, ends = parts.sum(axis=0) / whole.sum(), np.quantile(drawn, (tail, 1 - tail), axis=0)
    return [Estimate(*row) for row in np.column_stack([values, *ends]).tolist()]
