"""What is taken where nothing is said, by the commands and by programs; no torch is needed."""

from pathlib import Path

from generation.length import Length
from model.config import SamplingOptions

# Of a model that was not fitted (see `Model.sampling`). At temperature 1 chorales stray from their
# keys; with a rhythm_temperature below 1 all their notes become quarters.
DEFAULT_SAMPLING = SamplingOptions(temperature=0.6, rhythm_temperature=1.0, top_p=0.95)
DEFAULT_LENGTH = Length(bars=8)
DEFAULT_SEED_BARS = 2

PROJECT = Path(__file__).parents[1]
_MODELS = ("models/bach.safetensors", "runs/bach*/model.safetensors")  # shipped, and trained here


def newest_model() -> Path:
    """Return the newest of the shipped model and those that `make music` trained.

    They are found wherever Python is started; from the project's folder the path is relative.

    Raises:
        FileNotFoundError: there is none.
    """
    found = [path for pattern in _MODELS for path in PROJECT.glob(pattern)]
    if not found:
        raise FileNotFoundError(f"no model in {PROJECT}: train one with `make music`, or name one")
    newest = max(found, key=lambda path: path.stat().st_mtime)
    return newest.relative_to(PROJECT) if Path.cwd() == PROJECT else newest


def model_path(name: str | Path) -> Path:
    """Return the path of a model: `name` itself, of a file that is there.

    Of a run's folder it is the model in it; else it may be the name of one that ships: `bach`.
    """
    path = Path(name).expanduser()
    shipped = PROJECT / "models" / f"{name}.safetensors"
    if not path.exists():
        return shipped if shipped.is_file() else path
    of_run = path / "model.safetensors"
    return of_run if of_run.is_file() else path
