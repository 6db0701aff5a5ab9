"""What batches hold, as `training` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from common.interface import SideInput

if TYPE_CHECKING:
    from torch import Tensor  # writing music needs none of it


class TrainingBatch(TypedDict):
    """Windows to learn from, side by side."""

    ids: Tensor  # int64 (B, T), Pad at the right end
    targets: Tensor  # int64 (B, T), the next id; NOT_SCORED where there is none to learn
    side: SideInput[Tensor] | None


class PieceBatch(TypedDict):
    """Whole pieces, untransposed, to be scored exactly."""

    pieces: list[NDArray[np.int64]]  # (T,), from Start to End
    allowed: list[NDArray[np.bool_]]  # (T - 1, V), what the grammar admits after Start
    notes: list[int]  # notes of each piece
