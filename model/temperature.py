"""Temperature and filters: how boldly ids are chosen.

The choice among groups of ids may have another temperature than the choice within a group.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ids, Ints, Reals

Logits = NDArray[np.floating[Any]]


def allowed_alone(logits: Logits, allowed: Bools) -> tuple[Logits, Ints]:
    """Return the logits of those ids that `allowed`, bool (B, V), admits, and these ids.

    Returns:
        Two arrays (B, A), where A is the most ids that any row is allowed. Rows with fewer end in
        logits of -inf.

    Raises:
        ValueError: a row is allowed nothing, or its logits are not finite.
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
    """Return exp(logits / temperature), scaled so that the likeliest id of each row has 1.

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
    """Return weights by two temperatures: one to choose a group, one to choose an id within it.

    The logit of a group is that of all its ids together. So with two temperatures of 1, this is the
    softmax.

    Args:
        logits: (B, V), -inf where an id is not allowed.
        temperature: within a group, above 0.
        group_temperature: among the groups, above 0.
        group: (B, V) or (V,), the number of each id's group; the ids of a group are neighbors.

    Returns:
        (B, V); each row adds up to 1.
    """
    exact = np.asarray(logits, dtype=np.float64)
    begins = np.ones(exact.shape, dtype=bool)  # where a group begins
    begins[:, 1:] = np.diff(np.broadcast_to(group, exact.shape), axis=1) != 0
    start = np.flatnonzero(begins)  # (G,) for the groups of all rows
    of_id, of_row = begins.ravel().cumsum() - 1, start // exact.shape[1]  # (B * V,), (G,)
    highest = np.maximum.reduceat(exact.ravel(), start)  # (G,)
    is_there = np.isfinite(highest)
    below = exact.ravel() - np.where(is_there, highest, 0)[of_id]
    total = np.where(is_there, np.add.reduceat(np.exp(below), start), 1)
    weight = np.exp(below / temperature)
    share = np.where(is_there, np.add.reduceat(weight, start), 1)
    first = np.searchsorted(of_row, np.arange(len(exact)))  # (B,) the first group of each row
    logit = highest + np.log(total)
    logit -= np.maximum.reduceat(logit, first)[of_row]
    chance = np.exp(logit / group_temperature)
    chance /= np.add.reduceat(chance, first)[of_row]
    return np.asarray((weight * (chance / share)[of_id]).reshape(exact.shape))


# Filters take weights (B, V) and return them with 0 where an id is out. The likeliest id stays.


def keep_top_k(weight: Reals, k: int) -> Reals:
    """Keep the k largest weights, and ties with the smallest of them (Fan et al. 2018)."""
    place = max(weight.shape[1] - k, 0)
    return _at_least(weight, np.partition(weight, place, axis=1)[:, place])


def keep_top_p(weight: Reals, p: float) -> Reals:
    """Keep the fewest likeliest ids that together reach p, and ties (Holtzman et al. 2020)."""
    rising = np.sort(weight, axis=1)
    total = rising.cumsum(axis=1)  # of each id and all that are less likely
    # an id is out if it and the less likely have at most 1 - p together; the likeliest never is
    out = np.count_nonzero(total[:, :-1] <= (1 - p) * total[:, -1:], axis=1)  # (B,)
    return _at_least(weight, rising[np.arange(len(rising)), out])


def keep_min_p(weight: Reals, p: float) -> Reals:
    """Keep the ids that are at least p times as likely as the likeliest (Nguyen et al. 2024)."""
    return _at_least(weight, p * weight.max(axis=1))


def _at_least(weight: Reals, least: Reals) -> Reals:
    """Keep weights (B, V) that are no less than their row's `least` (B,); the others become 0."""
    return weight * (weight >= least[:, None])
