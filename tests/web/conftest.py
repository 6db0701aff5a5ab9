"""A folder of models that know nothing, and what asks them."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.models import PIANIST, QUARTET, untrained
from web.models import Models
from web.tasks import TASKS

WEB = Path(__file__).parents[2] / "web"
SETTINGS = {"bars": 2, "temperature": 0.75}
ASKED = {"model": "quartet", "settings": SETTINGS, "variations": 2, "random_seed": 1}


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
        return [told for told in TASKS[kind](models, ASKED | message) if told]

    return ask


@pytest.fixture
def tune(do):
    """A piece of four notes."""
    return do("text", text="C4 E4 G4 C5")[0]["read"]


@pytest.fixture(scope="session")
def tools():
    """The folder of the tools that `web/package.json` names, brought by npm once."""
    if not shutil.which("npm"):
        pytest.skip("there is no node")
    named = (WEB / "package.json").read_bytes()
    folder = Path(tempfile.gettempdir()) / f"etude-node-{hashlib.sha256(named).hexdigest()[:12]}"
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_bytes(named)
        command = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            assert not os.environ.get("CI"), done.stderr
            pytest.skip("npm does not bring the tools")
        (folder / "done").touch()
    return folder / "node_modules"
