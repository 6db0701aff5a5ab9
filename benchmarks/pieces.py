"""What each piece of model/cpu.py saves of a step of training, and of a step of sampling.

    taskset -c 0 python -m benchmarks.pieces
    taskset -c 0 python -m benchmarks.pieces --rounds 60 --only dropout columns

For each piece a decoder with everything and one without that piece take turns, on one thread, and
seconds of the processor are counted, which other work on the machine disturbs least. Of all rounds
the least and the median count. A ratio of 1.05 says that a step without the piece takes 5% longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import torch

from benchmarks.speed import random_decoder, vocabulary
from benchmarks.training import DROPOUT, Shape, Step, ours
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind
from generate import Parser, at_least_one
from model.cpu import LAYER_PIECES, STEP_PIECES, speed_up
from model.decoding import Step as DecodeStep
from model.decoding import decode_one, prefill

TRAINING = {
    "width 128, 2 heads, batch 4": Shape(width=128, batch=4, heads=2),
    "width 256, 4 heads, batch 16": Shape(width=256, batch=16),
}
SAMPLING = {
    "width 128, batch 1": (128, 1),
    "width 128, batch 8": (128, 8),
    "width 256, batch 1": (256, 1),
    "width 256, batch 8": (256, 8),
}
LENGTH = 256  # tokens before a step of sampling: half a context


def ratios(
    one: Callable[[], object], other: Callable[[], object], rounds: int, each: int
) -> tuple[float, float, float]:
    """Return the least milliseconds of `one`, and two ratios of `other` to `one`: least, median."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(2 * (rounds + 1)):
        which = (number + number // 2) % 2  # A B B A: a drift of the machine hits both alike
        began = time.process_time()
        for _ in range(each):
            (one, other)[which]()
        seconds[which].append((time.process_time() - began) / each)
    first, second = (taken[1:] for taken in seconds)  # the first warms up
    paired = median(b / a for a, b in zip(first, second, strict=True))
    return 1e3 * min(first), min(second) / min(first), paired


def training_step(shape: Shape, without: tuple[str, ...]) -> Step:
    """Return a step of training in fp32, with dropout."""
    return ours(shape, DROPOUT, "fp32", without)


def sampling_step(width: int, batch: int, without: tuple[str, ...]) -> Callable[[], object]:
    """Return a step of sampling behind `LENGTH` tokens, grammar and choice left out."""
    words = vocabulary(pitches=90)
    decoder = random_decoder(words, width)
    recorded = speed_up(decoder, without)
    step: DecodeStep = partial(decode_one, decoder) if "recording" in without else recorded
    ids = np.full((batch, LENGTH), words.first(Kind.START))
    features = SideFeatures(words)
    _, cache = prefill(decoder, list(ids), features.compute(ids))
    side = features.compute(ids[:, :1])

    def take() -> None:
        cache.length = LENGTH
        step(ids[:, 0], cache, side)

    return take


def main() -> None:
    """Print a table of ratios."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=at_least_one, default=20, help="of both (default: 20)")
    parser.add_argument("--only", nargs="*", help="pieces to measure (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'without':12} {'step':38} {'ms with all':>11} {'least':>6} {'median':>6}")
    for piece in arguments.only or (*LAYER_PIECES, *STEP_PIECES):
        runs = {}
        if piece in LAYER_PIECES:
            for name, shape in TRAINING.items():
                runs[f"training, {name}"] = (partial(training_step, shape), 1)
        for name, (width, batch) in SAMPLING.items():
            runs[f"sampling, {name}"] = (partial(sampling_step, width, batch), 30)
        for name, (make, each) in runs.items():
            torch.manual_seed(0)
            taken = ratios(make(()), make((piece,)), arguments.rounds, each)
            print(
                f"{piece:12} {name:32} {taken[0]:11.2f} {taken[1]:6.3f} {taken[2]:6.3f}", flush=True
            )


if __name__ == "__main__":
    main()
