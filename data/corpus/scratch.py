"""Scores on disk between the two passes of a build, so that they need not lie in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets
from data.corpus.store import ArrayWriter
from data.score import BAR, NOTE, Grid, ScoreBatch

ARRAYS = {"notes": np.empty(0, NOTE), "bars": np.empty(0, BAR), "tempo_bpm": np.empty(0, np.int32)}


@dataclass
class ScratchScores:
    """Scores in a folder, numbered from 0, and where in ARRAYS each of them begins."""

    folder: Path
    grid: Grid
    note_offsets: list[int] = field(default_factory=lambda: [0])
    bar_offsets: list[int] = field(default_factory=lambda: [0])

    def append(self, scores: ScoreBatch, writer: ArrayWriter) -> None:
        """Add pieces, with the writer of the folder."""
        self.note_offsets += (self.note_offsets[-1] + scores.note_offsets[1:]).tolist()
        self.bar_offsets += (self.bar_offsets[-1] + scores.bar_offsets[1:]).tolist()
        for name in ARRAYS:
            writer.append(name, getattr(scores, name))

    def read(self, numbers: Sequence[int] | NDArray[np.int64]) -> ScoreBatch:
        """Read the pieces with these numbers, when all are written."""
        notes = [slice(*self.note_offsets[number : number + 2]) for number in numbers]
        bars = [slice(*self.bar_offsets[number : number + 2]) for number in numbers]

        def rows(name: str, pieces: list[slice]) -> NDArray[Any]:
            array = np.load(self.folder / f"{name}.npy", mmap_mode="r")
            return np.concatenate([array[piece] for piece in pieces])

        return ScoreBatch(
            rows("notes", notes),
            rows("bars", bars),
            rows("tempo_bpm", bars),
            offsets([piece.stop - piece.start for piece in notes]),
            offsets([piece.stop - piece.start for piece in bars]),
            self.grid,
        )
