"""The embedded corpus: music21's chorales, note by note against the printed score."""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from data.corpus import bach, corpus
from data.midi.io import midi_bytes
from data.score import Grid, Score
from data.tokens.tokenizer import decode
from tests.folders import report_of

SOPRANO, ALTO, TENOR, BASS = 40, 41, 42, 43


@pytest.fixture(scope="module")
def paths() -> dict[str, Path]:
    return {path.name.removesuffix(".mxl"): path for path in bach.entries()}


@pytest.fixture(scope="module")
def chorale(paths):
    return functools.cache(lambda name: bach.chorale_score(bach.read_entry(paths[name]), Grid()))


def sung(score: Score, program: int, end: int) -> list[tuple[int, int, int]]:
    """(onset, duration, pitch) of one voice's notes that begin before step `end`."""
    notes = score.notes[(score.notes["program"] == program) & (score.notes["onset"] < end)]
    return [(int(n["onset"]), int(n["duration"]), int(n["pitch"])) for n in notes]


def test_upbeat_and_three_four_time(chorale):
    score = chorale("bwv269")
    assert score.bars[:3].tolist() == [(3, 4, 12), (3, 4, 36), (3, 4, 36)]
    assert sung(score, SOPRANO, 84) == [
        (0, 12, 67),
        (12, 24, 67),
        (36, 12, 74),
        (48, 18, 71),
        (66, 6, 69),
        (72, 12, 67),
    ]
    assert sung(score, BASS, 48) == [(0, 12, 43), (12, 12, 55), (24, 12, 52), (36, 12, 54)]
    assert set(score.tempo_bpm.tolist()) == {80}
    assert set(score.notes["velocity"].tolist()) == {80}


def test_a_repeat_sign_parts_a_bar_and_a_line_of_print_does_not(chorale):
    # Measures 7 and 7a stand on both sides of a repeat sign; 14 and 14a on two lines of print.
    lengths = chorale("bwv269").bars["length"].tolist()
    assert lengths == [12, *[36] * 6, 24, 12, *[36] * 13, 24]


def test_instruments_are_left_out_and_the_meter_changes(chorale):
    score = chorale("bwv171.6")  # with trumpets and timpani; voices named "Soprano, Oboe 1,2 ..."
    assert set(score.notes["program"].tolist()) == {SOPRANO, ALTO, TENOR, BASS}
    assert score.bars[23:27].tolist() == [(4, 4, 48), (4, 4, 36), (3, 4, 12), (3, 4, 36)]
    tenor = sung(score, TENOR, 1164)  # measure 23: F#4 G4 A4 and G4 tied into measure 24
    assert [note for note in tenor if note[0] >= 1068] == [
        (1068, 12, 67),
        (1080, 6, 66),
        (1086, 6, 67),
        (1092, 12, 69),
        (1104, 24, 67),
        (1128, 6, 66),
        (1134, 6, 64),
        (1140, 12, 66),
        (1152, 12, 62),
    ]


def test_a_recitation_longer_than_its_meter_becomes_several_bars(chorale):
    score = chorale("bwv324")  # measure 7 has ten beats
    assert score.bars["length"].tolist()[5:10] == [48, 48, 48, 24, 48]


@pytest.fixture
def few(monkeypatch, paths):
    """Four entries instead of all."""
    names = ["bwv269", "bwv281", "bwv281.krn", "riemenschneider001.rntxt"]
    monkeypatch.setattr(bach, "entries", lambda: [paths[name] for name in names])


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.usefixtures("few")
def test_build_says_what_it_kept_and_gives_the_same_bytes_each_time(tmp_path, chorale):
    report = bach.build(tmp_path / "a b" / "midi", Grid())
    assert report.kept == ["bwv269", "bwv281"]
    assert report.left_out == {
        "second editions of a chorale": ["bwv281"],
        "Roman-numeral analyses": ["riemenschneider001"],
    }
    assert str(report) == (
        "2 of music21's 4 entries kept\n"
        "left out: 1 second editions of a chorale; 1 Roman-numeral analyses"
    )
    made = files(tmp_path / "a b" / "midi")
    assert list(made) == ["bach.json", "bwv269.mid", "bwv281.mid"]
    assert json.loads(made["bach.json"])["left_out"] == report.left_out
    assert made["bwv269.mid"] == midi_bytes(chorale("bwv269"))
    bach.build(tmp_path / "again", Grid())
    assert files(tmp_path / "again") == made
    assert [path.name for path in (tmp_path / "a b").iterdir()] == ["midi"]


@pytest.mark.usefixtures("few")
def test_a_whole_build_is_reused_and_any_other_is_replaced(tmp_path, monkeypatch):
    folder = tmp_path / "midi"
    folder.mkdir()  # an empty folder is as good as none
    report = bach.build(folder, Grid())
    made = files(folder)
    calls = []
    chorale_score = bach.chorale_score
    monkeypatch.setattr(
        bach, "chorale_score", lambda *args: calls.append(args) or chorale_score(*args)
    )
    assert bach.build(folder, Grid()) == report
    assert not calls

    (folder / "bwv281.mid").unlink()
    bach.build(folder, Grid())
    assert calls
    assert files(folder) == made

    (folder / "bach.json").write_text("{")
    bach.build(folder, Grid())
    assert files(folder) == made

    bach.build(folder, Grid(24))
    assert files(folder)["bach.json"] != made["bach.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["midi"]


@pytest.mark.usefixtures("few")
def test_other_peoples_files_are_never_replaced(tmp_path):
    (tmp_path / "song.mid").write_bytes(b"mine")
    for folder in (tmp_path, tmp_path / "song.mid"):
        with pytest.raises(FileExistsError, match="in use"):
            bach.build(folder, Grid())
    assert files(tmp_path) == {"song.mid": b"mine"}


def test_reading_unpickles_and_writes_nothing(paths, monkeypatch, tmp_path):
    def forbidden(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps"):
        monkeypatch.setattr(f"pickle.{name}", forbidden)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bach.read_entry(paths["bwv269"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_whole_corpus_as_make_music_builds_it(tmp_path):
    built = corpus.open_corpus("bach", tmp_path)
    pieces = {name: len(built.split(name)) for name in corpus.SPLITS}
    assert pieces == {"train": 325, "valid": 40, "test": 40}
    report = report_of(built)
    assert report.left_out == ()
    assert len(report.copies) == 2
    left_out = json.loads((tmp_path / "bach" / "midi" / "bach.json").read_text())["left_out"]
    assert {reason: len(names) for reason, names in left_out.items()} == {
        "Roman-numeral analyses": 20,
        "second editions of a chorale": 3,
        "without one soprano, one alto, one tenor and one bass": 3,
    }
    assert report.music.grid_changes.merged == report.music.grid_changes.cut == 0

    # The chorale that the Makefile continues must be one that the model has not seen.
    makefile = (Path(__file__).parents[3] / "Makefile").read_text()
    chorale = re.search(r"datasets/bach/midi/(\S+\.mid)", makefile)
    assert chorale[1] in built.split("test").names

    ranges = {40: (57, 81), 41: (53, 74), 42: (48, 69), 43: (36, 64)}
    for name in corpus.SPLITS:
        split = built.split(name)
        for index in range(len(split)):
            notes = decode(split.piece(index), built.vocabulary).notes
            for program, (lowest, highest) in ranges.items():
                voice = notes[notes["program"] == program]
                assert lowest <= voice["pitch"].min() <= voice["pitch"].max() <= highest
                assert np.all(np.diff(voice["onset"]) >= voice["duration"][:-1])
