"""Musical statistics: by hand on small pieces, beside MusPy's own figures, and the slow way."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import texture
from data.canonical import canonical
from data.corpus import bach
from data.extremes import note_density
from data.keys import pitched_notes
from data.score import DRUMS, SECONDS, Grid
from evaluation import metrics
from evaluation.comparison import HISTOGRAMS, MEASURES
from tests.music import EMPTY, piece, scores

NAN = pytest.approx(float("nan"), nan_ok=True)
BEAT = [(36 * i, 6, 36, 80, DRUMS) for i in range(9)]  # dotted quarters, over seven bars of 4/4
# Two programs in unison for a time, a third with chords, drums; three bars.
MIXED = [
    *[(0, 12, 60, 80, 0), (12, 6, 62, 80, 0), (18, 6, 64, 80, 0), (24, 24, 65, 80, 0)],
    *[(0, 48, 48, 80, 0), (48, 24, 52, 80, 0), (72, 24, 50, 80, 0), (96, 36, 48, 80, 0)],
    *[(48, 12, 67, 80, 0), (60, 12, 66, 80, 0), (72, 12, 67, 80, 0), (84, 12, 70, 80, 0)],
    *[(96, 18, 72, 80, 0), (114, 6, 71, 80, 0), (120, 16, 72, 80, 0)],
    *[(0, 12, 60, 80, 40), (24, 30, 65, 80, 40), (96, 12, 72, 80, 40)],
    *[(24 * i, 6, 36 + 2 * (i % 2), 80, DRUMS) for i in range(5)],
]


def bars(count, length=48):
    return [(4, 4, length)] * count


def line(pitches, start=0, step=12, program=0):
    """Rows for `piece`: one note after another."""
    return [(start + step * i, step, pitch, 80, program) for i, pitch in enumerate(pitches)]


def chorale(name):
    (path,) = [path for path in bach.entries() if path.name == f"{name}.mxl"]
    return bach.chorale_score(bach.read_entry(path), Grid())


@pytest.mark.parametrize(
    ("score", "entropy", "consistency", "pitch_range", "polyphony"),
    [
        (lambda: piece(MIXED, bars(3)), 2.6337314206, 0.8888888889, 24, 2.0147058824),
        (lambda: chorale("bwv10.7"), 2.9433297291, 0.9514563107, 34, 3.8181818182),
        (lambda: chorale("bwv269"), 2.7492794976, 0.9955555556, 32, 3.9841269841),
        (lambda: chorale("bwv66.6"), 2.9672431008, 0.9386503067, 34, 3.8333333333),
        (lambda: piece(BEAT, bars(7)), *[float("nan")] * 4),  # but a range of -127 in MusPy
    ],
)
def test_what_muspy_defines_it_defines_so(score, entropy, consistency, pitch_range, polyphony):
    # The literals are those of MusPy 0.5.0 for the same notes, at 12 steps a quarter note.
    score = score()
    found = (
        metrics.pitch_class_entropy(score),
        metrics.scale_consistency(score),
        metrics.pitch_range(score),
        texture.polyphony(score),
    )
    expected = (entropy, consistency, pitch_range, polyphony)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_groove_is_muspys_where_the_last_note_ends_before_its_bar():
    assert metrics.groove_consistency(piece(MIXED, bars(3))) == pytest.approx(0.9479166667)
    assert metrics.groove_consistency(piece(BEAT, bars(7))) == pytest.approx(0.9479166667)


def test_groove_is_muspys_less_the_empty_bar_that_it_adds_to_a_full_one():
    score = chorale("bwv10.7")
    last = np.unique(score.notes["onset"][score.notes["onset"] >= score.bar_starts[-2]])
    ours, pairs = metrics.groove_consistency(score), len(score.bars) - 1
    with_empty_bar = (ours * pairs + 1 - len(last) / 48) / (pairs + 1)
    assert with_empty_bar == pytest.approx(0.9772727273)  # MusPy 0.5.0


def test_by_hand_pitches():
    score = piece(line([60, 60, 64, 67, 72 + 4, 67, 48, 72]), bars(2))
    # C four times, E and G twice: 1/2, 1/4, 1/4
    assert metrics.pitch_class_entropy(score) == 1.5
    assert metrics.scale_consistency(score) == 1.0
    assert metrics.pitch_range(score) == 28.0
    # every C major scale degree, and F sharp
    other = piece(line([60, 62, 64, 65, 66, 67, 69, 71]), bars(2))
    assert metrics.scale_consistency(other) == 7 / 8
    assert metrics.pitch_class_entropy(other) == 3.0
    harmonic = piece(line([57, 59, 60, 62, 64, 65, 68]), bars(2))  # harmonic minor is no scale here
    assert metrics.scale_consistency(harmonic) == 6 / 7


RUN = [60, 64, 62, 67, 65, 72, 71, 60]  # eight notes with intervals of many sizes


def test_by_hand_similarity_of_bars():
    one = [60, 62, 64, 65]
    score = piece(line(one) + line(one, 48) + line([60, 62, 67, 67], 96), bars(3))
    # the same; two of six notes in common, twice
    assert metrics.bar_similarity(score) == pytest.approx((1 + 2 / 6 + 2 / 6) / 3)
    far = metrics.MAX_BAR_DISTANCE + 1
    apart = piece(line(one) + line(one, 48 * far), bars(far + 1))
    # 16 empty bars beside the first, as many before the last; the two are too far apart
    assert metrics.bar_similarity(apart) == 0.0
    near = piece(line(one) + line(one, 48 * (far - 1)), bars(far))
    assert metrics.bar_similarity(near) == pytest.approx(1 / 31)
    assert metrics.bar_similarity(piece(line(one))) == NAN


def test_by_hand_repeated_material():
    def share(*lines):
        return metrics.repeated_material(piece(list(chain(*lines)), bars(9)))

    higher = [pitch + 5 for pitch in RUN]
    assert share(line(RUN)) == 0.0
    assert share(line(RUN), line(RUN, start=96)) == 1.0
    assert share(line(RUN), line([61, 66, 61, 70], start=96), line(higher, start=144)) == 16 / 20
    assert share(line(RUN), line([59], start=96), line(RUN[:7], start=108)) == 0.0
    assert share(line(RUN), line(RUN, start=96, step=6)) == 0.0  # another rhythm
    assert share(line(RUN), line(higher, start=48, program=40)) == 1.0  # an imitation
    assert share(line(RUN), line(higher, program=40)) == 0.0  # a doubling is none
    bass = [(onset, 12, pitch - 24, 80, 0) for onset, _, pitch, _, _ in line([60] * 8)]
    assert share(line(RUN), bass, line(higher, start=96)) == 1.0  # the highest notes are the melody
    assert share(line(RUN[:7])) == NAN
    assert share(line(RUN[:4]), line(RUN[4:], program=40)) == NAN


def test_by_hand_intervals_and_durations():
    melody = line([60, 64, 62], step=6) + line([67], start=36)
    score = piece([*melody, (0, 48, 40, 80, 0), (0, 6, 36, 80, DRUMS), *line([70, 69], 0, 24, 40)])
    assert metrics.intervals(score) == {4: 1, -2: 1, 5: 1, -1: 1}
    assert metrics.durations(score) == {6: 3, 12: 1, 48: 1, 24: 2}


def test_where_nothing_is_defined_it_is_said():
    for measure in MEASURES.values():
        assert measure.of(EMPTY) == NAN, measure.label
    for histogram in HISTOGRAMS.values():
        assert not histogram.of(EMPTY)
        assert not histogram.of(piece(BEAT, bars(7)))


def test_without_a_beat_there_are_no_bars_and_durations_are_coarse():
    notes = piece(line([60, 62] * 20, step=97), bars(90)).notes
    score = canonical(notes, EMPTY.bars, [], SECONDS)[0]
    for name in ("groove_consistency", "bar_similarity", "repeated_material"):
        assert MEASURES[name].of(score) == NAN
    assert metrics.durations(score) == {91: 40}  # nearest to 97 of 64, 91, 128 hundredths
    assert note_density(score) == pytest.approx(40 / 38.8)  # until the last note ends


def moved(score, semitones):
    notes = score.notes.copy()
    notes["pitch"][notes["program"] != DRUMS] += semitones
    return canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]


@given(scores(Grid(), SECONDS), st.integers(1, 11))
def test_no_measure_asks_for_the_key(score, semitones):
    low = moved(score, 0)
    pitch = pitched_notes(low)["pitch"]
    if not len(pitch) or pitch.max() + semitones > 127:
        return
    high = moved(score, semitones)
    for name, measure in MEASURES.items():
        if name != "out_of_range":
            assert measure.of(high) == pytest.approx(measure.of(low), nan_ok=True), name
    for name, histogram in HISTOGRAMS.items():
        if name != "above_tonic":  # of keys that fit as well the first wins
            assert histogram.of(high) == histogram.of(low), name


@given(scores())
def test_polyphony_is_that_of_a_piano_roll(score):
    roll = np.zeros((score.end_step + 1, 128), dtype=bool)
    for onset, duration, pitch, _, _ in pitched_notes(score).tolist():
        roll[onset : onset + duration, pitch] = True
    sounds = np.count_nonzero(roll.any(axis=1))
    expected = roll.sum() / sounds if sounds else float("nan")
    assert texture.polyphony(score) == pytest.approx(expected, nan_ok=True)


@given(scores())
def test_bars_are_compared_as_one_would_by_eye(score):
    starts = score.bar_starts
    contents, grooves = [], []
    for begin, end in pairwise(starts):
        inside = score.notes[(score.notes["onset"] >= begin) & (score.notes["onset"] < end)]
        contents.append(
            {(n["onset"] - begin, n["duration"], n["pitch"], n["program"]) for n in inside}
        )
        groove = np.zeros(end - begin)
        groove[inside["onset"] - begin] = 1
        grooves.append(groove)
    pairs = [
        len(one & other) / len(one | other)
        for number, one in enumerate(contents)
        for other in contents[number + 1 : number + 1 + metrics.MAX_BAR_DISTANCE]
        if one | other
    ]
    expected = np.mean(pairs) if pairs else float("nan")
    assert metrics.bar_similarity(score) == pytest.approx(expected, nan_ok=True)
    alike = [np.mean(a == b) for a, b in pairwise(grooves) if len(a) == len(b)]
    expected = np.mean(alike) if alike else float("nan")
    assert metrics.groove_consistency(score) == pytest.approx(expected, nan_ok=True)


def test_rests_of_programs():
    """The first rests for a quarter of three, the second, which comes in later, for two."""
    tune = [(0, 12, 60, 80, 0), (24, 12, 62, 80, 0), (12, 12, 48, 80, 1)]
    assert texture.rests(piece(tune)) == pytest.approx(3 / 6)
    assert texture.rests(piece(tune[:1])) == 0
    assert np.isnan(texture.rests(EMPTY))


@pytest.mark.parametrize(
    ("lengths", "is_regular"),
    [
        ((48, 48, 48), True),
        ((12, 48, 48, 36), True),  # an upbeat, and its rest at the end
        ((48, 36, 12, 48, 48), True),
        ((48, 12, 24, 12, 36, 12, 48), True),
        ((48, 36, 48, 48), False),
        ((48, 36, 24, 48, 48), False),
        ((48, 48, 36, 12), False),  # the last is no part of it
        ((), True),
    ],
)
def test_bars_are_regular_if_shortened_ones_are_made_whole(lengths, is_regular):
    in_last_bar = [(sum(lengths[:-1]), 6, 60, 80, 0)] if lengths else []  # so that all are there
    score = piece(in_last_bar, [(4, 4, length) for length in lengths])
    assert texture.has_regular_bars(score) == is_regular


def test_bars_of_two_meters_are_not_regular():
    assert not texture.has_regular_bars(piece(BEAT[:4], [(4, 4, 48), (3, 4, 36), (4, 4, 48)]))
    assert texture.has_regular_bars(piece(BEAT[:4], [(3, 4, 36), (6, 8, 36), (3, 4, 36)]))
