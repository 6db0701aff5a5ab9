"""What is taken where nothing is said, by the commands and by programs; no torch is needed."""

import argparse
import math
import os
from pathlib import Path

from safetensors import SafetensorError, safe_open

from common.typed_json import from_json
from generation.length import Length
from model.config import SamplingOptions
from model.record import TrainingRecord

# Of a model that was not fitted (see `Model.sampling`). At temperature 1 chorales stray from their
# keys; with a rhythm_temperature of 0.75 nearly all their notes become quarters.
DEFAULT_SAMPLING = SamplingOptions(temperature=0.6, rhythm_temperature=1.0, top_p=0.95)
DEFAULT_LENGTH = Length(bars=8)
DEFAULT_SEED_BARS = 2

PROJECT = Path(__file__).parents[1]
_MODELS = ("models/bach.safetensors", "runs/bach*/model.safetensors")  # shipped, and trained here


def default_model() -> tuple[Path, str]:
    """Return the best of the shipped model and those that `make music` trained, and why it is.

    It has the fewest nats per note on the validation chorales, as their files say; of those that
    do not say so it is the newest. They are found wherever Python is started; from the project's
    folder the path is relative.

    Raises:
        FileNotFoundError: there is none.
    """
    found = [path for pattern in _MODELS for path in PROJECT.glob(pattern)]
    if not found:
        raise FileNotFoundError(f"no model in {PROJECT}: train one with `make music`, or name one")
    nats = {path: _validation_nats(path) for path in found}
    best, *others = sorted(found, key=lambda path: (nats[path], -path.stat().st_mtime))
    path = best.relative_to(PROJECT) if Path.cwd() == PROJECT else best
    if not others or nats[best] == math.inf:
        return path, f"model: {path}"
    other = others[0].relative_to(PROJECT)
    its = "does not say" if nats[others[0]] == math.inf else f"has {nats[others[0]]:.3f}"
    why = f"{nats[best]:.3f} nats a note on held-out chorales; {other} {its}"
    return path, f"model: {path} ({why})"


def _validation_nats(path: Path) -> float:
    """Return a model's nats per note on the validation chorales; infinity: its file has no such."""
    try:
        with safe_open(path, framework="np") as file:
            record = from_json(TrainingRecord, (file.metadata() or {})["training"])
    except (OSError, SafetensorError, ValueError, KeyError):
        return math.inf  # whoever loads it says what is wrong
    nats = record.valid_nats_per_note
    return math.inf if nats is None or record.data.get("path") != "bach" else nats


def model_path(name: str | Path) -> Path:
    """Return the path of a model: `name` itself, of a file that is there.

    Of a run's folder it is the model in it; else it may be the name of one that ships: `bach`.
    """
    path = Path(os.path.expanduser(name))  # noqa: PTH111  # a Path would raise for ~nobody
    shipped = PROJECT / "models" / f"{name}.safetensors"
    found = (path / "model.safetensors", path, shipped)
    return next((each for each in found if os.path.isfile(each)), path)  # noqa: PTH113  # likewise


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a model to a command's."""
    parser.add_argument(
        *("--checkpoint", "-c"),
        metavar="FILE",
        type=model_path,
        help="the model.safetensors of a training run, or the name of one in models/\n"
        "(default: models/bach.safetensors, or one in runs/bach that is better on\n"
        "the same held-out pieces)",
    )
