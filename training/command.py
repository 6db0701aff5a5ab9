"""train.py from its checked options on: a LightningCLI with a folder for each run."""

import ctypes
import logging
import platform
import signal
import sys
import threading
import warnings
from argparse import ArgumentTypeError
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from common.cli import print_error, say  # first: it settles how torch's threads work

# isort: split

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import SIGTERMException

from common.files import disk_errors_name
from data.batches.datamodule import MusicDataModule
from data.corpus.corpus import CorpusError
from model.threads import ThreadChooser
from training import checkpoints, distributed
from training.arguments import NO_CONFIG, SUBCOMMANDS, add_trainer, check_settings, in_plain_words
from training.checkpoints import Checkpoints, StopError
from training.checks import RunError, out_of_memory_message
from training.module import MusicModule
from training.tensorboard import MusicMonitor, RunLogger


class StepProgress(TQDMProgressBar):
    """A progress bar that counts the steps of the run, since there are no epochs."""

    @property
    def total_train_batches(self) -> int | float:
        """Batches of the whole run."""
        steps = self.trainer.max_steps
        return steps * self.trainer.accumulate_grad_batches if steps > 0 else float("inf")

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        """Begin where the run goes on: Lightning then starts no epoch, and knows no end."""
        super().on_train_start(trainer)
        if trainer.max_steps > 0:
            self.train_progress_bar.total = self.total_train_batches
        self.train_progress_bar.initial = trainer.global_step * trainer.accumulate_grad_batches

    def on_train_epoch_start(self, trainer: Trainer, *_: Any) -> None:
        """Begin as Lightning's does, under a better name than "Epoch 0"."""
        super().on_train_epoch_start(trainer)
        self.train_progress_bar.set_description("Training")

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Return loss and nats per note, without Lightning's version number."""
        metrics = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in metrics.items() if name != "v_num"}


class Threads(Callback):
    """As many threads as help, on a CPU."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the threads that there are."""
        self.chooser = ThreadChooser(pl_module.hparams["n_embd"])

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        """Give the step its threads."""
        if trainer.strategy.root_device.type == "cpu":
            self.chooser.begin_step()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Count the time that it took."""
        if trainer.strategy.root_device.type == "cpu":
            self.chooser.end_step()

    def on_train_end(self, *_: Any) -> None:
        """Give torch its threads back."""
        self.chooser.stop()


class SaveRunConfig(SaveConfigCallback):
    """The saving of a training run's resolved settings; to validate it later leaves them alone."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Save config.yaml of a run that begins, or that goes on in another folder."""
        is_there = (Path(trainer.default_root_dir) / self.config_filename).exists()
        if stage == "fit" and (self.config.ckpt_path is None or not is_there):
            super().setup(trainer, pl_module, stage)


class Parser(LightningArgumentParser):
    """A parser whose errors are one line, and to which no class can be named."""

    def add_lightning_class_args(
        self, lightning_class: Any, nested_key: str, *args: Any, **kwargs: Any
    ) -> list[str]:
        """Add the options of one of Lightning's classes, and return their names."""
        if nested_key == "trainer":
            return add_trainer(self, lightning_class)
        return super().add_lightning_class_args(lightning_class, nested_key, *args, **kwargs)

    def error(self, message: str, *_: Any, **__: Any) -> NoReturn:
        """Report what is wrong and exit with code 2."""
        fail(in_plain_words(message, self))


class EtudeCLI(LightningCLI):
    """LightningCLI with a folder a run and a precision that suits the machine."""

    QUIET: ClassVar = {"trainer.num_sanity_val_steps": 0, "trainer.enable_model_summary": False}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with ExitStack() as self.held:  # the run's folder, until the command ends
            super().__init__(*args, **kwargs)

    def init_parser(self, **kwargs: Any) -> LightningArgumentParser:
        """Return a parser whose options are written out, as those of the other commands are."""
        return super().init_parser(allow_abbrev=False, **kwargs)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the options that Lightning does not have, and our defaults for its own."""
        parser.add_argument("--run", type=str, default="runs/music", help="the folder of this run")
        parser.link_arguments("model.context_length", "data.context_length")
        parser.add_lightning_class_args(MusicMonitor, "monitor")
        parser.add_lightning_class_args(Checkpoints, "checkpoint")
        parser.set_defaults(self.QUIET)

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Return Lightning's subcommands without predict: generate.py does that."""
        commands = LightningCLI.subcommands()
        return {name: commands[name] for name in SUBCOMMANDS}

    def _parse_ckpt_path(self) -> None:
        """Do nothing: Lightning's would override the given settings by those of a checkpoint."""

    def before_instantiate_classes(self) -> None:
        """Settle what was left open: the precision, the run's folder, the checkpoint to read."""
        config = self.config[self.subcommand]
        check_settings(config)
        if config.trainer.precision is None:
            config.trainer.precision = fast_precision(config.trainer.accelerator)
        if self.subcommand == "fit":
            folder = checkpoints.run_folder(Path(config.run), config.ckpt_path, self.held)
            if folder != Path(config.run):
                rank_zero_only(say)(f"{config.run} holds another run, so this one goes to {folder}")
            config.run = str(folder)
        self.held.enter_context(disk_errors_name(config.run))  # of what Lightning writes there
        config.trainer.default_root_dir = config.run
        self.steps_made = 0
        if self.subcommand == "fit" and config.ckpt_path is None:
            return
        name = config.ckpt_path or "last"
        path = Path(name)
        if name in ("last", "best"):
            path = Path(config.run) / checkpoints.CHECKPOINTS / f"{name}.ckpt"
        if self.subcommand == "fit" and name == "last" and not path.exists():
            config.ckpt_path = None  # nothing to resume: the run begins
        else:
            self.steps_made = checkpoints.read_step(path)
            config.ckpt_path = str(path)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Return the trainer, with its callbacks and a logger to the run's folder."""
        config = self.config[self.subcommand]
        distributed.check_strategy(config.trainer.strategy)
        callbacks: list[Callback] = [distributed.ProcessGroupGuard(), Threads()]
        if config.trainer.enable_progress_bar is not False:
            callbacks.append(StepProgress(refresh_rate=10))
        if self.subcommand != "fit":  # to validate or test a run leaves its folder alone
            kwargs["logger"] = False
        elif config.trainer.logger is None:
            kwargs["logger"] = RunLogger(Path(config.run), self.steps_made)
        try:
            trainer = super().instantiate_trainer(callbacks=callbacks, **kwargs)
        except (TypeError, ValueError) as error:  # Lightning's of options that do not go together
            raise RunError(str(error)) from None
        distributed.check_nodes(trainer)
        trainer.strategy.checkpoint_io = checkpoints.AtomicCheckpointIO()
        if isinstance(trainer.val_check_interval, int):  # steps, where Lightning counts batches
            trainer.val_check_interval *= trainer.accumulate_grad_batches
        return trainer


def fast_precision(accelerator: str) -> str:
    """Return bf16 where the processor, or the GPU that is to be used, is fast in it; else fp32."""
    if torch.cuda.is_available() and accelerator != "cpu":
        is_fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        # Intel's are slower in bf16 than in fp32, unless they have AMX
        is_fast = has.get("amx_bf16") or (
            has.get("avx512_bf16") and "Intel" not in str(has.get("cpu_name"))
        )
    return "bf16-mixed" if is_fast else "32-true"


def retain_freed_memory() -> None:
    """Make glibc keep what a step frees for the next, instead of mapping it anew each time."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block is a mapping of its own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: bytes that may lie free at the top


def on_thread_error(error: threading.ExceptHookArgs) -> None:
    """Say nothing of a disk on which a thread of TensorBoard cannot write: flushing will say it."""
    if not isinstance(error.exc_value, OSError):
        threading.__excepthook__(error)


def fail(message: str, code: int = 2) -> NoReturn:
    """Print why a run ends as one line, from one process of the run, and exit."""
    if distributed.is_reporter():
        print_error(message, "train.py")
    sys.exit(code)


def run(words: Sequence[str]) -> None:
    """Train a model or judge it, or fail with one line.

    Args:
        words: of train.py's command line, a subcommand first.
    """
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    retain_freed_memory()
    threading.excepthook = on_thread_error
    try:
        EtudeCLI(
            MusicModule,
            MusicDataModule,
            parser_class=Parser,
            save_config_callback=SaveRunConfig,
            save_config_kwargs={"overwrite": True},
            seed_everything_default=0,
            auto_configure_optimizers=False,
            parser_kwargs={"description": "Train a model, or judge it on held-out pieces."},
            args=list(words),
        )
    except StopError as stop:
        fail(f"{stop}; --ckpt_path last goes on", stop.exit_code)
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # Lightning leaves with 1, and no word
            raise stop.__context__ from None
        raise
    except SIGTERMException:  # Lightning would leave with 0, as if the run had come to its end
        print_error("stopped by SIGTERM; --ckpt_path last goes on", "train.py")
        sys.exit(128 + signal.SIGTERM)
    except (ArgumentTypeError, CorpusError, RunError, MisconfigurationException, OSError) as error:
        fail(str(error))
    except UnicodeDecodeError:  # jsonargparse reads a file as text, and as YAML
        fail(NO_CONFIG)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and distributed.is_lost_process(error):
            fail("another process of the run is gone; --ckpt_path last goes on")
        if "loading state_dict" in str(error):
            fail("the checkpoint's weights do not fit: it is of other settings, or damaged")
        if (message := out_of_memory_message(error)) is None:
            raise
        fail(message)
