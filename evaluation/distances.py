"""How far two distributions overlap: the area under both, from 0 (nothing shared) to 1 (the same).

Histograms are compared directly. Values are compared as Yang & Lerch 2020 do it ("On the
evaluation of generative models in music"): the distances between pieces of two sets, beside the
distances among the pieces of the second.
"""

import numpy as np
from numpy.typing import NDArray

POINTS = 512  # at which a density is evaluated
WIDTHS = 4  # bandwidths beyond the last value at which a density ends


def overlap_of_histograms(first: NDArray[np.number], second: NDArray[np.number]) -> float:
    """Return the overlap of two histograms over the same bins, (B,) counts or shares each.

    NaN where one of them is empty.
    """
    if not first.sum() or not second.sum():
        return float("nan")
    return float(np.minimum(first / first.sum(), second / second.sum()).sum())


def overlap_of_values(values: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Return how far a measure's values over some pieces overlap with those over a reference set.

    As Yang & Lerch: the distances |value - reference| of all pairs across the sets, against the
    distances of all pairs within the reference, each smoothed to a density by a Gaussian kernel.
    Their program cuts the densities at the last value; here they are whole, so that equal ones
    overlap by 1. Values are (N,) and (M,), none of them NaN; NaN where there is no spread.
    """
    across = np.abs(values[:, None] - reference).ravel()
    within = np.abs(reference[:, None] - reference)[np.triu_indices(len(reference), 1)]
    bandwidths = [scott_bandwidth(across), scott_bandwidth(within)]
    if not all(bandwidth > 0 for bandwidth in bandwidths):  # NaN is not, either
        return float("nan")
    beyond = WIDTHS * max(bandwidths)
    both = np.concatenate([across, within])
    ends = (both.min() - beyond, both.max() + beyond)
    return overlap_of_histograms(
        _density(across, bandwidths[0], ends), _density(within, bandwidths[1], ends)
    )


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
