"""Scores on disk between the two passes of a build, so that they need not lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets
from data.score import BAR, NOTE, Grid, ScoreBatch

ARRAYS = {"notes": np.empty(0, NOTE), "bars": np.empty(0, BAR), "tempo_bpm": np.empty(0, np.int32)}


@dataclass(frozen=True)
class Place:
    """Where the music of some pieces lies in ARRAYS."""

    names: list[str]  # of the pieces
    notes: list[tuple[int, int]]  # the numbers of each one's first note and of the first after it
    bars: list[tuple[int, int]]  # the same of its bars


def read_scores(folder: Path, place: Place, grid: Grid) -> ScoreBatch:
    """Read some of the pieces whose ARRAYS lie in `folder`, all on this grid."""

    def read(name: str, ranges: list[tuple[int, int]]) -> NDArray[Any]:
        array = np.load(folder / f"{name}.npy", mmap_mode="r")
        return np.concatenate([array[begin:end] for begin, end in ranges])

    return ScoreBatch(
        read("notes", place.notes),
        read("bars", place.bars),
        read("tempo_bpm", place.bars),
        offsets([end - begin for begin, end in place.notes]),
        offsets([end - begin for begin, end in place.bars]),
        grid,
    )
