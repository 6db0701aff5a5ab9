"""What is kept of a run, so that it can be stopped at any moment: checkpoints and the model.

    RUN/checkpoints/last.ckpt   where training goes on: written after each validation, every few
                                minutes, when the run is told to stop, and at its end
    RUN/checkpoints/best.ckpt   the same of the step that did best on the validation pieces
    RUN/model.safetensors       what generate.py reads: the weights of that step

Each is written beside the old one and takes its place when it is whole and on the disk. What
stands in last.ckpt depends on the steps made alone, and so does all that follows from it.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from torch.serialization import get_unsafe_globals_in_checkpoint

from common.files import write_atomically
from model.serialization import save_model_file
from training.checks import RunError

MODEL_NAME = "model.safetensors"
FOLDER = "checkpoints"


class StopError(BaseException):
    """The run was told to stop, and has kept where it was; no failure, so nothing guards from it.

    Args:
        signal_number: that told it.
        step: after which it stopped.
    """

    def __init__(self, signal_number: int, step: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name} after step {step}")
        self.exit_code = 128 + signal_number  # as a shell has it


class WholeFiles(TorchCheckpointIO):
    """Writes checkpoints beside the old ones, in the same folder and through to the disk.

    Lightning's own are staged in the system's temporary folder and copied from there, so that a
    full disk leaves half of the new one in the place of the old.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Writes a checkpoint; whoever reads `path` meets the old one or the whole new one.

        Raises:
            RunError: it cannot be written; the message says why, and the old one is untouched.
        """
        path = Path(path)
        whole = io.BytesIO()
        torch.save(checkpoint, whole)
        with _room_for(path), write_atomically(path) as temporary:
            temporary.write_bytes(whole.getbuffer())


class Checkpoints(Checkpoint):
    """Keeps a run in its folder, and stops it when SIGTERM or SIGINT (Ctrl-C) asks for that.

    The last weights of a run are validated too, wherever they fall. What is told to stop ends at
    the next whole step, kept; a second Ctrl-C ends it at once.

    Args:
        minutes: at most so long after the last time where training goes on is kept again.

    Raises:
        RunError: a value out of range.
    """

    def __init__(self, minutes: float = 5.0) -> None:
        if not minutes >= 0:
            raise RunError(f"checkpoint.minutes must be 0 or more, not {minutes}")
        self.minutes = minutes
        self.best = float("inf")  # nats per note, on the validation pieces
        self.is_due = self.is_best = self.is_validating = False
        self.signal_number = 0
        self.kept_step = 0
        self.kept_at = 0.0  # seconds, by the monotonic clock

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock and listens to signals; Lightning undoes that at the end."""
        self.kept_step, self.kept_at = trainer.global_step, time.monotonic()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)
            signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.signal_number = number
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
            print("\nstopping after this step; Ctrl-C again: at once", file=sys.stderr)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Between two steps, when all hooks of the first are done: keeps it where that is due."""
        if not _is_between_steps(trainer):
            return
        is_due = self.is_due or time.monotonic() - self.kept_at >= 60 * self.minutes
        if _any_rank(trainer, is_due or self.signal_number > 0):
            self._keep(trainer)
            self._stop_if_told(trainer)
        # What Lightning counts as logged steps is one too many after some ways to resume.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Has Lightning validate after the last step."""
        if trainer.global_step >= trainer.max_steps > 0:
            trainer.should_stop = True

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keeps the run before a validation that the signal to stop would cut short."""
        self.is_validating = trainer.state.fn == "fit" and not trainer.sanity_checking
        self._leave_validation_if_told(trainer)

    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stops in the middle of a validation, which the resumed run makes again."""
        self._leave_validation_if_told(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves the model if its nats per note are the lowest so far."""
        if not self.is_validating:
            return
        self.is_validating, self.is_due = False, True
        nats = float(trainer.callback_metrics.get("valid/nats_per_note", float("nan")))
        if nats < self.best:
            self.best, self.is_best = nats, True
            self._save_model(trainer, pl_module, {"valid_nats_per_note": nats})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keeps the end; and the last weights of a run that had nothing to validate on."""
        if self.best == float("inf"):
            self._save_model(trainer, pl_module, {})
        self._keep(trainer)

    def on_exception(self, trainer: Trainer, *_: Any) -> None:
        """Ends the workers of training, which Lightning leaves waiting if it is validating."""
        trainer.fit_loop.teardown()

    def _leave_validation_if_told(self, trainer: Trainer) -> None:
        # Other processes may be at another batch; and what ends here anyway comes to its end.
        is_last = trainer.global_step >= trainer.max_steps > 0
        can_leave = trainer.world_size == 1 and not is_last and _is_between_steps(trainer)
        if self.signal_number and self.is_validating and can_leave:
            self._keep(trainer)
            self._stop_if_told(trainer)

    def _stop_if_told(self, trainer: Trainer) -> None:
        if _any_rank(trainer, self.signal_number > 0):
            raise StopError(self.signal_number or signal.SIGTERM, trainer.global_step)

    def _keep(self, trainer: Trainer) -> None:
        """Writes best.ckpt, if it is one, before last.ckpt, which knows that it was."""
        if trainer.global_step > self.kept_step or self.is_due:
            for log in trainer.loggers:
                log.save()  # what was logged up to here must not be lost when that goes on
            folder = Path(trainer.default_root_dir) / FOLDER
            if self.is_best:
                trainer.save_checkpoint(folder / "best.ckpt")
            trainer.save_checkpoint(folder / "last.ckpt")
        self.is_due = self.is_best = False
        self.kept_step, self.kept_at = trainer.global_step, time.monotonic()

    def _save_model(
        self, trainer: Trainer, pl_module: LightningModule, figures: dict[str, float]
    ) -> None:
        if not trainer.is_global_zero:
            return
        vocabulary = trainer.datamodule.vocabulary  # type: ignore[attr-defined]
        summary = {
            "step": trainer.global_step,
            **figures,
            "model": settings(pl_module.hparams),
            "data": settings(trainer.datamodule.hparams),  # type: ignore[attr-defined]
        }
        path = Path(trainer.default_root_dir) / MODEL_NAME
        with _room_for(path):
            save_model_file(path, pl_module.decoder, vocabulary.to_json(), summary)  # type: ignore[arg-type]

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Counts the batches that are done and no other; a validation cut short is begun anew.

        Lightning's counts tell in which hook they were saved, and some of those it resumes
        without the validation, or a step further on.
        """
        loops = checkpoint["loops"]["fit_loop"]
        for counts in _counts(loops["epoch_loop.batch_progress"]):
            done = counts["processed"]
            counts.update(ready=done, started=done, completed=done)
        total, current = _counts(loops["epoch_loop.val_loop.batch_progress"])
        begun = total["completed"] + self.is_validating
        total.update(ready=begun, started=begun, processed=total["completed"])
        current.update(ready=0, started=0, processed=0, completed=0)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run has to know."""
        return {"best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        self.best = state_dict["best"]


def _counts(progress: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Of a Lightning loop: of the whole run, and of this epoch."""
    return progress["total"], progress["current"]


def _is_between_steps(trainer: Trainer) -> bool:
    """Whether no gradients are accumulated that the next step would need."""
    done = trainer.fit_loop.epoch_loop.batch_progress.current.completed  # batches
    return done % int(trainer.accumulate_grad_batches) == 0


def _any_rank(trainer: Trainer, mine: bool) -> bool:
    """Whether any process says so; all get the same answer."""
    return bool(trainer.strategy.reduce_boolean_decision(mine, all=False))


@contextmanager
def _room_for(path: Path) -> Iterator[None]:
    """Tells a file that cannot be written in a line that says what to do."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror}), and what was there is untouched: "
            f"make room, then --ckpt_path last goes on"
        ) from None


def settings(hyper_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, without Lightning's own notes."""
    return {name: value for name, value in hyper_parameters.items() if not name.startswith("_")}


def steps_made(path: Path) -> int:
    """The steps that a checkpoint stands for.

    Raises:
        RunError: there is none, or not a whole one.
    """
    advice = "use one of a run's checkpoints/"
    if not path.is_file():
        raise RunError(f"{path}: no such checkpoint; train first, or give --ckpt_path")
    if not zipfile.is_zipfile(path):
        raise RunError(f"{path}: not a checkpoint, or not a whole one; {advice}")
    try:
        if unsafe := get_unsafe_globals_in_checkpoint(path):
            raise RunError(f"{path}: holds code ({unsafe[0]}), which is not run; {advice}")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return int(checkpoint["global_step"])
    except (RuntimeError, KeyError, TypeError):
        raise RunError(f"{path}: not a checkpoint that train.py wrote; {advice}") from None


def free_folder(run: Path) -> Path:
    """`run`, or with a number after it where a run is already kept there."""
    folder, number = run, 1
    while (folder / MODEL_NAME).exists() or any(folder.glob(f"{FOLDER}/*.ckpt")):
        number += 1
        folder = run.with_name(f"{run.name}-{number}")
    return folder
