"""How far two distributions are apart: overlapping area and Jensen-Shannon divergence.

Of single numbers as Yang & Lerch 2020 do it ("On the evaluation of generative models in music"):
how far the pieces of one set are from those of the other, beside how far the other's are from each
other. Of histograms directly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

POINTS = 512  # of a density
WIDTHS = 4  # bandwidths beyond the last value after which a density is over


class Distance(NamedTuple):
    """How far two distributions are apart; NaN where one of them is not defined.

    Attributes:
        overlap: the area under both, 1 where they are the same, 0 where they share nothing.
        divergence: Jensen-Shannon's in bits, 0 where they are the same, 1 with nothing shared.
    """

    overlap: float
    divergence: float


UNDEFINED = Distance(float("nan"), float("nan"))


def between_histograms(first: NDArray[np.float64], second: NDArray[np.float64]) -> Distance:
    """Of two histograms over the same bins, (B,) counts or shares each.

    The divergence is that of Lin 1991, "Divergence measures based on the Shannon entropy".
    """
    if not first.sum() or not second.sum():
        return UNDEFINED
    p, q = first / first.sum(), second / second.sum()
    divergence = (_bits_beyond_mean(p, q) + _bits_beyond_mean(q, p)) / 2
    return Distance(float(np.minimum(p, q).sum()), divergence)


def between_values(values: NDArray[np.float64], reference: NDArray[np.float64]) -> Distance:
    """Of a measure's values over one set of pieces from those over a reference.

    Yang & Lerch's: the distances |value - reference| of all pairs across the sets, against the
    distances of all pairs within the reference, each smoothed to a density by a Gaussian kernel.
    They give the Kullback-Leibler divergence of the two; Jensen-Shannon's is its symmetric kin,
    which always exists. Here the densities are whole, where their program cuts them at the last
    value, so that equal ones overlap wholly.

    Args:
        values: (N,), none NaN.
        reference: (M,), likewise.
    """
    across = np.abs(values[:, None] - reference).ravel()
    within = np.abs(reference[:, None] - reference)[np.triu_indices(len(reference), 1)]
    bandwidths = [scott_bandwidth(across), scott_bandwidth(within)]
    if not all(bandwidth > 0 for bandwidth in bandwidths):  # NaN is not, either
        return UNDEFINED
    beyond = WIDTHS * max(bandwidths)
    ends = (
        min(across.min(), within.min()) - beyond,
        max(across.max(), within.max()) + beyond,
    )
    return between_histograms(
        *(_density(v, h, ends) for v, h in zip((across, within), bandwidths, strict=True))
    )


def _bits_beyond_mean(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The Kullback-Leibler divergence of p from the mean of p and q."""
    some = p > 0
    return float((p[some] * np.log2(2 * p[some] / (p + q)[some])).sum())


def scott_bandwidth(values: NDArray[np.float64]) -> float:
    """Scott's for a Gaussian kernel over (N,) values; NaN of fewer than two."""
    return float(values.std(ddof=1) * len(values) ** -0.2) if len(values) > 1 else float("nan")


def _density(
    values: NDArray[np.float64], bandwidth: float, ends: tuple[float, float]
) -> NDArray[np.float64]:
    """(POINTS,) a Gaussian kernel density between the ends, of the values brought to its points."""
    step = (ends[1] - ends[0]) / POINTS
    reach = int(WIDTHS * bandwidth / step) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    counts = np.histogram(values, POINTS, ends)[0]
    return np.convolve(counts, kernel)[reach : reach + POINTS]
