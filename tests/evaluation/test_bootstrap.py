"""Bootstrap intervals against what the theory says."""

import numpy as np

from evaluation.bootstrap import bootstrap_intervals


def test_an_interval_of_a_mean_is_as_wide_as_its_standard_error_says():
    parts = np.random.default_rng(0).normal(5, 2, size=(400, 1))
    ((low, high),) = bootstrap_intervals(parts, np.ones_like(parts))
    error = 1.96 * parts.std() / np.sqrt(400)
    np.testing.assert_allclose([low, high], [parts.mean() - error, parts.mean() + error], atol=0.03)


def test_resamples_are_of_pieces_and_the_same_every_time():
    # ratios of sums: each piece has two nats a note, whatever its length, so nothing can vary
    notes = np.array([[1.0, 1.0], [50.0, 1.0], [3.0, 1.0]])
    parts = notes * [2, 1]
    np.testing.assert_allclose(bootstrap_intervals(parts, notes), [[2, 2], [1, 1]])
    uneven = np.array([[1.0], [2.0], [9.0]])
    np.testing.assert_array_equal(
        bootstrap_intervals(uneven, notes[:, :1]), bootstrap_intervals(uneven, notes[:, :1])
    )
    low, high = bootstrap_intervals(uneven, np.ones((3, 1)))[0]
    assert (low, high) == (1, 9)  # of 27 samples one holds nothing but the least


def test_one_piece_has_no_interval():
    assert np.isnan(bootstrap_intervals(np.ones((1, 2)), np.ones((1, 2)))).all()
    # and where some resample has no note there is none either
    assert np.isnan(bootstrap_intervals(np.ones((3, 1)), np.array([[1.0], [0], [0]]))).all()
