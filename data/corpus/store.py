"""Pieces as token arrays on disk, end to end: written some at a time, read memory-mapped."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets
from data.tokens.augment import transposition_ranges
from data.tokens.context import bar_indices, bar_tempos
from data.tokens.vocabulary import Kind, Vocabulary

FORMAT = 5  # of what is written; another number is never read, but built anew
# The arrays of a split, empty: each is NAME.npy, of this dtype, with rows of this shape.
ARRAYS: dict[str, NDArray[Any]] = {
    "tokens": np.empty(0, np.uint16),
    "piece_offsets": np.empty(0, np.int64),
    "note_counts": np.empty(0, np.int64),
    "shifts": np.empty((0, 2), np.int64),
    "bar_offsets": np.empty(0, np.int64),
    "bar_tempos": np.empty(0, np.uint16),
}
MOST_IDS = 2**16  # that a vocabulary may have, for its ids to fit `tokens`


@dataclass(frozen=True)
class SplitCounts:
    """How much is in a split."""

    pieces: int
    notes: int
    tokens: int
    bars: int


@dataclass(frozen=True)
class Split:
    """Pieces end to end, as those of a split are: P pieces, M bars, N tokens."""

    tokens: NDArray[np.uint16]  # (N,) each piece from Start to End
    piece_offsets: NDArray[np.int64]  # (P + 1,) where in `tokens` each begins and the last ends
    note_counts: NDArray[np.int64]  # (P,) notes of each piece
    shifts: NDArray[np.int64]  # (P, 2) lowest and highest semitones by which each piece can move
    bar_offsets: NDArray[np.int64]  # (M,) where each Bar token stands in `tokens`
    bar_tempos: NDArray[np.uint16]  # (M,) the id of the Tempo in force in each bar
    names: tuple[str, ...]  # of the P pieces

    @classmethod
    def load(cls, folder: Path, names: tuple[str, ...], vocabulary: Vocabulary) -> Self:
        """Map the arrays that a `SplitWriter` wrote.

        Raises:
            OSError, EOFError, ValueError: an array is missing or damaged.
        """
        arrays = {
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in ARRAYS
        }
        for name, array in arrays.items():
            if (array.dtype, array.shape[1:]) != (ARRAYS[name].dtype, ARRAYS[name].shape[1:]):
                raise ValueError(f"{name} is of another kind")
        split = cls(**arrays, names=names)
        split._check(vocabulary)
        return split

    def _check(self, vocabulary: Vocabulary) -> None:
        """Refuse arrays that do not fit each other.

        Raises:
            ValueError: they do not.
        """
        starts, bars = self.piece_offsets, self.bar_offsets
        counts = len(starts) - 1, len(self.note_counts), len(self.shifts)
        is_whole = set(counts) == {len(self.names)} and len(bars) == len(self.bar_tempos)
        is_whole = is_whole and starts[0] == 0 and starts[-1] == len(self.tokens)
        if not is_whole or np.any(np.diff(starts) < 2) or np.any(np.diff(bars) < 1):
            raise ValueError("the arrays do not fit each other")
        if not len(self.tokens):
            return
        ends = self.tokens[starts[:-1]], self.tokens[starts[1:] - 1]
        at_bars = self.tokens[bars[:: max(1, len(bars) // 10_000)]] if len(bars) else bars[:0]
        if (
            int(self.tokens.max()) >= vocabulary.size
            or np.any(ends[0] != vocabulary.first(Kind.START))
            or np.any(ends[1] != vocabulary.first(Kind.END))
            or np.any(vocabulary.kind_of[at_bars] != Kind.BAR)
        ):
            raise ValueError("the tokens are not pieces")

    @classmethod
    def of_ids(
        cls,
        names: Sequence[str],
        ids: NDArray[np.int64],
        lengths: NDArray[np.int64],
        vocabulary: Vocabulary,
    ) -> Self:
        """Return pieces in memory, from their ids (N,), end to end, and their lengths (P,)."""
        piece_offsets = offsets(lengths)
        note_offsets = offsets(vocabulary.kind_of[ids] == Kind.NOTE)
        arrays = {
            "tokens": ids,
            "piece_offsets": piece_offsets,
            "note_counts": np.diff(note_offsets[piece_offsets]),
            "shifts": transposition_ranges(ids, piece_offsets[:-1], vocabulary),
            "bar_offsets": bar_indices(ids, vocabulary),
            "bar_tempos": bar_tempos(ids, vocabulary),
        }
        typed = {name: array.astype(ARRAYS[name].dtype) for name, array in arrays.items()}
        return cls(**typed, names=tuple(names))

    def followed_by(self, other: "Split") -> "Split":
        """Return the pieces of both, in memory."""
        later = other.rows_after(len(self.tokens))
        arrays = {name: np.concatenate([getattr(self, name), later[name]]) for name in ARRAYS}
        return Split(**arrays, names=self.names + other.names)

    def rows_after(self, begin: int) -> dict[str, NDArray[Any]]:
        """Return what the arrays add to those of pieces of `begin` tokens together."""
        moved = {
            "piece_offsets": begin + self.piece_offsets[1:],
            "bar_offsets": begin + self.bar_offsets,
        }
        return {name: getattr(self, name) for name in ARRAYS} | moved

    def __len__(self) -> int:
        return len(self.names)

    def piece(self, index: int) -> NDArray[np.int64]:
        """Return (T,) the ids of a piece, from Start to End."""
        begin, end = self.piece_offsets[index], self.piece_offsets[index + 1]
        return self.tokens[begin:end].astype(np.int64)


class SplitWriter:
    """Writes a split to a new folder, some pieces at a time; a context manager.

    The header of a file, which holds the length, is written twice: NumPy pads headers so that one
    with a larger first axis takes no more room.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._lengths = dict.fromkeys(ARRAYS, 0)
        self._files = {name: (folder / f"{name}.npy").open("xb") for name in ARRAYS}
        for name in ARRAYS:
            self._write_header(name)
        self._append("piece_offsets", np.zeros(1))
        self.names: list[str] = []
        self._notes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            for name, file in self._files.items() if kind is None else ():
                file.seek(0)
                self._write_header(name)
                file.flush()
        finally:
            for file in self._files.values():
                with suppress(OSError):  # of what could not be written before either
                    file.close()

    def add(self, pieces: Split) -> None:
        """Append pieces."""
        for name, rows in pieces.rows_after(self._lengths["tokens"]).items():
            self._append(name, rows)
        self.names += pieces.names
        self._notes += int(pieces.note_counts.sum())

    def counts(self) -> SplitCounts:
        """Return how much was written."""
        tokens, bars = self._lengths["tokens"], self._lengths["bar_offsets"]
        return SplitCounts(len(self.names), self._notes, tokens, bars)

    def _append(self, name: str, rows: NDArray[Any]) -> None:
        typed = np.ascontiguousarray(rows, dtype=ARRAYS[name].dtype)
        self._lengths[name] += len(typed)
        self._files[name].write(typed.tobytes())

    def _write_header(self, name: str) -> None:
        header = np.lib.format.header_data_from_array_1_0(ARRAYS[name])
        header["shape"] = (self._lengths[name], *header["shape"][1:])
        np.lib.format.write_array_header_1_0(self._files[name], header)
