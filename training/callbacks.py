"""Lightning callbacks that show a run: progress in steps, and a page in TensorBoard."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
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
from training.checks import RunError
from training.showing import SHOWN, SHOWN_ONCE, Moment
from training.tensorboard import show_charts, show_config, show_corpus, show_settings

EVENTS = "events.out.tfevents.*"  # what TensorBoard reads of a run's folder


class RunLogger(TensorBoardLogger):
    """Logs to a run's own folder, without the charts that say nothing here.

    Figures stand at the number of steps made. What the folder has of later steps than those that
    this run begins with, from one that was killed, TensorBoard then no longer shows.

    Args:
        folder: of the run.
        steps_made: before it goes on; 0 where it begins.
    """

    def __init__(self, folder: Path, steps_made: int = 0) -> None:
        super().__init__(
            folder.parent,
            name=folder.name,
            version="",
            default_hp_metric=False,
            purge_step=steps_made + 1 if steps_made else 0,
        )
        # TensorBoard reads a folder's files in the order of the seconds in their names.
        latest = max((int(path.name.split(".")[3]) for path in folder.glob(EVENTS)), default=0)
        while int(time.time()) == latest:
            time.sleep(0.01)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """As Lightning's, less the epoch: there is but one; and it counts steps from 0."""
        named = {name: value for name, value in metrics.items() if name != "epoch"}
        super().log_metrics(named, None if step is None else step + 1)


class StepProgress(TQDMProgressBar):
    """A progress bar that counts the steps of the run, since there are no epochs."""

    @property
    def total_train_batches(self) -> int | float:
        """Steps of the whole run."""
        steps = self.trainer.max_steps
        return steps * self.trainer.accumulate_grad_batches if steps > 0 else float("inf")

    def on_train_epoch_start(self, trainer: Trainer, *_: Any) -> None:
        """As Lightning's, under a better name than "Epoch 0"."""
        super().on_train_epoch_start(trainer)
        self.train_progress_bar.set_description("Training")

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Loss and nats per note, without Lightning's version number."""
        metrics = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in metrics.items() if name != "v_num"}


class MusicMonitor(Callback):
    """Shows a run in TensorBoard: what it is at its beginning, and then what the model learns.

    A few times a run it shows music that the model writes, where its heads look, its embeddings
    and its statistics (training/showing.py); of sequences that are no music none of these. What
    cannot be
    shown is told, once, and training goes on, to the same weights as if nothing were shown.

    Args:
        times: how many times a run, evenly spaced, the last at the end; 0: never.
        bars: how long each piece is.
        tokens: how many of a held-out piece the attention maps show.
    """

    def __init__(self, times: int = 4, bars: int = 4, tokens: int = 16) -> None:
        for name, value, least in (("times", times, 0), ("bars", bars, 1), ("tokens", tokens, 1)):
            if value < least:
                raise RunError(f"monitor.{name} must be {least} or more, not {value}")
        self.times = times
        self.bars = bars
        self.tokens = tokens
        self.latest = 0  # the step at which music was shown
        self.told: set[str] = set()  # what could not be shown

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows what the run is; where it goes on, that was shown, and so was what was due."""
        self.latest = trainer.global_step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or trainer.global_step > 0:
            return
        with self._guarded("the charts", pl_module.device):
            show_charts(writer, corpus.vocabulary, pl_module.hparams["n_layer"])
        with self._guarded("the settings", pl_module.device):
            show_settings(writer, corpus.vocabulary, _settings(trainer, pl_module))
        with self._guarded("the configuration", pl_module.device):
            show_config(writer, Path(trainer.default_root_dir) / "config.yaml")
        with self._guarded("the corpus", pl_module.device):
            show_corpus(writer, corpus)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Shows what the model has learned, where it is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        # While gradients accumulate, several batches end at the same step.
        if step not in due or step == self.latest:
            return
        self.latest = step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or not isinstance(corpus, Corpus):
            return
        decoder = None
        with self._guarded("the model", pl_module.device):
            decoder = pl_module.decoder.copied().eval()  # type: ignore[operator, union-attr]
        if decoder is None:
            return
        model = Model(decoder, corpus.vocabulary, {})
        moment = Moment(writer, corpus, model, step, self.bars, self.tokens)
        for what, show in {**(SHOWN_ONCE if step == min(due) else {}), **SHOWN}.items():
            with self._guarded(what, pl_module.device):
                show(moment)

    @contextmanager
    def _guarded(self, what: str, device: torch.device) -> Iterator[None]:
        """Random numbers of its own for what may fail without harm.

        This is the one place where any error is passed over: a page never costs a run. What stops
        a run is no Exception, and goes through.
        """
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                yield
        except Exception as error:
            if what not in self.told:
                self.told.add(what)
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"\ntrain.py: TensorBoard: {what} cannot be shown: {reason}", file=sys.stderr)


def _writer(trainer: Trainer) -> SummaryWriter | None:
    """To the run's page; there is one in the first process, and where TensorBoard is logged to."""
    if trainer.is_global_zero and isinstance(trainer.logger, TensorBoardLogger):
        writer: SummaryWriter = trainer.logger.experiment
        return writer
    return None


def _settings(trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
    """What two runs may differ in."""
    data = trainer.datamodule.hparams  # type: ignore[attr-defined]
    how = {"max_steps": trainer.max_steps, "precision": trainer.precision}
    named = {**data, **pl_module.hparams, **how}
    return {n: v for n, v in named.items() if v is not None and not n.startswith("_")}
