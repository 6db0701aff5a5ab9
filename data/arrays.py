"""Arrays of things that lie end to end: segments, each from one offset to the next."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def offsets(lengths: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return (P + 1,), where each of P segments of these lengths begins and the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def segment_ids(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (N,), the number of the segment that each of the N rows between offsets lies in."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def reduce_segments(
    ufunc: np.ufunc, values: NDArray[Any], offsets: NDArray[np.int64], empty: float
) -> NDArray[Any]:
    """Reduce the values of each segment to one by a ufunc: (P,), `empty` for empty segments."""
    result = np.full(len(offsets) - 1, empty, dtype=values.dtype)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        result[filled] = ufunc.reduceat(values, offsets[filled])
    return result
