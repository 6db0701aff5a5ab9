"""Distances between two distributions: overlapping area and Jensen-Shannon divergence.

Histograms are compared directly. Values are compared as Yang & Lerch 2020 do it ("On the
evaluation of generative models in music"): the distances between pieces of two sets, beside the
distances among the pieces of the second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POINTS = 512  # at which a density is evaluated
WIDTHS = 4  # bandwidths beyond the last value at which a density ends


@dataclass(frozen=True)
class Distance:
    """A distance between two distributions; NaN where one of them is not defined."""

    overlap: float  # the area under both, from 0 (nothing shared) to 1 (the same)
    divergence: float  # Jensen-Shannon's in bits, from 0 (the same) to 1 (nothing shared)


UNDEFINED = Distance(float("nan"), float("nan"))


def between_histograms(first: NDArray[np.float64], second: NDArray[np.float64]) -> Distance:
    """Compare two histograms over the same bins, (B,) counts or shares each.

    The divergence is from Lin 1991, "Divergence measures based on the Shannon entropy".
    """
    if not first.sum() or not second.sum():
        return UNDEFINED
    p, q = first / first.sum(), second / second.sum()
    divergence = (_bits_beyond_mean(p, q) + _bits_beyond_mean(q, p)) / 2
    return Distance(float(np.minimum(p, q).sum()), divergence)


def between_values(values: NDArray[np.float64], reference: NDArray[np.float64]) -> Distance:
    """Compare a measure's values over one set of pieces with those over a reference set.

    As Yang & Lerch: the distances |value - reference| of all pairs across the sets, against the
    distances of all pairs within the reference, each smoothed to a density by a Gaussian kernel.
    They report the Kullback-Leibler divergence of the two densities; Jensen-Shannon's is symmetric
    and always exists. Their program cuts the densities at the last value; here they are whole, so
    that equal ones overlap by 1. Values are (N,) and (M,), none of them NaN.
    """
    across = np.abs(values[:, None] - reference).ravel()
    within = np.abs(reference[:, None] - reference)[np.triu_indices(len(reference), 1)]
    bandwidths = [scott_bandwidth(across), scott_bandwidth(within)]
    if not all(bandwidth > 0 for bandwidth in bandwidths):  # NaN is not, either
        return UNDEFINED
    beyond = WIDTHS * max(bandwidths)
    both = np.concatenate([across, within])
    ends = (both.min() - beyond, both.max() + beyond)
    return between_histograms(
        _density(across, bandwidths[0], ends), _density(within, bandwidths[1], ends)
    )


def _bits_beyond_mean(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the Kullback-Leibler divergence of p from the mean of p and q, in bits."""
    some = p > 0
    return float((p[some] * np.log2(2 * p[some] / (p + q)[some])).sum())


def scott_bandwidth(values: NDArray[np.float64]) -> float:
    """Return Scott's bandwidth of a Gaussian kernel over (N,) values; NaN for fewer than two."""
    return float(values.std(ddof=1) * len(values) ** -0.2) if len(values) > 1 else float("nan")


def _density(
    values: NDArray[np.float64], bandwidth: float, ends: tuple[float, float]
) -> NDArray[np.float64]:
    """Return (POINTS,) a Gaussian kernel density of the binned values between the ends."""
    step = (ends[1] - ends[0]) / POINTS
    reach = int(WIDTHS * bandwidth / step) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    counts = np.histogram(values, POINTS, ends)[0]
    return np.convolve(counts, kernel)[reach : reach + POINTS]
