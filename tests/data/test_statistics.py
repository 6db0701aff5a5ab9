"""What is counted in a piece, by hand for small ones, and what must hold for all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.statistics import GROUPS, NAMES, Music, statistics
from tests.folders import tune
from tests.music import EMPTY, in_parts, piece

GROUP_OF = np.array([name.partition(": ")[0] for name in NAMES])
# soprano, alto, tenor and bass: C major, F major, G7, C major, a beat each
HYMN = in_parts((72, 67, 64, 48), (72, 69, 65, 53), (71, 67, 65, 55), (72, 67, 64, 48))


def value(score, name):
    return statistics(Music(score))[NAMES.index(name)]


def test_every_statistic_has_one_name_and_every_group_some():
    assert len({*NAMES}) == len(NAMES) == 570
    assert [*dict.fromkeys(GROUP_OF)] == [group.name for group in GROUPS]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("intervals, soprano: notes struck again", 1 / 3),
        ("intervals, soprano: semitones down", 1 / 3),
        ("intervals, bass: fourths up", 1 / 3),
        ("intervals, bass: fifths down", 1 / 3),
        ("durations, tenor: quarters", 1),
        ("places of notes in the bar, alto: on beat 3", 1 / 4),
        ("contour, bass: turns", 1 / 2),
        ("intervals on beats, soprano and bass: unisons and octaves", 1 / 2),
        ("intervals on beats, soprano and bass: fifths", 1 / 4),
        ("motion, soprano and bass: against each other", 2 / 3),
        ("chords on beats: major triads", 3 / 4),
        ("chords on beats: dominant sevenths", 1 / 4),  # G, B and F: without its fifth
        ("pitch classes at once: 3 on beats", 1),
        ("inversions: triads in root position", 1),
        ("doublings in triads: root twice", 1),
        ("texture: 4 voices begin on beats", 1),
        ("ending: on the tonic", 1),
        ("ending: on a triad", 1),
        ("ending: last step of the lowest voice", -7),
        ("pace: notes at once", 4),
    ],
)
def test_a_hymn_by_hand(name, expected):
    assert value(HYMN, name) == pytest.approx(expected)


def test_what_is_not_there_is_not_a_number():
    alone = statistics(Music(tune(0)))
    is_undefined = np.isnan(alone)
    assert is_undefined[[" and " in name and "motion" in name for name in GROUP_OF]].all()
    assert np.isnan(statistics(Music(EMPTY))).all()
    drums = piece([(0, 12, 36, 80, 128), (24, 12, 38, 80, 128)])
    assert {*GROUP_OF[~np.isnan(statistics(Music(drums)))]} <= {"repetition", "pace"}


notes = st.tuples(
    st.integers(0, 200), st.integers(1, 60), st.integers(30, 90), st.just(80), st.integers(0, 5)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(notes, min_size=1, max_size=40), st.integers(-5, 5))
def test_any_music_has_statistics_and_most_are_the_same_in_another_key(written, moved):
    score = piece(written)
    found = statistics(Music(score))
    assert found.shape == (len(NAMES),)
    assert not np.isinf(found).any()
    higher = piece([(on, long, pitch + moved, v, who) for on, long, pitch, v, who in written])
    same = np.isclose(found, statistics(Music(higher)), equal_nan=True)
    keyless = [
        n for n, name in enumerate(NAMES) if name.startswith(("intervals", "motion", "chords"))
    ]
    assert same[keyless].all()
