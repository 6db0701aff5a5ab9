"""Who plays together in pieces, and which pitches."""

from data.ensembles import Ensemble, ensembles_of, pitch_ranges, pitches_played
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
