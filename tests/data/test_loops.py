"""Bars that an instrument plays again."""

import pytest

from data.loops import LOOP_BARS, Loops, going_on, known_loops, lags, loops_of
from data.score import DRUMS
from tests.music import line, piece

BARS = 6


def played(bars, program):
    """A bar of quarter notes for each letter, alike where letters are."""
    pitches = {letter: 60 + 3 * number for number, letter in enumerate("abcdef")}
    rows = []
    for bar, letter in enumerate(bars):
        if letter != ".":
            rows += line([pitches[letter] + n for n in range(4)], 48 * bar, program=program)
    return rows


def test_a_digit_tells_how_many_bars_before_an_instrument_played_the_same():
    rows = [*played("aaba.a", 33), *played("abcabc", 40), *played("ababcc", DRUMS)]
    score = piece(rows, bars=[(4, 4, 48)] * BARS)
    assert loops_of(score) == Loops({33: "010202", 40: "000000", DRUMS: "002201"})
    upbeat = piece(
        [(0, 12, 60, 80, 33), *line([60, 62], 12, 24, 33), *line([60, 62], 60, 24, 33)],
        bars=[(4, 4, 12), (4, 4, 48), (4, 4, 48)],
    )
    assert loops_of(upbeat) == Loops({33: "01"})


def test_loops_are_kept_where_they_are_no_exception():
    often = piece(played("abab", 33), bars=[(4, 4, 48)] * 4)
    seldom = piece(played("abcdef", 33), bars=[(4, 4, 48)] * BARS)
    assert known_loops([often, seldom]) == (loops_of(often), loops_of(seldom))
    assert known_loops([often, *[seldom] * 4]) == known_loops([]) == ()


def test_programs_of_a_new_piece_do_as_the_nearest():
    loops = Loops({33: "0011", 80: "0202", DRUMS: "0001"})
    columns = lags(loops, [30, 79, DRUMS]).T.tolist()
    assert [column[:5] for column in columns] == [[0, 0, 1, 1, 0], [0, 2, 0, 2, 0], [0, 0, 0, 1, 0]]
    assert all(len(column) == LOOP_BARS for column in columns)
    assert not lags(Loops({33: "11"}), [DRUMS]).any()


def test_a_piece_goes_on_as_instruments_that_began_alike():
    begun, programs = Loops({33: "0022", DRUMS: "01"}), (33, 40, DRUMS)
    other, first = Loops({33: "011111", 80: "002221"}), Loops({33: "002008", DRUMS: "0022"})
    gone = going_on(begun, [other, first], programs)
    assert gone == Loops({33: "000021", 40: "0", DRUMS: "0022"})  # what is given repeats nothing
    late = Loops({DRUMS: "0100000000001"})  # it may have been silent until then
    assert going_on(begun, [late, first], programs).of[DRUMS] == "0022"
    assert going_on(begun, [late], programs).of[DRUMS] == "0000000000001"
    assert not lags(going_on(begun, [], programs), programs).any()


def test_other_digits_are_refused():
    with pytest.raises(ValueError, match="loops must be digits"):
        Loops({33: "03"})
