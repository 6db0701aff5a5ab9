"""The model that is taken when none is named."""

import os
from pathlib import Path

import pytest

import evaluate
import generate
from generation import defaults
from generation.defaults import default_model, model_path
from model.record import TrainingRecord
from tests.models import QUARTET, untrained
from tests.runs import refusal


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder in the place of the project's, without a model; Python is started elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(defaults, "PROJECT", tmp_path / "project")
    return tmp_path / "project"


def model_file(path, seconds):
    """A model that was written at a time."""
    path.parent.mkdir(parents=True)
    untrained(path, QUARTET)
    os.utime(path, (seconds, seconds))
    return path


def test_the_newest_of_what_ships_and_what_was_trained_is_taken(project):
    shipped = model_file(project / "models" / "bach.safetensors", 100)
    assert default_model()[0] == shipped
    trained = model_file(project / "runs" / "bach" / "model.safetensors", 200)
    model_file(project / "runs" / "mine" / "model.safetensors", 900)
    assert default_model()[0] == trained
    again = model_file(project / "runs" / "bach-2" / "model.safetensors", 300)
    assert default_model()[0] == again
    os.utime(shipped, (400, 400))  # a newer Etude
    assert default_model()[0] == shipped
    assert generate.load().path == shipped


def test_the_best_on_the_same_held_out_pieces_is_taken_however_old_it_is(project):
    def figures(path, nats, seconds, data="bach"):
        path.parent.mkdir(parents=True, exist_ok=True)
        record = TrainingRecord(valid_nats_per_note=nats, data={"path": data})
        untrained(path, QUARTET, record=record)
        os.utime(path, (seconds, seconds))
        return path

    shipped = figures(project / "models" / "bach.safetensors", 1.2323, 100)
    assert default_model() == (shipped, f"model: {shipped}")
    trained = figures(project / "runs" / "bach" / "model.safetensors", 1.2932, 200)
    why = "1.232 nats a note on held-out chorales; runs/bach/model.safetensors has 1.293"
    assert default_model() == (shipped, f"model: {shipped} ({why})")
    figures(trained, 1.1, 300, data="tunes")  # other pieces
    assert default_model()[0] == shipped
    trained.write_bytes(b"not a model")
    assert default_model()[0] == shipped
    figures(trained, 1.1, 50)
    assert default_model()[0] == generate.load().path == trained


def test_a_command_says_which_model_it_takes(project, capsys, monkeypatch):
    shipped = model_file(project / "models" / "bach.safetensors", 100)
    generate.main(["--bars", "1"])
    assert capsys.readouterr().out.splitlines()[0] == f"model: {shipped}"
    assert (Path("music") / "from-nothing.mid").is_file()
    evaluate.main(["likelihood", "--piece", "music/from-nothing.mid", "--out", "s.png"])
    assert capsys.readouterr().out.splitlines()[0] == f"model: {shipped}"
    monkeypatch.chdir(project)
    assert default_model()[0] == Path("models/bach.safetensors")


def test_a_model_that_ships_is_named_without_its_folder(project, capsys):
    shipped = model_file(project / "models" / "folk.safetensors", 100)
    assert model_path("folk") == generate.load("folk").path == shipped
    generate.main(["--checkpoint", "folk", "--bars", "1"])
    evaluate.main(
        ["likelihood", "-c", "folk", "--piece", "music/from-nothing.mid", "--out", "s.png"]
    )
    assert Path("s.png").is_file()
    capsys.readouterr()
    Path("folk").touch()  # a file here goes first
    assert model_path("folk") == Path("folk")
    assert model_path("tune") == Path("tune")


@pytest.mark.parametrize(("command", "words"), [(generate, ()), (evaluate, ["likelihood"])])
def test_without_any_model_a_command_says_so(project, capsys, command, words):
    line = refusal(capsys, *words, command=command)
    assert "no model in" in line
    assert "make music" in line


def test_of_a_run_the_folder_is_enough(project, monkeypatch):
    trained = model_file(project / "runs" / "mine" / "model.safetensors", 100)
    assert model_path(trained.parent) == model_path(trained) == trained
    assert model_path(project / "runs") == project / "runs"  # which is no run
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("USERPROFILE", str(project))
    assert model_path("~/runs/mine") == trained
