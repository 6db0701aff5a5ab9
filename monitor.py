"""Lightning callbacks that show a run: progress in steps, and sampled music in TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.tensorboard import SummaryWriter

from compose import Model, compose
from data.audio import render_audio
from data.corpus import Corpus
from data.horizon import Length
from data.render import draw_attention, draw_piano_roll, token_labels
from model.checks import RunError
from model.decoder import Decoder

SAMPLE_RATE = 22_050  # of the audio in TensorBoard, whose files grow with it
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
    """Shows a few times a run, in TensorBoard, what the model has learnt.

    A piece that it writes, as audio and piano roll; and which tokens its heads look at while it
    reads the opening of the first piece that is held out.

    Args:
        times: how many times a run, evenly spaced, the last at the end.
        bars: how long each piece is.
        tokens: how many of the held-out piece.
    """

    def __init__(self, times: int = 4, bars: int = 8, tokens: int = 64) -> None:
        for name, value in (("times", times), ("bars", bars), ("tokens", tokens)):
            if value < 1:
                raise RunError(f"monitor.{name} must be 1 or more, not {value}")
        self.times = times
        self.bars = bars
        self.tokens = tokens
        self.latest = 0  # the step at which a piece was logged

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Takes as logged what was due before the run was stopped."""
        self.latest = trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Logs where it is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        # While gradients accumulate, several batches end at the same step.
        if step in due and step != self.latest and trainer.is_global_zero:
            self.latest = step
            corpus = trainer.datamodule.corpus  # type: ignore[attr-defined]
            if not isinstance(corpus, Corpus):  # no music, nothing to hear
                return
            writers = [
                log.experiment for log in trainer.loggers if isinstance(log, TensorBoardLogger)
            ]
            was_training = pl_module.training
            pl_module.eval()
            for writer in writers:
                self._log(writer, pl_module.decoder, corpus, step)  # type: ignore[arg-type]
            pl_module.train(was_training)

    def _log(self, writer: SummaryWriter, decoder: Decoder, corpus: Corpus, step: int) -> None:
        model = Model(decoder, corpus.vocabulary, {})
        score = compose(model, length=Length(bars=self.bars))[0].score
        # Two tags: TensorBoard shows but one of an audio and an image with the same one.
        audio = render_audio(score, SAMPLE_RATE)
        writer.add_audio("music/audio", audio, step, sample_rate=SAMPLE_RATE)
        roll = draw_piano_roll(score, title=f"after {step} steps")
        writer.add_figure("music/piano_roll", roll, step, close=False)

        ids = corpus.split("valid").piece(0)[: min(self.tokens, decoder.config.context_length)]
        on_device = torch.from_numpy(ids)[None].to(decoder.head.weight.device)
        beside = torch.from_numpy(model.beside(ids[None])).to(on_device.device)
        maps = decoder.attention_maps(on_device, beside=beside)[:, 0]  # (L, H, T, T)
        labels = token_labels(ids, corpus.vocabulary)
        picture = draw_attention(maps.float().cpu().numpy(), labels, decoder.attention_names)
        writer.add_figure("attention/maps", picture, step, close=False)
