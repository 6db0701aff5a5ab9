"""A corpus as Lightning trains on it: endless windows to learn from, and whole pieces to score."""

import itertools
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

import torch
from lightning.pytorch import LightningDataModule
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from common.arrays import Ids
from common.interface import SideArrays, SideInput
from data.batches.id_sequences import IdSequences, IdVocabulary, SequenceBatches, open_id_sequences
from data.batches.options import DataOptions
from data.batches.windows import MusicBatches, WholePieces
from data.corpus.corpus import Corpus, CorpusError, open_corpus
from data.tokens.context import LEAST_CONTEXT
from data.tokens.vocabulary import Vocabulary

GRACE_SECONDS = 30  # for which a worker goes on after a signal to end


Batches = MusicBatches | SequenceBatches


class TrainingBatch(TypedDict):
    """Windows to learn from, side by side."""

    ids: Tensor  # int64 (B, T), Pad at the right end
    targets: Tensor  # int64 (B, T), the next id; NOT_SCORED where there is nothing to learn
    side: SideInput[Tensor] | None


class MusicDataModule(LightningDataModule):
    """The music or other sequences to train on, in windows of `context_length` tokens.

    Raises:
        CorpusError: no note fits in such a window.
    """

    def __init__(self, options: DataOptions, context_length: int = 512) -> None:
        super().__init__()
        if context_length < LEAST_CONTEXT:
            raise CorpusError(f"context_length must be {LEAST_CONTEXT} or more")
        self.options, self.context_length = options, context_length
        self._source: Batches | None = None

    def prepare_data(self) -> None:
        """Open the corpus; build it first if it does not exist yet."""
        if self._source is None:
            self._source = self._open()
            print(self._source.corpus.summary())

    def _open(self) -> Batches:
        options = self.options
        if options.is_ids:
            sequences = open_id_sequences(options.path, options.vocabulary_size)
            return SequenceBatches(sequences, self.context_length)
        corpus = open_corpus(options.path, options.datasets, options.corpus)
        return MusicBatches(corpus, self.context_length, options)

    def with_windows(self, options: DataOptions, context_length: int) -> "MusicDataModule":
        """Return a datamodule with other windows of the same music, whose corpus must be open."""
        other = MusicDataModule(options, context_length)
        assert isinstance(self.source, MusicBatches)
        other._source = replace(self.source, context_length=context_length, options=options)
        return other

    @property
    def source(self) -> Batches:
        """Where batches come from; known once the datamodule is set up."""
        if self._source is None:
            raise RuntimeError("the datamodule is not set up: call prepare_data() first")
        return self._source

    @property
    def corpus(self) -> Corpus | IdSequences:
        """The corpus, or the other sequences."""
        return self.source.corpus

    @property
    def content(self) -> str | None:
        """The hash of the music and of how it was read; None for other sequences."""
        return self.corpus.content if isinstance(self.corpus, Corpus) else None

    @property
    def vocabulary(self) -> Vocabulary | IdVocabulary:
        """The vocabulary of the corpus."""
        return self.corpus.vocabulary

    @property
    def side_shape(self) -> dict[str, Any]:
        """What a decoder must know about the side input; empty for other sequences."""
        features = self.source.features
        return {} if features is None else features.shape

    def side(self, ids: Ids, rows: object = ()) -> SideArrays | None:
        """Return the side input of windows (B, T), or None; where the piece ends, it cannot say."""
        features = self.source.features
        return None if features is None else features.compute(ids)

    def train_dataloader(self) -> DataLoader[TrainingBatch]:
        """Return endless batches (`TrainingBatch`), from the step that training has reached."""
        draw = partial(
            self.source.training().batch, self.options.seed, size=self.options.batch_size
        )
        return DataLoader(
            _EndlessBatches(draw, self.trainer.global_step if self.trainer else 0),
            batch_size=None,
            num_workers=self.options.num_workers,
            worker_init_fn=_leave_signals_to_training,
        )

    def val_dataloader(self) -> WholePieces:
        """Return the pieces held out to choose models by (`PieceBatch`); during a run, a sample.

        The sample of a small split is the whole split.
        """
        is_fitting = self.trainer is not None and self.trainer.state.fn == TrainerFn.FITTING
        return self._whole_pieces("valid", is_fitting)

    def all_valid_pieces(self) -> WholePieces:
        """Return all the pieces held out to choose models by."""
        return self._whole_pieces("valid")

    def test_dataloader(self) -> WholePieces:
        """Return the pieces held out to report on (`PieceBatch`)."""
        return self._whole_pieces("test")

    def _whole_pieces(self, split: str, is_sample: bool = False) -> WholePieces:
        pieces = WholePieces(self.corpus.split(split), self.source.masks_of, is_sample)
        if not pieces.total:
            raise CorpusError(
                f"{self.options.path}: the {split} split is empty, there is nothing to score"
            )
        return pieces


def _leave_signals_to_training(_: int) -> None:
    """Let a worker outlive a signal to all processes, since the step still needs its batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE_SECONDS))


class _EndlessBatches(IterableDataset[TrainingBatch]):
    """The batches of step `first` and of all later steps; each worker makes its share of them."""

    def __init__(self, draw: Callable[..., Any], first: int) -> None:
        self.draw, self.first = draw, first

    def __iter__(self) -> Iterator[TrainingBatch]:
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        for step in itertools.count(self.first + number, count):
            ids, targets, side = self.draw(step)
            yield {
                "ids": torch.from_numpy(ids),
                "targets": torch.from_numpy(targets),
                "side": side and side.map(torch.from_numpy),
            }
