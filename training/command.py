"""Runs train.py after its options are checked: a folder for each run, and Lightning's trainer."""

import ctypes
import logging
import platform
import shlex
import signal
import threading
import warnings
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from common.cli import say  # first, since it settles how torch's threads work

# isort: split

import torch
import yaml  # type: ignore[import-untyped]
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.utilities.exceptions import SIGTERMException

from common.files import disk_errors_name, write_file
from data.batches.datamodule import MusicDataModule
from data.corpus.corpus import CorpusError
from model.threads import ThreadChooser
from training import checkpoints
from training.arguments import fail
from training.checkpoints import Checkpoints, StopError
from training.checks import RunError, out_of_memory_message
from training.distillation import with_beginning
from training.module import MusicModule
from training.options import Precision, RunOptions
from training.pace import kept_settings, with_steps
from training.tensorboard import MusicMonitor, RunLogger
from training.windows import with_windows


class StepProgress(TQDMProgressBar):
    """A progress bar that counts the steps of the run, since there are no epochs."""

    @property
    def total_train_batches(self) -> int:
        """How many batches the whole run has."""
        return self.trainer.max_steps

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        """Begin where the run goes on: there Lightning starts no epoch, and knows no end."""
        super().on_train_start(trainer)
        self.train_progress_bar.total = self.total_train_batches
        self.train_progress_bar.initial = trainer.global_step

    def on_train_epoch_start(self, trainer: Trainer, *_: Any) -> None:
        """Begin as Lightning does, but under a better name than "Epoch 0"."""
        super().on_train_epoch_start(trainer)
        self.train_progress_bar.set_description("Training")

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Return loss and nats per note, without Lightning's version number."""
        metrics = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in metrics.items() if name != "v_num"}


class Threads(Callback):
    """Uses as many threads as help, on a CPU."""

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Take all the threads that there are."""
        self.chooser = ThreadChooser(pl_module.options.n_embd)

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        """Choose the number of threads for the step."""
        if trainer.strategy.root_device.type == "cpu":
            self.chooser.begin_step()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Record the time that the step took."""
        if trainer.strategy.root_device.type == "cpu":
            self.chooser.end_step()

    def on_train_end(self, *_: Any) -> None:
        """Give torch its threads back."""
        self.chooser.stop()


def keep_settings(options: RunOptions) -> None:
    """Write config.yaml for a new run, or the new length of a run that goes on."""
    path, settings = Path(options.run) / "config.yaml", asdict(options)
    if options.ckpt_path is not None and (kept := kept_settings(path)) is not None:
        settings, trainer = kept, settings["trainer"]
        settings["trainer"] |= {name: trainer[name] for name in ("max_steps", "val_check_interval")}
    write_file(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), path)


def settled(subcommand: str, options: RunOptions, held: ExitStack) -> tuple[RunOptions, int]:
    """Settle what options leave open: the precision, the run's folder, and the checkpoint.

    Returns:
        The options, and the number of steps after which the run goes on.
    """
    trainer, run, name, steps_made = options.trainer, options.run, options.ckpt_path, 0
    if trainer.precision is None:
        trainer = replace(trainer, precision=fast_precision(trainer.accelerator))
    if subcommand == "fit":
        run = str(checkpoints.run_folder(Path(run), name, held))
        if run != str(Path(options.run)):
            say(f"{options.run} holds another run, so this one goes to {run}")
    else:
        name = name or "last"
    path = Path(name) if name else None
    if name in ("last", "best"):
        path = Path(run) / checkpoints.CHECKPOINTS / f"{name}.ckpt"
    if path is not None and subcommand == "fit" and name == "last" and not path.exists():
        say(f"there is no {path} yet: the run begins")
        path = None
    if path is not None:
        steps_made = checkpoints.read_step(path)
    checkpoint = None if path is None else str(path)
    return replace(options, run=run, trainer=trainer, ckpt_path=checkpoint), steps_made


def make_trainer(subcommand: str, options: RunOptions, steps_made: int) -> Trainer:
    """Return the trainer, with its callbacks and with a logger to the run's folder."""
    settings = asdict(options.trainer)
    callbacks: list[Callback] = [
        *(Threads(), MusicMonitor(options.monitor), Checkpoints(options.checkpoint.minutes)),
    ]
    if settings["enable_progress_bar"] is not False:
        callbacks.append(StepProgress(refresh_rate=10))
    is_fit = subcommand == "fit"  # validating or testing a run leaves its folder alone
    return Trainer(
        **settings,
        devices=1,
        check_val_every_n_epoch=None,  # count steps, not epochs: there is only one
        logger=RunLogger(Path(options.run), steps_made) if is_fit else False,
        callbacks=callbacks,
        plugins=[checkpoints.AtomicCheckpointIO()],
        default_root_dir=options.run,
        num_sanity_val_steps=0,
        enable_model_summary=False,
    )


def fast_precision(accelerator: str) -> Precision:
    """Return bf16 if the processor, or the GPU to be used, is fast in it; otherwise fp32."""
    if accelerator != "cpu" and torch.cuda.is_available():
        is_fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        # Intel's are slower in bf16 than in fp32, unless they have AMX
        is_fast = has.get("amx_bf16") or (
            has.get("avx512_bf16") and "Intel" not in str(has.get("cpu_name"))
        )
    return "bf16-mixed" if is_fast else "32-true"


def retain_freed_memory() -> None:
    """Make glibc keep the memory that a step frees for the next, instead of mapping it again."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block is a mapping of its own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: bytes that may stay free at the top


def on_thread_error(error: threading.ExceptHookArgs) -> None:
    """Ignore that a thread of TensorBoard cannot write to the disk: flushing will report it."""
    if not isinstance(error.exc_value, OSError):
        threading.__excepthook__(error)


def make_run(subcommand: str, options: RunOptions) -> None:
    """Train a model or judge it."""
    seed_everything(options.seed_everything, workers=True)
    with ExitStack() as held:  # holds the run's folder until the command ends
        options, steps_made = settled(subcommand, options, held)
        held.enter_context(disk_errors_name(options.run))  # for what Lightning writes there
        data = MusicDataModule(options.data, options.model.context_length)
        options, data = with_windows(options, data)
        options = with_beginning(options, data)
        if subcommand == "fit":
            options = with_steps(options, data)
        module = MusicModule(options.model)
        trainer = make_trainer(subcommand, options, steps_made)
        if subcommand == "fit":
            data.prepare_data()  # if this fails, nothing is written
            keep_settings(options)
        getattr(trainer, subcommand)(module, datamodule=data, ckpt_path=options.ckpt_path)
        if subcommand == "fit":
            model = shlex.quote(str(Path(options.run) / checkpoints.MODEL_NAME))
            say(f"to write with it: generate.py --checkpoint {model}")


def run(subcommand: str, options: RunOptions) -> None:
    """Train a model or judge it, or fail with one line."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    retain_freed_memory()
    threading.excepthook = on_thread_error
    try:
        make_run(subcommand, options)
    except StopError as stop:
        fail(f"{stop}; to go on, add --ckpt_path last", stop.exit_code)
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # Lightning exits with 1, in silence
            raise stop.__context__ from None
        raise
    except SIGTERMException:  # Lightning would exit with 0, as if the run had ended
        fail("stopped by SIGTERM; to go on, add --ckpt_path last", 128 + signal.SIGTERM)
    except (CorpusError, RunError, MisconfigurationException, OSError) as error:
        fail(str(error))
    except (MemoryError, RuntimeError) as error:
        if "loading state_dict" in str(error):
            fail("the checkpoint does not fit: it was made with other settings, or is damaged")
        if (message := out_of_memory_message(error)) is None:
            raise
        fail(message)
