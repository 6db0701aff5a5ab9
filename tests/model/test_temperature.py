"""Temperatures against literals: one for all ids, and one among groups beside one within them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.config import SamplingOptions
from model.sampling import choose
from model.temperature import group_weights, weights

OUT = -math.inf
PROBABILITIES = np.array([[0.5, 0.1, 0.1, 0.3], [0.25, 0.5, 0.0, 0.25]])
with np.errstate(divide="ignore"):
    LOGITS = np.log(PROBABILITIES)
GROUPS = np.array([0, 1, 1, 2])


def test_weights_are_relative_to_the_likeliest():
    logits = np.array([[3.0, 2.0, OUT]])
    assert np.array_equal(np.log(weights(logits, 0.5)[:, :2]), [[0.0, -2.0]])
    assert weights(logits, 0.5)[0, 2] == 0


def test_within_a_group_and_among_groups():
    boldly_within = group_weights(LOGITS, 0.01, 1.0, GROUPS)
    expected = [[0.5, 0.1, 0.1, 0.3], [0.25, 0.5, 0, 0.25]]
    assert np.allclose(boldly_within, expected)
    boldly_among = group_weights(LOGITS, 1.0, 0.5, GROUPS)  # groups: 0.5, 0.2, 0.3, squared
    assert np.allclose(boldly_among[0], np.array([25, 2, 2, 9]) / 38)
    assert np.allclose(boldly_among[1], np.array([1, 4, 0, 1]) / 6)
    sharper = group_weights(np.log([[0.4, 0.4, 0.2]]), 0.5, 1.0, np.array([0, 1, 1]))
    assert np.allclose(sharper, [[0.4, 0.6 * 0.8, 0.6 * 0.2]])


@given(arrays(np.float64, (3, 8), elements=st.floats(-700, 700) | st.just(OUT)), st.data())
def test_temperatures_of_one_are_the_softmax(logits, data):
    logits[:, 0] = np.where(np.isfinite(logits).any(axis=1), logits[:, 0], 0)
    groups = np.cumsum(data.draw(st.lists(st.booleans(), min_size=8, max_size=8)))
    groups = np.stack([groups, np.zeros(8, dtype=np.int64), groups])  # rows have their own
    softmax = weights(logits, 1.0)
    softmax /= softmax.sum(axis=1, keepdims=True)
    assert np.allclose(group_weights(logits, 1.0, 1.0, groups), softmax)
    within, among = data.draw(st.floats(0.1, 3)), data.draw(st.floats(0.1, 3))
    drawn = group_weights(logits, within, among, groups)
    assert np.allclose(drawn.sum(axis=1), 1)
    assert (drawn[np.isneginf(logits)] == 0).all()


def test_ids_are_chosen_by_both_temperatures():
    sampling = SamplingOptions(temperature=0.01, rhythm_temperature=1.0)
    uniform = (np.arange(1000) + 0.5) / 1000
    logits = np.log([[0.5, 0.3, 0.2]] * 1000)
    counts = np.bincount(choose(logits, sampling, uniform, np.array([0, 1, 1])), minlength=3)
    assert counts.tolist() == [500, 500, 0]
    assert choose(logits[:1], sampling, uniform[:1]).tolist() == [0]  # no groups: one for all


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
def test_a_temperature_of_rhythm_is_above_0(value):
    with pytest.raises(ValueError, match="rhythm_temperature must be a number from"):
        SamplingOptions(rhythm_temperature=value)
