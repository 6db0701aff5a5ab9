"""Overlaps: by hand on histograms of two bins, and densities beside the plain formula."""

import numpy as np
import pytest

from evaluation.distances import overlap_of_histograms, overlap_of_values, scott_bandwidth


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ([3, 3], [7, 0], 0.5),
        ([1, 3], [2, 6], 1.0),
        ([1, 0], [0, 6], 0.0),
        ([3, 1], [1, 3], 0.5),
        ([0, 0], [2, 6], np.nan),
        ([2, 6], [0, 0], np.nan),
    ],
)
def test_histograms_by_hand(first, second, overlap):
    found = overlap_of_histograms(np.array(first), np.array(second))
    assert found == pytest.approx(overlap, nan_ok=True)


def plain(values, reference):
    """Yang & Lerch's overlap, with every Gaussian of every pair added up."""
    across = [abs(one - other) for one in values for other in reference]
    within = [abs(one - other) for i, one in enumerate(reference) for other in reference[:i]]
    places = np.linspace(-20, 40, 20001)
    densities = []
    for distances in (np.array(across), np.array(within)):
        width = np.std(distances, ddof=1) * len(distances) ** (-1 / 5)
        heights = np.exp(-(((places[:, None] - distances) / width) ** 2) / 2).sum(axis=1)
        densities.append(heights / heights.sum())
    return overlap_of_histograms(*densities)


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_values_are_compared_by_the_densities_of_their_distances_at_any_scale(shift):
    rng = np.random.default_rng(0)
    reference, values = rng.normal(size=15), rng.normal(size=20) + shift
    overlap = overlap_of_values(values, reference)
    assert overlap == pytest.approx(plain(values, reference), abs=2e-3)
    assert overlap == pytest.approx(overlap_of_values(1e4 * values - 7, 1e4 * reference - 7))


def test_the_farther_the_values_the_less_they_overlap():
    rng = np.random.default_rng(1)
    reference, values = rng.normal(size=100), rng.normal(size=100)
    overlaps = [overlap_of_values(values + shift, reference) for shift in (0, 1, 2, 4, 20)]
    assert overlaps == sorted(overlaps, reverse=True)
    assert (overlaps[0], overlaps[-1]) == pytest.approx((1, 0), abs=0.05)
    # values that all lie in the middle are too near, which is told apart too
    assert overlap_of_values(values / 100, reference) < 0.9


def test_without_spread_there_is_no_density():
    some = np.array([1.0, 2.0, 4.0])
    for values, reference in ((some, some[:1]), (some, some[:0]), (some[:0], some)):
        assert np.isnan(overlap_of_values(values, reference))
    assert np.isnan(overlap_of_values(some, np.full(5, 3.0)))
    assert np.isnan(scott_bandwidth(some[:1]))
