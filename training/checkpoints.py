"""Saves a run, so that it can be stopped at any moment: its checkpoints and its model.

    RUN/checkpoints/last.ckpt   where training goes on: written after each validation, every few
                                minutes, when the run is asked to stop, and at its end
    RUN/checkpoints/best.ckpt   the same, for the step that did best on the validation pieces
    RUN/model.safetensors       what generate.py reads: the weights of that step, or before the
                                first validation those of the first minute

A file is replaced only when the new one is whole and on the disk. What last.ckpt has in it depends
only on the steps that were made, and so does all that follows from it.
"""

import io
import itertools
import signal
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from filelock import FileLock, Timeout
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from common.files import write_atomically
from common.typed_json import to_json
from model.decoding import network_of
from model.record import TrainingRecord
from model.serialization import ModelFile, ModelFileError, load_model_file, save_model_file
from training.checks import RunError
from training.finish import fitted, scored
from training.loops import correct_counts, count_logged_steps, end_workers

MODEL_NAME = "model.safetensors"
CHECKPOINTS = "checkpoints"  # the name of the folder inside the run's folder
MARK = b"Etude 1"  # marks our checkpoints; the number goes up when they change
FIRST_MODEL_SECONDS = 45.0  # seconds of training, after which there is a model to listen to
LOCK = ".lock"  # in a run's folder: locked by the process that trains there


class StopError(BaseException):
    """Raised when a run was asked to stop and has saved its state; it is not a failure to catch."""

    def __init__(self, signal_number: int, when: str) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name} {when}")
        self.exit_code = 128 + signal_number  # as in a shell


@contextmanager
def stopped_while(doing: str) -> Iterator[None]:
    """End a block at once with a StopError if SIGTERM or Ctrl-C asks for it."""

    def stop(number: int, _: FrameType | None) -> None:
        raise StopError(number, f"while {doing}")

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes files that are whole at any moment: beside the old ones, in the same folder.

    Lightning first writes into the system's temporary folder, and then copies from there. If the
    disk is full, that leaves half of the new file in place of the old one.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint; whoever reads `path` finds the old one or the whole new one."""
        content = io.BytesIO()
        torch.save(checkpoint, content)
        with zipfile.ZipFile(content, "a") as archive:
            archive.comment = MARK
        with _explained(path), write_atomically(path) as temporary:
            temporary.write_bytes(content.getbuffer())


class Checkpoints(Checkpoint):
    """Saves a run in its folder, and stops it when SIGTERM or SIGINT (Ctrl-C) asks for it.

    The last weights of a run are always validated, whatever its validation interval is. A run that
    is asked to stop finishes its step, saves, and ends. A second Ctrl-C ends it at once.

    Args:
        minutes: the longest time from one checkpoint to the next.
    """

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.best = float("inf")  # the lowest nats per note on the validation pieces
        self.is_due = self.is_best = self.is_validating = False
        self.signal_number = 0  # the number of the signal that asked for a stop
        self.saved_step = self.resumed_step = 0
        self.saved_at = self.began = 0.0  # seconds on the monotonic clock
        self.model_is_due = False  # whether to save one to listen to before the first validation

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock and handle signals; Lightning restores the old handlers at the end."""
        self.saved_step, self.saved_at = trainer.global_step, time.monotonic()
        self.began, self.model_is_due = self.saved_at, self.best == float("inf")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)
            signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.signal_number = number
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
            print("\nstopping after this step (Ctrl-C again stops at once)", file=sys.stderr)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Save the step before this one if that is due; all of its hooks have run by now."""
        if self.model_is_due and time.monotonic() - self.began >= FIRST_MODEL_SECONDS:
            self.model_is_due = False
            self._save_model(trainer, pl_module, None)
        is_due = self.is_due or time.monotonic() - self.saved_at >= 60 * self.minutes
        if is_due or self.signal_number:
            self._save(trainer)
            if self.signal_number:
                raise _stop(trainer, self.signal_number)
        count_logged_steps(trainer)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Make Lightning validate after the last step."""
        if trainer.global_step >= trainer.max_steps > 0:
            trainer.should_stop = True

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop before a validation if the run was asked to."""
        self.is_validating = trainer.state.fn == "fit" and not trainer.sanity_checking
        self.on_validation_batch_end(trainer)

    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop in the middle of a validation, which the resumed run will repeat."""
        is_last = trainer.global_step >= trainer.max_steps > 0  # the run ends anyway
        if self.signal_number and self.is_validating and not is_last:
            self._save(trainer)
            raise _stop(trainer, self.signal_number)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the model if its nats per note are the lowest so far."""
        if not self.is_validating:
            return
        self.is_validating, self.is_due = False, True
        nats = float(trainer.callback_metrics.get("valid/nats_per_note", float("nan")))
        self.model_is_due = False
        if nats < self.best:
            self.best, self.is_best = nats, True
            self._save_model(trainer, pl_module, nats)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the end of the run, and the last model if there was nothing to validate on."""
        if self.best == float("inf"):
            self._save_model(trainer, pl_module, None)
        self._save(trainer)
        self._finish(trainer, pl_module)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Finish a run whose steps have all been made: for Lightning, nothing is left to do."""
        if self.resumed_step >= trainer.max_steps > 0:
            self._finish(trainer, pl_module)

    def _finish(self, trainer: Trainer, pl_module: Any) -> None:
        """Add to the model file what is computed at the end of a run (training/finish.py)."""
        path = Path(trainer.default_root_dir) / MODEL_NAME
        if not path.exists():
            return
        try:
            content = load_model_file(path)
        except ModelFileError as error:
            raise RunError(str(error)) from None
        new = content
        steps = max(trainer.global_step, self.resumed_step)
        with stopped_while("the model, which is whole, was judged"):
            if self.signal_number:
                raise _stop(trainer, self.signal_number)
            if self.best < float("inf"):
                new = scored(new, pl_module)
            new = fitted(new, pl_module, steps)
        if new is not content:
            with _explained(path):
                save_model_file(path, new)

    def on_exception(self, trainer: Trainer, *_: Any) -> None:
        """End the workers that read batches."""
        end_workers(trainer)

    def _save(self, trainer: Trainer) -> None:
        """Write best.ckpt, if this step is the best, and then last.ckpt, which has its figure."""
        if trainer.global_step > self.saved_step or self.is_due:
            for log in trainer.loggers:
                log.save()  # a run that resumes here does not log the past again
            folder = Path(trainer.default_root_dir) / CHECKPOINTS
            if self.is_best:
                trainer.save_checkpoint(folder / "best.ckpt")
            trainer.save_checkpoint(folder / "last.ckpt")
        self.is_due = self.is_best = False
        self.saved_step, self.saved_at = trainer.global_step, time.monotonic()
        if not self.model_is_due:
            self.began, self.model_is_due = self.saved_at, self.best == float("inf")

    def _save_model(self, trainer: Trainer, pl_module: Any, nats: float | None) -> None:
        data = pl_module.data
        record = TrainingRecord(
            step=trainer.global_step,
            valid_nats_per_note=nats,
            model=asdict(pl_module.options),
            data=asdict(data.options),
            corpus=data.content,
        )
        vocabulary, style = data.vocabulary.to_json(), to_json(data.source.style)
        path = Path(trainer.default_root_dir) / MODEL_NAME
        with _explained(path):
            save_model_file(
                path, ModelFile(network_of(pl_module.decoder), vocabulary, style, record)
            )

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Remember the step from which the run goes on."""
        self.resumed_step = checkpoint["global_step"]

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Make the resumed run go on at this point; a validation begins again."""
        correct_counts(checkpoint, self.is_validating)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run must know."""
        return {"best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.best = state_dict["best"]


def is_stopping(trainer: Trainer) -> bool:
    """Return whether a signal has asked this run to stop."""
    return any(isinstance(c, Checkpoints) and c.signal_number > 0 for c in trainer.callbacks)  # type: ignore[attr-defined]


def _stop(trainer: Trainer, signal_number: int) -> StopError:
    return StopError(signal_number, f"after step {trainer.global_step}")


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Turn the error of a file that cannot be written into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror}); the checkpoint before is unchanged: "
            f"make room, then go on with --ckpt_path last"
        ) from None


# What torch and zipfile raise for files that are not what they seem.
_UNREADABLE = (
    *(RuntimeError, KeyError, TypeError, ValueError, IndexError, AttributeError),
    *(EOFError, OSError, OverflowError, RecursionError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
    torch.serialization.pickle.UnpicklingError,  # type: ignore[attr-defined]
)


def read_step(path: Path) -> int:
    """Return how many steps a checkpoint was saved after; nothing in the checkpoint is run."""
    if not path.is_file():
        raise RunError(f"{path}: no such checkpoint; train first, or name one with --ckpt_path")
    with suppress(*_UNREADABLE), zipfile.ZipFile(path) as archive:
        if archive.comment == MARK and archive.testzip() is None:  # it is as it was written
            checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            return int(checkpoint["global_step"])
    raise RunError(
        f"{path}: not a checkpoint that train.py wrote, or damaged; use one of a run's checkpoints/"
    )


def run_folder(run: Path, checkpoint: str | None, held: ExitStack) -> Path:
    """Return the folder of a run, and lock it for this process until `held` is left.

    A run that goes on from a checkpoint stays in `run`. A new run gets a number after its name if
    the folder already has a run in it, or if another process trains there.

    Raises:
        RunError: the run goes on, but another process trains there.
        OSError: the folder cannot be made.
    """
    run = run.resolve() if run.name in ("", "..") else run
    if checkpoint is not None:
        if not _hold(run, held):
            raise RunError(f"{run}: another process is training there; let it end, or stop it")
        return run
    for number in itertools.count(1):
        folder = run if number == 1 else run.with_name(f"{run.name}-{number}")
        with ExitStack() as attempt:
            # the process that held it before may have left a run there in the meantime
            if not _holds_run(folder) and _hold(folder, attempt) and not _holds_run(folder):
                held.push(attempt.pop_all())
                break
    return folder


def _holds_run(folder: Path) -> bool:
    return (folder / MODEL_NAME).exists() or any(folder.glob(f"{CHECKPOINTS}/*.ckpt"))


def _hold(folder: Path, held: ExitStack) -> bool:
    """Lock a folder until `held` is left, and make it first if need be; False: another has it."""
    missing = [path for path in folder.parents if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    held.callback(_let_go, lock, [folder, *missing])
    return True


def _let_go(lock: FileLock, folders: Sequence[Path]) -> None:
    """Unlock the first of some folders, and remove those that are empty."""
    with suppress(OSError):  # Windows keeps it as long as it is open
        Path(lock.lock_file).unlink()
    lock.release()
    with suppress(OSError):  # the folder is not empty
        for path in folders:  # no matter which process made it
            path.rmdir()
