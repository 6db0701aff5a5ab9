"""Train a model: a LightningCLI over configs/*.yaml.

    python train.py fit --config configs/bach.yaml
    python train.py fit --config configs/bach.yaml --model.n_layer 6 --run runs/six-layers
    python train.py fit --config configs/bach.yaml --ckpt_path last     # go on where it stopped
    python train.py test --config configs/bach.yaml --ckpt_path last

A run's folder holds config.yaml (all settings, resolved), checkpoints/ (to resume),
model.safetensors (to generate from: the weights that did best on the validation pieces) and
what TensorBoard shows.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import (
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from lightning.pytorch.utilities.exceptions import SIGTERMException

from data.corpus import CorpusError
from data.datamodule import MusicDataModule
from model.bundle import save_bundle
from model.module import MusicModule, RunError
from monitor import MusicMonitor, RunLogger, StepProgress

MODEL_NAME = "model.safetensors"


class SaveModel(Callback):
    """Writes model.safetensors to the run's folder whenever validation finds it better.

    The last weights of a run are validated too, wherever they fall.
    """

    def __init__(self) -> None:
        self.best = float("inf")

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Has Lightning validate after the last step."""
        if trainer.global_step >= trainer.max_steps > 0:
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves the model if its nats per note are the lowest so far."""
        nats = float(trainer.callback_metrics.get("valid/nats_per_note", float("nan")))
        if trainer.state.fn == "fit" and not trainer.sanity_checking and nats < self.best:
            self.best = nats
            self._save(trainer, pl_module, {"valid_nats_per_note": nats})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Saves the last weights of a run that had nothing to validate on."""
        if self.best == float("inf"):
            self._save(trainer, pl_module, {})

    def _save(
        self, trainer: Trainer, pl_module: LightningModule, figures: dict[str, float]
    ) -> None:
        folder = trainer.log_dir  # asked for by every process: the answer is broadcast
        if not trainer.is_global_zero or folder is None:
            return
        vocabulary = trainer.datamodule.vocabulary  # type: ignore[attr-defined]
        summary = {
            "step": trainer.global_step,
            **figures,
            "model": settings(pl_module.hparams),
            "data": settings(trainer.datamodule.hparams),  # type: ignore[attr-defined]
        }
        path = Path(folder) / MODEL_NAME
        save_bundle(path, pl_module.decoder, vocabulary.to_json(), summary)  # type: ignore[arg-type]

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run has to know."""
        return {"best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        self.best = state_dict["best"]


class KeepConfig(SaveConfigCallback):
    """Keeps the resolved settings of a training run; validating it later leaves them alone."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Saves config.yaml of a run that begins; one that goes on has it."""
        if stage == "fit" and self.config.ckpt_path is None:
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
        parser.add_lightning_class_args(ModelCheckpoint, "checkpoint")
        parser.set_defaults(
            {
                "trainer.num_sanity_val_steps": 0,
                "trainer.enable_model_summary": False,
                "checkpoint.save_last": True,
                "checkpoint.filename": "best",
                "checkpoint.monitor": "valid/nats_per_note",
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
            config.run = str(free_folder(Path(config.run)))
        checkpoints = Path(config.run) / "checkpoints"
        config.checkpoint.dirpath = str(checkpoints)
        config.trainer.default_root_dir = config.run
        if self.subcommand != "fit" or config.ckpt_path is not None:
            name = config.ckpt_path or "last"
            path = checkpoints / f"{name}.ckpt" if name in ("last", "best") else Path(name)
            if self.subcommand == "fit" and name == "last" and not path.exists():
                config.ckpt_path = None  # nothing to resume: the run begins
            else:
                config.ckpt_path = str(checked_checkpoint(path))

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """The trainer, with its callbacks, logging to the run's folder."""
        config = self.config[self.subcommand]
        callbacks = [*(self.config_init[self.subcommand].trainer.callbacks or []), SaveModel()]
        if config.trainer.enable_progress_bar is not False:
            callbacks.append(StepProgress(refresh_rate=10))
        if self.subcommand != "fit":  # judging a run leaves its folder alone
            kwargs["logger"] = False
        elif config.trainer.logger is None:
            kwargs["logger"] = RunLogger(Path(config.run))
        return super().instantiate_trainer(callbacks=callbacks, **kwargs)


def fast_precision(accelerator: str) -> str:
    """bf16 where the processor, or the GPU if it is to be used, computes in it; else fp32."""
    if torch.cuda.is_available() and accelerator != "cpu":
        has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities()
        has_bf16 = capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")
    return "bf16-mixed" if has_bf16 else "32-true"


def keep_memory() -> None:
    """Have glibc keep what a step frees for the next, instead of mapping it anew each time."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block is a mapping of its own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: bytes that may lie free at the top


def settings(hyper_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, without Lightning's own notes."""
    return {name: value for name, value in hyper_parameters.items() if not name.startswith("_")}


def checked_checkpoint(path: Path) -> Path:
    """`path`, if a checkpoint of Lightning's can be there: a zip archive, and a whole one."""
    if not path.is_file():
        fail(f"{path}: no such checkpoint; train first, or give --ckpt_path")
    if not zipfile.is_zipfile(path):
        fail(f"{path}: not a checkpoint, or not a whole one; use one of a run's checkpoints/")
    return path


def free_folder(run: Path) -> Path:
    """`run`, or with a number after it where a run is already kept there."""
    folder, number = run, 1
    while (folder / MODEL_NAME).exists() or any(folder.glob("checkpoints/*.ckpt")):
        number += 1
        folder = run.with_name(f"{run.name}-{number}")
    if folder != run:
        print(f"{run} holds an earlier run, so this one goes to {folder}")
    return folder


def fail(message: str) -> NoReturn:
    """Says what is wrong in one line and leaves with exit code 2."""
    print(f"train.py: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


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
    except SIGTERMException:  # Lightning would leave with 0, as if the run had come to its end
        print("train.py: stopped by SIGTERM; --ckpt_path last goes on", file=sys.stderr)
        sys.exit(143)
    except (CorpusError, RunError, MisconfigurationException, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
