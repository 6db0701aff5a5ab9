"""Lightning callbacks that show a run: progress counted in steps, and what TensorBoard shows."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.tensorboard import SummaryWriter

from data.corpus.corpus import Corpus
from generation.model import Model
from training.checkpoints import public_settings
from training.checks import RunError
from training.tensorboard import (
    LOGGED,
    LOGGED_ONCE,
    Snapshot,
    log_charts,
    log_config,
    log_corpus,
    log_settings,
)

# What a sound font, a full disk, little memory or an odd corpus may raise where samples are shown.
PASSED_OVER = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError),
)


class StepProgress(TQDMProgressBar):
    """A progress bar that counts the steps of the run, since there are no epochs."""

    @property
    def total_train_batches(self) -> int | float:
        """Batches of the whole run."""
        steps = self.trainer.max_steps
        return steps * self.trainer.accumulate_grad_batches if steps > 0 else float("inf")

    def on_train_epoch_start(self, trainer: Trainer, *_: Any) -> None:
        """Begin as Lightning's does, under a better name than "Epoch 0"."""
        super().on_train_epoch_start(trainer)
        self.train_progress_bar.set_description("Training")

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Return loss and nats per note, without Lightning's version number."""
        metrics = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in metrics.items() if name != "v_num"}


class MusicMonitor(Callback):
    """What TensorBoard shows of a run beside its figures: settings, corpus, and what is learned.

    A few times a run it logs music that the model writes, attention maps, embeddings and
    statistics (training/tensorboard.py); for sequences that are no music, none of these. What
    cannot be shown is reported once in a line. Training goes on to the same weights as if
    nothing were shown.

    Args:
        times: how many times a run, evenly spaced, the last at the end; 0: never.

    Raises:
        RunError: a value out of range.
    """

    def __init__(self, times: int = 4) -> None:
        if times < 0:
            raise RunError(f"monitor.times must be 0 or more, not {times}")
        self.times = times
        self.latest_step = 0  # at which samples were logged
        self.failed: set[str] = set()  # what could not be shown

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log settings and corpus; a run that goes on has logged them, and what was due by then."""
        self.latest_step = trainer.global_step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or trainer.global_step > 0:
            return
        with self._guarded("the charts", pl_module.device):
            log_charts(writer, corpus.vocabulary, pl_module.hparams["n_layer"])
        with self._guarded("the settings", pl_module.device):
            log_settings(writer, corpus.vocabulary, _settings(trainer, pl_module))
        with self._guarded("the configuration", pl_module.device):
            log_config(writer, Path(trainer.default_root_dir) / "config.yaml")
        with self._guarded("the corpus", pl_module.device):
            log_corpus(writer, corpus)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Log what the model has learned, where that is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        # While gradients accumulate, several batches end at the same step.
        if step not in due or step == self.latest_step:
            return
        self.latest_step = step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or not isinstance(corpus, Corpus):
            return
        decoder: Any = None  # the weights go on changing, so what is shown is a copy
        with self._guarded("the model", pl_module.device):
            decoder = copy.deepcopy(pl_module.decoder)
        if decoder is None:
            return
        snapshot = Snapshot(writer, corpus, Model(decoder.eval(), corpus.vocabulary, {}), step)
        for what, log in {**(LOGGED_ONCE if step == min(due) else {}), **LOGGED}.items():
            with self._guarded(what, pl_module.device):
                log(snapshot)

    @contextmanager
    def _guarded(self, what: str, device: torch.device) -> Iterator[None]:
        """Run a block with random numbers of its own, and pass over its errors.

        An error is reported once for each `what`. Signals and Lightning's own ways to stop a run
        go through.
        """
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                yield
        except PASSED_OVER as error:
            if what not in self.failed:
                self.failed.add(what)
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"\ntrain.py: TensorBoard: {what} cannot be shown: {reason}", file=sys.stderr)


def _writer(trainer: Trainer) -> SummaryWriter | None:
    """Return the writer to the run's folder; None in other processes, or with another logger."""
    if trainer.is_global_zero and isinstance(trainer.logger, TensorBoardLogger):
        writer: SummaryWriter = trainer.logger.experiment
        return writer
    return None


def _settings(trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
    """Return the settings in which two runs may differ, by name."""
    data = trainer.datamodule.hparams  # type: ignore[attr-defined]
    run = {"max_steps": trainer.max_steps, "precision": trainer.precision}
    named = public_settings({**data, **pl_module.hparams, **run})
    return {name: value for name, value in named.items() if value is not None}
