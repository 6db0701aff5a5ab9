"""Where music comes to rest."""

import numpy as np
import pytest
from hypothesis import given

from data.cadences import final_chord, phrase_ends, root_of_triad
from data.score import DRUMS, NOTE
from tests.music import EMPTY, GRID, chord, piece, scores

BASS, TOP = 43, 40  # programs


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


@pytest.mark.parametrize(
    ("notes", "is_end"),
    [
        ([(36, 12, 48, 80, BASS), (36, 12, 64, 80, TOP)], True),
        ([(0, 48, 48, 80, BASS), (36, 12, 64, 80, TOP)], True),
        ([(0, 48, 48, 80, BASS), (42, 6, 64, 80, TOP)], False),  # the top moves in eighths
        ([(36, 24, 48, 80, BASS), (36, 12, 64, 80, TOP)], False),  # the bass holds on
        ([(36, 12, 52, 80, BASS), (36, 12, 60, 80, TOP)], False),  # the third in the bass
        ([(36, 12, 48, 80, BASS), (36, 12, 64, 80, BASS)], False),  # the top rests
    ],
)
def test_a_phrase_ends_with_a_long_chord_that_all_leave(notes, is_end):
    later = [(72, 12, 50, 80, BASS), (72, 12, 52, 80, TOP)]
    score = piece([*notes, *later], [(4, 4, 48)] * 2)
    assert (48 in phrase_ends(score)) == is_end
    assert len(phrase_ends(EMPTY)) == 0


@given(score=scores(GRID))
def test_phrases_end_where_all_notes_say_so(score):
    """The definition, read off all notes at each of their ends."""
    notes = score.notes[score.notes["program"] != DRUMS]
    begin, end = notes["onset"], notes["onset"] + notes["duration"]
    expected = []
    for step in np.unique(end):
        sounding = notes[(begin < step) & (end >= step)]
        all_stop = (sounding["onset"] + sounding["duration"] == step).all()
        is_long = (sounding["duration"] >= GRID.steps_per_beat).all()
        all_play = {*sounding["program"]} == {*notes["program"]}
        if all_stop and is_long and all_play and root_of_triad(sounding) is not None:
            expected.append(step)
    assert phrase_ends(score).tolist() == expected
