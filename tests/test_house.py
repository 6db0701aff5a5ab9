"""The rules of the house: who may import whom, and how long a file may be."""

import ast
from pathlib import Path

import pytest

import data.tokens.vocabulary
import model.sampling

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("*.py"), *ROOT.glob("data/*.py"), *ROOT.glob("model/*.py")]
LIGHTNING = {
    *("data/batches/datamodule.py", "training/module.py"),
    *(
        "training/checkpoints.py",
        "training/distributed.py",
        "training/callbacks.py",
        "train.py",
    ),
}
MATPLOTLIB = {
    "rendering/piano_roll.py",
    "rendering/attention_map.py",
    "rendering/png.py",
    "evaluation/charts.py",
}
# Top-level files import each other only along this line.
MAY_IMPORT = {
    "train": {"checkpoints", "devices", "monitor", "sharding"},
    "checkpoints": set(),
    "monitor": {"board", "compose", "showing"},
    "board": set(),
    "showing": {"compose", "measure"},
    "evaluate": {"compose", "generate", "judge", "measure", "overall", "report"},
    "judge": {"compose"},
    "measure": {"compose"},
    "overall": {"compose", "judge", "measure"},
    "report": {"overall", "page"},
    "page": set(),
    "generate": {"compose"},
    "compose": set(),
    "devices": set(),
    "sharding": set(),
}


def imports(path):
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports by relative name"
            modules.add(node.module)
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_keeps_the_rules_of_the_house(path):
    name = path.relative_to(ROOT).as_posix()
    packages = {module.split(".")[0] for module in imports(path)}
    if name.startswith("data/"):
        assert not packages & {"model", *MAY_IMPORT}
    elif name.startswith("model/"):
        assert not packages & {"data", *MAY_IMPORT}
    else:
        assert packages & set(MAY_IMPORT) <= MAY_IMPORT[path.stem]
    assert ("lightning" in packages) <= (name in LIGHTNING)
    assert ("matplotlib" in packages) <= (name in MATPLOTLIB)
    assert not packages & {"pickle", "marshal", "shelve", "dill", "joblib"}
    assert len(path.read_text().splitlines()) <= 400


def test_both_sides_of_the_wall_mean_the_same():
    assert data.tokens.vocabulary.Kind.PAD == model.sampling.PAD


def test_the_readme_names_every_file():
    text = (ROOT / "README.md").read_text()
    missing = [path.name for path in FILES if path.name != "__init__.py" and path.name not in text]
    assert not missing
