"""Temperature: how boldly ids are chosen; groups of ids may have another than each within."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.floating[Any]]
Weights = NDArray[np.float64]


def weights(logits: Logits, temperature: float) -> Weights:
    """Return exp(logits / temperature), in proportion to probability: 1 for the likeliest.

    Args:
        logits: (B, V), -inf where an id is not allowed.
        temperature: above 0.
    """
    below = logits - logits.max(axis=1, keepdims=True)
    weight: Weights = np.exp(np.divide(below, temperature, dtype=np.float64))
    return weight


def group_weights(
    logits: Logits, temperature: float, group_temperature: float, groups: NDArray[np.integer[Any]]
) -> Weights:
    """Return weights by two temperatures: which group an id is of, and which of its group it is.

    A group's logit is that of all its ids together, so at temperatures of 1 it is the softmax.

    Args:
        logits: (B, V), -inf where an id is not allowed.
        temperature: within a group, above 0.
        group_temperature: among the groups, above 0.
        groups: (G,) the first id of each group, rising from 0.

    Returns:
        (B, V), which add up to 1.
    """
    exact = np.asarray(logits, dtype=np.float64)
    sizes = np.diff(np.append(groups, exact.shape[1]))
    highest = np.maximum.reduceat(exact, groups, axis=1)  # (B, G)
    is_there = np.isfinite(highest)
    below = exact - np.repeat(np.where(is_there, highest, 0), sizes, axis=1)
    total = np.where(is_there, np.add.reduceat(np.exp(below), groups, axis=1), 1)
    weight = np.exp(below / temperature)
    share = np.where(is_there, np.add.reduceat(weight, groups, axis=1), 1)
    group = weights(highest + np.log(total), group_temperature) / share
    group /= (group * share).sum(axis=1, keepdims=True)
    return np.asarray(weight * np.repeat(group, sizes, axis=1))
