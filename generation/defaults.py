"""The defaults of the commands and of programs; this module does not import torch."""

import argparse
import math
import os
from pathlib import Path

from safetensors import SafetensorError, safe_open

from common.typed_json import from_json
from generation.length import Length
from model.config import SamplingOptions
from model.record import TrainingRecord

# For a model whose file has no fitted options (see `Model.sampling`). At temperature 1, chorales
# stray from their keys; with a rhythm_temperature of 0.75, nearly all notes become quarters.
DEFAULT_SAMPLING = SamplingOptions(temperature=0.6, rhythm_temperature=1.0, top_p=0.95)
DEFAULT_LENGTH = Length(bars=8)
DEFAULT_SEED_BARS = 2

PROJECT = Path(__file__).parents[1]
_MODELS = ("models/bach.safetensors", "runs/bach*/model.safetensors")  # shipped, and trained here


def default_model() -> tuple[Path, str]:
    """Return the best of the shipped model and those that `make music` trained, and a line on why.

    The best has the fewest nats per note on the validation chorales, according to its file. If no
    file says that, the newest model is the best. Models are found from any working folder; from the
    project's folder, the path is relative.

    Raises:
        FileNotFoundError: there is no model.
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
    """Return a model's nats per note on the validation chorales; infinity if its file has none."""
    try:
        with safe_open(path, framework="np") as file:
            record = from_json(TrainingRecord, (file.metadata() or {})["training"])
    except (OSError, SafetensorError, ValueError, KeyError):
        return math.inf  # loading the model will report what is wrong
    nats = record.valid_nats_per_note
    return math.inf if nats is None or record.data.get("path") != "bach" else nats


def model_path(name: str | Path) -> Path:
    """Return the path of a model.

    Args:
        name: the path of a model file, the folder of a run, or the name of a shipped model, such as
            `bach`. If none of these exists, it is returned as a path.
    """
    path = Path(os.path.expanduser(name))  # noqa: PTH111  # a Path would raise for ~nobody
    shipped = PROJECT / "models" / f"{name}.safetensors"
    found = (path / "model.safetensors", path, shipped)
    return next((each for each in found if os.path.isfile(each)), path)  # noqa: PTH113  # likewise


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a model to the options of a command."""
    parser.add_argument(
        *("--checkpoint", "-c"),
        metavar="FILE",
        type=model_path,
        help="the model.safetensors of a training run, or the name of one in models/\n"
        "(default: models/bach.safetensors, or one in runs/bach that is better on\n"
        "the same held-out pieces)",
    )
