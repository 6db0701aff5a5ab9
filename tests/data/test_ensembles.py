"""Who plays together in pieces, which pitches, and who plays a note at a time."""

import pytest

from data.ensembles import (
    Ensemble,
    ensembles_of,
    known_registers,
    monophonic_programs,
    pitch_ranges,
    pitches_played,
    registers_of,
)
from data.score import DRUMS
from tests.music import EMPTY, piece


def notes(*players):
    """A piece of quarters, each of a program and a pitch."""
    return piece([(12 * n, 12, pitch, 80, program) for n, (program, pitch) in enumerate(players)])


PIECES = [
    notes((40, 60), (0, 48)),
    notes((0, 50), (40, 64), (0, 51)),
    notes((0, 52), (DRUMS, 38), (DRUMS, 42)),
    EMPTY,
]


def test_ensembles_are_counted():
    assert ensembles_of(PIECES) == (Ensemble(2, (0, 40)), Ensemble(1, (0, DRUMS)))


def test_drums_have_the_pitches_that_they_play_others_those_between_as_well():
    assert pitches_played(PIECES) == {
        0: (48, 49, 50, 51, 52),
        40: (60, 61, 62, 63, 64),
        DRUMS: (38, 42),
    }


def test_a_range_leaves_out_what_hardly_ever_happens():
    assert pitch_ranges(PIECES) == {0: (48, 52), 40: (60, 64)}
    rare = notes(*[(0, 72)] * 2000, (0, 90))
    assert pitch_ranges([rare]) == {0: (72, 72)}


def test_a_register_leaves_out_what_is_rare_in_a_piece_and_has_an_octave_at_least():
    often = notes(*[(0, 60), (0, 73), (1, 40)] * 50, (0, 20), (DRUMS, 38), (DRUMS, 42))
    own = {0: (*range(60, 74),), 1: (*range(35, 47),), DRUMS: (38, 42)}
    assert registers_of(often) == own
    ends = {0: (*range(12),), 1: (*range(116, 128),)}
    assert registers_of(notes((0, 1), (1, 125))) == ends
    assert registers_of(EMPTY) == {}


def test_registers_are_kept_only_of_more_programs_than_always_play_together():
    four, fifth = notes((0, 60), (1, 60), (2, 60), (3, 60)), notes((0, 60), (4, 60))
    assert known_registers([four]) == known_registers([four, four]) == known_registers([]) == ()
    assert known_registers([four, fifth]) == (registers_of(four), registers_of(fifth))


def test_who_plays_chords_or_drums_does_not_play_a_note_at_a_time():
    in_turn, together, overlapping = [(0, 12), (12, 12)], [(0, 12), (0, 12)], [(0, 24), (12, 12)]
    rows = [
        (onset, duration, 60 + n, 80, program)
        for program, notes in {0: together, 40: in_turn, 41: overlapping, DRUMS: in_turn}.items()
        for n, (onset, duration) in enumerate(notes)
    ]
    assert monophonic_programs([piece(rows), EMPTY]) == (40,)


@pytest.mark.parametrize(("stops", "expected"), [(1, (0,)), (2, ())])
def test_one_note_in_a_hundred_may_begin_while_another_sounds(stops, expected):
    rows = [(12 * n, 12 + (n < stops), 60 + n % 2, 80, 0) for n in range(100)]
    assert monophonic_programs([piece(rows)]) == expected
