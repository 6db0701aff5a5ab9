"""models/: what ships is small, loads, and is what its card says."""

from pathlib import Path

import pytest

from benchmarks.ship import card_line
from generation.model import load

MODELS = Path(__file__).parents[1] / "models"
SHIPPED = sorted(MODELS.glob("*.safetensors"))
MOST_BYTES = {
    "bach": 6_000_000,
    "base": 20_000_000,
    "folk": 6_000_000,
    "performed": 20_000_000,
    "pop": 20_000_000,
    "songs": 20_000_000,
}


def test_a_model_ships():
    assert [path.stem for path in SHIPPED] == [*MOST_BYTES]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_model_is_small_and_loads(path):
    assert path.stat().st_size <= MOST_BYTES[path.stem]
    model = load(path)
    assert not Path(model.record.data["path"]).is_absolute()
    assert model.style.forms


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_card_has_the_figures_that_were_measured(path):
    card = (MODELS / "README.md").read_text(encoding="utf-8").splitlines()
    figures = load(path).record.figures
    assert figures.keys() == {"valid", "test"}
    lines = [line for line in card if line.startswith(f"| `{path.name}` |")]
    assert lines == [card_line(path.name, *item) for item in figures.items()]
