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
from common.interface import PAD, SideArrays
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

LONGEST = 10_000  # ids after which a sequence ends if the model does not end it
ROWS = 64  # sequences that are written side by side
OVER = -1  # in the place of a number of ids: the sequence has ended


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


@dataclass(frozen=True)
class _Rules:
    """The grammar of sequences for `model/sampling.py`: one id or more in any order, then End.

    The state is (B,), how many ids each row has; OVER: it has ended.

    Attributes:
        vocabulary: the vocabulary of the model.
        most: the number of ids after which every row ends.
        is_free: whether the model may end it earlier.
    """

    vocabulary: IdVocabulary
    most: int
    is_free: bool
    guidance = 0.0

    def allowed(self, state: Ints) -> Bools:
        """Return bool (B, V), which ids may come next."""
        is_over, is_full = state == OVER, state == self.most
        allowed = np.zeros((len(state), self.vocabulary.size), dtype=bool)
        allowed[:, FIRST_ID:] = ~(is_over | is_full)[:, None]
        allowed[:, Kind.END] = is_full | (self.is_free & (state > 0))
        allowed[:, PAD] = is_over
        return allowed

    def advance(self, state: Ints, ids: Ids) -> None:
        """Advance each row by one id, (B,)."""
        state[state != OVER] += 1
        state[ids == Kind.END] = OVER

    def side(self, state: Ints, ids: Ids) -> SideArrays:
        """Raise an error: sequences have no side input."""
        raise NotImplementedError


def _checked(model: SequenceModel, seed: Sequence[int]) -> list[int]:
    """Return the ids of a seed, or raise a ValueError."""
    known = model.vocabulary.ids
    for number in seed:
        if not isinstance(number, int | np.integer) or not 0 <= number < known:
            raise ValueError(
                f"{number!r:.40} is no id: a number from 0 to {known - 1}; "
                "model.vocabulary.parse reads names"
            )
    return [int(number) for number in seed]


def _steps(
    model: SequenceModel,
    seed: Sequence[int],
    rows: int,
    length: int | None,
    sampling: SamplingOptions | None,
    generator: np.random.Generator,
) -> Iterator[Ids]:
    """Yield the ids (B,) that follow a seed, step by step; they are below 0 in rows that ended."""
    if length is not None and length < 1:
        raise ValueError(f"{length} ids to write, where 1 is the least")
    prompt = model.vocabulary.tokens(np.array(seed, dtype=np.int64))
    rules = _Rules(model.vocabulary, len(seed) + (length or LONGEST), is_free=length is None)
    steps = sample(
        *(model.steps, [prompt] * rows, rules, np.full(rows, len(seed))),
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
        ValueError: an id that the model does not know, or a length below 1.
    """
    rng, seed = np.random.default_rng(random_seed), _checked(model, seed)
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
        ValueError: an id that the model does not know, or a length below 1.
    """
    rng, seed = np.random.default_rng(random_seed), _checked(model, seed)
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
