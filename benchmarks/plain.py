"""The same decoder on the same tokens, without side input: what a plain GPT learns.

    python -m benchmarks.plain fit --config configs/pop.yaml --run runs/plain
    python -m benchmarks.plain test --config configs/pop.yaml --run runs/plain --ckpt_path last

All options are train.py's. Positions are rotary by the number of the token, there is no head by
interval, and nothing is told beside the tokens, so no notes are given, either. Weights, windows,
keys and rates are as the configuration says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import train
from data.batches.datamodule import MusicDataModule
from data.batches.interface import TrainingBatch
from model.steps import SideArrays

PLAIN = ("--model.positions", "rotary", "--model.interval_head", "false", "--data.given", "0")


class PlainDataModule(MusicDataModule):
    """A datamodule that tells nothing beside the tokens."""

    @property
    def side_shape(self) -> dict[str, Any]:
        """Nothing, since there is no side input."""
        return {}

    def side(self, ids: NDArray[np.integer[Any]], rows: object = ()) -> SideArrays | None:
        """Return None."""
        return None

    def train_dataloader(self) -> Iterable[TrainingBatch]:  # type: ignore[override]
        """Return endless batches."""
        return _WithoutSide(super().train_dataloader())


class _WithoutSide:
    """Batches without their side input."""

    def __init__(self, batches: Iterable[TrainingBatch]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[TrainingBatch]:
        for batch in self._batches:
            yield {**batch, "side": None}


if __name__ == "__main__":
    with patch("training.command.MusicDataModule", PlainDataModule):
        train.main([*sys.argv[1:], *PLAIN])
