"""Bars anew: where beats and bars are found again when the signatures are lost."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.files.read import read_events
from data.midi.bars import barred_anew, is_barred_wrongly
from data.midi.io import midi_bytes, parse_events
from data.midi.quantize import score_from_events
from data.score import SECONDS, Grid
from tests.folders import NOTTINGHAM
from tests.music import GRID, events_of, random_score

FOUR = Grid(meter=(4, 4))


def song(meters, late=0, upbeat=1):
    """Eight bars of 4/4: a long note on each line, shorter ones between; an upbeat of beats."""
    begins = [(4 * bar, 4, 40) for bar in range(8)]
    begins += [(4 * bar + beat, 1, 60 + beat) for bar in range(8) for beat in range(4)]
    begins += [(-beat, 1, 70) for beat in range(1, upbeat + 1)]
    rows = [
        ((beat + upbeat) * 480 + late, (beat + upbeat + length) * 480 + late, pitch, 80, 0)
        for beat, length, pitch in begins
    ]
    return events_of(sorted(rows), meters)


@pytest.mark.parametrize("meters", [[], [(0, 1, 4)], [(0, 4, 4), (0, 1, 4)], [(0, 2, 4)]])
@pytest.mark.parametrize("upbeat", [0, 1, 2, 3])
@pytest.mark.parametrize("late", [0, 17, 40, 100, 250])
def test_bars_begin_where_long_notes_do(meters, upbeat, late):
    score, changes = score_from_events(song(meters, late, upbeat), FOUR)
    lengths = score.bars["length"].tolist()
    assert {*map(tuple, score.bars[["numerator", "denominator"]].tolist())} == {(4, 4)}
    assert lengths[-8:] == [48] * 8
    assert len(lengths) == 8 + bool(upbeat)
    starts = score.bar_starts[:-1]
    assert {*score.notes["onset"][score.notes["duration"] == 48]} == {*starts[-8:].tolist()}
    assert changes.moved == 0
    assert score.notes["onset"][0] == 0
    assert lengths[0] == 12 * (upbeat or 4)


def test_true_signatures_stay():
    for meters in ([(0, 4, 4)], [(0, 3, 4)], [(0, 4, 4), (960, 2, 4)], [(0, 6, 8)]):
        events = song(meters)
        assert not is_barred_wrongly(events, (4, 4), 12)
        assert barred_anew(events, (4, 4), 12) is events
    assert is_barred_wrongly(song([(0, 4, 4)], late=60), (4, 4), 12)  # beats between the steps
    assert is_barred_wrongly(song([(0, 1, 8)]), (6, 8), 12)
    assert not is_barred_wrongly(song([(0, 1, 4)], upbeat=0), (3, 8), 12)  # no part of its bars


@given(st.integers(0, 2**32 - 1), st.sampled_from([(4, 4), (3, 4), (6, 8)]), st.integers(3, 30))
@settings(deadline=None)
def test_what_is_written_with_bars_is_read_with_the_same(seed, meter, steps_per_beat):
    """Bars of 2/4 throughout, too, which a file of others would not be believed."""
    grid = Grid(steps_per_beat, meter=meter)
    written = [random_score(np.random.default_rng(seed), grid)]
    short = dataclasses.replace(song([(0, 2, 4)]), meters=np.array([(0, 2, 4), (10**6, *meter)]))
    written.append(score_from_events(short, grid)[0])
    assert {*written[1].bars["numerator"].tolist()} == {2}
    for score in written:
        assert score_from_events(parse_events(midi_bytes(score), "it"), grid)[0] == score


def test_a_long_bar_is_split_and_costs_nothing_else():
    """A cadenza of 41/8 between bars of 4/4; and a piece without bar lines."""
    cadenza = song([(0, 4, 4), (4 * 480, 41, 8), (4 * 480 + 41 * 240, 3, 4)], upbeat=0)
    score, changes = score_from_events(cadenza, GRID)
    whole, short, last = (4, 4, 48), (4, 4, 6), (3, 4, 36)
    assert score.bars.tolist() == [whole] * 6 + [short, *[last] * 3]
    assert changes.split_bars == 1
    endless = song([(0, 4, 4), (0, 3, 4), (0, 255, 1)], upbeat=0)
    score, changes = score_from_events(endless, GRID)
    assert score.bars.tolist() == [whole] * 8
    assert changes.split_bars == 1
    unheard = song([(0, 4, 4), (10**6, 255, 1), (2 * 10**9, 4, 4)], upbeat=0)
    assert score_from_events(unheard, GRID) == score_from_events(song([(0, 4, 4)], upbeat=0), GRID)
    silent = dataclasses.replace(endless, notes=endless.notes[:0], meters=np.array([(0, 255, 0)]))
    assert not len(score_from_events(silent, GRID)[0].notes)  # nothing rests on its bars
    in_seconds = score_from_events(endless, SECONDS)[0]
    assert in_seconds == score_from_events(song([(0, 4, 4)], upbeat=0), SECONDS)[0]


def test_tempi_move_with_the_notes():
    events = dataclasses.replace(
        song([], late=100, upbeat=0), tempi=np.array([[0, 90], [2020, 60]])
    )
    score = score_from_events(events, FOUR)[0]
    assert score.tempo_bpm.tolist() == [90] + [60] * 7  # the change is on the second line


def test_upbeats_are_found_again_in_real_tunes():
    if not NOTTINGHAM.is_dir():
        pytest.skip("NOTTINGHAM names no folder of these tunes")
    found = []
    for path in sorted(NOTTINGHAM.glob("*.mid"))[::16]:
        events = read_events(path)
        n, d = events.meters[0, 1:].tolist()
        if len({*map(tuple, events.meters[:, 1:].tolist())}) > 1 or (n, d) not in ((4, 4), (6, 8)):
            continue
        score = score_from_events(events, GRID)[0]
        nameless = dataclasses.replace(events, meters=np.empty((0, 3), int))
        again = score_from_events(nameless, Grid(meter=(n, d)))[0]
        whole = GRID.bar_steps(n, d)
        late, line = (int(its.notes["onset"][0] - its.bar_starts[1]) for its in (score, again))
        found.append((late - line) % whole == 0)
    assert len(found) > 25
    assert np.mean(found) > 0.95
