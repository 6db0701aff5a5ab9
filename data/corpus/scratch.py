"""Scores on disk between the two passes of a build, so that they need not lie in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from data.arrays import offsets
from data.score import BAR, NOTE, Grid, ScoreBatch

_FILES: dict[str, DTypeLike] = {"notes": NOTE, "bars": BAR, "tempo_bpm": np.int32}

Ranges = list[tuple[int, int]]  # begin and end


class ScoreWriter:
    """Appends scores to files in a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._files = {name: (folder / name).open("wb") for name in _FILES}

    def __enter__(self) -> ScoreWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, scores: ScoreBatch) -> None:
        """Append these pieces."""
        for name, file in self._files.items():
            file.write(getattr(scores, name).tobytes())


def read_scores(folder: Path, grid: Grid, notes: Ranges, bars: Ranges) -> ScoreBatch:
    """Read some of the pieces that a `ScoreWriter` wrote to `folder`.

    Args:
        folder: as above.
        grid: the grid of all pieces.
        notes: of each piece, the numbers of its first note and of the first after it.
        bars: the same of its bars.
    """
    arrays = {name: np.memmap(folder / name, dtype, mode="r") for name, dtype in _FILES.items()}
    note_rows, bar_rows = (
        np.concatenate([np.arange(begin, end) for begin, end in ranges]) for ranges in (notes, bars)
    )
    return ScoreBatch(
        np.asarray(arrays["notes"][note_rows]),
        np.asarray(arrays["bars"][bar_rows]),
        np.asarray(arrays["tempo_bpm"][bar_rows]),
        offsets([end - begin for begin, end in notes]),
        offsets([end - begin for begin, end in bars]),
        grid,
    )
