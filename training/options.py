"""The options of train.py. They need no torch or Lightning, so mistakes are reported at once."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from common.options import Count, Options, Positive, Range, Share
from data.batches.options import DataOptions
from model.config import DecoderOptions, Dropout

# Above 1, one step could move a weight by more than its own size.
Rate = Annotated[float, Range(1e-12, 1)]
Precision = Literal["bf16-mixed", "16-mixed", "32-true"]


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """How weights learn."""

    learning_rate: Rate = 0.006  # AdamW's highest rate: embeddings, heads and gains
    muon_learning_rate: Rate = 0.06  # Muon's highest rate: the matrices inside the blocks
    weight_decay: Share = 0.1  # each step shrinks weights by this times the rate, gains excepted
    warm_up: Share = 0.02  # share of the run, at its start, in which the rates rise from 0
    cool_down: Share = 0.7  # share of the run, at its end, in which the rates fall to 0


@dataclass(frozen=True)
class ModelOptions(OptimizerOptions, DecoderOptions):
    """The decoder, and how it learns."""

    dropout: Dropout = 0.1  # in training, share of numbers set to 0 after embedding and sub-layers
    teachers: tuple[str, ...] | None = None  # model files whose predictions the model learns
    begin_with: str | None = None  # a model of this shape to begin with; auto: what fits the data


@dataclass(frozen=True)
class MonitorOptions(Options):
    """What TensorBoard shows besides curves: music, pictures, statistics."""

    times: Count = 4  # how many times in a run, evenly spaced, the last at its end
    share: Share = 0.022  # share of the run's time that this may take; the rest comes later


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """When a run is saved."""

    minutes: Annotated[float, Range(0)] = 5.0  # the longest time from one save to the next


@dataclass(frozen=True)
class TrainerOptions(Options):
    """Options of Lightning's Trainer that a run may need."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "auto"  # auto: a GPU, if any
    precision: Precision | None = None  # null: bf16 if the machine is fast in it
    max_steps: Annotated[int, Range(-1)] = -1  # training steps in the run; -1: `minutes` decides
    val_check_interval: Positive | None = None  # steps between validations; null: a few in the run
    log_every_n_steps: Positive | None = None  # steps from one log entry to the next; null: 50
    gradient_clip_val: Annotated[float, Range(0)] | None = None  # largest gradient norm, if any
    enable_progress_bar: bool | None = None  # false: do not show one


@dataclass(frozen=True)
class RunOptions(Options):
    """All options of a run; config.yaml in its folder keeps them."""

    run: str = "runs/music"  # the folder of this run
    data: DataOptions = field(default_factory=DataOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    minutes: Annotated[float, Range(0.1)] | None = None  # how long it runs, unless max_steps is set
    monitor: MonitorOptions = field(default_factory=MonitorOptions)
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    seed_everything: Annotated[int, Range(0, 2**32 - 1)] = 0  # random seed of all but the windows
    ckpt_path: str | None = None  # checkpoint to resume from, or to judge: last, best, or a file
    trainer: TrainerOptions = field(default_factory=TrainerOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.run:
            raise ValueError("run needs the name of a folder")
        if self.run != self.run.encode(errors="replace").decode():
            raise ValueError(f"run {self.run}: TensorBoard needs a name in UTF-8")
