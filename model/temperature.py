"""Temperature and filters: how boldly ids are chosen.

Groups of ids may have another temperature than the ids within each.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ids, Ints, Reals

Logits = NDArray[np.floating[Any]]


def allowed_alone(logits: Logits, allowed: Bools) -> tuple[Logits, Ints]:
    """Return the logits of the ids that `allowed`, bool (B, V), admits, and these ids.

    Returns:
        Two arrays (B, A), as wide as the most ids that a row is allowed; at the right of rows
        with fewer stands the logit -inf.

    Raises:
        ValueError: a row in which nothing is allowed, or whose logits are no numbers.
    """
    row, admitted = np.nonzero(allowed)
    counts = np.bincount(row, minlength=len(allowed))
    if not counts.all():
        raise ValueError(f"nothing is allowed to come next in row {counts.argmin()}")
    place = np.arange(len(row)) - np.repeat(counts.cumsum() - counts, counts)
    few = np.full((len(allowed), counts.max()), -math.inf, dtype=logits.dtype)
    few[row, place] = logits[row, admitted]
    ids = np.zeros(few.shape, dtype=np.int64)
    ids[row, place] = admitted
    is_finite = np.isfinite(few.max(axis=1))
    if not is_finite.all():
        raise ValueError(f"the logits of row {is_finite.argmin()} are not finite")
    return few, ids


def weights(logits: Logits, temperature: float) -> Reals:
    """Return exp(logits / temperature), in proportion to probability: 1 for the likeliest.

    Args:
        logits: (B, V), -inf where an id is not allowed.
        temperature: above 0.
    """
    below = logits - logits.max(axis=1, keepdims=True)
    weight: Reals = np.exp(np.divide(below, temperature, dtype=np.float64))
    return weight


def group_weights(
    logits: Logits, temperature: float, group_temperature: float, group: Ids
) -> Reals:
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


# Filters: weights (B, V) -> weights (B, V), 0 where an id is out. None touches the likeliest.


def keep_top_k(weight: Reals, k: int) -> Reals:
    """Keep the k largest, and what is as large as the smallest of them (Fan et al. 2018)."""
    place = max(weight.shape[1] - k, 0)
    return _at_least(weight, np.partition(weight, place, axis=1)[:, place])


def keep_top_p(weight: Reals, p: float) -> Reals:
    """Keep the fewest likeliest ids that reach probability p (Holtzman et al. 2020), and ties."""
    rising = np.sort(weight, axis=1)
    total = rising.cumsum(axis=1)  # of each and the less likely
    # out is what is outweighed p to 1 - p by the likelier: never the likeliest, the last
    out = np.count_nonzero(total[:, :-1] <= (1 - p) * total[:, -1:], axis=1)  # (B,)
    return _at_least(weight, rising[np.arange(len(rising)), out])


def keep_min_p(weight: Reals, p: float) -> Reals:
    """Keep ids at least p times as likely as the likeliest (Nguyen et al. 2024)."""
    return _at_least(weight, p * weight.max(axis=1))


def _at_least(weight: Reals, least: Reals) -> Reals:
    """Keep weights (B, V) that reach their row's least (B,); the others become 0."""
    return weight * (weight >= least[:, None])
