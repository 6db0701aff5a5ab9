"""Pieces as token arrays on disk, end to end: written some at a time, read memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from data.arrays import offsets
from data.corpus.report import SplitCounts
from data.tokens.augment import transposition_ranges
from data.tokens.tokenizer import bar_indices, bar_tempos
from data.tokens.vocabulary import Kind, Vocabulary

# The arrays of a split: each is NAME.npy, with this dtype.
ARRAYS: dict[str, DTypeLike] = {
    "tokens": np.uint16,
    "piece_offsets": np.int64,
    "note_counts": np.int64,
    "shifts": np.int64,
    "bar_offsets": np.int64,
    "bar_tempos": np.uint16,
}
MOST_IDS = 2**16  # that a vocabulary may have, for its ids to fit `tokens`


@dataclass(frozen=True)
class Split:
    """The pieces of one split, end to end: P pieces, M bars, N tokens. The arrays are mapped.

    Attributes:
        tokens: (N,) uint16, each piece from Start to End.
        piece_offsets: (P + 1,) int64: piece i is tokens[piece_offsets[i] : piece_offsets[i + 1]].
        note_counts: (P,) int64, notes of each piece.
        shifts: (P, 2) int64, the lowest and highest semitones by which each piece can move.
        bar_offsets: (M,) int64, where each Bar token stands in `tokens`.
        bar_tempos: (M,) uint16, the id of the Tempo in force in each bar.
        names: of the P pieces.
    """

    tokens: NDArray[np.uint16]
    piece_offsets: NDArray[np.int64]
    note_counts: NDArray[np.int64]
    shifts: NDArray[np.int64]
    bar_offsets: NDArray[np.int64]
    bar_tempos: NDArray[np.uint16]
    names: tuple[str, ...]

    @classmethod
    def load(cls, folder: Path, names: tuple[str, ...]) -> Split:
        """Map the split that a `SplitWriter` wrote.

        Raises:
            OSError, ValueError: an array is missing or damaged.
        """
        arrays = {
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in ARRAYS
        }
        return cls(**arrays, names=names)

    @classmethod
    def in_memory(cls, names: Sequence[str], pieces: TokenArrays) -> Split:
        """Return a split of pieces that lie in memory, with these names."""
        return cls(**pieces.arrays, piece_offsets=offsets(pieces.lengths), names=tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    def piece(self, index: int) -> NDArray[np.int64]:
        """Return (T,) the ids of a piece, from Start to End."""
        begin, end = self.piece_offsets[index], self.piece_offsets[index + 1]
        return self.tokens[begin:end].astype(np.int64)


@dataclass(frozen=True)
class TokenArrays:
    """The arrays of a `Split` for some pieces, all offsets counted from the first of them."""

    lengths: NDArray[np.int64]  # (P,) ids of each piece
    arrays: dict[str, NDArray[Any]]  # by the names of ARRAYS, less piece_offsets


def token_arrays(
    ids: NDArray[np.int64], lengths: NDArray[np.int64], vocabulary: Vocabulary
) -> TokenArrays:
    """Return the arrays of P pieces, from their ids (N,), end to end, and their lengths (P,)."""
    begins = np.cumsum(lengths) - lengths
    kind = vocabulary.kind_of[ids]
    notes = np.concatenate([[0], np.cumsum(kind == Kind.NOTE)])
    arrays = {
        "tokens": ids,
        "note_counts": notes[begins + lengths] - notes[begins],
        "shifts": transposition_ranges(ids, begins, vocabulary),
        "bar_offsets": bar_indices(ids, vocabulary),
        "bar_tempos": bar_tempos(ids, vocabulary),
    }
    typed = {name: array.astype(ARRAYS[name]) for name, array in arrays.items()}
    return TokenArrays(lengths, typed)


class SplitWriter:
    """Writes a split some pieces at a time; a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.names: list[str] = []
        self.tokens = self.notes = self.bars = 0
        self._arrays = {
            name: GrowingArray(folder / f"{name}.npy", dtype) for name, dtype in ARRAYS.items()
        }
        self._stack = ExitStack()

    def __enter__(self) -> SplitWriter:
        for array in self._arrays.values():
            self._stack.enter_context(array)
        self._arrays["piece_offsets"].append([0])
        self._arrays["shifts"].append(np.empty((0, 2)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, at)

    def add(self, names: Sequence[str], pieces: TokenArrays) -> None:
        """Append pieces with these names."""
        for name, array in pieces.arrays.items():
            self._arrays[name].append(array + self.tokens if name == "bar_offsets" else array)
        self._arrays["piece_offsets"].append(self.tokens + np.cumsum(pieces.lengths))
        self.names.extend(names)
        self.tokens += len(pieces.arrays["tokens"])
        self.notes += int(pieces.arrays["note_counts"].sum())
        self.bars += len(pieces.arrays["bar_offsets"])

    def counts(self) -> SplitCounts:
        """Return how much was written."""
        return SplitCounts(len(self.names), self.notes, self.tokens, self.bars)


class GrowingArray:
    """An .npy file that grows at its end; the header, which holds its length, is written twice.

    NumPy pads headers so that one with a larger first axis takes no more room.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._row: tuple[int, ...] = ()

    def __enter__(self) -> GrowingArray:
        self._file = self._path.open("wb")
        self._write_header()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
                self._file.flush()
        finally:
            with suppress(OSError):  # of what could not be written before either
                self._file.close()

    def append(self, values: ArrayLike) -> None:
        """Write rows at the end."""
        rows = np.ascontiguousarray(values, dtype=self._dtype)
        self._length += len(rows)
        self._row = rows.shape[1:]
        self._file.write(rows.tobytes())

    def _write_header(self) -> None:
        shape = (self._length, *self._row)
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, description)
