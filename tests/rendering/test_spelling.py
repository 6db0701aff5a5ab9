"""How notes are spelled: by what sounds around them, and never as another pitch."""

import hypothesis.strategies as st
from hypothesis import given

from data.chords import STEPS
from data.keys import parse_key
from rendering.spelling import spell_notes
from tests.music import line, piece


def names(pitches, key):
    written = spell_notes(piece(line(pitches), ((4, 4, 48),) * 2), parse_key(key))
    return " ".join(letter + "#" * sharps + "b" * -sharps for letter, sharps, _ in written)


def test_a_pitch_has_another_name_in_another_context():
    assert names([69, 72, 77, 76, 77, 72, 69, 69], "A major") == "A C F E F C A A"
    assert names([73, 77, 80, 85, 77, 80, 73, 73], "A major") == "C# E# G# C# E# G# C# C#"
    assert names([60, 64, 67, 71, 72, 68, 71, 69], "C major") == "C E G B C G# B A"
    assert names([60, 63, 67, 68, 72, 68, 63, 60], "C major") == "C Eb G Ab C Ab Eb C"


@given(st.lists(st.integers(0, 127), max_size=40), st.sampled_from(["F# major", "Eb minor", "C"]))
def test_each_name_is_that_of_the_pitch(pitches, key):
    score = piece(line(pitches), ((4, 4, 48),) * 10)
    written = spell_notes(score, parse_key(key))
    named = [STEPS[letter] + sharps + 12 * (octave + 1) for letter, sharps, octave in written]
    assert named == score.notes["pitch"].tolist()
