"""Pieces as token arrays on disk, end to end: written in parts, and read memory-mapped."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints, offsets
from data.tokens.augment import transposition_ranges
from data.tokens.context import bar_indices, bar_tempos
from data.tokens.vocabulary import Kind, Vocabulary

FORMAT = 7  # of the files; with another number they are not read but built again
# The arrays of a split, still empty: each is NAME.npy, with this dtype and rows of this shape.
ARRAYS: dict[str, NDArray[Any]] = {
    "tokens": np.empty(0, np.uint16),
    "piece_offsets": np.empty(0, np.int64),
    "note_counts": np.empty(0, np.int64),
    "shifts": np.empty((0, 2), np.int64),
    "bar_offsets": np.empty(0, np.int64),
    "bar_tempos": np.empty(0, np.uint16),
}
MOST_IDS = 2**16  # ids that a vocabulary may have to fit `tokens`


@dataclass(frozen=True)
class SplitCounts:
    """How much there is in a split."""

    pieces: int
    notes: int
    tokens: int
    bars: int


@dataclass(frozen=True)
class Split:
    """P pieces end to end, with M bars and N tokens, like those of a split."""

    tokens: NDArray[np.uint16]  # (N,) each piece from Start to End
    piece_offsets: Ints  # (P + 1,) where each piece begins in `tokens`, and where the last ends
    note_counts: Ints  # (P,) how many notes each piece has
    shifts: Ints  # (P, 2) the lowest and highest semitones by which each piece can move
    bar_offsets: Ints  # (M,) where each Bar token stands in `tokens`
    bar_tempos: NDArray[np.uint16]  # (M,) the id of the Tempo that holds in each bar
    names: tuple[str, ...]  # the names of the P pieces

    @classmethod
    def load(cls, folder: Path, names: tuple[str, ...], vocabulary: Vocabulary) -> Self:
        """Map the arrays that `write_split` wrote into memory.

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
            ValueError: they do not fit.
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
    def of_pieces(
        cls, names: Sequence[str], pieces: Sequence[Ints], vocabulary: Vocabulary
    ) -> Self:
        """Return pieces in memory, at least one, from the ids of each."""
        ids, piece_offsets = np.concatenate(pieces), offsets([*map(len, pieces)])
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
        """Return the rows that the arrays add after earlier pieces of `begin` tokens in all."""
        moved = {
            "piece_offsets": begin + self.piece_offsets[1:],
            "bar_offsets": begin + self.bar_offsets,
        }
        return {name: getattr(self, name) for name in ARRAYS} | moved

    def __len__(self) -> int:
        return len(self.names)

    def piece(self, index: int) -> Ints:
        """Return (T,) the ids of a piece, from Start to End."""
        begin, end = self.piece_offsets[index], self.piece_offsets[index + 1]
        return self.tokens[begin:end].astype(np.int64)


def write_split(folder: Path, parts: Iterable[Split]) -> tuple[SplitCounts, list[str]]:
    """Write pieces to a new folder, part by part; return how much that was, and their names.

    Only one part is in memory at a time. The header of the file of tokens, which has their number,
    is written twice: NumPy pads it, so that a larger number takes no more room.
    """
    folder.mkdir()
    rows: dict[str, list[NDArray[Any]]] = {name: [array] for name, array in ARRAYS.items()}
    rows["piece_offsets"].append(np.zeros(1, np.int64))
    names, tokens = list[str](), 0
    with (folder / "tokens.npy").open("xb") as file:
        _write_header(file, 0)
        for part in parts:
            for name, array in part.rows_after(tokens).items():
                if name != "tokens":
                    rows[name].append(array)
            file.write(np.ascontiguousarray(part.tokens).tobytes())
            tokens += len(part.tokens)
            names += part.names
        file.seek(0)
        _write_header(file, tokens)
    for name, arrays in rows.items():
        if name != "tokens":
            content = io.BytesIO()
            np.save(content, np.concatenate(arrays).astype(ARRAYS[name].dtype))
            (folder / f"{name}.npy").write_bytes(content.getvalue())
    notes = sum(int(counts.sum()) for counts in rows["note_counts"])
    bars = sum(map(len, rows["bar_offsets"]))
    return SplitCounts(len(names), notes, tokens, bars), names


def _write_header(file: IO[bytes], tokens: int) -> None:
    header = np.lib.format.header_data_from_array_1_0(ARRAYS["tokens"])
    np.lib.format.write_array_header_1_0(file, header | {"shape": (tokens,)})
