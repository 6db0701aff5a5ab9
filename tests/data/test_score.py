"""The canonical form, on pieces small enough to check by hand, and as properties."""

import numpy as np
import pytest
from hypothesis import given

from data.canonical import canonical
from data.score import BAR, NOTE, SECONDS, TEMPO_LEVELS, VELOCITY_LEVELS, Grid, Score, nearest_level
from tests.music import BOTH, GRID, scores

FOUR_FOUR = np.array([(4, 4, 48)], dtype=BAR)


def notes(*rows):
    return np.array([*rows], dtype=NOTE)


def test_same_onset_program_and_pitch_keeps_the_longest_then_the_loudest():
    score, losses = canonical(
        notes((0, 12, 60, 64, 0), (0, 24, 60, 40, 0), (0, 24, 60, 80, 0), (0, 6, 60, 100, 1)),
        *(FOUR_FOUR, [120], GRID),
    )
    assert score.notes.tolist() == [(0, 24, 60, 80, 0), (0, 6, 60, 100, 1)]
    assert (losses.merged, losses.cut) == (2, 0)


def test_a_note_is_cut_where_its_program_and_pitch_starts_again():
    score, losses = canonical(
        notes((0, 48, 60, 80, 0), (12, 0, 60, 80, 0), (6, 48, 60, 80, 1)), FOUR_FOUR, [120], GRID
    )
    assert score.notes.tolist() == [(0, 12, 60, 80, 0), (6, 48, 60, 80, 1), (12, 1, 60, 80, 0)]
    assert (losses.merged, losses.cut) == (0, 1)


def test_bars_run_to_the_one_that_holds_the_last_onset():
    bars = np.array([(3, 4, 12), (4, 4, 48), (4, 4, 48), (4, 4, 48)], dtype=BAR)
    tempi = [60, 70, 80, 90]
    score, _ = canonical(notes((12, 400, 60, 80, 0)), bars, tempi, GRID)
    assert score.bars.tolist() == [(3, 4, 12), (4, 4, 48)]
    assert score.tempo_bpm.tolist() == [60, 70]
    longer, _ = canonical(notes((156 + 48, 1, 60, 80, 0)), bars, tempi, GRID)
    assert longer.bars["length"].tolist() == [12, 48, 48, 48, 48, 48]
    assert longer.tempo_bpm.tolist() == [60, 70, 80, 90, 90, 90]


def test_levels_hold_the_usual_tempi_and_are_near_any_other():
    usual = [40, 54, 60, 72, 90, 96, 100, 108, 110, 120, 125, 130, 140, 150, 160, 180, 200]
    assert nearest_level(TEMPO_LEVELS, usual).tolist() == usual
    any_tempo = np.linspace(48, 300, 5000)
    assert np.abs(nearest_level(TEMPO_LEVELS, any_tempo) / any_tempo - 1).max() < 0.025
    assert len(VELOCITY_LEVELS) == 32
    assert nearest_level(VELOCITY_LEVELS, [1, 64, 81, 82, 100, 126, 127]).tolist() == [
        *(4, 64, 80, 84, 100, 127, 127)
    ]


@pytest.mark.parametrize(
    ("note", "word"),
    [
        ((-1, 1, 60, 80, 0), "onset"),
        ((0, 1, 128, 80, 0), "pitch"),
        ((0, 1, 60, 0, 0), "velocity"),
        ((0, 1, 60, 80, 129), "program"),
    ],
)
def test_what_no_score_can_hold_is_named(note, word):
    with pytest.raises(ValueError, match=word):
        canonical(notes(note), FOUR_FOUR, [120], GRID)


@pytest.mark.parametrize("meter", [(3, 5), (256, 128), (4, 256), (0, 4)])
def test_a_meter_that_no_midi_file_can_say_is_in_no_score(meter):
    with pytest.raises(ValueError, match="power of 2"):
        canonical(np.empty(0, NOTE), np.array([(*meter, 1)], dtype=BAR), [120], GRID)


def test_a_bar_longer_than_its_meter_is_refused():
    with pytest.raises(ValueError, match="bar"):
        canonical(notes(), np.array([(3, 4, 37)], dtype=BAR), [120], GRID)


@given(scores(*BOTH))
def test_canonical_is_idempotent_and_ordered(score):
    again, losses = canonical(score.notes, score.bars, score.tempo_bpm, score.grid)
    assert again == score
    assert (losses.merged, losses.cut) == (0, 0)
    keys = score.notes[["onset", "program", "pitch"]].tolist()
    assert keys == sorted(set(keys))
    if len(score.bars):
        starts = score.bar_starts
        assert starts[-2] <= score.notes["onset"].max() < starts[-1]


def test_on_a_grid_of_seconds_every_bar_is_a_second():
    score, _ = canonical(notes((250, 30, 60, 80, 0)), np.empty(0, BAR), [], SECONDS)
    assert score.bars.tolist() == [(1, 4, 100)] * 3
    assert score.tempo_bpm.tolist() == [60] * 3
    assert not score.has_upbeat
    assert not Score(
        notes(), np.array([(4, 4, 42)] * 2, BAR), np.array([60, 60]), Grid()
    ).has_upbeat
    assert score.step_seconds([0, 250, 1234]).tolist() == [0, 2.5, 12.34]
    for bar, tempo in (((4, 4, 400), 60), ((1, 4, 50), 60), ((1, 4, 100), 120)):
        with pytest.raises(ValueError, match="second"):
            canonical(notes(), np.array([bar], dtype=BAR), [tempo], SECONDS)


@pytest.mark.parametrize("grid", [{"steps_per_beat": 0}, {"steps_per_beat": 97}, {"kind": "ticks"}])
def test_a_grid_that_is_none_is_refused(grid):
    with pytest.raises(ValueError, match="grid"):
        Grid(**grid)
