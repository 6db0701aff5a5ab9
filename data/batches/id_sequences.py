"""Sequences that are not music: any integers, for a model that need not know what they mean.

    steps.jsonl     a JSON list of ids in each line; each line is a sequence
    steps.npy       an integer array (sequences, ids): NumPy's `save` of equally long sequences
    vocabulary.txt  beside it, if ids have names: one name a line, that of id 0 first

Ids are 0 to `vocabulary_size` - 1, and any id may follow any other. Their tokens come after those
that every sequence has: Start, from which a model can begin by itself, and End, which it learns to
write. Sequences go to the splits by their content, as pieces do, and equal ones go to the same
split.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ids, Ints, offsets
from common.typed_json import from_json, to_json
from data.batches.cutting import ids_and_targets
from data.batches.windows import MasksOf
from data.corpus.build import random_splits
from data.corpus.options import SPLITS, CorpusError
from data.corpus.store import ARRAYS, MOST_IDS, Split
from data.style import Style
from data.tokens.vocabulary import Kind

MOST_LINE_BYTES = 2**25
NAMES = "vocabulary.txt"
LONGEST_NAME = 40  # characters
FIRST_ID = Kind.END + 1  # the token that stands for id 0


@dataclass(frozen=True)
class IdVocabulary:
    """Pad, Start, End, and a token for each id. Every id counts as a note, in nats per note.

    Attributes:
        ids: how many ids there are.
        names: of each id; (): people see their numbers.

    Raises:
        ValueError: names that are not words, or not one for each id.
    """

    ids: int
    names: tuple[str, ...] = ()
    kind_names = ("start", "id", "end")
    note_kind = 1

    def __post_init__(self) -> None:
        if not 1 <= self.ids <= MOST_IDS:
            raise ValueError(f"{self.ids} ids, where 1 to {MOST_IDS} are possible")
        if self.names and len(self.names) != self.ids:
            raise ValueError(f"{len(self.names)} names for {self.ids} ids")
        for name in self.names:
            if not name.isprintable() or name.split() != [name] or len(name) > LONGEST_NAME:
                raise ValueError(
                    f"{name[:20]!r} is no name: one to {LONGEST_NAME} letters, no space"
                )
        if len(set(self.names)) < len(self.names):
            raise ValueError("a name stands twice")

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return FIRST_ID + self.ids

    @cached_property
    def kind_of(self) -> Ints:
        """(V,) the kind of each token; all ids are of one kind."""
        kinds = np.full(self.size, self.note_kind)
        kinds[: Kind.END] = 0
        kinds[Kind.END] = 2
        return kinds

    def tokens(self, ids: Ids) -> Ints:
        """Return (T,): Start, and the token of each id."""
        return np.append(np.int64(Kind.START), np.asarray(ids, np.int64) + FIRST_ID)

    def masks(self, tokens: Ids) -> Bools:
        """Return (T - 1, V): what may come after Start: any id, and End, but not at once."""
        allowed = np.ones((len(tokens) - 1, self.size), dtype=bool)
        allowed[:, : Kind.END] = allowed[:1, Kind.END] = False
        return allowed

    def words(self, ids: Iterable[int]) -> str:
        """Return ids as people read them: by name, or by number."""
        return " ".join(self.names[number] if self.names else str(number) for number in ids)

    def parse(self, text: str) -> Ints:
        """Return the ids that a person has typed.

        Spaces stand between them; where ids have no names, commas may, too.

        Raises:
            ValueError: a word is no id; the message is one line.
        """
        known = {name: number for number, name in enumerate(self.names)}
        words = (text if known else text.replace(",", " ")).split()
        found = [known.get(w, int(w) if w.isdecimal() and len(w) < 10 else -1) for w in words]
        for word, number in zip(words, found, strict=True):
            if not 0 <= number < self.ids:
                which = "a name, or " if known else ""
                raise ValueError(
                    f"{word[:40]!r} is no id: {which}a number from 0 to {self.ids - 1}"
                )
        return np.array(found, dtype=np.int64)

    def to_json(self) -> str:
        """Return the vocabulary as JSON; `from_json` of common/typed_json.py reads it."""
        return to_json(self)


def is_of_ids(text: str) -> bool:
    """Return whether a model file's vocabulary is one of ids."""
    try:
        from_json(IdVocabulary, text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class IdSequences:
    """The sequences in a file; `open_id_sequences` makes it."""

    name: str  # the path of the file
    vocabulary: IdVocabulary
    splits: dict[str, Split]  # of tokens from Start to End; each id counts as a note

    def split(self, name: str) -> Split:
        """Return a split: train, valid or test."""
        return self.splits[name]

    def summary(self) -> str:
        """Describe the sequences in one line."""
        counts = ", ".join(f"{name} {len(split):,}" for name, split in self.splits.items())
        ids = sum(int(split.note_counts.sum()) for split in self.splits.values())
        return f"{ids:,} ids of {self.vocabulary.ids:,} kinds; sequences: {counts}"

    full_report = summary


def open_id_sequences(path: str | Path, vocabulary_size: int | None = None) -> IdSequences:
    """Read the sequences in a file, as described above.

    Args:
        path: of the file.
        vocabulary_size: how many ids there are; None: as many as vocabulary.txt names, or as the
            largest id needs.

    Raises:
        FileNotFoundError: there is no such file.
        CorpusError: the file has something else in it, or too little; the message says what.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    rows = _from_npy(path) if path.suffix == ".npy" else _from_jsonl(path)
    if min(map(len, rows), default=0) < 1:
        raise CorpusError(f"{path}: a sequence needs one id at least")
    names = _names(path.with_name(NAMES))
    least, most = min(int(ids.min()) for ids in rows), max(int(ids.max()) for ids in rows)
    size = vocabulary_size or len(names) or most + 1
    if not 0 <= least <= most < size:
        raise CorpusError(
            f"{path}: ids from {least} to {most}, where vocabulary_size or {NAMES} "
            f"allows 0 to {max(size, 1) - 1}"
        )
    try:
        vocabulary = IdVocabulary(size, names)
    except ValueError as error:
        raise CorpusError(f"{path.with_name(NAMES) if names else path}: {error}") from None
    pieces = [np.append(vocabulary.tokens(ids), Kind.END).astype(np.int32) for ids in rows]
    marks = [hashlib.blake2b(piece.tobytes(), digest_size=16).digest() for piece in pieces]
    members = random_splits(marks, [*map(len, pieces)])
    if not members:
        raise CorpusError(f"{path}: training needs one sequence, validation a different one")
    splits = {name: _split(members[name], pieces) for name in SPLITS}
    return IdSequences(str(path), vocabulary, splits)


def _names(path: Path) -> tuple[str, ...]:
    """Return the names of ids in a file, or () if there is no such file."""
    if not path.is_file():
        return ()
    if path.stat().st_size > MOST_LINE_BYTES:
        raise CorpusError(f"{path}: larger than {MOST_LINE_BYTES >> 20} MiB, not read")
    try:
        return tuple(path.read_text(encoding="utf-8-sig").splitlines())
    except UnicodeDecodeError:
        raise CorpusError(f"{path}: not text in UTF-8") from None


def _split(members: list[int], sequences: list[NDArray[np.int32]]) -> Split:
    """Return some of the sequences as a split that has no bars."""
    chosen = [sequences[number] for number in members]
    lengths = np.array([len(each) for each in chosen], dtype=np.int64)
    return Split(
        tokens=np.concatenate([np.empty(0, np.int32), *chosen]),
        piece_offsets=offsets(lengths),
        note_counts=lengths - 2,  # all but Start and End
        shifts=ARRAYS["shifts"],
        bar_offsets=ARRAYS["bar_offsets"],
        bar_tempos=ARRAYS["bar_tempos"],
        names=tuple(f"sequence {number + 1}" for number in members),
    )


def _from_npy(path: Path) -> list[Ints]:
    """Return the sequences in an .npy file."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")  # takes only .npy files, and no pickles
    except (ValueError, EOFError, OverflowError, TokenError, MemoryError):
        raise CorpusError(f"{path}: not a whole .npy file of numbers") from None
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise CorpusError(
            f"{path}: {array.dtype} of shape {array.shape}, where integers of shape "
            f"(sequences, ids) are needed"
        )
    if array.size and array.max() > MOST_IDS:  # before the cast below can wrap it around
        raise CorpusError(f"{path}: an id of {array.max()}, {MOST_IDS} at most")
    return [*array.astype(np.int64)]


def _from_jsonl(path: Path) -> list[Ints]:
    """Return the sequences in a .jsonl file."""
    sequences = list[Ints]()
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
    return sequences


class SequenceWindows:
    """Training windows: T + 1 successive ids, from any place in a sequence with equal chances.

    A sequence that is no longer than this is one window. If all are shorter, T is what the longest
    needs.
    """

    def __init__(self, split: Split, context_length: int) -> None:
        lengths = np.diff(split.piece_offsets)
        self._split, self._length = split, min(context_length + 1, int(lengths.max()))
        places = np.maximum(lengths - self._length + 1, 1)
        self._places = np.cumsum(places)

    def batch(self, seed: int, step: int, size: int) -> tuple[Ints, Ints, None]:
        """Draw a batch like `windows.TrainingWindows.batch`, without side input."""
        place = np.random.default_rng([seed, step]).integers(self._places[-1], size=size)
        member = np.searchsorted(self._places, place, side="right")
        begin, end = self._split.piece_offsets[member], self._split.piece_offsets[member + 1]
        first = begin + place - np.append(0, self._places)[member]
        source, end = first[:, None] + np.arange(self._length), end[:, None]
        window = self._split.tokens[np.minimum(source, end - 1)].astype(np.int64)  # (B, W)
        return *ids_and_targets(window, source >= end), None


def rebase(history: Ints, context_length: int) -> Ints:
    """Return the latest half of a context: the prompt with which a sequence goes on."""
    return history[-((context_length + 1) // 2) :]


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

    @property
    def masks_of(self) -> MasksOf:
        """A function that returns which ids may stand in each place of a sequence."""
        return self.corpus.vocabulary.masks

    def rebase(self, history: Ints) -> Ints:
        """Return the prompt with which a sequence goes on when the context is full."""
        return rebase(history, self.context_length)
