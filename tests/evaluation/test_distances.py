"""Distances: by hand on histograms of two bins, and densities beside the plain formula."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.distances import (
    UNDEFINED,
    Distance,
    between_histograms,
    between_values,
    scott_bandwidth,
)

COUNTS = st.lists(st.integers(0, 9), min_size=5, max_size=5).map(np.array)


def test_histograms_by_hand():
    # (1/2, 1/2) and (1, 0); between them (3/4, 1/4)
    distance = between_histograms(np.array([3, 3]), np.array([7, 0]))
    assert distance.overlap == 0.5
    to_mean = 0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(0.5 / 0.25), np.log2(1 / 0.75)
    assert distance.divergence == pytest.approx(sum(to_mean) / 2)
    assert distance.divergence == pytest.approx(0.311278, abs=1e-6)
    assert between_histograms(np.array([1, 3]), np.array([2, 6])) == Distance(1.0, 0.0)
    assert between_histograms(np.array([1, 0]), np.array([0, 6])) == Distance(0.0, 1.0)
    assert np.isnan(astuple(between_histograms(np.array([0, 0]), np.array([2, 6])))).all()


@given(COUNTS, COUNTS)
def test_both_ways_alike_and_between_nothing_and_all(first, second):
    distance, back = between_histograms(first, second), between_histograms(second, first)
    assert astuple(distance) == pytest.approx(astuple(back), nan_ok=True)
    if first.sum() and second.sum():
        assert -1e-12 < distance.divergence < 1 + 1e-12
        # the one cannot be small while the other says that much is shared
        assert 1 - distance.overlap >= distance.divergence - 1e-12


def plain(values, reference):
    """Yang & Lerch's overlap and Lin's divergence, with every Gaussian of every pair added up."""
    across = [abs(one - other) for one in values for other in reference]
    within = [abs(one - other) for i, one in enumerate(reference) for other in reference[:i]]
    places = np.linspace(-20, 40, 20001)
    densities = []
    for distances in (np.array(across), np.array(within)):
        width = np.std(distances, ddof=1) * len(distances) ** (-1 / 5)
        heights = np.exp(-(((places[:, None] - distances) / width) ** 2) / 2).sum(axis=1)
        densities.append(heights / heights.sum())
    return between_histograms(*densities)


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_values_are_compared_by_the_densities_of_their_distances(shift):
    rng = np.random.default_rng(0)
    reference, values = rng.normal(size=15), rng.normal(size=20) + shift
    distance = between_values(values, reference)
    assert astuple(distance) == pytest.approx(astuple(plain(values, reference)), abs=2e-3)


def test_the_farther_the_values_the_farther_the_distance():
    rng = np.random.default_rng(1)
    reference, values = rng.normal(size=100), rng.normal(size=100)
    distances = [between_values(values + shift, reference) for shift in (0, 1, 2, 4, 20)]
    overlaps, divergences = zip(*map(astuple, distances), strict=True)
    assert list(overlaps) == sorted(overlaps, reverse=True)
    assert list(divergences) == sorted(divergences)
    assert (overlaps[0], divergences[0]) == pytest.approx((1, 0), abs=0.05)
    assert (overlaps[-1], divergences[-1]) == pytest.approx((0, 1), abs=0.01)
    # values that all lie in the middle are too near, which is told apart too
    assert between_values(values / 100, reference).overlap < 0.9


def test_the_scale_of_a_measure_does_not_matter():
    rng = np.random.default_rng(2)
    reference, values = rng.normal(size=30), rng.normal(size=40)
    scaled = between_values(1e4 * values - 7, 1e4 * reference - 7)
    assert astuple(between_values(values, reference)) == pytest.approx(astuple(scaled))


def test_without_spread_there_is_no_density():
    some = np.array([1.0, 2.0, 4.0])
    assert np.isnan(astuple(UNDEFINED)).all()
    for values, reference in ((some, some[:1]), (some, some[:0]), (some[:0], some)):
        assert np.isnan(astuple(between_values(values, reference))).all()
    assert np.isnan(astuple(between_values(some, np.full(5, 3.0)))).all()
    assert np.isnan(scott_bandwidth(some[:1]))
    assert scott_bandwidth(some) == pytest.approx(np.std(some, ddof=1) * 3 ** (-1 / 5))
