"""Bootstrap intervals against what the theory says."""

import numpy as np

from evaluation.bootstrap import estimate_ratios


def test_an_interval_of_a_mean_is_as_wide_as_its_standard_error_says():
    parts = np.random.default_rng(0).normal(5, 2, size=(400, 1))
    (estimate,) = estimate_ratios(parts, np.ones(400))
    error = 1.96 * parts.std() / np.sqrt(400)
    expected = [parts.mean(), parts.mean() - error, parts.mean() + error]
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], expected, atol=0.03)


def test_resamples_are_of_pieces_and_the_same_every_time():
    # ratios of sums: each piece has two nats a note, whatever its length, so nothing can vary
    notes = np.array([1.0, 50.0, 3.0])
    always, uneven = estimate_ratios(np.column_stack([2 * notes, [1.0, 2.0, 9.0]]), notes)
    assert (always.value, always.low, always.high) == (2, 2, 2)
    assert uneven.value == 12 / 54
    assert estimate_ratios(np.array([[1.0], [2.0], [9.0]]), notes) == [uneven]
    (mean,) = estimate_ratios(np.array([[1.0], [2.0], [9.0]]), np.ones(3))
    assert (mean.low, mean.high) == (1, 9)  # of 27 samples one holds nothing but the least


def test_one_piece_has_no_interval():
    (one,) = estimate_ratios(np.ones((1, 1)), np.ones(1))
    assert one.value == 1
    assert np.isnan([one.low, one.high]).all()
    # and where some resample has no note there is none either
    (some,) = estimate_ratios(np.ones((3, 1)), np.array([1.0, 0, 0]))
    assert np.isnan([some.low, some.high]).all()
