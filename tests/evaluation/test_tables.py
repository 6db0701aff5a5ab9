"""Results as lines of text."""

import pytest

from evaluation.comparison import compare
from evaluation.tables import LINE_WIDTH, Table, number, statistics_lines
from tests.data.test_voice_leading import chords
from tests.evaluation.test_comparison import TUNES
from tests.evaluation.test_metrics import BEAT, bars
from tests.music import EMPTY, piece


def test_other_music_is_marked_and_the_same_kind_is_not():
    other = [chords((72, 64, 55, 48), (74, 65, 57, 50), step=3)] * 12
    lines = statistics_lines(compare(TUNES[:12], TUNES[12:], TUNES[:12]))
    assert "*" not in "".join(lines).split("Overlap")[0]
    lines = statistics_lines(compare(other, TUNES[12:], TUNES[:12]))
    assert "".join(lines).split("Overlap")[0].count("*") > 5


def test_the_table_tells_what_is_not_defined():
    generated = [*TUNES[:6], piece(BEAT, bars(7)), EMPTY]
    lines = list(statistics_lines(compare(generated, TUNES[6:12], TUNES[12:], seed=3)))
    assert max(map(len, lines)) <= LINE_WIDTH
    assert "parallel fifths" not in " ".join(lines)  # no held-out piece has four parts
    text = " ".join(lines[2 + 11 :])
    assert "Not defined, of 8 generated pieces: pitch-class entropy, " in text
    assert "held-out pieces: " not in text


def test_on_the_console_a_minus_is_a_hyphen():
    table = Table("caption", ("", "n"), [("a", number(-1.5, 1)), ("b", number(2.25, 2))])
    assert list(table.lines()) == ["caption", "      n", "a  -1.5", "b  2.25"]


def test_lines_align_and_end_without_spaces():
    table = Table("caption", ("", "n", "where"), [("a", "1.25", "x"), ("bb", "NaN", "")])
    assert list(table.lines()) == ["caption", "       n  where", "a   1.25  x", "bb   NaN"]


@pytest.mark.parametrize(
    ("value", "text"), [(1.256, "1.26"), (-0.5, "\N{MINUS SIGN}0.50"), (float("nan"), "NaN")]
)
def test_a_number_has_as_many_digits_as_asked(value, text):
    assert number(value, 2) == text
