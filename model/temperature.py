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
    logits: Logits, temperature: float, group_temperature: float, group: NDArray[np.integer[Any]]
) -> Weights:
    """Return weights by two temperatures: which group an id is of, and which of its group it is.

    A group's logit is that of all its ids together, so at temperatures of 1 it is the softmax.

    Args:
        logits: (B, V), -inf where an id is not allowed.
        temperature: within a group, above 0.
        group_temperature: among the groups, above 0.
        group: (B, V) or (V,), the number of each id's group; those of a group stand side by side.

    Returns:
        (B, V), which add up to 1.
    """
    exact = np.asarray(logits, dtype=np.float64)
    begins = np.ones(exact.shape, dtype=bool)  # where a group does
    begins[:, 1:] = np.diff(np.broadcast_to(group, exact.shape), axis=1) != 0
    start = np.flatnonzero(begins)  # (G,) of all rows
    of_id, of_row = begins.ravel().cumsum() - 1, start // exact.shape[1]  # (B * V,), (G,)
    highest = np.maximum.reduceat(exact.ravel(), start)  # (G,)
    is_there = np.isfinite(highest)
    below = exact.ravel() - np.where(is_there, highest, 0)[of_id]
    total = np.where(is_there, np.add.reduceat(np.exp(below), start), 1)
    weight = np.exp(below / temperature)
    share = np.where(is_there, np.add.reduceat(weight, start), 1)
    first = np.searchsorted(of_row, np.arange(len(exact)))  # (B,) group of each row
    logit = highest + np.log(total)
    logit -= np.maximum.reduceat(logit, first)[of_row]
    chance = np.exp(logit / group_temperature)
    chance /= np.add.reduceat(chance, first)[of_row]
    return np.asarray((weight * (chance / share)[of_id]).reshape(exact.shape))
