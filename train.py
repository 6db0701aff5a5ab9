"""Train a model: a LightningCLI over configs/*.yaml.

    python train.py fit --config configs/bach.yaml
    python train.py fit --config configs/bach.yaml --model.n_layer 6 --run runs/six-layers
    python train.py fit --config configs/bach.yaml --ckpt_path last     # go on where it stopped
    python train.py test --config configs/bach.yaml --ckpt_path last

A run's folder holds config.yaml (all settings, resolved), checkpoints/ (to resume),
model.safetensors (to generate from: the weights that did best on the validation pieces) and
what TensorBoard shows. SIGTERM and Ctrl-C keep the step that is being made, and stop.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import (
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import SIGTERMException

from common.cli import print_error
from data.batches.datamodule import MusicDataModule
from data.corpus.corpus import CorpusError
from training.callbacks import MusicMonitor, RunLogger, StepProgress
from training.checkpoints import FOLDER, Checkpoints, StopError, WholeFiles, free_folder, steps_made
from training.checks import RunError, told_if_memory_ran_out
from training.distributed import (
    LeaveTogether,
    check_nodes,
    check_numbers,
    check_strategy,
    is_lost_process,
    is_to_tell,
)
from training.module import MusicModule


class KeepConfig(SaveConfigCallback):
    """Keeps the resolved settings of a training run; validating it later leaves them alone."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Saves config.yaml of a run that begins, or goes on in another folder."""
        is_there = (Path(trainer.default_root_dir) / self.config_filename).exists()
        if stage == "fit" and (self.config.ckpt_path is None or not is_there):
            super().setup(trainer, pl_module, stage)


class Parser(LightningArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str, *_: Any, **__: Any) -> NoReturn:
        """Says what is wrong and leaves with exit code 2."""
        fail(f"{message} (--help lists the options)")


class EtudeCLI(LightningCLI):
    """LightningCLI with a folder a run and a precision that suits the machine."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Options beside Lightning's own."""
        parser.add_argument("--run", default="runs/music", help="the folder of this run")
        parser.link_arguments("model.context_length", "data.context_length")
        parser.add_lightning_class_args(MusicMonitor, "monitor")
        parser.add_lightning_class_args(Checkpoints, "checkpoint")
        parser.set_defaults(
            {
                "trainer.num_sanity_val_steps": 0,
                "trainer.enable_model_summary": False,
            }
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Lightning's, less predict: generate.py does that."""
        commands = LightningCLI.subcommands()
        return {name: commands[name] for name in ("fit", "validate", "test")}

    def _parse_ckpt_path(self) -> None:
        """Nothing: Lightning's would put a checkpoint's settings in place of those asked for."""

    def before_instantiate_classes(self) -> None:
        """Settles what was left open: precision, the run's folder, what to resume."""
        config = self.config[self.subcommand]
        if config.trainer.precision is None:
            config.trainer.precision = fast_precision(config.trainer.accelerator)
        if self.subcommand == "fit" and config.ckpt_path is None:
            folder = free_folder(Path(config.run))
            if folder != Path(config.run):
                rank_zero_only(print)(
                    f"{config.run} holds an earlier run, so this one goes to {folder}"
                )
            config.run = str(folder)
        checkpoints = Path(config.run) / FOLDER
        config.trainer.default_root_dir = config.run
        self.steps_made = 0
        if self.subcommand != "fit" or config.ckpt_path is not None:
            name = config.ckpt_path or "last"
            path = checkpoints / f"{name}.ckpt" if name in ("last", "best") else Path(name)
            if self.subcommand == "fit" and name == "last" and not path.exists():
                config.ckpt_path = None  # nothing to resume: the run begins
            else:
                self.steps_made = steps_made(path)
                config.ckpt_path = str(path)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """The trainer, with its callbacks, logging to the run's folder."""
        config = self.config[self.subcommand]
        check_strategy(config.trainer.strategy)
        check_numbers()
        wished = self.config_init[self.subcommand].trainer.callbacks or []
        callbacks = [*wished, LeaveTogether()]
        if config.trainer.enable_progress_bar is not False:
            callbacks.append(StepProgress(refresh_rate=10))
        if self.subcommand != "fit":  # judging a run leaves its folder alone
            kwargs["logger"] = False
        elif config.trainer.logger is None:
            kwargs["logger"] = RunLogger(Path(config.run), self.steps_made)
        try:
            trainer = super().instantiate_trainer(callbacks=callbacks, **kwargs)
        except (TypeError, ValueError) as error:  # Lightning's of options that do not go together
            raise RunError(str(error)) from None
        check_nodes(trainer)
        trainer.strategy.checkpoint_io = WholeFiles()
        if isinstance(trainer.val_check_interval, int):  # steps, where Lightning counts batches
            trainer.val_check_interval *= trainer.accumulate_grad_batches
        return trainer


def fast_precision(accelerator: str) -> str:
    """bf16 where the processor, or the GPU if it is to be used, is fast in it; else fp32."""
    if torch.cuda.is_available() and accelerator != "cpu":
        is_fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        # Intel's are slower in bf16 than in fp32, unless they have AMX
        is_fast = has.get("amx_bf16") or (
            has.get("avx512_bf16") and "Intel" not in str(has.get("cpu_name"))
        )
    return "bf16-mixed" if is_fast else "32-true"


def keep_memory() -> None:
    """Have glibc keep what a step frees for the next, instead of mapping it anew each time."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block is a mapping of its own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: bytes that may lie free at the top


def fail(message: str) -> NoReturn:
    """Print an error as one line, from one process of the run, and exit with code 2."""
    tell(message)
    sys.exit(2)


def tell(message: str) -> None:
    """Print why a run ends, if no other process of the run does."""
    if is_to_tell():
        print_error(message, "train.py")


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    keep_memory()
    try:
        EtudeCLI(
            MusicModule,
            MusicDataModule,
            parser_class=Parser,
            save_config_callback=KeepConfig,
            save_config_kwargs={"overwrite": True},
            seed_everything_default=0,
            auto_configure_optimizers=False,
            parser_kwargs={"description": "Train a model, or judge it on held-out pieces."},
            args=None if argv is None else list(argv),
        )
    except StopError as stop:
        tell(f"{stop}; --ckpt_path last goes on")
        sys.exit(stop.exit_code)
    except SIGTERMException:  # Lightning would leave with 0, as if the run had come to its end
        print_error("stopped by SIGTERM; --ckpt_path last goes on", "train.py")
        sys.exit(128 + signal.SIGTERM)
    except (CorpusError, RunError, MisconfigurationException, OSError) as error:
        fail(str(error))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and is_lost_process(error):
            fail("another process of the run is gone; --ckpt_path last goes on")
        if (told := told_if_memory_ran_out(error)) is None:
            raise
        fail(told)


if __name__ == "__main__":
    main()
