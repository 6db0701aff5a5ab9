"""Where music comes to rest."""

import numpy as np
import pytest

from data.cadences import final_chord, root_of_triad
from data.score import DRUMS, NOTE
from tests.music import EMPTY, chord, piece


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
