"""A corpus as Lightning trains on it: endless windows to learn from, whole pieces to be scored."""

import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from lightning.pytorch.trainer.states import TrainerFn
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from data.batches.id_sequences import (
    IdSequences,
    IdVocabulary,
    SequenceBatches,
    SequenceWindows,
    WholeSequences,
    is_id_file,
    open_id_sequences,
)
from data.batches.interface import TrainingBatch
from data.batches.windows import MusicBatches, TrainingWindows, WholePieces
from data.batches.written import read_written
from data.corpus.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.score import Score
from data.style import Style
from data.tokens.context import LEAST_CONTEXT
from data.tokens.spans import SideArrays
from data.tokens.vocabulary import Vocabulary

GRACE_SECONDS = 30  # for which a worker goes on after a signal to end


Batches = MusicBatches | SequenceBatches


class MusicDataModule(LightningDataModule):
    """Music to train on, or sequences of another kind.

    Args:
        path: a folder of MIDI files; or "bach" or "folk", the embedded corpora; or a .npy or
            .jsonl file of other sequences (see data/batches/id_sequences.py).
        datasets: the folder in which tokenized corpora are kept.
        context_length: tokens in a training window; the model's own.
        batch_size: training windows a step and device.
        transpose: training windows are moved by up to so many semitones, up or down.
        silence: share of the training windows in which some instruments are silent, but not all.
        misreading: share of the notes that are moved by a few semitones in training windows.
        given: share of the training windows in which some notes are given: known in advance.
        written: a folder of MIDI files that trained models wrote, to be learned from as well.
        seed: of the choice of training windows.
        num_workers: processes that prepare training windows; 0 means none beside training.
        vocabulary_size: how many ids there are in other sequences; music knows by itself.
        grid: beats, or seconds for performances that keep to none.
        steps_per_beat: of a grid of beats: how finely a quarter note is divided.
        instruments: original, family (16 of General MIDI, and drums) or piano.
        programs: keep only these, 128 for drums.
        tracks: keep only these, by name, or by number from 1 among the tracks with notes.
        parts: who plays is a program, or a track with its name.
        time_signature: such as 4/4, for files whose own is wrong.

    Raises:
        CorpusError: a value out of range.
    """

    def __init__(
        self,
        path: str = "bach",
        datasets: str = "datasets",
        context_length: int = 512,
        batch_size: int = 8,
        transpose: int = 6,
        silence: float = 0.0,
        misreading: float = 0.0,
        given: float = 0.0,
        written: str | None = None,
        seed: int = 0,
        num_workers: int = 0,
        vocabulary_size: int | None = None,
        grid: Literal["beats", "seconds"] = "beats",
        steps_per_beat: int = 12,
        instruments: Literal["original", "family", "piano"] = "original",
        programs: list[int] | None = None,
        tracks: list[int | str] | None = None,
        parts: Literal["program", "track"] = "program",
        time_signature: str | None = None,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("context_length", context_length, LEAST_CONTEXT),
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("num_workers", num_workers, 0),
        ):
            if value < least:
                raise CorpusError(f"{name} must be {least} or more, not {value}")
        for name, share in (("silence", silence), ("misreading", misreading), ("given", given)):
            if not 0 <= share <= 1:
                raise CorpusError(f"{name} must be from 0 to 1, not {share}")
        if vocabulary_size is not None and not is_id_file(path):
            raise CorpusError(f"{path}: vocabulary_size is for .npy and .jsonl files alone")
        self.save_hyperparameters()
        if written is not None and is_id_file(path):
            raise CorpusError(f"{path}: written pieces are learned from beside MIDI files alone")
        self.vocabulary_size, self.written = vocabulary_size, written
        self.path, self.datasets = path, datasets
        self.context_length, self.batch_size = context_length, batch_size
        self.seed, self.num_workers = seed, num_workers
        self.silence, self.misreading, self.given = silence, misreading, given
        self.options = CorpusOptions.from_settings(self.hparams)
        self._source: Batches | None = None
        self.prepare_data_per_node = False  # nodes that share a disk would all build it

    def prepare_data(self) -> None:
        """Build the corpus where that has not been done; in one process of all."""
        print(self._open(progress=True).corpus.summary())

    def setup(self, stage: str | None = None) -> None:
        """Open the corpus; in every process.

        Raises:
            CorpusError: it is not the one that the first process has.
        """
        if self._source is None:
            self._source = self._open(progress=False)
        mine = self._source.corpus.name
        first = self.trainer.strategy.broadcast(mine) if self.trainer else mine
        if mine != first:
            raise CorpusError(
                f"this process found {mine}, the first one {first}: "
                f"all have to see the same {self.path}"
            )

    def _open(self, progress: bool) -> Batches:
        if is_id_file(self.path):
            sequences = open_id_sequences(self.path, self.vocabulary_size or 0, self.options)
            return SequenceBatches(sequences, self.context_length)
        corpus = open_corpus(self.path, self.datasets, self.options, progress)
        reach = self.options.transpose
        shares = self.silence, self.misreading, self.given
        written = self.written and partial(
            read_written, self.written, corpus.vocabulary, self.options.kept_instruments
        )
        return MusicBatches(corpus, self.context_length, reach, *shares, written or None)

    @property
    def source(self) -> Batches:
        """Where batches come from, which is known once the datamodule is set up."""
        if self._source is None:
            raise RuntimeError("the datamodule is not set up: call setup() first")
        return self._source

    @property
    def corpus(self) -> Corpus | IdSequences:
        """The corpus, or other sequences."""
        return self.source.corpus

    @property
    def vocabulary(self) -> Vocabulary | IdVocabulary:
        """The vocabulary of the corpus."""
        return self.corpus.vocabulary

    @property
    def side_shape(self) -> dict[str, Any]:
        """What a decoder must know of the side input; other sequences have none."""
        features = self.source.features
        return {} if features is None else features.shape

    def side(self, ids: NDArray[np.integer[Any]], rows: object = ()) -> SideArrays | None:
        """Return the side input of windows (B, T), if there is one; the end is unknown in it."""
        features = self.source.features
        return None if features is None else features.compute(ids)

    def rebase(self, history: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the prompt with which a piece goes on where the context is full."""
        return self.source.rebase(history)

    @property
    def style(self) -> Style:
        """The style of the training pieces; of other sequences nothing is known."""
        return self.source.style

    @property
    def some_pieces(self) -> Sequence[Score]:
        """Some of the training pieces; other sequences have none."""
        return self.source.some_pieces

    def train_dataloader(self) -> "_TrainingBatches":
        """Return endless batches (`TrainingBatch`)."""
        return _TrainingBatches(self, self.source.training())

    def describe(self, step: int) -> list[str]:
        """Describe each window of a training batch, by its number, in a line for people."""
        return self.source.training().describe(self.seed, step, self.batch_size, *self.rank)

    def val_dataloader(self) -> WholePieces | WholeSequences:
        """Return the pieces held out to choose by (`PieceBatch`): while fitting, a sample of them.

        A split of few tokens is its own sample.
        """
        is_fitting = self.trainer is not None and self.trainer.state.fn == TrainerFn.FITTING
        return self._whole_pieces("valid", is_fitting)

    def all_valid_pieces(self) -> WholePieces | WholeSequences:
        """Return all the pieces held out to choose by."""
        return self._whole_pieces("valid")

    def test_dataloader(self) -> WholePieces | WholeSequences:
        """Return the pieces held out to report on (`PieceBatch`)."""
        return self._whole_pieces("test")

    def _whole_pieces(self, split: str, is_sample: bool = False) -> WholePieces | WholeSequences:
        if not self.corpus.piece_count(split):
            raise CorpusError(f"{self.path}: the {split} split is empty, there is nothing to score")
        return self.source.whole_pieces(split, *self.rank, is_sample)

    @property
    def rank(self) -> tuple[int, int]:
        """The number of this process, and of how many."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)


@dataclass(frozen=True)
class _TrainingBatches:
    """The training batches from the step at which training is when an epoch begins."""

    data: MusicDataModule
    source: TrainingWindows | SequenceWindows

    def __iter__(self) -> Iterator[TrainingBatch]:
        data, trainer = self.data, self.data.trainer
        rank, ranks = data.rank
        draw = partial(self.source.batch, data.seed, size=data.batch_size, rank=rank, ranks=ranks)
        first = trainer.global_step * trainer.accumulate_grad_batches if trainer else 0
        loader = DataLoader(
            _EndlessBatches(draw, first),
            batch_size=None,
            num_workers=data.num_workers,
            worker_init_fn=_leave_signals_to_training,
        )
        return iter(loader)


def _leave_signals_to_training(_: int) -> None:
    """Have a worker outlive a signal to all processes: the step still needs its batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE_SECONDS))


class _EndlessBatches(IterableDataset[TrainingBatch]):
    """The batches of step `first` and all that follow; each worker makes its share of them."""

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
