"""Lightning callbacks that show a run: progress in steps, and sampled music in TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger

from data.audio import render_audio
from data.render import draw_piano_roll
from data.vocabulary import Vocabulary
from generate import Model, continue_score, no_seed

SAMPLE_RATE = 22_050  # of the audio in TensorBoard, whose files grow with it


class RunLogger(TensorBoardLogger):
    """Logs to a run's own folder, without the charts that say nothing here.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.parent, name=folder.name, version="", default_hp_metric=False)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """As Lightning's, less the epoch: there is but one."""
        super().log_metrics({n: v for n, v in metrics.items() if n != "epoch"}, step)


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
    """Samples a piece a few times a run and logs it to TensorBoard as audio and piano roll.

    Args:
        times: how many times a run, evenly spaced, the last at the end.
        bars: how long each piece is.
    """

    def __init__(self, times: int = 4, bars: int = 8) -> None:
        self.times = times
        self.bars = bars
        self.latest = 0  # the step at which a piece was logged

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Logs a piece where one is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        # While gradients accumulate, several batches end at the same step.
        if step in due and step != self.latest and trainer.is_global_zero:
            self.latest = step
            self._log_piece(trainer, pl_module, step)

    def _log_piece(self, trainer: Trainer, pl_module: LightningModule, step: int) -> None:
        loggers = [log for log in trainer.loggers if isinstance(log, TensorBoardLogger)]
        vocabulary = trainer.datamodule.vocabulary  # type: ignore[attr-defined]
        if not loggers or not isinstance(vocabulary, Vocabulary):  # no music, nothing to hear
            return
        was_training = pl_module.training
        pl_module.eval()
        model = Model(pl_module.decoder, vocabulary, {})  # type: ignore[arg-type]
        score = continue_score(model, no_seed(model), bars=self.bars)[0].score
        pl_module.train(was_training)
        audio = render_audio(score, SAMPLE_RATE)
        figure = draw_piano_roll(score, title=f"after {step} steps")
        for logger in loggers:
            writer = logger.experiment
            # Two tags: TensorBoard shows but one of an audio and an image with the same one.
            writer.add_audio("music/audio", audio, step, sample_rate=SAMPLE_RATE)
            writer.add_figure("music/piano_roll", figure, step, close=False)
