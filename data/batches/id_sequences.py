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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets
from data.batches.cutting import ids_and_targets
from data.batches.interface import PieceBatch
from data.batches.windows import batches_of
from data.corpus.build import random_splits
from data.corpus.options import SPLITS, CorpusError
from data.corpus.store import MOST_IDS
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
    ids: NDArray[np.int32]  # (N,) the sequences end to end
    begins: NDArray[np.int64]  # (S + 1,) sequence i is ids[begins[i] : begins[i + 1]]
    members: dict[str, list[int]]  # the numbers of each split's sequences

    def sequence(self, number: int) -> NDArray[np.int64]:
        """Return (T,) the ids of a sequence."""
        return self.ids[self.begins[number] : self.begins[number + 1]].astype(np.int64)

    def piece_count(self, split: str) -> int:
        """Count the sequences of a split."""
        return len(self.members[split])

    def summary(self) -> str:
        """Describe the sequences in a line."""
        counts = ", ".join(f"{split} {len(self.members[split]):,}" for split in SPLITS)
        return f"{len(self.ids):,} ids of {self.vocabulary.size:,} kinds; sequences: {counts}"

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
    short = ids.astype(np.int32)
    marks = [
        hashlib.blake2b(short[begin:end].tobytes(), digest_size=16).digest()
        for begin, end in pairwise(begins.tolist())
    ]
    members = random_splits(marks)
    if not members:
        raise CorpusError(f"{path}: training needs one sequence, validation a different one")
    return IdSequences(str(path), IdVocabulary(vocabulary_size), short, begins, members)


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

    def __init__(self, sequences: IdSequences, context_length: int) -> None:
        self._sequences, self._length = sequences, context_length + 1
        members = self._numbers = np.array(sequences.members["train"])
        self._begin, self._end = sequences.begins[members], sequences.begins[members + 1]
        places = np.maximum(self._end - self._begin - self._length + 1, 1)
        self._places = np.cumsum(places)

    def batch(
        self, seed: int, step: int, size: int, rank: int = 0, ranks: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], None]:
        """Draw a batch as `windows.TrainingWindows.batch` does; there is no side input."""
        member, first = self._choose(seed, step, size, rank, ranks)
        source = first[:, None] + np.arange(self._length)  # (B, W)
        end = self._end[member][:, None]
        window = self._sequences.ids[np.minimum(source, end - 1)].astype(np.int64)
        return *ids_and_targets(window, source >= end), None

    def describe(self, seed: int, step: int, size: int, rank: int = 0, ranks: int = 1) -> list[str]:
        """Describe each window of a batch: which sequence, from which of its ids."""
        member, first = self._choose(seed, step, size, rank, ranks)
        place = first - self._begin[member] + 1
        numbers = self._numbers[member] + 1
        return [f"sequence {n} from id {p}" for n, p in zip(numbers, place, strict=True)]

    def _choose(
        self, seed: int, step: int, size: int, rank: int, ranks: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw (size,) sequences, by their places in `members`, and where in `ids` each begins."""
        rng = np.random.default_rng([seed, step])
        place = rng.integers(self._places[-1], size=size * ranks)[rank::ranks]
        member = np.searchsorted(self._places, place, side="right")
        return member, self._begin[member] + place - np.append(0, self._places)[member]


class WholeSequences:
    """The sequences of a split in batches, as `windows.WholePieces`; ranks take turns."""

    def __init__(
        self,
        sequences: IdSequences,
        split: str,
        rank: int = 0,
        ranks: int = 1,
        is_sample: bool = False,
    ) -> None:
        self._sequences = sequences
        members = np.array(sequences.members[split], dtype=np.int64)
        lengths = sequences.begins[members + 1] - sequences.begins[members]
        self.total = len(members)
        self.count, batches = batches_of(lengths, rank, ranks, is_sample)
        self._batches = [members[places] for places in batches]

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[PieceBatch]:
        for members in self._batches:
            pieces = [self._sequences.sequence(number) for number in members.tolist()]
            predicted = [len(piece) - 1 for piece in pieces]
            size = self._sequences.vocabulary.size
            allowed = [np.ones((count, size), dtype=bool) for count in predicted]
            yield {"pieces": pieces, "allowed": allowed, "notes": predicted}


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
        return SequenceWindows(self.corpus, self.context_length)

    def whole_pieces(self, split: str, rank: int, ranks: int, is_sample: bool) -> WholeSequences:
        """Return a rank's sequences of a split, or of a sample of it, whole."""
        return WholeSequences(self.corpus, split, rank, ranks, is_sample)

    def rebase(self, history: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the latest half of a context: the prompt with which a full one goes on."""
        return history[-((self.context_length + 1) // 2) :]
