"""How fast a training step is, compared with GPT-2.

    python -m benchmarks.training
    python -m benchmarks.training --shapes pop --rounds 9      # the shape of configs/pop.yaml

A step is what train.py does: forward, loss, backward, clipping, Muon and AdamW. A step of GPT-2 is
the same with AdamW alone; the GPT-2 is written as in nanoGPT, and also taken from transformers if
that is installed. Weights and ids are random. Rounds take turns, so that other work on the machine
affects all alike. A ratio is the median over rounds; above 1, Etude is faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW, Optimizer

from benchmarks.gpt2 import CONTEXT, HEADS, LAYERS, PlainGPT2, of_transformers
from benchmarks.speed import vocabulary
from benchmarks.tables import head, in_turns, parser_of, row
from common.cli import positive_integer
from data.batches.datamodule import TrainingBatch
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Vocabulary
from model.config import DecoderConfig
from model.cpu import speed_up
from model.decoder import Decoder
from training.command import retain_freed_memory
from training.loss import cross_entropy
from training.optimizer import MuonAdamW

DROPOUT = 0.2
WARM_UP = 3  # rounds, during which steps still take memory from the system
COLUMNS_SET = 20  # roughly how many columns of the side input are set beside an id of a chorale
PRECISIONS = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Shape:
    """The shape of a decoder and of the batch."""

    width: int
    batch: int
    layers: int = LAYERS
    context: int = CONTEXT
    heads: int = HEADS
    pitches: int = 90  # with four programs, 512 ids

    @property
    def words(self) -> Vocabulary:
        """The vocabulary of this shape."""
        return vocabulary(self.pitches)

    def batches(self) -> TrainingBatch:
        """Random ids, with the next one as the target at every place."""
        ids = torch.randint(self.words.size, (self.batch, self.context + 1))
        features = SideFeatures(self.words)
        side = features.compute(ids[:, :-1].numpy() * 0).map(torch.from_numpy)
        bag = torch.randint(1, features.size, (self.batch, self.context, COLUMNS_SET)).int()
        side = side._replace(bag=bag)
        return {"ids": ids[:, :-1], "targets": ids[:, 1:], "side": side}


# Shapes by name, each with the number of steps in a round.
SHAPES = {
    "default": (Shape(width=128, batch=4), 8),
    "comparison": (Shape(width=256, batch=16), 2),
    "pop": (Shape(width=256, batch=4, layers=6, context=1024), 2),
}


class Step:
    """A training step; calling this object takes one.

    Args:
        model: maps ids to logits.
        optimizer: the optimizer of the model's weights.
        precision: bf16 under autocast, or fp32.
        shape: the shape of the batch.
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, precision: str, shape: Shape
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.dtype = PRECISIONS[precision]
        self.batch = shape.batches()
        self.tokens = self.batch["ids"].numel()

    def forward(self) -> Tensor:
        """Return the loss."""
        is_mixed = self.dtype != torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_mixed):
            if isinstance(self.model, Decoder):
                logits = self.model(self.batch["ids"], side=self.batch["side"])
                total = cross_entropy(logits, self.batch["targets"])
            else:
                given = self.model(self.batch["ids"])
                logits = getattr(given, "logits", given)  # transformers returns them in an object
                targets = self.batch["targets"].flatten()
                total = functional.cross_entropy(logits.flatten(0, 1), targets, reduction="sum")
        return total / self.tokens

    def __call__(self) -> None:
        """Take the step."""
        self.forward().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def ours(shape: Shape, dropout: float, precision: str) -> Step:
    """Return a step of Etude's decoder."""
    torch.manual_seed(0)
    config = DecoderConfig(
        shape.words.size,
        n_layer=shape.layers,
        n_embd=shape.width,
        n_head=shape.heads,
        context_length=shape.context,
        dropout=dropout,
        **SideFeatures(shape.words).shape,
    )
    decoder = Decoder(config).train()
    speed_up(decoder)
    optimizer = MuonAdamW(decoder, 1e-4, 1e-3, 0.1, PRECISIONS[precision])
    return Step(decoder, optimizer, precision, shape)


def gpt2(make: Callable[..., Any], shape: Shape, dropout: float, precision: str) -> Step:
    """Return a step of GPT-2, from benchmarks/gpt2.py or from transformers."""
    torch.manual_seed(0)
    model = make(shape.words.size, shape.width, dropout, shape.layers, shape.context)
    adamw = AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)
    return Step(model.train(), adamw, precision, shape)


MAKERS: dict[str, Callable[[Shape, float, str], Step]] = {
    "etude": ours,
    "GPT-2": partial(gpt2, PlainGPT2),
}
if find_spec("transformers"):
    MAKERS["by transformers"] = partial(gpt2, of_transformers)


def timed(step: Step, steps: int) -> float:
    """Return the mean seconds of a step, over so many steps."""
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps


def compare(shape: Shape, precision: str, dropout: float, rounds: int, steps: int) -> None:
    """Print a row for each model that is trained at a shape."""
    made = {name: make(shape, dropout, precision) for name, make in MAKERS.items()}
    runs = {name: partial(timed, step, steps) for name, step in made.items()}
    taken = in_turns(runs, rounds, WARM_UP)
    size = f"{shape.layers} layers, width {shape.width}, batch {shape.batch} x {shape.context}"
    head(f"{size}, {precision}, dropout {dropout}", "ms a step", "tokens/s", "ratio")
    for name, seconds in taken.items():
        middle = median(seconds)
        ratio = median(b / a for a, b in zip(taken["etude"], seconds, strict=True))
        row(name, f"{1e3 * middle:.1f}", f"{made[name].tokens / middle:.0f}", f"{ratio:.2f}")


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=positive_integer, default=5, help="of all (default: 5)")
    parser.add_argument(
        "--shapes", nargs="+", choices=SHAPES, default=["default", "comparison"], help="which"
    )
    options = parser.parse_args()
    retain_freed_memory()  # for all models alike
    if "by transformers" not in MAKERS:
        print("to compare with transformers' GPT-2, too: pip install transformers")
    for shape, steps in map(SHAPES.__getitem__, options.shapes):
        for precision, dropout in product(PRECISIONS, (0.0, DROPOUT)):
            compare(shape, precision, dropout, options.rounds, steps)


if __name__ == "__main__":
    main()
