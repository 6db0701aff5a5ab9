"""Names of types of arrays, and segments that lie end to end, each from one offset to the next."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = NDArray[np.integer[Any]]  # of tokens, in few bytes or many
Floats: TypeAlias = NDArray[np.float32]
Reals: TypeAlias = NDArray[np.float64]
Records: TypeAlias = NDArray[np.void]  # rows of named fields: notes, bars, segments


def offsets(lengths: Sequence[int] | NDArray[Any]) -> Ints:
    """Return (P + 1,), where each of P segments of these lengths begins and the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def segment_ids(offsets: Ints) -> Ints:
    """Return (N,), the number of the segment that each of the N rows between offsets lies in."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
