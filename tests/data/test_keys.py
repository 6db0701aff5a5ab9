"""Keys: by hand on small pieces, and on chorales beside music21's own answer."""

import numpy as np
import pytest

from benchmarks.cadences import estimate_key
from data.corpus import bach
from data.followed_keys import count_keys, follow_key
from data.keys import KEY_PROFILES, LEAST_HEARD, Key, melody_key, notated_key
from data.score import DRUMS, NOTE, Grid
from tests.music import EMPTY, chord, line, piece

C_MAJOR = (60, 62, 64, 65, 67, 69, 71)


def bars(count):
    return [(4, 4, 48)] * count


def test_keys_of_pieces_are_counted_by_mode_and_tonic():
    scale = [60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60]
    in_c, in_e_flat = (piece(line([p + up for p in scale]), bars(3)) for up in (0, 3))
    counts = count_keys([in_c, in_e_flat, in_c, EMPTY])
    assert counts == {"major": (2, 0, 0, 1, *(0,) * 8), "minor": (0,) * 12}


def test_few_notes_follow_no_key_nor_do_those_that_fit_two_as_well():
    scale = np.isin(np.arange(12), [0, 2, 4, 5, 7, 9, 11]).astype(np.int64)
    again = np.eye(12, dtype=np.int64)[0]
    tritone = np.isin(np.arange(12), [0, 6]) * 40
    heard = (scale, scale + again, tritone, np.full(12, 9))
    tonics = [follow_key(KEY_PROFILES, each)[0] for each in heard]
    assert scale.sum() == LEAST_HEARD - 1
    assert tonics == [-1, 0, -1, -1]


def test_drums_have_no_key():
    beat = [(12 * step, 12, 37, 80, DRUMS) for step in range(16)]
    assert estimate_key(piece(line(C_MAJOR) + chord(60, 64, 67, start=84) + beat, bars(4))) == (
        estimate_key(piece(line(C_MAJOR) + chord(60, 64, 67, start=84), bars(4)))
    )
    for silent in (EMPTY, piece(beat, bars(4)), piece(chord(*range(60, 72)))):
        with pytest.raises(ValueError, match="no key"):
            estimate_key(silent)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("bwv66.6", Key(6, "minor")),  # ends with a Picardy third
        ("bwv269", Key(7, "major")),
        ("bwv277", Key(2, "minor")),
        ("bwv253", Key(9, "major")),
        ("bwv10.7", Key(7, "minor")),
        ("bwv153.5", Key(9, "minor")),  # phrygian, on E
    ],
)
def test_chorales_as_music21_hears_them(name, key):
    (path,) = [path for path in bach.entries() if path.name == f"{name}.mxl"]
    printed = bach.read_entry(path)
    score = bach.chorale_score(printed, Grid())
    assert estimate_key(score) == key
    heard = printed.analyze("key.krumhanslkessler")
    assert (heard.tonic.pitchClass, heard.mode) == key


@pytest.mark.parametrize(
    ("pitches", "key"),
    [
        ((60, 64, 67, 72), Key(0, "major")),
        ((60, 60, 67, 67, 69, 69, 67, 65, 65, 64, 64, 62, 62, 60), Key(0, "major")),
        ((64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64, 64, 62, 62), Key(0, "major")),
        ((69, 71, 72, 74, 76, 69), Key(9, "minor")),
        # a tune that pauses next to its tonic
        ((72, 71, 69, 67, 65, 64, 62, 59), Key(0, "major")),
        ((60, 62, 64, 65, 67, 64, 62, 59, 59, 59, 59), Key(0, "major")),
        ((60, 62, 64, 60, 62, 59), Key(0, "major")),
        ((69, 71, 72, 71, 69, 68), Key(9, "minor")),
        ((60, 67), None),
        (tuple(range(60, 72)), None),
    ],
)
def test_the_key_of_a_melody_is_found_as_people_hear_it(pitches, key):
    rows = [(12 * place, 12, pitch, 80, 40) for place, pitch in enumerate(pitches)]
    assert melody_key(np.array(rows, NOTE)) == key
    moved = np.array([(*row[:2], row[2] + 5, *row[3:]) for row in rows], NOTE)
    expected = key and Key((key.tonic + 5) % 12, key.mode)
    assert melody_key(moved) == expected


def test_a_phrase_in_c_that_ends_on_g_is_not_notated_with_every_f_made_natural():
    steps = {60: 68, 62: 71, 63: 4, 64: 60, 65: 38, 68: 4, 69: 56, 71: 56, 55: 124}  # of a harmony
    notes = [(0, duration, pitch, 80, 0) for pitch, duration in steps.items()]
    assert notated_key(piece([*notes, (480, 12, 43, 80, 0)])) == Key(0, "major")  # for Ode to Joy
