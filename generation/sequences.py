"""Write sequences that are not music, with a model that learned from a `.jsonl` or `.npy` file.

model = load("runs/steps")
rows = write(model, [3, 7, 11], count=20)
for number in stream(model, [3, 7, 11]): ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from common.arrays import Bools, Ids, Ints
from common.files import write_atomically
from common.interface import PAD
from common.typed_json import from_json
from data.batches.id_sequences import FIRST_ID, IdVocabulary, rebase
from data.tokens.vocabulary import Kind
from generation.defaults import model_path
from model.config import SamplingOptions
from model.engine import Engine
from model.network import Network
from model.record import TrainingRecord
from model.sampling import sample
from model.serialization import ModelFileError, load_model_file
from model.steps import SideArrays

LONGEST = 10_000  # ids after which a sequence ends if the model does not end it
ROWS = 64  # sequences that are written side by side


@dataclass(frozen=True)
class SequenceModel:
    """A trained decoder, the ids that it knows, and the record of its training."""

    network: Network
    vocabulary: IdVocabulary
    record: TrainingRecord = field(default_factory=TrainingRecord)

    @cached_property
    def steps(self) -> Engine:
        """The decoder, compiled."""
        return Engine(self.network)

    def rebase(self, history: Ids) -> Ints:
        """Return the prompt from which a sequence goes on when the context is full."""
        return rebase(history.astype(np.int64), self.network.config.context_length)


def load(path: str | Path) -> SequenceModel:
    """Load the model of sequences in a `model.safetensors` file, or in the folder of a run.

    Raises:
        ModelFileError: there is no such file, or it does not hold a model of sequences.
    """
    path = model_path(path)
    content = load_model_file(path)
    try:
        vocabulary = from_json(IdVocabulary, content.vocabulary_json)
    except ValueError:
        raise ModelFileError(f"{path}: a model of music, not of other sequences") from None
    config = content.network.config
    if vocabulary.size != config.vocabulary_size or config.side_blocks:
        raise ModelFileError(f"{path}: the vocabulary does not fit the model beside it")
    return SequenceModel(content.network, vocabulary, content.record)


@dataclass
class _Written:
    """How far B rows are."""

    ids: int  # how many ids each row has after the seed
    is_over: Bools  # (B,) whether each row has ended


@dataclass(frozen=True)
class _Rules:
    """The grammar of sequences for `model/sampling.py`: ids in any order, then End.

    Attributes:
        vocabulary: the vocabulary of the model.
        is_begun: whether the sequence has an id already; End may not come before the first one.
        length: the number of ids after which every row ends; None: the model ends it.
    """

    vocabulary: IdVocabulary
    is_begun: bool
    length: int | None
    guidance = 0.0

    def allowed(self, state: _Written) -> Bools:
        """Return bool (B, V), which ids may come next."""
        can_go_on = state.ids < (self.length or LONGEST)
        can_end = self.length is None and (self.is_begun or state.ids > 0)
        allowed = np.zeros((len(state.is_over), self.vocabulary.size), dtype=bool)
        allowed[:, FIRST_ID:] = can_go_on & ~state.is_over[:, None]
        allowed[:, Kind.END] = (can_end or not can_go_on) & ~state.is_over
        allowed[:, PAD] = state.is_over
        return allowed

    def advance(self, state: _Written, ids: Ids) -> None:
        """Advance each row by one id, (B,)."""
        state.ids += 1
        state.is_over |= ids == Kind.END

    def side(self, state: _Written, ids: Ids) -> SideArrays:
        """Raise an error: sequences have no side input."""
        raise NotImplementedError


def _steps(
    model: SequenceModel,
    seed: Sequence[int],
    rows: int,
    length: int | None,
    sampling: SamplingOptions | None,
    generator: np.random.Generator,
) -> Iterator[Ids]:
    """Yield the ids (B,) that follow a seed, step by step; they are below 0 in rows that ended."""
    known = model.vocabulary.ids
    for number in seed:
        if not 0 <= number < known:
            raise ValueError(f"{number} is no id: a number from 0 to {known - 1}")
    prompt = model.vocabulary.tokens(np.array(seed, dtype=np.int64))
    rules = _Rules(model.vocabulary, len(seed) > 0, length)
    steps = sample(
        *(model.steps, [prompt] * rows, rules, _Written(0, np.zeros(rows, bool))),
        generator=generator,
        sampling=sampling,
        rebase=model.rebase,
    )
    for tokens in steps:
        yield tokens - FIRST_ID


def stream(
    model: SequenceModel,
    seed: Sequence[int] = (),
    *,
    length: int | None = None,
    sampling: SamplingOptions | None = None,
    random_seed: int = 0,
) -> Iterator[int]:
    """Yield the ids that follow a seed, each as soon as it is written.

    Args:
        model: from `load`.
        seed: the first ids; empty: the model begins.
        length: how many ids to write; None: until the model ends the sequence, at most 10,000.
        sampling: temperature and filters; None: the probabilities as learned.
        random_seed: the same number gives the same ids.

    Raises:
        ValueError: an id that the model does not know.
    """
    rng = np.random.default_rng(random_seed)
    for row in _steps(model, seed, 1, length, sampling, rng):
        if row[0] >= 0:
            yield int(row[0])


def write(
    model: SequenceModel,
    seed: Sequence[int] = (),
    *,
    count: int = 1,
    length: int | None = None,
    sampling: SamplingOptions | None = None,
    random_seed: int = 0,
) -> list[list[int]]:
    """Return sequences, each of which begins with the seed.

    Args:
        model, seed, length, sampling, random_seed: as in `stream`.
        count: how many sequences.

    Raises:
        ValueError: an id that the model does not know.
    """
    rng = np.random.default_rng(random_seed)
    make = partial(_steps, model, seed, length=length, sampling=sampling, generator=rng)
    written = []
    for begin in range(0, count, ROWS):
        columns = list(make(rows=min(ROWS, count - begin)))
        for row in np.stack(columns, axis=1).tolist():
            written.append([*seed, *(number for number in row if number >= 0)])
    return written


def save(rows: Sequence[Sequence[int]], path: Path) -> None:
    """Write sequences to a file: an array to `.npy`, or one list per line to `.jsonl`.

    Training can read both.

    Raises:
        ValueError: the file is `.npy`, and the sequences differ in length.
        OSError: the file cannot be written.
    """
    if path.suffix == ".npy" and len({len(row) for row in rows}) > 1:
        raise ValueError("sequences of an .npy file are equally long: say --ids N, or use .jsonl")
    with write_atomically(path) as temporary:
        if path.suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, np.array(rows, dtype=np.int64))
        else:
            temporary.write_text("".join(f"{json.dumps(list(row))}\n" for row in rows))
