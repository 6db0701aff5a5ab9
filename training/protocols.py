"""What the LightningModule asks of the data that it is trained on."""

from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.decoding import Ids


class Vocabulary(Protocol):
    """What a module asks of the vocabulary of its data."""

    @property
    def size(self) -> int:
        """V."""

    @property
    def kind_of(self) -> NDArray[np.integer[Any]]:
        """int (V,): the kind of each id, in [0, K)."""

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The K names of the kinds."""

    @property
    def note_kind(self) -> int:
        """The kind whose tokens are the notes: one a note."""

    def to_json(self) -> str:
        """The vocabulary as text; equal text, equal vocabulary."""


class MusicData(Protocol):
    """What a module asks of the datamodule it is trained with."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Known once the datamodule is set up."""

    @property
    def side_shape(self) -> dict[str, Any]:
        """Fields of the decoder's config that tell of the side input. Known as the vocabulary is.

        `n_side`, 0 where there is none; its blocks; and which notes its references are for.
        """

    def side(self, ids: Ids) -> NDArray[np.int16]:
        """int16 (B, T, S): the side input beside windows (B, T), Pad at their right end."""

    @property
    def batch_size(self) -> int:
        """Training windows a step and device."""

    def rebase(self, history: Ids) -> Ids:
        """The prompt that stands for all ids so far, as `model.likelihood.token_nats` wants it."""

    def describe(self, step: int) -> list[str]:
        """What was in a training batch, by its number, a window each: for people."""


class TrainingBatch(TypedDict):
    """Windows side by side."""

    ids: Tensor  # int64 (B, T), Pad at the right end
    targets: Tensor  # int64 (B, T), the next id; NOT_SCORED where there is none to learn
    side: Tensor  # int16 (B, T, S), the side input


class PieceBatch(TypedDict):
    """Whole pieces, to be scored exactly."""

    pieces: list[Ids]  # 1-D, from Start to End
    allowed: list[NDArray[np.bool_]]  # (T-1, V), what the grammar admits
    notes: list[int]  # how many notes each piece has
