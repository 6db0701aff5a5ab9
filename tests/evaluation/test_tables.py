"""Results as lines of text."""

import pytest

from evaluation.tables import Table, number


def test_on_the_console_a_minus_is_a_hyphen():
    table = Table("caption", ("", "n"), [("a", number(-1.5, 1)), ("b", number(2.25, 2))])
    assert list(table.lines()) == ["caption", "      n", "a  -1.5", "b  2.25"]


def test_lines_align_and_end_without_spaces():
    table = Table("caption", ("", "n", "where"), [("a", "1.25", "3"), ("bb", "NaN", "")])
    assert list(table.lines()) == ["caption", "       n  where", "a   1.25      3", "bb   NaN"]
    table = Table("caption", ("", "where", "n"), [("a", "x", "1.25"), ("bb", "", "NaN")], words=2)
    assert list(table.lines()) == [
        "caption",
        "    where     n",
        "a   x      1.25",
        "bb          NaN",
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(1.256, "1.26"), (-0.5, "\N{MINUS SIGN}0.50"), (float("nan"), "NaN")]
)
def test_a_number_has_as_many_digits_as_asked(value, text):
    assert number(value, 2) == text
