"""How long a command takes from start to end: its help, a wrong option, eight bars on disk.

    python -m benchmarks.start
    taskset -c 0,1 python -m benchmarks.start --rounds 9

Each command runs in its own process, with the shipped model. Both wall-clock seconds and processor
seconds are printed; other work on the machine disturbs the latter less.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.tables import head, in_turns, parser_of, row
from common.cli import positive_integer

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
    """Run Python with these arguments; return wall-clock seconds and processor seconds."""
    command = [sys.executable, *(str(ROOT / w) if w.endswith(".py") else w for w in words)]
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    taken, after = time.perf_counter() - began, os.times()
    busy = after.children_user + after.children_system
    return taken, busy - before.children_user - before.children_system


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=positive_integer, default=5, help="(default: 5)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: partial(seconds, words, folder) for name, words in COMMANDS.items()}
        taken = in_turns(runs, rounds, warm_up=0)
    head("seconds", "least", "median", "processor, least")
    for name, each in taken.items():
        clock, processor = zip(*each, strict=True)
        row(name, *(f"{figure:.2f}" for figure in (min(clock), median(clock), min(processor))))


if __name__ == "__main__":
    main()
