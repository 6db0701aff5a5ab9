"""What each piece of model/cpu.py saves of a step of training.

    taskset -c 0 python -m benchmarks.pieces
    taskset -c 0 python -m benchmarks.pieces --rounds 60 --only dropout rotation

A decoder with everything and one without each piece take turns, on one thread, and seconds of the
processor are counted, which other work on the machine disturbs least. A ratio of 1.05 says that a
step without the piece takes 5% longer, by the least of all rounds or by the median of each round's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.training import DROPOUT, Shape, Step, ours
from common.cli import Parser, positive_integer
from model.cpu import PIECES

SHAPES = {
    "width 128, 2 heads, batch 4": Shape(width=128, batch=4, heads=2),
    "width 256, 4 heads, batch 16": Shape(width=256, batch=16),
}


def compare(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a call of each of `runs`, round by round; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        names = list(runs) if number % 2 else list(runs)[::-1]  # a drift hits all alike
        for name in names:
            began = time.process_time()
            runs[name]()
            seconds[name].append(time.process_time() - began)
    return {name: taken[1:] for name, taken in seconds.items()}  # the first warms up


def training_step(shape: Shape, without: tuple[str, ...]) -> Step:
    """Return a step of training in fp32, with dropout."""
    return ours(shape, DROPOUT, "fp32", without)


def main() -> None:
    """Print a table of ratios."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=positive_integer, default=20, help="of all (default: 20)")
    parser.add_argument("--only", nargs="*", choices=PIECES, help="pieces to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'step':38} {'without':12} {'least ms':>9} {'ratio':>6} {'median':>6}")
    for name, shape in SHAPES.items():
        chosen = arguments.only or sorted(PIECES)
        runs: dict[str, Callable[[], object]] = {"": training_step(shape, ())}
        runs |= {piece: training_step(shape, (piece,)) for piece in chosen}
        seconds = compare(runs, arguments.rounds)
        for piece, taken in seconds.items():
            least = min(taken) / min(seconds[""])
            middle = median(b / a for a, b in zip(seconds[""], taken, strict=True))
            milliseconds = f"{1e3 * min(taken):9.2f}"
            print(f"{name:38} {piece:12} {milliseconds} {least:6.3f} {middle:6.3f}", flush=True)


if __name__ == "__main__":
    main()
