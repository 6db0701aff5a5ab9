"""The options of train.py; without torch and Lightning, so that a mistake is told at once."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from common.options import Count, Options, Positive, Range, Share
from data.batches.options import DataOptions
from model.config import DecoderOptions, Dropout

# Above 1 a step would take a weight further than it is large.
Rate = Annotated[float, Range(1e-12, 1)]
Precision = Literal["bf16-mixed", "16-mixed", "32-true"]


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """How weights are learned."""

    learning_rate: Rate = 0.006  # the highest of AdamW (embedding, head and gains)
    muon_learning_rate: Rate = 0.06  # the highest of Muon (the matrices inside the blocks)
    weight_decay: Share = 0.1  # decoupled, times the rate; gains have none
    warm_up: Share = 0.02  # share of the run in which the rates rise from 0
    cool_down: Share = 0.7  # share of the run, at its end, in which the rates fall to 0


@dataclass(frozen=True)
class ModelOptions(OptimizerOptions, DecoderOptions):
    """The decoder, and how it learns."""

    dropout: Dropout = 0.1  # share of numbers zeroed, in training, after embedding and sub-layers
    teachers: tuple[str, ...] | None = None  # models whose expectations are learned
    begin_with: str | None = None  # a model of this shape; auto: base, where it serves the data


@dataclass(frozen=True)
class MonitorOptions(Options):
    """What TensorBoard shows beside figures: music, pictures, statistics."""

    times: Count = 4  # how many times a run, evenly spaced, the last at the end
    share: Share = 0.022  # of the run's time; what was too long is tried again later


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """When a run is saved."""

    minutes: Annotated[float, Range(0)] = 5.0  # at the latest so long after the time before


@dataclass(frozen=True)
class TrainerOptions(Options):
    """Those of Lightning's Trainer that a run here may need."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "auto"  # auto: a GPU if any
    precision: Precision | None = None  # null: bf16 where the machine is fast in it
    max_steps: Annotated[int, Range(-1)] = -1  # how long the run is
    val_check_interval: Positive | None = None  # steps from validation to validation
    log_every_n_steps: Positive | None = None  # null: 50
    gradient_clip_val: Annotated[float, Range(0)] | None = None  # null: gradients have no bound
    enable_progress_bar: bool | None = None  # false: there is none


@dataclass(frozen=True)
class RunOptions(Options):
    """All options of a run; config.yaml in its folder holds them."""

    run: str = "runs/music"  # the folder of this run
    data: DataOptions = field(default_factory=DataOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    minutes: Annotated[float, Range(0.1)] | None = None  # how long, if max_steps does not say
    monitor: MonitorOptions = field(default_factory=MonitorOptions)
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    seed_everything: Annotated[int, Range(0, 2**32 - 1)] = 0  # of all chance but that of windows
    ckpt_path: str | None = None  # the checkpoint to go on from, or to judge: last, best, or a file
    trainer: TrainerOptions = field(default_factory=TrainerOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.run:
            raise ValueError("run needs the name of a folder")
        if self.run != self.run.encode(errors="replace").decode():
            raise ValueError(f"run {self.run}: TensorBoard needs a name in UTF-8")
