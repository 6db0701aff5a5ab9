"""Who plays together in pieces, and which pitches."""

from data.ensembles import count_ensembles, pitches_played
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
    assert count_ensembles(PIECES) == [[2, 0, 40], [1, 0, DRUMS]]


def test_drums_have_the_pitches_that_they_play_others_those_between_as_well():
    assert pitches_played(PIECES) == {
        "0": [48, 49, 50, 51, 52],
        "40": [60, 61, 62, 63, 64],
        "128": [38, 42],
    }
