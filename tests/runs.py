"""Small runs of train.py in a folder `tunes`, and the one line of those that are refused."""

from pathlib import Path

import pytest

import train

SMOKE = Path(train.__file__).parent / "configs" / "smoke.yaml"


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
