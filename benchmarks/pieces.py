"""What each piece of model/cpu.py saves of a step of training, and of a step of sampling.

    taskset -c 0 python -m benchmarks.pieces
    taskset -c 0 python -m benchmarks.pieces --rounds 60 --only dropout rotation

A decoder with everything and one without each piece take turns, on one thread, and seconds of the
processor are counted, which other work on the machine disturbs least. A ratio of 1.05 says that a
step without the piece takes 5% longer, by the least of all rounds or by the median of each round's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from statistics import median

import numpy as np
import torch

from benchmarks.speed import random_decoder, vocabulary
from benchmarks.training import DROPOUT, Shape, Step, ours
from common.cli import Parser, positive_integer
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind
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
TRAINING_ONLY = {"dropout", "activation"}
LENGTH = 256  # tokens before a step of sampling: half a context


def compare(
    runs: dict[str, Callable[[], object]], rounds: int, each: int
) -> dict[str, list[float]]:
    """Return the seconds of a call of each of `runs`, round by round; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        names = list(runs) if number % 2 else list(runs)[::-1]  # a drift hits all alike
        for name in names:
            began = time.process_time()
            for _ in range(each):
                runs[name]()
            seconds[name].append((time.process_time() - began) / each)
    return {name: taken[1:] for name, taken in seconds.items()}  # the first warms up


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
    parser.add_argument("--rounds", type=positive_integer, default=20, help="of all (default: 20)")
    parser.add_argument("--only", nargs="*", help="pieces to measure (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    makers: dict[str, tuple[Callable[..., Callable[[], object]], Collection[str], int]] = {}
    for name, (width, batch) in SAMPLING.items():
        pieces = {*LAYER_PIECES, *STEP_PIECES} - TRAINING_ONLY
        makers[f"sampling, {name}"] = (partial(sampling_step, width, batch), pieces, 30)
    for name, shape in TRAINING.items():
        makers[f"training, {name}"] = (partial(training_step, shape), LAYER_PIECES, 1)
    print(f"{'step':38} {'without':12} {'least ms':>9} {'ratio':>6} {'median':>6}")
    for name, (make, pieces, each) in makers.items():
        chosen = [piece for piece in arguments.only or sorted(pieces) if piece in pieces]
        if not chosen:
            continue
        runs = {"": make(()), **{piece: make((piece,)) for piece in chosen}}
        seconds = compare(runs, arguments.rounds, each)
        for piece, taken in seconds.items():
            least = min(taken) / min(seconds[""])
            middle = median(b / a for a, b in zip(seconds[""], taken, strict=True))
            milliseconds = f"{1e3 * min(taken):9.2f}"
            print(f"{name:38} {piece:12} {milliseconds} {least:6.3f} {middle:6.3f}", flush=True)


if __name__ == "__main__":
    main()
