"""A folder of models that know nothing, and what asks them."""

from pathlib import Path

import pytest

from tests.models import PIANIST, QUARTET, untrained
from web.models import Models
from web.tasks import TASKS

SETTINGS = {"bars": 2, "temperature": 0.75}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a shipped model and one of a run."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("models", "runs/piano"):
        (folder / name).mkdir(parents=True)
    untrained(folder / "models/quartet.safetensors", QUARTET)
    untrained(folder / "runs/piano/model.safetensors", PIANIST)
    return folder


@pytest.fixture
def models(folder):
    """The models of that folder."""
    return Models(Path(folder / "models/quartet.safetensors"), folder)


@pytest.fixture
def do(models):
    """Does what a message asks, and gives all that was told."""

    def ask(kind, **message):
        full = {
            "model": "quartet",
            "settings": SETTINGS,
            "variations": 2,
            "random_seed": 1,
        } | message
        return [told for told in TASKS[kind](models, full) if told]

    return ask


@pytest.fixture
def tune(do):
    """A piece of four notes."""
    return do("text", text="C4 E4 G4 C5")[0]["read"]
