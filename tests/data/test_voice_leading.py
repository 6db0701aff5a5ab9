"""Four voices together: by hand on a few chords, and any beside music21's own verdict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from music21.note import Note
from music21.voiceLeading import VoiceLeadingQuartet

from benchmarks.given import parallel_fifths, parallel_octaves
from data.score import DRUMS, SECONDS
from data.voice_leading import four_parts
from tests.music import EMPTY, in_parts, piece

MEASURES = (parallel_fifths, parallel_octaves)


def test_a_voice_that_holds_or_rests_moves_in_no_parallel():
    fifths = [(0, 12, 55, 80, 42), (12, 12, 57, 80, 42), (0, 12, 48, 80, 43)]
    others = [(0, 12, 72, 80, 40), (0, 12, 64, 80, 41)]
    assert parallel_fifths(piece([*fifths, *others, (12, 12, 50, 80, 43)])) == 100.0
    assert parallel_fifths(piece([*fifths, *others, (18, 12, 50, 80, 43)])) == 0.0
    # the tenor passes through B on its way, so that the fifth is no longer there
    passing = [(0, 6, 55, 80, 42), (6, 6, 59, 80, 42), (12, 12, 57, 80, 42), (0, 12, 48, 80, 43)]
    assert parallel_fifths(piece([*passing, *others, (12, 12, 50, 80, 43)])) == 0.0
    two_bars = in_parts((72, 64, 55, 48), *[(74, 65, 57, 50)] * 4)
    assert [measure(two_bars) for measure in MEASURES] == [50.0, 50.0]


# By so many semitones.
DOWN = ["P1", "m-2", "M-2", "m-3", "M-3", "P-4", "d-5", "P-5", "m-6", "M-6", "m-7", "M-7"]


@given(
    st.lists(st.integers(40, 80), min_size=4, max_size=4),
    st.lists(st.integers(-9, 9), min_size=4, max_size=4),  # beyond, it spells diminished octaves
)
def test_parallels_are_what_music21_finds(chord, steps):
    pitches = [*chord, *(pitch + step for pitch, step in zip(chord, steps, strict=True))]
    score = in_parts(pitches[:4], pitches[4:])
    found = {"fifths": 0, "octaves": 0}
    for one in range(4):
        for other in range(one + 1, 4):
            moves = [pitches[4 + voice] - pitches[voice] for voice in (one, other)]
            # without octaves, in which music21 wants the second interval to equal the first, and
            # by name, so that a fifth is never spelled as a diminished sixth
            upper = [Note(pitches[at + one]) for at in (0, 4)]
            lower = [
                note.transpose(DOWN[abs(pitches[at + one] - pitches[at + other]) % 12])
                for note, at in zip(upper, (0, 4), strict=True)
            ]
            pair = VoiceLeadingQuartet(*upper, *lower)
            if moves[0] * moves[1] > 0:
                found["fifths"] += pair.parallelFifth()
                found["octaves"] += pair.parallelOctave() or pair.parallelUnison()
    assert parallel_fifths(score) == 100 * found["fifths"]
    assert parallel_octaves(score) == 100 * found["octaves"]


def test_voices_are_told_apart_by_their_height_and_not_by_their_programs():
    rows = [(0, 24, pitch, 80, program) for pitch, program in ((72, 3), (64, 9), (55, 0), (48, 5))]
    parts = four_parts(piece([*rows, (24, 6, 40, 80, 5), (0, 6, 36, 80, DRUMS)]))
    assert parts is not None
    assert [each.tolist() for each in parts] == [[0, 24, 30], [[72, 64, 55, 48], [-1, -1, -1, 40]]]


def test_what_is_not_in_four_parts_has_no_figures():
    trio = in_parts((72, 64, 55, None))
    quintet = piece([(0, 12, 48 + 5 * voice, 80, 40 + voice) for voice in range(5)])
    chord = piece([(0, 12, 48 + 5 * voice, 80, 40 + min(voice, 3)) for voice in range(5)])
    overlap = [(0, 12, 48 + 5 * voice, 80, 40 + voice) for voice in range(4)]
    for score in (EMPTY, trio, quintet, chord, piece([*overlap, (11, 12, 40, 80, 40)])):
        assert np.isnan([measure(score) for measure in MEASURES]).all()
    assert not np.isnan([measure(piece(overlap)) for measure in MEASURES]).any()
    timed = piece(overlap, grid=SECONDS)
    assert np.isnan([parallel_fifths(timed), parallel_octaves(timed)]).all()
