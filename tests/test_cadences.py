"""How pieces end."""

import numpy as np
import pytest

from benchmarks.cadences import ends_on_tonic, estimate_key
from data.harmony import final_chord, root_of_triad
from data.keys import Key
from data.score import DRUMS, NOTE
from tests.music import EMPTY, chord, line, piece

C_MAJOR = (60, 62, 64, 65, 67, 69, 71)


def test_the_final_chord_is_what_sounds_at_the_last_onset():
    notes = [(0, 24, 48, 80, 0), (0, 12, 64, 80, 0), (12, 6, 62, 80, 0), (18, 30, 60, 80, 0)]
    drum = (24, 12, 36, 80, DRUMS)  # later, but no pitch
    assert final_chord(piece([*notes, drum]))["pitch"].tolist() == [48, 60]
    assert len(final_chord(EMPTY)) == 0


@pytest.mark.parametrize(
    ("pitches", "root"),
    [
        ((48, 55, 64, 72), 0),  # C E G
        ((48, 63, 67), 0),  # C Eb G
        ((48, 64, 60), 0),  # no fifth
        ((43, 59, 62, 67), 7),
        ((52, 60, 67), None),  # E in the bass
        ((48, 55, 60), None),  # no third
        ((48, 63, 64, 67), None),  # both thirds
        ((48, 64, 67, 70), None),  # a seventh
        ((48, 60), None),
        ((), None),
    ],
)
def test_a_triad_in_root_position(pitches, root):
    notes = np.array(chord(*pitches), dtype=NOTE)
    assert root_of_triad(notes) == root


def test_an_ending_on_the_tonic():
    before = line(C_MAJOR) + line((60, 64, 67, 60, 67), start=84)  # three bars of C major
    endings = {
        "tonic": ((48, 64, 67), True),
        "Picardy third of another key": ((57, 61, 64), False),
        "minor": ((48, 63, 67), True),
        "dominant": ((43, 59, 62), False),
        "first inversion": ((52, 60, 67), False),
    }
    for name, (pitches, is_tonic) in endings.items():
        score = piece(before + chord(*pitches, start=144), [(4, 4, 48)] * 4)
        assert ends_on_tonic(score) == is_tonic, name
    # However long it sounds, the last bar does not decide what the key is.
    long = piece(before + chord(57, 60, 64, start=144, duration=4800), [(4, 4, 48)] * 4)
    assert estimate_key(long) == Key(9, "minor")
    assert not ends_on_tonic(long)
    assert not ends_on_tonic(piece(chord(48, 64, 67)))  # nothing before it
    assert not ends_on_tonic(EMPTY)
