"""Events to the grid: meters, tempi, upbeats, triplets and swing; seconds.

Files are built event by event here, so that nothing is assumed of a writer.
"""

from itertools import pairwise

import numpy as np
import pretty_midi
import pytest
from hypothesis import given, settings

from data.files.read import read_score
from data.midi.io import to_pretty_midi
from data.midi.quantize import MidiError, score_from_events
from data.score import SECONDS, Grid
from tests.data.corpus.test_hostile import midi, ticks, track
from tests.music import BOTH, GRID, events_of, score_in, scores

TICKS = 480  # a quarter note


def midi_file(path, *, notes=(), meters=(), tempi=()):
    """Writes a type-0 file of notes (start, end, pitch), meters (tick, numerator, denominator as a
    power of two) and tempi (tick, microseconds a quarter note)."""
    events = [(tick, 0, bytes([0xFF, 0x58, 4, n, power, 24, 8])) for tick, n, power in meters]
    events += [(tick, 0, b"\xff\x51\x03" + mspq.to_bytes(3, "big")) for tick, mspq in tempi]
    events += [(end, 1, bytes([0x80, pitch, 0])) for _, end, pitch in notes]
    events += [(start, 2, bytes([0x90, pitch, 80])) for start, _, pitch in notes]
    pairs = pairwise([(0,), *sorted(events)])
    content = [ticks(tick - before) + message for (before, *_), (tick, _, message) in pairs]
    path.write_bytes(midi(track(*content), form=0, division=TICKS))
    return path


def read_both(path, grid=GRID):
    """The Score of a file, the same by either reader."""
    score, _ = read_score(path, grid)
    assert score_in(pretty_midi.PrettyMIDI(str(path)), grid) == score
    return score


def test_swung_eighths_and_triplets_land_on_the_grid_exactly(tmp_path):
    onsets = [beat * TICKS + after for beat in range(8) for after in (0, 320)]
    swing = [(onset, onset + 100, 60) for onset in onsets]
    score = read_both(midi_file(tmp_path / "swing.mid", notes=swing))
    assert (score.notes["onset"] % 12).tolist() == [0, 8] * 8
    triplets = [(third * 160, third * 160 + 160, 60) for third in range(24)]
    score, losses = read_score(midi_file(tmp_path / "triplets.mid", notes=triplets), GRID)
    assert score.notes[["onset", "duration"]].tolist() == [(4 * n, 4) for n in range(24)]
    assert (losses.moved, losses.error_steps) == (0, 0)


def test_a_ritardando_gives_each_bar_its_tempo(tmp_path):
    slowing = [120, 110, 100, 80, 60]
    tempi = [(bar * 4 * TICKS, 60_000_000 // bpm) for bar, bpm in enumerate(slowing)]
    notes = [(beat * TICKS, beat * TICKS + 240, 60) for beat in range(20)]
    score = read_both(midi_file(tmp_path / "slower.mid", notes=notes, tempi=tempi))
    assert score.tempo_bpm.tolist() == slowing
    seconds = np.cumsum([0, *(240 / bpm for bpm in slowing)])
    assert score.step_seconds(score.bar_starts) == pytest.approx(seconds)


def test_a_tempo_that_changes_within_a_bar_keeps_the_bar_as_long(tmp_path):
    notes = [(0, 240, 60), (4 * TICKS, 5 * TICKS, 60)]
    tempi = [(0, 500_000), (2 * TICKS, 1_000_000)]
    score = read_both(midi_file(tmp_path / "mid-bar.mid", notes=notes, tempi=tempi))
    assert score.tempo_bpm.tolist() == [80, 60]
    assert score.step_seconds(48) == pytest.approx(3.0)


def test_bars_shorter_than_a_step_leave_the_bar_before_its_tempo(tmp_path):
    tempi = [(0, 300_000), (4 * TICKS, 600_000)]
    meters = [(0, 4, 2), (4 * TICKS, 9, 7)]  # 4/4, then 9/128: four begin within a quarter note
    notes = [(0, TICKS, 60), (4 * TICKS, 5 * TICKS, 62), (7 * TICKS, 8 * TICKS, 64)]
    path = midi_file(tmp_path / "a.mid", notes=notes, meters=meters, tempi=tempi)
    score = read_both(path, Grid(1))
    assert score.tempo_bpm.tolist() == [200, 100, 100, 100, 100]


def test_a_change_of_meter_is_kept_even_where_bars_stay_as_long(tmp_path):
    meters = [(0, 3, 2), (2 * 3 * TICKS, 6, 3), (4 * 3 * TICKS, 5, 3)]
    notes = [(eighth * 240, eighth * 240 + 200, 60) for eighth in range(29)]
    score = read_both(midi_file(tmp_path / "meters.mid", notes=notes, meters=meters))
    assert score.bars.tolist() == [*[(3, 4, 36)] * 2, *[(6, 8, 36)] * 2, (5, 8, 30)]


def test_an_upbeat_is_a_short_bar(tmp_path):
    meters = [(0, 1, 2), (TICKS, 4, 2)]  # as notation programs write it
    notes = [(beat * TICKS, (beat + 1) * TICKS, 60) for beat in range(9)]
    as_written = read_both(midi_file(tmp_path / "a.mid", notes=notes, meters=meters))
    assert as_written.bars.tolist() == [(1, 4, 12), (4, 4, 48), (4, 4, 48)]
    meters[0] = (0, 4, 2)  # a signature begins a bar, so this one is cut short
    score = read_both(midi_file(tmp_path / "b.mid", notes=notes, meters=meters))
    assert score.has_upbeat
    assert score.bars.tolist() == [(4, 4, 12), (4, 4, 48), (4, 4, 48)]
    assert score.bar_starts.tolist() == [0, 12, 60, 108]


def test_on_a_grid_of_seconds_tempi_say_when_and_meters_say_nothing(tmp_path):
    path = midi_file(
        tmp_path / "performance.mid",
        notes=[(0, 480, 60), (960, 1440, 62), (1440, 11_040, 64)],
        tempi=[(0, 500_000), (960, 1_000_000)],
        meters=[(0, 3, 2)],
    )
    score = read_both(path, SECONDS)
    assert score.notes[["onset", "duration"]].tolist() == [(0, 50), (100, 100), (200, 2000)]
    assert score.bars.tolist() == [(1, 4, 100)] * 3
    assert score.tempo_bpm.tolist() == [60] * 3
    assert score.step_seconds([50, 250]).tolist() == [0.5, 2.5]


def test_half_a_step_goes_up_whatever_the_last_bits_of_a_tempo(tmp_path):
    notes = [(sixteenth * 120, sixteenth * 120 + 60, 60) for sixteenth in range(64)]
    for bpm in (120, 60, 150, 100):  # a sixteenth at 120 is 12.5 steps
        path = midi_file(tmp_path / f"{bpm}.mid", notes=notes, tempi=[(0, 60_000_000 // bpm)])
        onsets = read_both(path, SECONDS).notes["onset"]
        exact = np.arange(64) * 1500 // bpm, np.arange(64) * 1500 % bpm * 2 >= bpm
        assert onsets.tolist() == (exact[0] + exact[1]).tolist()


def test_what_coming_to_a_grid_of_seconds_changed_is_counted():
    events = events_of([(0, 480, 60, 80, 0), (4, 480, 62, 80, 0), (96, 480, 64, 80, 0)])
    _, losses = score_from_events(events, SECONDS)
    assert losses.moved == 1  # 4 ticks are 4.2 ms; 96 are 100 ms
    assert losses.worst_error_steps == pytest.approx(0.4167, abs=1e-3)
    assert losses.error_steps == pytest.approx(losses.worst_error_steps)


def test_more_than_a_day_is_no_performance():
    events = events_of([(0, 90_000, 60, 80, 0)], tempi=[(0, 30)], ticks_per_beat=1)  # 50 hours
    with pytest.raises(MidiError, match="24 hours"):
        score_from_events(events, SECONDS)
    assert len(score_from_events(events, GRID)[0].notes) == 1


@given(scores(*BOTH))
@settings(max_examples=50)
def test_scores_survive_pretty_midi(score):
    assert score_in(to_pretty_midi(score), score.grid) == score
