"""Short names for types of arrays, and functions for segments that lie end to end in an array."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = NDArray[np.integer[Any]]  # integers of any size: ids of tokens
Floats: TypeAlias = NDArray[np.float32]
Reals: TypeAlias = NDArray[np.float64]
Records: TypeAlias = NDArray[np.void]  # rows with named fields: notes, bars, segments


def offsets(lengths: Sequence[int] | NDArray[Any]) -> Ints:
    """Return (P + 1,): where each of P segments with these lengths begins, and the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def segment_ids(offsets: Ints) -> Ints:
    """Return (N,): the number of the segment in which each of the N rows between offsets lies."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
