"""Whether sets of pieces can be told apart, by figures whose answer is known."""

import math

import numpy as np
import pytest

from evaluation import classifier
from evaluation.classifier import FOLDS, by_forest, by_regression, tell_apart


def figures(seed, count, mean=0.0):
    """(count, 6) figures of pieces, of which the first has this mean."""
    drawn = np.random.default_rng(seed).normal(size=(count, 6))
    drawn[:, 0] += mean
    return drawn


@pytest.mark.parametrize("judge", [by_forest, by_regression])
def test_other_pieces_are_told_apart_as_well_as_they_can_be(judge):
    """Two normal distributions d apart have the area Phi(d / sqrt 2): 0.86 of 1.5, 1 of 9."""
    held_out, train = figures(1, 120), figures(2, 300)
    near = tell_apart(judge, figures(0, 120, mean=1.5), held_out, train, seed=0)
    assert near.generated == pytest.approx(0.5 + 0.5 * math.erf(1.5 / 2), abs=0.08)
    assert near.real == pytest.approx(0.5, abs=0.15)  # which are of the same kind
    far = tell_apart(judge, figures(0, 120, mean=9), held_out, train, seed=0)
    assert far.generated > 0.999
    assert far.real == near.real


@pytest.mark.parametrize("judge", [by_forest, by_regression])
def test_what_is_not_defined_says_something_too(judge):
    told = tell_apart(judge, figures(0, 40) * np.nan, figures(1, 40), figures(2, 80), seed=0)
    assert told.generated == 1
    assert abs(told.real - 0.5) < 0.2


def test_too_few_pieces_have_no_figure(monkeypatch):
    monkeypatch.setattr(classifier, "TREES", 4)
    few, many = figures(0, FOLDS - 1), figures(1, 40)
    assert math.isnan(tell_apart(by_forest, few, many, figures(2, 80), seed=0).generated)
    drawn = [tell_apart(by_forest, *(figures(n, 9) for n in range(3)), seed=3) for _ in range(2)]
    assert drawn[0] == drawn[1]
    largest = tell_apart(by_forest, *(figures(n, 9) for n in range(3)), seed=2**63 - 1)
    assert 0 <= largest.generated <= 1
