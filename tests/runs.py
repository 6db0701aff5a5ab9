"""Small runs of train.py in a folder `tunes`, refusals in one line, and a Python of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import train

ROOT = Path(train.__file__).parent
SMOKE = ROOT / "configs" / "smoke.yaml"


def words(*options):
    """The words of a run, of which options that come later overrule these."""
    quiet = ("--trainer.enable_progress_bar", "false", "--trainer.accelerator", "cpu")
    config = ("--config", SMOKE, "--data.path", "tunes", "--run", "run")
    return list(map(str, ("fit", *config, *quiet, *options)))


def fit(*options):
    """Makes a run."""
    train.main(words(*options))


def refusal(capsys, *words, command=train):
    """The one line on stderr with which train.py, or another command, refuses its words."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        command.main(list(map(str, words)))
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert stop.value.code == 2
    return line


def python(code, *words, cwd=ROOT, **environment):
    """Runs code in a Python of its own; what it prints, its errors, and its exit code.

    Of the environment what is None here is left out.
    """
    there = {name: value for name, value in (os.environ | environment).items() if value is not None}
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=there, capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr, done.returncode
