"""How long a command takes from its start to its end: help, a mistake, eight bars on the disk.

    python -m benchmarks.start
    taskset -c 0,1 python -m benchmarks.start --rounds 9

Each command is a process of its own, with the model that ships. Beside the seconds on the clock
stand those of the processor, which other work on the machine disturbs less.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from common.cli import Parser, positive_integer

ROOT = Path(__file__).parents[1]
MODEL = ["--checkpoint", str(ROOT / "models" / "bach.safetensors")]
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "generate.py --help": ["generate.py", "--help"],
    "generate.py --seed-notes H": ["generate.py", "--seed-notes", "H"],
    "generate.py, 8 bars": ["generate.py", *MODEL, "--out", "piece"],
    "evaluate.py --help": ["evaluate.py", "--help"],
    "train.py fit --help": ["train.py", "fit", "--help"],
    "train.py --model.n_layers 4": ["train.py", "--model.n_layers", "4"],
}


def seconds(words: list[str], folder: str) -> tuple[float, float]:
    """Run Python with these words; return seconds on the clock and of the processor."""
    command = [sys.executable, *(str(ROOT / w) if w.endswith(".py") else w for w in words)]
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    taken, after = time.perf_counter() - began, os.times()
    busy = after.children_user + after.children_system
    return taken, busy - before.children_user - before.children_system


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=positive_integer, default=5, help="(default: 5)")
    rounds = parser.parse_args().rounds
    print(f"{'seconds':28} {'least':>6} {'median':>7} {'processor, least':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for name, words in COMMANDS.items():
            clock, processor = zip(*(seconds(words, folder) for _ in range(rounds)), strict=True)
            print(
                f"{name:28} {min(clock):6.2f} {median(clock):7.2f} {min(processor):17.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
