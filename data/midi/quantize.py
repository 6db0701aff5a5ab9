"""Events of a MIDI file to a Score: notes, bar lines and tempi brought to the grid."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Reals, Records
from data.canonical import GridChanges, canonical
from data.midi.bars import barred_anew, in_force, with_long_bars_split
from data.midi.events import Events
from data.midi.parts import with_parts
from data.score import BAR, DRUMS, NOTE, Grid, Score, can_be_said

MAX_BEATS = 100_000  # thirteen hours at 120 beats a minute
MAX_BARS = 1_000_000  # counted as if all were as short as the shortest
MIN_TEMPO_BPM = 60e6 / 2**24  # a MIDI file has 24 bits for microseconds a quarter note
MAX_SECONDS = 24 * 3600  # on a grid of seconds, whose bars are counted out one by one
_NOISE = 1e-6  # steps, or beats a minute: what arithmetic on tempi may be off by


class MidiError(ValueError):
    """A file or object that holds no music that can be read; the message is one line."""


def score_from_events(events: Events, grid: Grid, blame: str = "") -> tuple[Score, GridChanges]:
    """Bring events to the grid; `blame` begins messages.

    Onsets, ends and bar lines go to the nearest step, half way up; bar lines are rounded from
    their exact places, so that rounding does not add up. A bar's tempo is the one that gives it
    its length in seconds. On a grid of seconds the tempi say when things happen, and meters say
    nothing.

    Raises:
        MidiError: times or values that no music has.
    """
    if not len(events.notes):  # nothing rests on its meters and tempi
        events = replace(events, meters=events.meters[:0], tempi=events.tempi[:0])
    if reason := _fault(events, grid):
        raise MidiError(blame + reason)
    if grid.parts:
        events = with_parts(events, grid)
    if grid.meter:
        events = barred_anew(events, grid.meter, grid.steps_per_beat)
    split_bars, bars, tempi = 0, np.empty(0, dtype=BAR), np.empty(0)
    if grid.has_meter:
        events, split_bars = with_long_bars_split(events)
        exact = events.notes[:, :2] * grid.steps_per_beat / events.ticks_per_beat
        bars, tempi = _bars(events, grid)
    else:
        exact = _seconds(events, events.notes[:, :2]) * grid.steps_per_beat
    steps = np.floor(exact + (0.5 + _NOISE)).astype(np.int64)
    notes = np.empty(len(steps), dtype=NOTE)
    notes["onset"], notes["duration"] = steps[:, 0], steps[:, 1] - steps[:, 0]
    for column, name in enumerate(("pitch", "velocity", "program"), start=2):
        notes[name] = events.notes[:, column]
    score, changes = canonical(notes, bars, tempi, grid)
    error = np.abs(steps[:, 0] - exact[:, 0])
    changes.moved = int(np.count_nonzero(error > _NOISE))
    changes.error_steps, changes.worst_error_steps = float(error.sum()), float(error.max(initial=0))
    changes.split_bars, changes.clipped_bytes = split_bars, events.clipped_bytes
    return score, changes


def onset_seconds(events: Events) -> Reals:
    """Return when each note begins by the tempi, in seconds."""
    return _seconds(events, events.notes[:, 0])


def _fault(events: Events, grid: Grid) -> str | None:
    """Say what is wrong with times or values that no music has: of several faults the gravest.

    After one value that cannot be true, none can be trusted.
    """
    ticks_per_beat = events.ticks_per_beat
    start, end, pitch, velocity, program = events.notes.T
    tempo_tick, bpm = events.tempi.T
    meter_tick, numerator, denominator = events.meters.T
    is_said = can_be_said(numerator, denominator)
    shortest_bar = (numerator[is_said] * 4 / denominator[is_said]).min(initial=4.0)
    beats = start.max(initial=0) / max(ticks_per_beat, 1)
    faults = {
        "its time division is not in ticks a quarter note, so it has no beats": ticks_per_beat <= 0,
        "a note begins before the piece does, or after it has ended": (start < 0) | (end < start),
        f"a note lies beyond beat {MAX_BEATS:,}": end > MAX_BEATS * ticks_per_beat,
        "a pitch lies outside 0..127, or a velocity outside 1..127": (
            (pitch < 0) | (pitch > 127) | (velocity < 1) | (velocity > 127)
        ),
        "a program lies outside 0..127": (program < 0) | (program > DRUMS),
        "a tempo of zero or infinity, or before the piece begins": (
            (tempo_tick < 0) | ~np.isfinite(bpm) | ~(bpm > MIN_TEMPO_BPM)
        ),
        "a time signature that no MIDI file can say": ~is_said,
        "a time signature before the piece begins": meter_tick < 0,
        f"more than {MAX_BARS:,} bars": (
            grid.has_meter and len(events.meters) + beats / shortest_bar > MAX_BARS
        ),
    }
    reason = next((reason for reason, is_wrong in faults.items() if np.any(is_wrong)), None)
    if reason or grid.has_meter or not np.any(_seconds(events, end) > MAX_SECONDS):
        return reason
    return f"longer than {MAX_SECONDS // 3600} hours"


def _bars(events: Events, grid: Grid) -> tuple[Records, Reals]:
    """Return the bars up to that of the last onset, and (M,) quarter notes a minute of each."""
    last_onset = int(events.notes[:, 0].max(initial=0))
    is_heard = events.meters[:, 0] <= last_onset
    meters = in_force(np.concatenate([[[0, 4, 4]], events.meters[is_heard]]))

    def in_steps(ticks: NDArray[np.number] | float) -> Reals:
        return np.asarray(np.floor(ticks * grid.steps_per_beat / events.ticks_per_beat + 0.5))

    tick, numerator, denominator = meters.T
    bar_ticks = numerator * 4 * events.ticks_per_beat / denominator
    most_steps = grid.bar_steps(numerator, denominator)
    last_line = tick[-1] + bar_ticks[-1] * ((last_onset - tick[-1]) // bar_ticks[-1])
    end = last_line + bar_ticks[-1]
    # a signature after the last onset may still say that the last bar is short
    after = min(events.meters[~is_heard, 0].tolist(), default=np.inf)
    if in_steps(after) - in_steps(last_line) <= most_steps[-1]:
        end = after
    until = np.append(tick[1:], end)
    count = np.ceil((until - tick) / bar_ticks).astype(np.int64)
    # bars may end between steps: what is left then, before the next signature, is none
    before = tick + bar_ticks * (count - 2)
    count -= (count > 1) & (in_steps(until) - in_steps(before) <= most_steps)
    meter = np.repeat(np.arange(len(meters)), count)  # of each line but that at the end
    number = np.arange(len(meter)) - (np.cumsum(count) - count)[meter]  # of each, in its meter
    exact = np.append(tick[meter] + bar_ticks[meter] * number, end)
    steps = in_steps(exact).astype(np.int64)
    # of lines that round to one step a bar is made: the meter of the last, the time of the first
    meter = meter[np.diff(steps) > 0]
    lines, first = np.unique(steps, return_index=True)
    beats = np.diff(exact[first]) / events.ticks_per_beat
    bars = np.empty(len(meter), dtype=BAR)
    bars["numerator"], bars["denominator"] = numerator[meter], denominator[meter]
    bars["length"] = np.diff(lines)
    return bars, 60 * beats / np.diff(_seconds(events, exact[first])) + _NOISE


def _seconds(events: Events, ticks: NDArray[np.number]) -> Reals:
    """Return the seconds from the beginning at which ticks fall, by the tempo map."""
    tempi = np.concatenate([[[0.0, 120.0]], events.tempi])
    tick, bpm = tempi[np.argsort(tempi[:, 0], kind="stable")].T
    seconds_per_tick = 60 / (bpm * events.ticks_per_beat)
    seconds = np.append(0.0, np.cumsum(np.diff(tick) * seconds_per_tick[:-1]))
    at = np.searchsorted(tick, ticks, side="right") - 1
    return np.asarray(seconds[at] + (ticks - tick[at]) * seconds_per_tick[at])
