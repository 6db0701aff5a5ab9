"""The options of train.py; without torch and Lightning, so that a mistake is told at once."""

import os
import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from common.options import LARGEST, Count, Options, Positive, Range, Share
from data.batches.options import DataOptions
from model.config import DecoderOptions, Dropout

MOST_DEVICES = 8  # or as many as the machine has processors
SHARDING = ("fsdp", "deepspeed", "modelparallel")  # in the names of Lightning's strategies

# Above 1 a step would take a weight further than it is large.
Rate = Annotated[float, Range(1e-12, 1)]
Batches = Annotated[int, Range(0, LARGEST)] | Share | None
Precision = Literal[
    "16-mixed", "bf16-mixed", "16-true", "bf16-true", "32-true", "64-true",
    "16", "bf16", "32", "64", 16, 32, 64,
]  # fmt: skip


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """How weights are learned."""

    learning_rate: Rate = 0.006
    """The highest rate of AdamW (embedding, head and gains)."""
    muon_learning_rate: Rate = 0.06
    """The highest rate of Muon (the matrices inside the blocks)."""
    weight_decay: Share = 0.1
    """Decoupled, times the rate; gains have none."""
    warm_up: Share = 0.02
    """Share of the run in which the rates rise from 0."""
    cool_down: Share = 0.7
    """Share of the run, at its end, in which the rates fall to 0."""


@dataclass(frozen=True)
class ModelOptions(OptimizerOptions, DecoderOptions):
    """The decoder, and how it learns."""

    dropout: Dropout = 0.1
    """Share of numbers zeroed, while training, after the embedding and each sub-layer."""
    teachers: tuple[str, ...] | None = None
    """Trained models, a model.safetensors each: what they expect is learned, not what follows."""
    begin_with: str | None = None
    """A trained model of this shape, whose weights the run begins with; null: random weights."""


@dataclass(frozen=True)
class MonitorOptions(Options):
    """What TensorBoard shows beside figures: music, pictures, statistics."""

    times: Count = 4
    """How many times a run, evenly spaced, the last at the end; 0: never."""
    share: Share = 0.022
    """Of the run's time that this may take; what was too long is tried again later."""


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """When a run is saved."""

    minutes: Annotated[float, Range(0, LARGEST)] = 5.0
    """A checkpoint is saved at the latest so long after the one before."""


@dataclass(frozen=True)
class TrainerOptions(Options):
    """Those of Lightning's Trainer that a run here may need."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "auto"
    """What computes; auto: a GPU where there is one."""
    devices: int | Literal["auto"] | tuple[int, ...] = "auto"
    """How many of them, or which; -1: all."""
    num_nodes: Positive = 1
    """How many machines train together."""
    strategy: str = "auto"
    """How several devices share the work: ddp."""
    precision: Precision | None = None
    """Null: bf16 where the machine is fast in it."""
    max_steps: Annotated[int, Range(-1, LARGEST)] = -1
    """How long the run is."""
    max_time: str | None = None
    """After which it stops, days:hours:minutes:seconds such as 00:12:00:00."""
    fast_dev_run: int | bool = False
    """Make so many steps, log nothing and save nothing, to see whether all runs."""
    limit_train_batches: Batches = None
    """How many batches an epoch of Lightning's has."""
    limit_val_batches: Batches = None
    """How many batches are validated on, or which share."""
    limit_test_batches: Batches = None
    """How many batches are tested on, or which share."""
    val_check_interval: Positive | None = None
    """Steps from validation to validation."""
    check_val_every_n_epoch: Positive | None = 1
    """Null: steps count, not epochs, of which there is one."""
    log_every_n_steps: Positive | None = None
    """Steps from figure to figure; null: 50."""
    accumulate_grad_batches: Positive = 1
    """Batches a step."""
    gradient_clip_val: Annotated[float, Range(0, LARGEST)] | None = None
    """The most that the gradient may be; null: there is no such bound."""
    gradient_clip_algorithm: Literal["norm", "value"] | None = None
    """Whether that bounds the norm of all gradients or each number; null: the norm."""
    deterministic: bool | Literal["warn"] | None = None
    """Whether a GPU uses only operations that give the same bits each time."""
    profiler: Literal["simple", "advanced", "pytorch"] | None = None
    """Measure what takes the time, and report it at the end."""
    enable_progress_bar: bool | None = None
    """Whether a bar shows the steps."""
    logger: bool | None = None
    """False: nothing is logged for TensorBoard."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = max(MOST_DEVICES, os.cpu_count() or 0)
        if isinstance(self.devices, int) and not (0 < self.devices <= most or self.devices == -1):
            raise ValueError(f"devices must be from 1 to {most} here, not {self.devices}")
        if self.max_time is not None and not re.fullmatch(r"\d+:\d\d:\d\d:\d\d", self.max_time):
            raise ValueError(f"max_time must be such as 00:12:00:00, not {self.max_time!r}")
        if any(word in self.strategy.lower() for word in SHARDING):
            raise ValueError(
                f"strategy {self.strategy} shards matrices, which Muon needs whole: ddp is the "
                f"strategy for several devices"
            )


@dataclass(frozen=True)
class RunOptions(Options):
    """All options of a run; config.yaml in its folder holds them."""

    run: str = "runs/music"
    """The folder of this run."""
    data: DataOptions = field(default_factory=DataOptions)
    """What is learned from."""
    model: ModelOptions = field(default_factory=ModelOptions)
    """What learns."""
    monitor: MonitorOptions = field(default_factory=MonitorOptions)
    """What is shown of it."""
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    """What is saved of it."""
    seed_everything: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Of all that is drawn at random but the windows (data.seed)."""
    ckpt_path: str | None = None
    """The checkpoint to go on from, or to judge: last, best, or a file."""
    trainer: TrainerOptions = field(default_factory=TrainerOptions)
    """What trains it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.run:
            raise ValueError("run needs the name of a folder")
        if self.run != self.run.encode(errors="replace").decode():
            raise ValueError(f"run {self.run}: TensorBoard needs a name in UTF-8")
