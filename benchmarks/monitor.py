"""What TensorBoard costs, and validation: their shares of the time of a training.

    python -m benchmarks.monitor
    python -m benchmarks.monitor --config configs/folder.yaml --folder POP909 --steps 400

Trains in a temporary folder and times, within that one run, what a run without TensorBoard would
not do: MusicMonitor at the beginning and at its four points, and what is logged of a step beside
its loss.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loops import _EvaluationLoop

import train
from common.cli import Parser, positive_integer
from training import tensorboard
from training.module import MusicModule
from training.tensorboard import MusicMonitor

CONFIG = Path(train.__file__).parent / "configs" / "bach.yaml"
# The hooks that only TensorBoard needs, and whose they are.
AT_POINTS = ((MusicMonitor, "on_train_start"), (MusicMonitor, "on_train_batch_end"))
AT_STEPS = (
    (MusicModule, "_log_hits"),
    (MusicModule, "on_before_optimizer_step"),
    (MusicModule, "on_train_batch_end"),
)


def timed(owner: Any, name: str, seconds: Counter[str], label: str) -> None:
    """Make a function of that name add up how long it takes."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds[label] += time.perf_counter() - began

    setattr(owner, name, wrapper)


def main() -> None:
    """Run the command."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default=str(CONFIG), help="of train.py")
    parser.add_argument("--folder", help="of MIDI files (default: as the config says)")
    parser.add_argument("--steps", type=positive_integer, help="(default: as the config says)")
    given = parser.parse_args()
    asked = {"--data.path": given.folder, "--trainer.max_steps": given.steps}
    words = [word for name, value in asked.items() if value for word in (name, str(value))]
    views: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for what, show in tensorboard.LOGGED.items():
        holder = SimpleNamespace(show=show)
        timed(holder, "show", views, what)
        tensorboard.LOGGED[what] = holder.show
    for label, hooks in (("points", AT_POINTS), ("steps", AT_STEPS)):
        for owner, name in hooks:
            timed(owner, name, seconds, label)
    timed(Trainer, "fit", seconds, "run")
    timed(_EvaluationLoop, "run", seconds, "validation")
    with tempfile.TemporaryDirectory() as folder:
        train.main(["fit", "--config", given.config, *words, "--run", f"{folder}/run"])

    whole, logged = seconds["run"], seconds["steps"]
    print(f"\n{'':40}{'seconds':>9}{'of the run':>12}")
    rows = {**views, "all at the points": seconds["points"], "figures of logged steps": logged}
    for what, taken in {
        **rows,
        "all of TensorBoard": seconds["points"] + logged,
        "validation": seconds["validation"],
        "the run": whole,
    }.items():
        print(f"{what:40}{taken:9.2f}{taken / whole:12.2%}")


if __name__ == "__main__":
    main()
