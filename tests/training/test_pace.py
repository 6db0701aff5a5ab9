"""Runs of so many minutes: how many steps they make, and that nothing else is changed by it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from generation.model import load
from tests.folders import write_tunes
from tests.runs import fit
from training import checkpoints, pace
from training.checks import RunError
from training.options import ModelOptions, RunOptions, TrainerOptions
from training.pace import with_steps

HALF_A_SECOND = 0.5
TEN_MINUTES = RunOptions(minutes=10.0)


@pytest.fixture
def paced(monkeypatch):
    """Steps of half a second, without a corpus."""
    monkeypatch.setattr(pace, "_seconds_a_step", lambda *_: HALF_A_SECOND)
    return lambda options: with_steps(options, None).trainer


def test_steps_take_three_quarters_of_the_minutes(paced, capsys):
    trainer = paced(TEN_MINUTES)
    assert trainer.max_steps * HALF_A_SECOND == pytest.approx(0.75 * 600)
    assert trainer.val_check_interval == trainer.max_steps / 5
    assert capsys.readouterr().out == "900 steps of 0.50 seconds: 10 minutes in all, roughly\n"
    assert paced(RunOptions(minutes=0.1)).max_steps == pace.LEAST_STEPS
    capsys.readouterr()
    paced(RunOptions(minutes=1.0))
    assert capsys.readouterr().out == "90 steps of 0.50 seconds: 1 minute in all, roughly\n"


def test_few_pieces_are_read_so_often_and_no_more_by_a_run_that_begins_with_a_model(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(pace, "_seconds_a_step", lambda *_: HALF_A_SECOND)
    path, datasets = str(write_tunes(tmp_path, 8)), str(tmp_path / "datasets")
    options = replace(TEN_MINUTES, data=DataOptions(path=path, datasets=datasets, batch_size=1))
    options = replace(options, model=ModelOptions(begin_with="base", context_length=32))
    data = MusicDataModule(options.data, 32)
    data.prepare_data()
    tokens = len(data.corpus.split("train").tokens)
    steps = with_steps(options, data).trainer.max_steps
    assert steps == pace.MOST_PASSES * tokens // 32 < 900
    assert f"{steps} steps of 0.50 seconds: {round(steps / 90, 1):g} min" in capsys.readouterr().out
    hundredth = replace(options, minutes=0.1)
    assert with_steps(hundredth, data).trainer.max_steps == pace.LEAST_STEPS


def test_what_is_compiled_in_the_first_step_is_not_timed(tmp_path, monkeypatch):
    """Else a first training on a machine is as short as if all its steps took half a minute."""
    clock, loss_of, slow = [0.0], pace.cross_entropy, [30.0]

    def loss(*given):
        clock[0] += slow.pop() if slow else HALF_A_SECOND
        return loss_of(*given)

    read = SimpleNamespace(monotonic=lambda: clock[0], perf_counter=lambda: clock[0])
    monkeypatch.setattr(pace, "time", read)
    monkeypatch.setattr(pace, "cross_entropy", loss)
    path, datasets = str(write_tunes(tmp_path, 8)), str(tmp_path / "datasets")
    options = replace(TEN_MINUTES, data=DataOptions(path=path, datasets=datasets, batch_size=1))
    options = replace(options, model=ModelOptions(n_layer=1, n_embd=16, context_length=32))
    trainer = with_steps(options, MusicDataModule(options.data, 32)).trainer
    assert trainer.max_steps * HALF_A_SECOND == pytest.approx(0.75 * 600)


def test_what_is_said_is_not_overruled(paced):
    said = TrainerOptions(max_steps=7, val_check_interval=5)
    assert paced(replace(TEN_MINUTES, trainer=said)) == paced(RunOptions(trainer=said)) == said
    assert paced(RunOptions()) == TrainerOptions()
    often = TrainerOptions(val_check_interval=3)
    assert paced(replace(TEN_MINUTES, trainer=often)).val_check_interval == 3


def test_a_run_of_so_many_steps_is_validated_as_often_as_one_of_minutes(paced):
    """Else its model file would be that of the first minute until the end."""
    for options in (TEN_MINUTES, RunOptions()):
        for steps, apart in ((5001, 1001), (50, 100)):
            trainer = paced(replace(options, trainer=TrainerOptions(max_steps=steps)))
            assert (trainer.max_steps, trainer.val_check_interval) == (steps, apart)


def test_a_run_that_goes_on_makes_the_steps_that_it_began_with(paced, tmp_path):
    resumed = replace(TEN_MINUTES, run=str(tmp_path), ckpt_path="last.ckpt")
    for text in (None, "trainer: [", "trainer: {max_steps: -1, val_check_interval: 2}", "[]"):
        if text is not None:
            (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(RunError, match=r"config\.yaml does not say how long the run is"):
            paced(resumed)
    for text, interval in (("20", 20), ("null", None)):  # none: its steps were given by number
        kept = f"trainer: {{max_steps: 70, val_check_interval: {text}}}"
        (tmp_path / "config.yaml").write_text(kept)
        assert (paced(resumed).max_steps, paced(resumed).val_check_interval) == (70, interval)


def test_a_run_of_minutes_ends_as_one_of_as_many_steps(tunes, monkeypatch, capsys):
    """And there is a model to listen to before its first validation."""
    for name, value in {"TIMED_SECONDS": 0, "LEAST_STEPS": 4, "STEPS_SHARE": 0}.items():
        monkeypatch.setattr(pace, name, value)
    monkeypatch.setattr(checkpoints, "FIRST_MODEL_SECONDS", 0)
    saved, save = [], checkpoints.Checkpoints._save_model

    def noted(self, trainer, module, nats):
        saved.append((trainer.global_step, nats is None))
        save(self, trainer, module, nats)

    monkeypatch.setattr(checkpoints.Checkpoints, "_save_model", noted)
    fit("--run", "timed", "--minutes", 1, "--trainer.max_steps", -1)
    assert yaml.safe_load(Path("timed/config.yaml").read_text())["trainer"]["max_steps"] == 4
    assert saved[0] == (0, True)
    fit("--run", "counted", "--trainer.max_steps", 4)
    timed, counted = (load(f"{run}/model.safetensors").network for run in ("timed", "counted"))
    assert timed.weights.keys() == counted.weights.keys()
    assert all((timed.weights[name] == counted.weights[name]).all() for name in timed.weights)
    capsys.readouterr()
    fit("--run", "timed", "--minutes", 1, "--trainer.max_steps", 6, "--ckpt_path", "last")
    out = capsys.readouterr().out
    assert "the run is 6 steps long (trainer.max_steps); minutes is ignored" in out
    assert yaml.safe_load(Path("timed/config.yaml").read_text())["trainer"]["max_steps"] == 6
    more = ("--minutes", 1, "--trainer.max_steps", -1, "--ckpt_path", "last")
    fit("--run", "timed", *more)
    assert "the run is 6 steps long, as timed/config.yaml says" in capsys.readouterr().out
    fit("--run", "mistyped", *more)
    assert "no mistyped/checkpoints/last.ckpt yet: the run begins" in capsys.readouterr().out
