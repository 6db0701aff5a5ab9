"""How fast a step of training is, beside GPT-2's, and where its time goes.

    python -m benchmarks.training
    python -m benchmarks.training --rounds 9
    python -m benchmarks.training --shapes pop      # that of configs/pop.yaml

A step is what train.py does: forward, loss, backward, clipping, Muon and AdamW; GPT-2's is the
same with AdamW alone, written down as in nanoGPT and, where it is installed, by transformers.
Weights and ids are random. Rounds take turns, so that what else the machine does hits all alike,
the peak of its matrix products included; figures are medians of rounds.
"""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product, repeat
from pathlib import Path
from statistics import median
from typing import Any

import torch
from lightning.pytorch import Callback, LightningDataModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW, Optimizer
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpt2 import CONTEXT, LAYERS, PlainGPT2, of_transformers
from benchmarks.speed import vocabulary
from common.cli import Parser, positive_integer
from data.batches.datamodule import TrainingBatch
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Vocabulary
from model.config import DecoderConfig
from model.cpu import speed_up
from model.decoder import Decoder
from training.command import StepProgress, retain_freed_memory
from training.loss import cross_entropy
from training.module import MusicModule
from training.optimizer import MuonAdamW
from training.options import ModelOptions
from training.tensorboard import RunLogger

PRODUCT = 2048  # rows and columns of the matrices whose product is the machine's peak
DROPOUT = 0.2
WARM_UP = 3  # rounds: until then steps still take memory from the system
COLUMNS_SET = 20  # of the side input beside an id of a chorale, about
PRECISIONS = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Shape:
    """Of a decoder and of the batch."""

    width: int
    batch: int
    layers: int = LAYERS
    context: int = CONTEXT
    heads: int = 4
    pitches: int = 90  # of four programs: 512 ids

    @property
    def words(self) -> Vocabulary:
        """Its vocabulary."""
        return vocabulary(self.pitches)

    def batches(self) -> TrainingBatch:
        """Random ids, the next one wanted in every place."""
        ids = torch.randint(self.words.size, (self.batch, self.context + 1))
        features = SideFeatures(self.words)
        side = features.compute(ids[:, :-1].numpy() * 0).map(torch.from_numpy)
        bag = torch.randint(1, features.size, (self.batch, self.context, COLUMNS_SET)).int()
        side = side._replace(bag=bag)
        return {"ids": ids[:, :-1], "targets": ids[:, 1:], "side": side}


DEFAULT = Shape(width=128, batch=4)
# Shapes by name, and the steps of a round.
SHAPES = {
    "default": (DEFAULT, 8),
    "comparison": (Shape(width=256, batch=16), 2),
    "pop": (Shape(width=256, batch=4, layers=6, context=1024), 2),
}


class Step:
    """A training step.

    Args:
        model: ids to logits.
        optimizer: of its weights.
        precision: bf16 under autocast, or fp32.
        shape: of the batch.
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, precision: str, shape: Shape
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.dtype = PRECISIONS[precision]
        self.batch = shape.batches()
        self.tokens = self.batch["ids"].numel()
        self.seconds: Counter[str] = Counter()  # by part

    def forward(self) -> Tensor:
        """Return the loss."""
        is_mixed = self.dtype != torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_mixed):
            if isinstance(self.model, Decoder):
                logits = self.model(self.batch["ids"], side=self.batch["side"])
                total = cross_entropy(logits, self.batch["targets"])
            else:
                given = self.model(self.batch["ids"])
                logits = getattr(given, "logits", given)  # transformers' are one part of it
                targets = self.batch["targets"].flatten()
                total = functional.cross_entropy(logits.flatten(0, 1), targets, reduction="sum")
        return total / self.tokens

    def __call__(self) -> None:
        """Take it, and count the seconds of its parts."""
        clock = [time.perf_counter()]
        loss = self.forward()
        clock.append(time.perf_counter())
        loss.backward()
        clock.append(time.perf_counter())
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        clock.append(time.perf_counter())
        self.optimizer.step()
        self.optimizer.zero_grad()
        clock.append(time.perf_counter())
        for part, begin, end in zip(PARTS, clock[:-1], clock[1:], strict=True):
            self.seconds[part] += end - begin


PARTS = ("forward", "backward", "clipping", "optimizer")


def ours(shape: Shape, dropout: float, precision: str, without: Collection[str] = ()) -> Step:
    """Return a step of this project's decoder, `without` pieces of model/cpu.py."""
    return _ours(shape, dropout, precision, SideFeatures(shape.words).shape, without)


def ids_alone(shape: Shape, dropout: float, precision: str) -> Step:
    """Return the same without side input and logits by distance: what GPT-2 does, too."""
    step = _ours(shape, dropout, precision, {})
    step.batch["side"] = None
    return step


def _ours(
    shape: Shape,
    dropout: float,
    precision: str,
    side_shape: dict[str, Any],
    without: Collection[str] = (),
) -> Step:
    torch.manual_seed(0)
    config = DecoderConfig(
        shape.words.size,
        n_layer=shape.layers,
        n_embd=shape.width,
        n_head=shape.heads,
        context_length=shape.context,
        dropout=dropout,
        **side_shape,
    )
    decoder = Decoder(config).train()
    speed_up(decoder, without)
    optimizer = MuonAdamW(decoder, 1e-4, 1e-3, 0.1, PRECISIONS[precision])
    return Step(decoder, optimizer, precision, shape)


def plain(shape: Shape, dropout: float, precision: str) -> Step:
    """Return a step of GPT-2 as nanoGPT has it."""
    return _of_gpt2(PlainGPT2, shape, dropout, precision)


def by_transformers(shape: Shape, dropout: float, precision: str) -> Step:
    """Return a step of GPT-2 in transformers."""
    return _of_gpt2(of_transformers, shape, dropout, precision)


def _of_gpt2(make: Callable[..., Any], shape: Shape, dropout: float, precision: str) -> Step:
    torch.manual_seed(0)
    model = make(shape.words.size, shape.width, dropout, shape.layers, shape.context)
    adamw = AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)
    return Step(model.train(), adamw, precision, shape)


def multiply(dtype: torch.dtype) -> float:
    """Seconds of one product of two square matrices."""
    one, other = torch.randn(2, PRODUCT, PRODUCT).to(dtype)
    began = time.perf_counter()
    _ = one @ other
    return time.perf_counter() - began


def flops(model: nn.Module, shape: Shape) -> float:
    """Of a step, as nanoGPT counts them: 6 a weight in products and 12 L D T of attention a token.

    (Chowdhery et al. 2022, PaLM, appendix B; causality is not taken off.)
    """
    weights = sum(w.numel() for w in model.parameters() if w.ndim == 2)
    looked_up = {id(m.weight): m.weight.numel() for m in model.modules() if type(m) is nn.Embedding}
    tied = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    weights -= sum(count for which, count in looked_up.items() if which not in tied)
    attention = 12 * shape.layers * shape.width * shape.context
    return (6 * weights + attention) * shape.batch * shape.context


class _Same(LightningDataModule):
    """The same batch again and again."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.vocabulary, self.side_shape = shape.words, SideFeatures(shape.words).shape
        self.batch, self.batch_size = shape.batches(), shape.batch

    def train_dataloader(self) -> Iterator[TrainingBatch]:
        """Endless."""
        return _Again(self.batch)  # type: ignore[return-value]


class _Again:
    def __init__(self, batch: TrainingBatch) -> None:
        self.batch = batch

    def __iter__(self) -> Iterator[TrainingBatch]:
        return repeat(self.batch)


class _Clock(Callback):
    """Notes the time at the end of each step."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *_: object) -> None:
        self.ends.append(time.perf_counter())


def through_lightning(shape: Shape, dropout: float, steps: int) -> float:
    """Seconds a step, the same through train.py's trainer: logs, bar and schedule."""
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            accelerator="cpu",
            precision="bf16-mixed",
            max_steps=steps + 2,
            gradient_clip_val=1.0,
            log_every_n_steps=20,
            logger=RunLogger(Path(folder)),
            callbacks=[
                StepProgress(refresh_rate=10),
                ModelCheckpoint(save_last=False, save_top_k=0),
                clock,
            ],
            enable_model_summary=False,
        )
        trainer.fit(
            MusicModule(ModelOptions(n_embd=shape.width, dropout=dropout)), datamodule=_Same(shape)
        )
    return (clock.ends[-1] - clock.ends[1]) / steps


# By the start of an operation's name; the first that fits counts.
KINDS = {
    "products with weights": ("aten::mm", "aten::addmm", "aten::mkldnn_linear", "mkldnn::"),
    "attention's products": ("aten::bmm", "aten::baddbmm"),
    "attention's softmax": ("aten::_softmax",),
    "norms": ("aten::_fused_rms_norm", "aten::rms_norm", "aten::native_layer_norm"),
    "dropout's numbers": ("aten::bernoulli", "aten::native_dropout", "aten::random"),
    "loss": ("aten::_log_softmax", "aten::nll_loss"),
    "embedding": ("aten::embedding", "aten::index", "aten::_index_put"),
    "copies and casts": ("aten::copy_", "aten::_to_copy", "aten::cat", "aten::clone"),
}


def operations(step: Step, repeats: int) -> list[tuple[str, float]]:
    """(kind of operation, share of forward's and backward's time), by torch's profiler."""
    for _ in range(5):  # until what the profiler keeps has found its place beside a step's memory
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for _ in range(repeats):
                step.forward().backward()
    total: Counter[str] = Counter()
    for event in found.key_averages():
        kind = next((k for k, names in KINDS.items() if event.key.startswith(names)), "the rest")
        total[kind] += event.self_cpu_time_total
    whole = sum(total.values())
    return [(kind, share / whole) for kind, share in total.most_common()]


MAKERS = {"etude": ours, "etude, ids alone": ids_alone, "GPT-2": plain}
if find_spec("transformers"):
    MAKERS["by transformers"] = by_transformers


def compare(shape: Shape, precision: str, dropout: float, rounds: int, steps: int) -> None:
    """Print a line for each that trains at a shape, and where our time goes."""
    runs = {name: make(shape, dropout, precision) for name, make in MAKERS.items()}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    of_product = []
    for _ in range(WARM_UP + rounds):
        of_product.append(min(multiply(PRECISIONS[precision]) for _ in range(5)))
        for name, step in runs.items():
            step.seconds.clear()
            for _ in range(steps):
                step()
            taken[name].append(sum(step.seconds.values()) / steps)
    taken = {name: seconds[WARM_UP:] for name, seconds in taken.items()}
    peak = 2 * PRODUCT**3 / median(of_product[WARM_UP:])
    print(
        f"\n{shape.layers} layers, width {shape.width}, batch {shape.batch} x {shape.context}, "
        f"vocabulary {shape.words.size}, "
        f"{precision}, dropout {dropout}; a product of {PRODUCT}: {peak / 1e9:.0f} GFLOP/s"
    )
    print(f"{'':16} {'ms a step':>9} {'tokens/s':>8} {'of the peak':>11}  to each GPT-2")
    for name, step in runs.items():
        seconds = median(taken[name])
        ratios = [
            median(b / a for a, b in zip(taken[name], taken[other], strict=True))
            for other in runs
            if not other.startswith("etude")
        ]
        print(
            f"{name:16} {1e3 * seconds:9.1f} {step.tokens / seconds:8.0f} "
            f"{flops(step.model, shape) / seconds / peak:11.0%}  "
            + " ".join(f"{ratio:.2f}" for ratio in ratios)
        )
    print("where the time of the first goes:")
    step = runs["etude"]
    for part in PARTS:
        share = step.seconds[part] / sum(step.seconds.values())
        print(f"  {part:24} {1e3 * step.seconds[part] / steps:7.2f} ms {share:5.0%}")
    print("  of forward and backward:")
    for kind, share in operations(step, steps):
        print(f"  {kind:24} {'':10} {share:5.0%}")


def lightning(shape: Shape, dropout: float, rounds: int, steps: int) -> None:
    """Print what Lightning adds to a step."""
    bare, whole = [], []
    for _ in range(rounds):
        step = ours(shape, dropout, "bf16")
        for _ in range(2):
            step()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        bare.append((time.perf_counter() - began) / steps)
        whole.append(through_lightning(shape, dropout, steps))
    extra = median(b - a for a, b in zip(bare, whole, strict=True))
    print(
        f"\nThrough Lightning, width {shape.width}, dropout {dropout}: "
        f"{1e3 * median(whole):.1f} ms a step, "
        f"{shape.batch * shape.context / median(whole):.0f} tokens/s, "
        f"of which Lightning's {1e3 * extra:.1f} ms"
    )


def main() -> None:
    """Run the command."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=positive_integer, default=5, help="of all (default: 5)")
    parser.add_argument(
        "--shapes", nargs="+", choices=SHAPES, default=["default", "comparison"], help="which"
    )
    arguments = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    retain_freed_memory()  # for all alike
    if "by transformers" not in MAKERS:
        print("to compare with transformers' GPT-2, too: pip install transformers")
    for shape, steps in map(SHAPES.__getitem__, arguments.shapes):
        for precision, dropout in product(PRECISIONS, (0.0, DROPOUT)):
            compare(shape, precision, dropout, arguments.rounds, steps)
    if "default" in arguments.shapes:
        lightning(DEFAULT, DROPOUT, arguments.rounds, steps=30)


if __name__ == "__main__":
    main()
