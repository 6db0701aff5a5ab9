"""Turns the events of a MIDI file into a Score: brings notes, bar lines and tempi to the grid."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints, Reals, Records
from common.compiled import compiled, compiled_inside
from data.canonical import GridChanges, canonical
from data.midi.bars import barred_anew, meters_of
from data.midi.events import Events
from data.midi.parts import with_parts
from data.score import BAR, DRUMS, NOTE, Grid, Score, can_be_said

MAX_BEATS = 100_000  # thirteen hours at 120 beats a minute
MAX_BARS = 1_000_000  # counted as if all bars were as short as the shortest
MIN_TEMPO_BPM = 60e6 / 2**24  # since a MIDI file has 24 bits for microseconds a quarter note
MAX_SECONDS = 24 * 3600  # on a grid of seconds, whose bars are counted one by one
_NOISE = 1e-6  # steps, or beats a minute: the error of arithmetic on tempi


class MidiError(ValueError):
    """Raised if a file or object holds no music that can be read; the message is one line."""


def score_from_events(events: Events, grid: Grid, blame: str = "") -> tuple[Score, GridChanges]:
    """Bring events to the grid; `blame` begins all messages.

    Onsets, ends and bar lines go to the nearest step; half way goes up. Bar lines are rounded from
    their exact places, so that rounding errors do not add up. The tempo of a bar is the one that
    gives the bar its length in seconds. On a grid of seconds, the tempi decide when things happen,
    and the meters say nothing.

    Raises:
        MidiError: the events have times or values that no music has.
    """
    if not len(events.notes):  # without notes, meters and tempi do not matter
        events = replace(events, meters=events.meters[:0], tempi=events.tempi[:0])
    if reason := _fault(events, grid):
        raise MidiError(blame + reason)
    if grid.parts:
        events = with_parts(events, grid)
    if grid.meter:
        events = barred_anew(events, grid.meter, grid.steps_per_beat)
    split_bars, bars, tempi = 0, np.empty(0, dtype=BAR), np.empty(0)
    if grid.has_meter:
        meters, split_bars = meters_of(events)
        exact = events.notes[:, :2] * grid.steps_per_beat / events.ticks_per_beat
        bars, tempi = _bars(events, meters, grid)
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
    """Return when each note begins, in seconds, by the tempi."""
    return _seconds(events, events.notes[:, 0])


def _fault(events: Events, grid: Grid) -> str | None:
    """Say what is wrong with times or values that no music has; of several faults, the gravest.

    After one value that cannot be true, none can be trusted. None: nothing is wrong.
    """
    ticks_per_beat, notes = events.ticks_per_beat, events.notes
    extremes = notes.min(axis=0, initial=1), notes.max(axis=0, initial=0)
    start, end, pitch, velocity, program = np.transpose(extremes).tolist()
    is_backward = (notes[:, 1] < notes[:, 0]).any()
    tempo_tick, bpm = events.tempi.T
    is_tempo = (tempo_tick >= 0) & (bpm > MIN_TEMPO_BPM) & (bpm < np.inf)
    meter_tick, numerator, denominator = events.meters.T
    is_said = can_be_said(numerator, denominator)
    shortest_bar = (numerator[is_said] * 4 / denominator[is_said]).min(initial=4.0)
    beats = start[1] / max(ticks_per_beat, 1)
    faults = {
        "its time division is not in ticks a quarter note, so it has no beats": ticks_per_beat <= 0,
        "a note begins before the piece does, or after it has ended": start[0] < 0 or is_backward,
        f"a note lies beyond beat {MAX_BEATS:,}": end[1] > MAX_BEATS * ticks_per_beat,
        "a pitch lies outside 0..127, or a velocity outside 1..127": (
            pitch[0] < 0 or velocity[0] < 1 or max(pitch[1], velocity[1]) > 127
        ),
        "a program lies outside 0..127": program[0] < 0 or program[1] > DRUMS,
        "a tempo of zero or infinity, or before the piece begins": not is_tempo.all(),
        "a time signature that no MIDI file can say": not is_said.all(),
        "a time signature before the piece begins": (meter_tick < 0).any(),
        f"more than {MAX_BARS:,} bars": (
            grid.has_meter and len(events.meters) + beats / shortest_bar > MAX_BARS
        ),
    }
    reason = next((reason for reason, is_wrong in faults.items() if is_wrong), None)
    if reason or grid.has_meter or not np.any(_seconds(events, notes[:, 1]) > MAX_SECONDS):
        return reason
    return f"longer than {MAX_SECONDS // 3600} hours"


def _bars(events: Events, meters: Ints, grid: Grid) -> tuple[Records, Reals]:
    """Return the bars up to that of the last onset, and (M,) the quarter notes a minute in each."""
    last_onset, ticks_per_beat = int(events.notes[:, 0].max(initial=0)), events.ticks_per_beat
    found = _bar_lines(meters, last_onset, (ticks_per_beat, grid.steps_per_beat))
    exact, steps, number = map(np.array, zip(*found, strict=True))
    bars = np.empty(len(exact) - 1, dtype=BAR)
    _, bars["numerator"], bars["denominator"] = meters[number[:-1]].T
    bars["length"] = steps[1:] - steps[:-1]
    seconds, beats = _seconds(events, exact), (exact[1:] - exact[:-1]) / ticks_per_beat
    return bars, 60 * beats / (seconds[1:] - seconds[:-1]) + _NOISE


@compiled
def _bar_lines(
    meters: Ints, last_onset: int, beat: tuple[int, int]
) -> list[tuple[float, float, int]]:
    """Find the bar lines from the beginning to the end of the bar of the last onset.

    Args:
        meters: (M, 3) that hold, the first one from the beginning on.
        last_onset: in ticks.
        beat: the ticks and the steps in a quarter note.

    Returns:
        For each line the exact tick, the step, and the number of the meter that it begins.
    """
    lines = [(0.0, 0.0, 0)]
    for number in range(len(meters)):
        tick, numerator, denominator = meters[number, 0], meters[number, 1], meters[number, 2]
        if tick > last_onset:
            break
        bar_ticks = numerator * 4 * beat[0] / denominator
        most_steps = -(-numerator * 4 * beat[1] // denominator)
        until = float(meters[number + 1, 0]) if number + 1 < len(meters) else np.inf
        if until > last_onset:
            # a signature after the last onset may still say that the last bar is short
            last = tick + bar_ticks * ((last_onset - tick) // bar_ticks)
            if _step(until, beat) - _step(last, beat) > most_steps:
                until = last + bar_ticks
        count = math.ceil((until - tick) / bar_ticks)
        # bars may end between steps: the rest before the next signature is then no bar
        if count > 1:
            before = tick + bar_ticks * (count - 2)
            count -= _step(until, beat) - _step(before, beat) <= most_steps
        for bar in range(count + 1):
            line = tick + bar_ticks * bar if bar < count else until
            step = _step(line, beat)
            if step > lines[-1][1]:
                lines.append((line, step, number))
            else:  # if lines round to one step: the time of the first, the meter of the last
                lines[-1] = (lines[-1][0], step, number)
    return lines


@compiled_inside
def _step(ticks: float, beat: tuple[int, int]) -> float:
    return float(np.floor(ticks * beat[1] / beat[0] + 0.5))


def _seconds(events: Events, ticks: NDArray[np.number]) -> Reals:
    """Return the seconds from the beginning at which ticks fall, by the tempo map."""
    tempi = np.concatenate([[[0.0, 120.0]], events.tempi])
    tick, bpm = tempi[np.argsort(tempi[:, 0], kind="stable")].T
    seconds_per_tick = 60 / (bpm * events.ticks_per_beat)
    seconds = np.zeros(len(tick))
    np.cumsum((tick[1:] - tick[:-1]) * seconds_per_tick[:-1], out=seconds[1:])
    at = tick.searchsorted(ticks, side="right") - 1
    return np.asarray(seconds[at] + (ticks - tick[at]) * seconds_per_tick[at])
