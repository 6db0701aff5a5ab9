"""The embedded corpus of folk tunes, note by note against the printed ABC."""

import json

import numpy as np
import pytest

from data.corpus import folk
from data.corpus.corpus import SPLITS
from data.corpus.embedded import LeftOutError
from data.files.read import read_score
from data.score import Grid, Score


def tune(music: str, meter: str = "2/4", key: str = "G") -> Score:
    """Return the score of ABC music in eighths."""
    tokens = folk.parse_abc(f"X:1\nT:Tune\nM:{meter}\nL:1/8\nK:{key}\n{music}\n")[1]
    return folk.tune_score(tokens, Grid())


def notes(score: Score) -> list[tuple[int, int, int]]:
    return [(int(n["onset"]), int(n["duration"]), int(n["pitch"])) for n in score.notes]


def test_upbeat_key_and_meter():
    score = tune("D|GABc|f2g2|")
    assert score.bars.tolist() == [(2, 4, 6), (2, 4, 24), (2, 4, 24)]
    melody = [62, 67, 69, 71, 72, 78, 79]  # F sharp, by the key of G
    assert [pitch for _, _, pitch in notes(score)] == melody
    assert notes(score)[-1] == (42, 12, 79)
    assert set(score.tempo_bpm.tolist()) == {folk.TEMPO_BPM[2, 4] + 1}  # the nearest level
    assert set(score.notes["program"].tolist()) == {folk.PROGRAM}


def test_dotted_rhythms_triplets_rests_ties_grace_notes_and_chords():
    assert notes(tune("G>A z2|(3GAB G-G|{c}G2 [GB]2|")) == [
        (0, 9, 67),
        (9, 3, 69),
        (24, 4, 67),
        (28, 4, 69),
        (32, 4, 71),
        (36, 12, 67),
        (48, 12, 67),
        (60, 12, 71),
    ]


def test_an_accidental_holds_to_the_end_of_its_bar():
    assert [pitch for _, _, pitch in notes(tune("^GAGA|GAGA|"))] == [68, 69, 68, 69, 67, 69, 67, 69]


def test_repeats_are_not_played_and_of_two_endings_the_second_is():
    score = tune("D|:GABc|1 d4:|2 e3 f:|g2|]")
    assert [pitch for _, _, pitch in notes(score)] == [62, 67, 69, 71, 72, 76, 78, 79]
    assert score.bars["length"].tolist() == [6, 24, 24, 12]


@pytest.mark.parametrize(
    ("music", "meter", "reason"),
    [
        ("G4|GABcd|G4|", "2/4", "longer"),
        ("G4|GAB|G4|", "2/4", "shorter"),
        ("G4|", "none", "without a meter"),
        ("G4|1 A4|", "2/4", "without an end"),
    ],
)
def test_a_tune_that_does_not_add_up_is_left_out(music, meter, reason):
    with pytest.raises(LeftOutError, match=reason):
        tune(music, meter)


def test_versions_of_a_tune_are_one_in_any_key_and_rhythm():
    rng = np.random.default_rng(0)
    letters = list("CDEFGABcdefga")
    one, other = ("".join(rng.choice(letters, 24)) for _ in range(2))
    in_d = one.translate(str.maketrans("CDEFGABcdefga", "DEFGABcdefgab"))
    tunes = [
        tune(one, "24/8", "C"),
        tune(other, "24/8", "C"),
        tune(in_d[:17] + "D7", "24/8", "D"),  # sixteen intervals are the same
        tune(one[:16] + "C8", "24/8", "C"),  # fifteen
    ]
    assert folk.first_versions(tunes) == [0, 1, 0, 3]


@pytest.fixture
def few(monkeypatch):
    """A handful of tunes instead of all."""
    lines = {"a": "GABc|", "b": "cBAG|", "c": "G4|G4|", "of four": "GABcd|"}
    texts = {name: f"X:1\nM:2/4\nL:1/8\nK:G\n{line}\n" for name, line in lines.items()}
    tunes = [*((name, folk.parse_abc(text)[1]) for name, text in texts.items())]
    tunes += [("a again", tunes[0][1]), ("b", tunes[1][1])]
    monkeypatch.setattr(folk, "read_tunes", lambda: tunes)


@pytest.mark.usefixtures("few")
def test_build_writes_each_tune_to_its_split_and_says_what_it_left_out(tmp_path):
    report = folk.build(tmp_path / "midi", Grid())
    assert [name.split("/")[1] for name in report.kept] == ["a", "b", "c"]
    assert {name.split("/")[0] for name in report.kept} <= set(SPLITS)
    assert report.left_out == {
        "with a bar longer than its meter": ["of four"],
        "of a number that another has": ["b"],
        "the same as another, note for note": ["a again"],
    }
    assert json.loads((tmp_path / "midi" / "folk.json").read_text())["kept"] == report.kept
    score, _ = read_score(tmp_path / "midi" / f"{report.kept[0]}.mid", Grid())
    assert score == tune("GABc|")
    assert folk.build(tmp_path / "midi", Grid()) == report
