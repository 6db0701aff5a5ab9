"""Sequences that are no music: any integers, for a model that need not know what they mean.

    steps.jsonl     a JSON list of ids a line; a line a sequence
    steps.npy       an integer array (sequences, ids): NumPy's `save` of sequences equally long

Ids are 0 to `vocabulary_size` - 1, each may follow each, and they are trained on as they stand.
The first of a sequence is given and not predicted, so where a model is to begin by itself, begin
all of them with the same one. Sequences go to the splits by their content, as pieces do,
and equal ones to the same split.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets
from data.batches.cutting import ids_and_targets
from data.batches.windows import WholePieces
from data.corpus.build import random_splits
from data.corpus.options import SPLITS, CorpusError
from data.corpus.store import ARRAYS, MOST_IDS, Split
from data.style import Style

MOST_LINE_BYTES = 2**25


@dataclass(frozen=True)
class IdVocabulary:
    """A vocabulary of one kind. Each id counts as a note: nats per note are nats per id."""

    size: int
    kind_names = ("id",)
    note_kind = 0

    @cached_property
    def kind_of(self) -> NDArray[np.int64]:
        """(V,) the kind of each id, of which there is one."""
        return np.zeros(self.size, dtype=np.int64)

    def to_json(self) -> str:
        """Return the vocabulary as JSON."""
        return json.dumps({"ids": self.size})


@dataclass(frozen=True)
class IdSequences:
    """The sequences of a file; get one with `open_id_sequences`."""

    name: str  # the path of the file
    vocabulary: IdVocabulary
    splits: dict[str, Split]  # of sequences, by their numbers, from 1; each id a note but the first

    def piece_count(self, split: str) -> int:
        """Count the sequences of a split."""
        return len(self.splits[split])

    def summary(self) -> str:
        """Describe the sequences in a line."""
        counts = ", ".join(f"{name} {len(split):,}" for name, split in self.splits.items())
        ids = sum(len(split.tokens) for split in self.splits.values())
        return f"{ids:,} ids of {self.vocabulary.size:,} kinds; sequences: {counts}"

    full_report = summary


def open_id_sequences(path: str | Path, vocabulary_size: int) -> IdSequences:
    """Read the sequences in a file as described above.

    Raises:
        FileNotFoundError: no such file.
        CorpusError: it holds something else, or too little; the message says what.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if vocabulary_size < 1:
        raise CorpusError(f"{path}: say how many ids there are with data.vocabulary_size")
    ids, begins = _from_npy(path) if path.suffix == ".npy" else _from_jsonl(path)
    if len(ids) and not 0 <= ids.min() <= ids.max() < vocabulary_size:
        raise CorpusError(
            f"{path}: ids from {ids.min()} to {ids.max()}, but vocabulary_size {vocabulary_size} "
            f"allows 0 to {vocabulary_size - 1}"
        )
    if len(begins) < 2 or np.diff(begins).min() < 2:
        raise CorpusError(f"{path}: a sequence needs two ids at least, of which one is predicted")
    sequences = np.split(ids.astype(np.int32), begins[1:-1])
    marks = [hashlib.blake2b(each.tobytes(), digest_size=16).digest() for each in sequences]
    members = random_splits(marks)
    if not members:
        raise CorpusError(f"{path}: training needs one sequence, validation a different one")
    splits = {name: _split(members[name], sequences) for name in SPLITS}
    return IdSequences(str(path), IdVocabulary(vocabulary_size), splits)


def _split(members: list[int], sequences: list[NDArray[np.int32]]) -> Split:
    """Return some of the sequences as a split, without bars."""
    chosen = [sequences[number] for number in members]
    lengths = np.array([len(each) for each in chosen], dtype=np.int64)
    return Split(
        tokens=np.concatenate([np.empty(0, np.int32), *chosen]),
        piece_offsets=offsets(lengths),
        note_counts=lengths - 1,
        shifts=ARRAYS["shifts"],
        bar_offsets=ARRAYS["bar_offsets"],
        bar_tempos=ARRAYS["bar_tempos"],
        names=tuple(f"sequence {number + 1}" for number in members),
    )


def _from_npy(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all ids, and where sequences begin and the last ends."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")  # an .npy file and nothing else
    except (ValueError, EOFError, OverflowError, TokenError, MemoryError):
        raise CorpusError(f"{path}: not a whole .npy file of numbers") from None
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise CorpusError(
            f"{path}: {array.dtype} of shape {array.shape}, where integers of shape "
            f"(sequences, ids) are needed"
        )
    count, length = array.shape
    if array.size and array.max() > MOST_IDS:  # before it wraps round
        raise CorpusError(f"{path}: an id of {array.max()}, {MOST_IDS} at most")
    return array.astype(np.int64).ravel(), np.arange(count + 1) * length


def _from_jsonl(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all ids, and where sequences begin and the last ends."""
    sequences = [np.empty(0, dtype=np.int64)]
    with path.open("rb") as file:
        lines = iter(partial(file.readline, MOST_LINE_BYTES + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > MOST_LINE_BYTES:
                most = f"{MOST_LINE_BYTES >> 20} MiB"
                raise CorpusError(f"{path}, line {number}: longer than {most}, not read")
            try:
                ids = np.array(json.loads(line))
            except (ValueError, RecursionError):
                ids = np.empty(0)
            if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.signedinteger):
                raise CorpusError(f"{path}, line {number}: not a list of ids such as [3, 1, 4]")
            sequences.append(ids)
    return np.concatenate(sequences), offsets([len(ids) for ids in sequences[1:]])


class SequenceWindows:
    """Training windows: T + 1 ids running, anywhere in a sequence, all places equally likely.

    A sequence no longer than that is a window as it is.
    """

    def __init__(self, split: Split, context_length: int) -> None:
        self._split, self._length = split, context_length + 1
        places = np.maximum(np.diff(split.piece_offsets) - self._length + 1, 1)
        self._places = np.cumsum(places)

    def batch(
        self, seed: int, step: int, size: int, rank: int = 0, ranks: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], None]:
        """Draw a batch as `windows.TrainingWindows.batch` does; there is no side input."""
        member, first = self._choose(seed, step, size, rank, ranks)
        source = first[:, None] + np.arange(self._length)  # (B, W)
        end = self._split.piece_offsets[member + 1][:, None]
        window = self._split.tokens[np.minimum(source, end - 1)].astype(np.int64)
        return *ids_and_targets(window, source >= end), None

    def describe(self, seed: int, step: int, size: int, rank: int = 0, ranks: int = 1) -> list[str]:
        """Describe each window of a batch: which sequence, from which of its ids."""
        member, first = self._choose(seed, step, size, rank, ranks)
        place = first - self._split.piece_offsets[member] + 1
        names = [self._split.names[number] for number in member]
        return [f"{name} from id {p}" for name, p in zip(names, place, strict=True)]

    def _choose(
        self, seed: int, step: int, size: int, rank: int, ranks: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw (size,) sequences, by their places in the split, and where in it windows begin."""
        rng = np.random.default_rng([seed, step])
        place = rng.integers(self._places[-1], size=size * ranks)[rank::ranks]
        member = np.searchsorted(self._places, place, side="right")
        begin = self._split.piece_offsets[member]
        return member, begin + place - np.append(0, self._places)[member]


def all_allowed(
    pieces: Sequence[NDArray[np.int64]], vocabulary: IdVocabulary
) -> list[NDArray[np.uint8]]:
    """Return that each id may follow each, as `windows.masks_of_pieces` does."""
    width = -(-vocabulary.size // 8)
    return [np.full((len(piece) - 1, width), 255, np.uint8) for piece in pieces]


@dataclass(frozen=True)
class SequenceBatches:
    """The batches of sequences, which have no side input."""

    corpus: IdSequences
    context_length: int
    features = None
    style = Style()
    some_pieces = ()

    def training(self) -> SequenceWindows:
        """Return the training windows."""
        return SequenceWindows(self.corpus.splits["train"], self.context_length)

    def whole_pieces(self, split: str, rank: int, ranks: int, is_sample: bool) -> WholePieces:
        """Return a rank's sequences of a split, or of a sample of it, whole."""
        sequences, vocabulary = self.corpus.splits[split], self.corpus.vocabulary
        return WholePieces(sequences, vocabulary, rank, ranks, is_sample, all_allowed)

    def rebase(self, history: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the latest half of a context: the prompt with which a full one goes on."""
        return history[-((self.context_length + 1) // 2) :]
