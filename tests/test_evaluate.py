"""evaluate.py: the figures it prints are those of the definitions."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import evaluate
import generate
from data.files.read import read_score
from data.midi.io import write_midi
from data.tokens.tokenizer import encode
from evaluation import command, samples
from generation.model import corpus_of
from model.serialization import load_model_file, save_model_file
from rendering.attention_map import draw_attention
from tests.folders import transposed, tune, write_tunes
from tests.models import QUARTET, untrained, untrained_on
from tests.music import GRID, piece
from tests.runs import refusal

refused = partial(refusal, command=evaluate)


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A model that knows nothing yet, of a corpus of tunes."""
    monkeypatch.chdir(tmp_path)
    folder = write_tunes(tmp_path / "tunes", 12)
    return untrained_on(folder, tmp_path / "m.safetensors")


def table(text):
    """The figures of each line of the table by the line's name, a column a split."""
    rows = [line.split(maxsplit=1) for line in text.splitlines() if "[" in line]
    return {name: np.array(re.findall(r"([0-9.]+) +\[", rest), float) for name, rest in rows}


def test_the_table_holds_model_and_baselines_and_its_kinds_add_up(checkpoint, capsys):
    evaluate.main(["likelihood", "--checkpoint", str(checkpoint), "--json", "out/figures.json"])
    text = capsys.readouterr().out
    assert "2,000 resamples" in text
    nats, bits = (table(part) for part in text.split("Bits per second"))
    kinds = ["end", "bar", "length", "tempo", "position", "note", "extend", "duration"]
    sums = np.sum([nats[kind] for kind in kinds if kind in nats], axis=0)
    assert np.allclose(sums, nats["model"], atol=1e-3)
    # what has learned nothing is worse than counting
    for figures in (nats, bits):
        assert (figures["bigram"] < figures["unigram"]).all()
        assert (figures["unigram"] < figures["model"]).all()
    written = json.loads(Path("out/figures.json").read_text())
    assert [music["name"] for music in written["likelihood"]] == ["valid", "test"]
    for column, music in enumerate(written["likelihood"]):
        for name in ("unigram", "bigram", "5-gram", "model"):
            value = music["nats_per_note"][name]["value"]
            assert nats[name][column] == pytest.approx(value, abs=1e-4)

    # the valid split as files: the very same figures
    files = [f"tunes/{file['name']}" for file in written["likelihood"][0]["files"]]
    evaluate.main(["likelihood", "-c", str(checkpoint), *files, "--json", "files.json"])
    assert "nats per note, file by file" in capsys.readouterr().out
    (scored,) = json.loads(Path("files.json").read_text())["likelihood"]
    for name in ("bigram", "5-gram", "model"):
        value = written["likelihood"][0]["nats_per_note"][name]["value"]
        assert scored["nats_per_note"][name]["value"] == pytest.approx(value, rel=1e-5)


def test_files_are_scored_without_baselines_where_the_corpus_is_not(checkpoint, capsys):
    Path("tunes").rename("elsewhere")
    evaluate.main(["likelihood", "-c", str(checkpoint), "elsewhere/tune1.mid"])
    out, err = capsys.readouterr()
    assert "no baselines: " in err
    assert "model" in out
    assert "unigram" not in out


def test_the_most_surprising_notes_are_listed_and_drawn(checkpoint, capsys):
    command = ["likelihood", "-c", str(checkpoint), "--piece", "tunes/tune2.mid"]
    evaluate.main([*command, "--out", "s.png", "--json", "s.json"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 10
    assert all("bar " in line and "beat " in line for line in lines[2:])
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")
    surprise = json.loads(Path("s.json").read_text())["surprise"]
    most = [note["nats"] for note in surprise["most"]]
    assert most == sorted(surprise["nats"], reverse=True)[:10]


def test_what_stands_in_training_is_told_with_where(checkpoint, capsys):
    model = generate.load(checkpoint)
    names = corpus_of(model, None, "datasets").split("train").names
    number = int(names[0].removeprefix("tune").removesuffix(".mid"))
    write_midi(transposed(tune(number, bars=3 + number % 7), 1), "moved.mid")
    capsys.readouterr()
    command = ["originality", "-c", str(checkpoint), "--json", "o.json"]
    evaluate.main([*command, "moved.mid"])
    text = capsys.readouterr().out
    assert f"stand in {names[0]} from bar 0, 1 semitone lower" in text
    assert "held-out pieces" in text
    found = json.loads(Path("o.json").read_text())["originality"]
    (copied,) = found["pieces"]
    assert copied["line"]["shares"]["16"] == copied["texture"]["shares"]["16"] == 1
    for reading in ("line", "texture"):
        assert copied[reading]["longest"] == [copied[reading]["notes"]]
        assert len(found["held_out"][reading]["longest"]) == 2
        assert found["held_out"][reading]["shares"]["8"] < 0.1
    write_midi(tune(99), "new.mid")
    evaluate.main([*command, "moved.mid", "new.mid"])
    assert "all 2 pieces" in capsys.readouterr().out
    found = json.loads(Path("o.json").read_text())["originality"]
    assert found["training_pieces"] == len(names)
    assert found["pieces"][1]["line"]["shares"]["8"] == 0
    longest = [each["line"]["longest"][0] for each in found["pieces"]]
    assert found["all"]["line"]["longest"] == longest


def test_a_corpus_with_other_tokens_is_refused(checkpoint, tmp_path, capsys):
    other = write_tunes(tmp_path / "other", 3, first=40)
    (tmp_path / "other" / "tune40.mid").write_bytes(b"")
    for path, word in ((other, "vocabulary"), ("nowhere", "nowhere")):
        content = load_model_file(checkpoint)
        content.record.data["transpose"] = 1
        save_model_file(checkpoint, content)
        assert word in refused(capsys, "likelihood", "-c", checkpoint, "--path", path)


@pytest.mark.parametrize("what", [["likelihood"], ["all", "--count", "3"]])
def test_another_model_is_judged_beside(checkpoint, capsys, what):
    other = untrained_on(Path("tunes").absolute(), Path("runs/other.safetensors"), seed=1)
    evaluate.main([*what, "-c", str(checkpoint), "--beside", str(other), "--json", "both.json"])
    evaluate.main(["likelihood", "-c", str(other), "--json", "alone.json"])
    both, alone = (json.loads(Path(name).read_text()) for name in ("both.json", "alone.json"))
    for mine, its in zip(both["likelihood"], alone["likelihood"], strict=True):
        assert list(mine["nats_per_note"])[-2:] == ["runs/other", "model"]
        figures = mine["nats_per_note"]["runs/other"], its["nats_per_note"]["model"]
        assert figures[0]["value"] == pytest.approx(figures[1]["value"], rel=1e-5)
        assert mine["nats_per_note"]["model"] != figures[1]
    capsys.readouterr()


def test_a_model_of_another_vocabulary_is_not_judged_beside(checkpoint, tmp_path, capsys):
    other = untrained(tmp_path / "quartet.safetensors", QUARTET)
    line = refused(capsys, "likelihood", "-c", checkpoint, "--beside", other)
    assert "quartet.safetensors: its vocabulary" in line


def test_a_picture_of_attention_is_written_for_any_file(checkpoint, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        command, "draw_attention", lambda *what: drawn.append(what) or draw_attention(*what)
    )
    model = generate.load(checkpoint)
    tune = tmp_path / "tunes" / "tune3.mid"
    options = ["attention", "-c", str(checkpoint), "--midi", str(tune), "--out"]
    evaluate.main([*options, "a.png"])
    said = capsys.readouterr().out
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    maps, labels, layers = drawn.pop()
    ids = encode(read_score(tune, GRID)[0], model.vocabulary)[: len(labels)]
    assert said == f"a.png: which of the first {len(labels)} tokens look at which\n"
    assert layers == ["layer 1"]
    assert labels[:2] == ["Start", "Bar 0"]  # an upbeat
    (expected,) = model.steps.attention_maps(ids, model.side(ids[None])).values()
    np.testing.assert_array_equal(maps, expected[None])

    beyond = tmp_path / "deep.mid"
    notes = [(12 * i, 12, 24 + i, 80, 25) for i in range(8)]
    write_midi(piece(notes), beyond)
    evaluate.main(["attention", "-c", str(checkpoint), "--midi", str(beyond), "--out", "c.png"])
    assert "fitted to the model" in capsys.readouterr().out


ATTENTION = ["attention", "--midi", "tunes/tune3.mid"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["likelihood", "--piece", "a.mid"], "go together"),
        (["likelihood", "--out", "a.png"], "go together"),
        (["likelihood", "--piece", "a.mid", "--out", "a.png", "b.mid"], "leave out the others"),
        (["likelihood", "none.mid"], "none.mid: no such file"),
        (["likelihood", "--splits", "all"], "invalid choice: 'all'"),
        (["originality"], "required: FILE"),
        *(  # before the corpus is looked for, or built
            ([command, "m.safetensors", "--path", "nowhere"], "m.safetensors: it is neither MIDI")
            for command in ("originality", "music", "all")
        ),
        (["originality", "tunes/tune1.mid", "--path", "nowhere"], "nowhere"),
        (["music", "empty"], "empty: no music file in it"),
        (["music", "tunes", "bad.mid"], "bad.mid: not a MIDI file"),
        (["music", "--json", "written.json", "--path", "nowhere"], "nowhere"),
        ([*ATTENTION, "--out", "a.png", "--midi", "none.mid"], "none.mid: no such file"),
        ([*ATTENTION, "--out", "tunes/tune3.mid"], "the name of a .png file is needed"),
        (["all", "--html", "a.txt"], "the name of a .html file is needed, not 'a.txt'"),
        (["all", "--html", "bad.mid/a.html"], "bad.mid/a.html: cannot be written ("),
        (["all", "--html", "a.html", "--json", "bad.mid/a.json"], "a.json: cannot be written ("),
        (["all", "bad.mid", "--html", "a.html"], "bad.mid: not a MIDI file"),
    ],
)
def test_what_cannot_be_judged_is_said_in_one_line(checkpoint, capsys, command, words):
    Path("empty").mkdir()
    Path("bad.mid").write_bytes(b"nothing")
    Path("written.json").write_text("before")
    assert words in refused(capsys, *command, "-c", checkpoint)
    assert not [*Path().glob("a.*")]
    assert Path("written.json").read_text() == "before"


def music(*options):
    evaluate.main(["music", "--checkpoint", "m.safetensors", *map(str, options)])


def test_music_is_measured_beside_held_out_pieces(checkpoint, capsys):
    music("--count", 4, "--seed", 7, "--json", "a.json")
    out = capsys.readouterr().out
    figures = json.loads(Path("a.json").read_text())["music"]
    assert figures["pieces"] == {"generated": 4, "held_out": 2, "train": 10}
    assert f"{figures['rows'][0]['name']} " in " ".join(out.split())
    music("--count", 4, "--seed", 7, "--json", "b.json")
    assert Path("b.json").read_text() == Path("a.json").read_text()


def test_music_is_measured_as_it_is_drawn_and_as_a_critic_keeps_it(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr("evaluation.command.candidates", lambda _: 3)
    music("--count", 5, "--json", "a.json")
    out = " ".join(capsys.readouterr().out.split())
    assert "Where every few bars the model's critic takes the best of 3, as generate.py does" in out
    figures = json.loads(Path("a.json").read_text())
    drawn, kept = figures["music"], figures["kept"]
    assert kept["candidates"] == 3
    assert kept["pieces"] == drawn["pieces"]
    assert kept["rows"] != drawn["rows"]


def test_pieces_a_model_writes_are_as_long_as_those_it_learned_from():
    tunes = [tune(seed, bars=3 + seed) for seed in range(20)]
    assert samples.typical_lengths(tunes, 2) == [9, 18]
    lengths = samples.typical_lengths(tunes, 25)
    assert len(lengths) == 25
    assert len(set(lengths)) == samples.MAX_LENGTHS
    assert set(lengths) <= {len(score.bars) for score in tunes}
    assert np.mean(lengths[:20]) == pytest.approx(13.5, abs=0.6)


def test_any_files_are_measured_in_place_of_the_models(checkpoint, capsys):
    (Path("tunes") / "none.mid").write_bytes(b"nothing")
    music("tunes/tune3.mid", "tunes", "--path", write_tunes(Path("others"), 12), "--json", "c.json")
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "tunes/none.mid: left out: not a MIDI file (it does not begin with MThd)"
    ]
    figures = json.loads(Path("c.json").read_text())["music"]
    assert figures["pieces"]["generated"] == 12  # the one that is named twice counts once
    assert figures["midi"] == ["tunes/tune3.mid", "tunes"]
