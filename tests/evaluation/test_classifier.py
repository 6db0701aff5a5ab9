"""Whether sets of pieces can be told apart, by figures whose answer is known."""

import math

import numpy as np
import pytest

from evaluation.classifier import FOLDS, tell_apart


def figures(seed, count, mean=0.0):
    """(count, 6) figures of pieces, of which the first has this mean."""
    drawn = np.random.default_rng(seed).normal(size=(count, 6))
    drawn[:, 0] += mean
    return drawn


def test_the_same_kind_of_pieces_cannot_be_told_apart():
    told = tell_apart(figures(0, 120), figures(1, 120), figures(2, 300), seed=0)
    for areas in (told.generated, told.real):
        assert abs(areas.forest - 0.5) < 0.15
        assert abs(areas.logistic - 0.5) < 0.15


def test_other_pieces_are_told_apart_as_well_as_they_can_be():
    """Two normal distributions d apart have the area Phi(d / sqrt 2): 0.86 of 1.5, 1 of 9."""
    held_out, train = figures(1, 120), figures(2, 300)
    near = tell_apart(figures(0, 120, mean=1.5), held_out, train, seed=0)
    for area in vars(near.generated).values():
        assert area == pytest.approx(0.5 + 0.5 * math.erf(1.5 / 2), abs=0.08)
    far = tell_apart(figures(0, 120, mean=9), held_out, train, seed=0)
    assert min(vars(far.generated).values()) > 0.999
    assert far.real == near.real


def test_what_is_not_defined_says_something_too():
    told = tell_apart(figures(0, 40) * np.nan, figures(1, 40), figures(2, 80), seed=0)
    assert vars(told.generated) == {"forest": 1, "logistic": 1}
    assert abs(told.real.forest - 0.5) < 0.2


def test_too_few_pieces_have_no_figure():
    told = tell_apart(figures(0, FOLDS - 1), figures(1, 40), figures(2, 80), seed=0)
    assert all(map(math.isnan, vars(told.generated).values()))
    assert tell_apart(figures(0, 9), figures(1, 9), figures(2, 9), seed=3) == tell_apart(
        figures(0, 9), figures(1, 9), figures(2, 9), seed=3
    )
