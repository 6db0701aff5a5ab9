"""What goes beyond all training pieces: loops, nearly empty pieces and walls of notes."""

import pytest
from hypothesis import given

from data.extremes import Extremes, Usual, bar_repetition, bars_of, note_density
from tests.music import piece, scores

C_MAJOR = (60, 62, 64, 65, 67, 69, 71, 72)


def of_bars(pitches, notes_a_bar=1):
    """A bar of 4/4 for each pitch, in which it is repeated."""
    length = 48 // notes_a_bar
    notes = [
        (48 * bar + length * n, length, pitch, 80, 0)
        for bar, pitch in enumerate(pitches)
        for n in range(notes_a_bar)
    ]
    return piece(notes, bars=[(4, 4, 48)] * len(pitches))


@pytest.mark.parametrize(
    ("pitches", "expected"),
    [
        ((60,) * 8, 1),
        (C_MAJOR, 0),
        ((60, 62) * 4, 24 / 56),
        ((60,) * 4 + (62, 64, 65, 67), 12 / 56),
        ((60,), 0),
    ],
)
def test_repetition_is_the_share_of_pairs_of_bars_that_are_equal(pitches, expected):
    assert bar_repetition(bars_of(of_bars(pitches))) == expected


@given(scores())
def test_no_piece_goes_beyond_itself(score):
    extremes = Extremes.of([score])
    assert extremes is None or not extremes.are_exceeded_by(score)


def test_what_loops_or_is_too_thin_or_too_dense_goes_beyond():
    real = Extremes.of([of_bars((60, 62, 60, 64, 60, 62, 65, 67), notes_a_bar=n) for n in (2, 4)])
    assert real is not None
    assert not real.are_exceeded_by(of_bars(C_MAJOR, notes_a_bar=3))
    assert real.are_exceeded_by(of_bars((60, 62) * 8, notes_a_bar=3))  # two bars, eight times
    assert real.are_exceeded_by(of_bars((60,) * 8 + C_MAJOR, notes_a_bar=3))  # one of 16 8 times
    assert real.are_exceeded_by(of_bars(C_MAJOR))
    assert real.are_exceeded_by(of_bars(C_MAJOR, notes_a_bar=12))
    assert real.are_exceeded_by(piece([]))
    assert not real.are_exceeded_by(of_bars((60, 62, 60, 62), notes_a_bar=3))  # AABB may be
    in_a_row = (*C_MAJOR, *C_MAJOR[:-1], 60, 60, 60)  # few of many, but next to each other
    assert real.are_exceeded_by(of_bars(in_a_row, notes_a_bar=3))
    assert not real.are_exceeded_by(of_bars(in_a_row[:-1], notes_a_bar=3))


def test_pieces_too_short_to_tell_have_no_extremes():
    assert Extremes.of([of_bars((60, 62))]) is None


def test_density_counts_to_the_end_of_the_last_bar():
    assert note_density(of_bars((60, 62))) == 2 / 4.0


def test_nine_of_ten_pieces_are_usual_and_neither_one_note_nor_a_wall_is():
    notes_a_bar = [1, *[4] * 19]
    usual = Usual.of([of_bars(C_MAJOR, count) for count in notes_a_bar])
    assert usual.has(of_bars(C_MAJOR, 4)) == (True, True)
    assert usual.has(of_bars(C_MAJOR, 1)) == (False, True)
    assert usual.has(of_bars(C_MAJOR, 8)) == (False, True)
    chord = [(24 * n, 24, pitch, 80, 0) for n in range(16) for pitch in (60, 64)]
    assert usual.has(piece(chord, bars=[(4, 4, 48)] * 8)) == (True, False)
    assert usual.has(piece([], bars=[(4, 4, 48)])) == (False, False)
    drums = piece([(0, 12, 36, 80, 128)])
    assert Usual.of([drums]) is None
