"""Where music comes to rest."""

import json

import numpy as np
import pytest
from hypothesis import given

from data.cadences import Phrases, final_chord, phrase_ends, phrases_of, root_of_triad
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


def test_the_phrases_of_a_piece_count_back_from_its_final_chord():
    """An upbeat, a phrase of a bar and a half, and one to the end of the last bar."""
    notes = [(onset, 12, pitch, 80, p) for onset in (0, 36) for p, pitch in ((BASS, 48), (TOP, 64))]
    notes += [(48, 12, 50, 80, BASS), (48, 12, 64, 80, TOP)]  # not a triad
    notes += [(84, 24, 48, 80, BASS), (84, 24, 64, 80, TOP)]
    its = phrases_of(piece(notes, [(4, 4, 12), (4, 4, 48), (4, 4, 48)]))
    assert its == Phrases((4, 4), bars=3, final_position=24, before_final=(72, 36, -24))
    assert Phrases.from_json(json.loads(json.dumps(its.to_json()))) == its


@pytest.mark.parametrize(
    "data",
    [
        {},
        [4, 4, 8, 24],
        [4, 4, 8, 24, "48"],
        [4, 4, 8, -1, []],
        [4, 4, 8, 24, [0.5]],
        [4, 4, 8, 24, [2**40]],
    ],
)
def test_what_are_no_phrases_is_refused(data):
    with pytest.raises(ValueError, match="not phrases"):
        Phrases.from_json(data)


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
