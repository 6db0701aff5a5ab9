"""The benchmark of the literature: its grid becomes notes and comes back, and its unit is right."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks import chorales, written
from benchmarks.chorales import GRID
from common.typed_json import to_json
from data.corpus.corpus import CorpusError, CorpusOptions, open_corpus
from data.style import Style
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Vocabulary
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.record import TrainingRecord
from model.serialization import ModelFile, save_model_file

CONFIG = Path(__file__).parents[1] / "configs" / "smoke.yaml"
OPTIONS = CorpusOptions(steps_per_beat=4)


def grids():
    """A few pitches a voice, so that many go on, and rests; at the end all voices sound."""
    pitch = st.sampled_from([chorales.REST, 60, 62])
    last = np.full((1, 4), 60)
    steps = st.integers(0, 40).flatmap(lambda count: arrays(np.int64, (count, 4), elements=pitch))
    return steps.map(lambda grid: np.concatenate([grid, last]))


@given(grids(), st.integers(0, 16))
def test_the_grid_comes_back_however_often_its_pitches_are_struck(grid, strike):
    assert np.array_equal(chorales.grid_of(chorales.score_of(grid, strike)), grid)


@given(grids(), st.integers(1, 16))
def test_no_note_goes_on_where_all_are_struck_again(grid, strike):
    notes = chorales.score_of(grid, strike).notes
    last = notes["onset"] + notes["duration"] - 1
    assert np.array_equal(notes["onset"] // strike, last // strike)


@given(grids())
def test_held_notes_are_as_long_as_their_pitch_goes_on(grid):
    notes = chorales.score_of(grid, 0).notes
    changes = [np.flatnonzero(np.diff(voice, prepend=-2) != 0) for voice in grid.T]
    counts = [(voice[at] != chorales.REST).sum() for voice, at in zip(grid.T, changes, strict=True)]
    assert len(notes) == sum(counts)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file like that of the literature, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pieces = {
        split: [
            np.repeat(rng.integers(60, 72, (beats, 4)), 4, axis=0).tolist() for beats in lengths
        ]
        for split, lengths in {"train": (12, 17, 20), "valid": (9, 16), "test": (8,)}.items()
    }
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(pieces), encoding="utf-8")
    return path


def test_nats_are_of_the_whole_split_over_four_voices_times_its_sixteenths(source, capsys):
    steps = ["--trainer.max_steps", "4", "--trainer.val_check_interval", "2"]
    options = ["--config", str(CONFIG), "--run", "runs/new", "--data.steps_per_beat", "4", *steps]
    chorales.main([str(source), *options])
    printed = capsys.readouterr().out
    model = load("runs/new/model.safetensors")
    split = open_corpus(chorales.FOLDER.format(4), options=OPTIONS).split("valid")
    nats = sum(each.sum() for each in model.token_nats([split.piece(n) for n in range(2)]))
    assert "valid: 2 pieces, 400 voice-sixteenths, 100 notes" in printed
    (a_cell,) = re.findall(r"^a note +([0-9.]+)", printed, re.MULTILINE)
    assert float(a_cell) == pytest.approx(nats / 400, abs=1e-4)

    trained = ["-c", "runs/new/model.safetensors"]
    chorales.main([str(source), *trained, *trained])
    twice = capsys.readouterr().out
    assert re.findall(r"^a note +([0-9.]+)", twice, re.MULTILINE) == [a_cell]

    with pytest.raises(SystemExit) as stop:
        chorales.main([str(source), "--strike", "2", *trained])
    assert stop.value.code == 2
    assert "not datasets/jsb/struck-2: which --strike?" in capsys.readouterr().err


def test_a_student_learns_what_teachers_wrote_and_is_scored_on_the_source(
    source, capsys, monkeypatch
):
    options = ["--config", str(CONFIG), "--data.steps_per_beat", "4", "--trainer.max_steps", "2"]
    options += ["--trainer.val_check_interval", "2", "--model.context_length", "64"]
    chorales.main([str(source), "--run", "runs/teacher", *options])
    teacher, pieces = "runs/teacher/model.safetensors", "datasets/jsb/written"
    monkeypatch.setattr("sys.argv", ["written.py", teacher, pieces, "--count", "3"])
    written.main()
    capsys.readouterr()
    taught = ["--model.teachers", f"[{teacher}]", "--data.written", pieces]
    chorales.main([str(source), "--run", "runs/student", *taught, *options])
    assert load("runs/student/model.safetensors").record.data["written"] == pieces
    assert "valid: 2 pieces, 400 voice-sixteenths, 100 notes" in capsys.readouterr().out

    with pytest.raises(SystemExit) as stop:
        chorales.main([str(source), "--run", "runs/student", *taught, *options])
    assert stop.value.code == 2
    assert "runs/student: holds an earlier run" in capsys.readouterr().err


def test_models_that_read_otherwise_have_no_mean(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks/chorales.py"])

    def model(name, **shape):
        vocabulary = Vocabulary(((4, 4),), (80,), (40,), 60, shape.pop("highest", 71), (80,), GRID)
        side_shape = SideFeatures(vocabulary).shape
        config = DecoderConfig(
            vocabulary.size, n_layer=1, n_head=2, n_embd=16, **side_shape, **shape
        )
        record = TrainingRecord(data={"path": "here"})
        content = ModelFile(Decoder(config), vocabulary.to_json(), to_json(Style()), record)
        save_model_file(tmp_path / name, content)
        return load(tmp_path / name)

    first = model("first")
    chorales.check_alike([first, model("alike")], ["first", "alike"], "here")
    for other, why in (
        (model("wide", highest=72), "vocabulary"),
        (model("long", context_length=64), "context length"),
    ):
        with pytest.raises(SystemExit) as stop:
            chorales.check_alike([first, other], ["first", "other"], "here")
        assert stop.value.code == 2
        assert capsys.readouterr().err == f"chorales.py: other has another {why} than first\n"


def test_a_folder_of_other_notes_is_not_taken_for_the_source(source):
    grids = chorales.read_grids(source)
    chorales.write_corpus(grids, Path("held"), 0)
    chorales.write_corpus(grids, Path("held"), 0)  # it is there, and right
    with pytest.raises(CorpusError, match=r"held/train/000.mid is another piece .* delete held"):
        chorales.write_corpus(grids, Path("held"), 4)
    with pytest.raises(AssertionError, match="not struck every 4 steps"):
        chorales.check(grids, open_corpus("held", options=OPTIONS), 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--split", "vaild"], ["--split vaild", "train, valid, test"]),
        (["--data.path=bach"], ["--data.path=bach", "leave it out"]),
        (["-c", "no.safetensors"], ["no such file", "no.safetensors"]),
        (["-c", "no.safetensors", "--model.n_layer", "2"], ["--model.n_layer 2", "training run"]),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_learned(source, capsys, options, words):
    with pytest.raises(SystemExit) as stop:
        chorales.main([str(source), "--config", str(CONFIG), *options])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words)
    assert not Path("runs").exists()


def test_the_mean_of_decoders_is_that_of_their_probabilities():
    decoders = []
    for seed in range(3):
        torch.manual_seed(seed)
        decoder = Decoder(DecoderConfig(30, n_layer=1, n_head=2, n_embd=16, context_length=8))
        torch.nn.init.normal_(decoder.head.weight)
        decoder.temperature.fill_(1 + seed / 10)
        decoders.append(decoder.eval())
    ids = torch.randint(30, (2, 8))
    mean = torch.stack([decoder(ids).softmax(dim=-1) for decoder in decoders]).mean(dim=0)
    torch.testing.assert_close(chorales.Mean(decoders)(ids).softmax(dim=-1), mean)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"train": []}',
        '{"train": 1, "valid": []}',
        '{"train": [[[1, 2]]], "valid": []}',
        '{"train": [[[1, 2, 3, 128]]], "valid": []}',
        '{"train": [[[1, 2], [1]]], "valid": []}',
    ],
)
def test_another_file_is_refused_in_one_line(content, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["benchmarks/chorales.py"])
    Path("other.json").write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        chorales.main(["other.json"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("chorales.py: other.json: ")
    assert line.endswith("it is Jsb16thSeparated.json that is wanted")
    assert [path.name for path in tmp_path.iterdir()] == ["other.json"]
