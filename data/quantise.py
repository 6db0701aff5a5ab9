"""Events of a MIDI file to a Score: notes, bar lines and tempi brought to the grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.score import BAR, DRUMS, NOTE, Grid, Losses, Score, canonical

MAX_TICK = 10**7  # pretty_midi's limit too
MAX_BAR_BEATS = 16  # a meter with longer bars than this is taken for a mistake
MAX_SECONDS = 24 * 3600  # on a grid of seconds, whose bars are counted out one by one
LEAST_BEAT_FIT = 0.5  # see `beat_fit`; onsets that stray by 0.19 of a division fit so well
_NOISE = 1e-6  # steps, or beats a minute: what arithmetic on tempi may be off by


class MidiError(ValueError):
    """A file or object that holds no music that can be read; the message is one line."""


@dataclass(frozen=True)
class Events:
    """What a MIDI file says, times in ticks, before anything is brought to a grid.

    Attributes:
        ticks_per_beat: ticks a quarter note.
        notes: (N, 5) int64: start, end, pitch, velocity, program (128: drums); pedal folded in;
            track after track.
        meters: (M, 3) int64: tick, numerator, denominator.
        tempi: (K, 2) float64: tick, quarter notes a minute.
        tracks: name and number of notes of each track that has any; none: not known.
    """

    ticks_per_beat: int
    notes: NDArray[np.int64]
    meters: NDArray[np.int64]
    tempi: NDArray[np.float64]
    tracks: tuple[tuple[str, int], ...] = ()


def score_from_events(events: Events, grid: Grid) -> tuple[Score, Losses]:
    """Brings events to the grid.

    Onsets, ends and bar lines go to the nearest step, half way up; bar lines are rounded from
    their exact places, so that rounding does not add up. A bar's tempo is the one that gives it
    its length in seconds. On a grid of seconds the tempi say when things happen, and meters say
    nothing.

    Raises:
        MidiError: times or values that no music has.
    """
    _check_events(events)
    times = events.notes[:, :2]
    if grid.has_meter:
        exact = times * grid.steps_per_beat / events.ticks_per_beat
        bars, bar_ticks = _bars(events, int(times[:, 0].max(initial=0)), grid)
        tempi = _bar_tempi(events, bar_ticks)
    else:
        seconds = _seconds(events, times)
        if seconds.max(initial=0) > MAX_SECONDS:
            raise MidiError(f"longer than {MAX_SECONDS // 3600} hours")
        exact = seconds * grid.steps_per_beat
        bars, tempi = np.empty(0, dtype=BAR), np.empty(0)
    steps = np.floor(exact + (0.5 + _NOISE)).astype(np.int64)
    notes = np.empty(len(steps), dtype=NOTE)
    notes["onset"], notes["duration"] = steps[:, 0], steps[:, 1] - steps[:, 0]
    for column, name in enumerate(("pitch", "velocity", "program"), start=2):
        notes[name] = events.notes[:, column]
    score, losses = canonical(notes, bars, tempi, grid)

    error = np.abs(steps[:, 0] - exact[:, 0])
    losses.moved = int(np.count_nonzero(error > _NOISE))
    losses.error_steps = float(error.sum())
    losses.worst_error_steps = float(error.max(initial=0.0))
    return score, losses


def beat_fit(events: Events) -> float:
    """How well the onsets keep to the beat: 1 where all lie on it, near 0 where they ignore it.

    The mean over onsets of the cosine of their phase between the lines of an even division of the
    quarter note (Greenwood and Durand's V, "The distribution of length and components of the sum
    of n random unit vectors", 1955), for the division that suits best: of triplets, sixteenths,
    both, or twice as fine as both. Notes together count once. A file whose ticks are too coarse
    to tell, or without notes, fits. The events are such as `score_from_events` accepts.
    """
    onsets = np.unique(events.notes[:, 0])
    if not len(onsets):
        return 1.0
    turns = onsets * np.array([[3], [4], [12], [24]]) / events.ticks_per_beat
    return float(np.cos(2 * np.pi * turns).mean(axis=1).max())


def has_beats(events: Events) -> bool:
    """Whether a grid of beats suits; if not, a performance was recorded without minding them."""
    return beat_fit(events) >= LEAST_BEAT_FIT


def _bars(
    events: Events, last_tick: int, grid: Grid
) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """(M,) of BAR up to the one that holds `last_tick`; (M + 1,) the exact ticks of bar lines."""
    meters = events.meters[np.argsort(events.meters[:, 0], kind="stable")]
    meters = meters[meters[:, 0] <= last_tick]
    if not len(meters) or meters[0, 0] > 0:
        meters = np.concatenate([np.array([[0, 4, 4]]), meters])
    is_last_here = np.append(np.diff(meters[:, 0]) > 0, True)
    meters = meters[is_last_here]  # of several at one tick the last holds

    after = events.meters[:, 0][events.meters[:, 0] > last_tick]
    lines, numerators, denominators = [], [], []
    for index, (tick, numerator, denominator) in enumerate(meters.tolist()):
        bar_ticks = numerator * 4 * events.ticks_per_beat / denominator
        if index + 1 < len(meters):
            end = float(meters[index + 1, 0])
        else:  # a signature after the last onset may still say that the last bar is short
            whole = tick + bar_ticks * ((last_tick - tick) // bar_ticks + 1)
            end = min(whole, float(after.min(initial=whole + 1)))
        count = int(np.ceil((end - tick) / bar_ticks))
        lines.append(tick + bar_ticks * np.arange(count))
        numerators.append(np.full(count, numerator))
        denominators.append(np.full(count, denominator))
    exact = np.append(np.concatenate(lines), end)
    steps = np.floor(exact * grid.steps_per_beat / events.ticks_per_beat + 0.5).astype(np.int64)
    length = np.diff(steps)
    bars = np.empty(len(length), dtype=BAR)
    bars["numerator"] = np.concatenate(numerators)
    bars["denominator"] = np.concatenate(denominators)
    bars["length"] = length
    keep = length > 0
    return bars[keep], np.append(exact[:-1][keep], exact[-1])


def _bar_tempi(events: Events, bar_ticks: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) quarter notes a minute: beats over minutes of each bar, by the tempo map."""
    beats = np.diff(bar_ticks) / events.ticks_per_beat
    return np.asarray(60 * beats / np.diff(_seconds(events, bar_ticks)) + _NOISE)


def _seconds(events: Events, ticks: NDArray[np.number]) -> NDArray[np.float64]:
    """Seconds from the beginning at which the given ticks fall, by the tempo map."""
    tempi = events.tempi[np.argsort(events.tempi[:, 0], kind="stable")]
    if not len(tempi) or tempi[0, 0] > 0:
        tempi = np.concatenate([np.array([[0.0, 120.0]]), tempi])
    tick, bpm = tempi.T
    seconds_per_tick = 60 / (bpm * events.ticks_per_beat)
    seconds = np.concatenate([[0.0], np.cumsum(np.diff(tick) * seconds_per_tick[:-1])])
    segment = np.searchsorted(tick, ticks, side="right") - 1
    return np.asarray(seconds[segment] + (ticks - tick[segment]) * seconds_per_tick[segment])


def _check_events(events: Events) -> None:
    if events.ticks_per_beat <= 0:
        raise MidiError("its time division is not in ticks a quarter note, so it has no beats")
    start, end, pitch, velocity, program = events.notes.T
    if not len(start):
        return
    if start.min() < 0 or end.max() > MAX_TICK or np.any(end < start):
        raise MidiError(f"a note lies outside ticks 0..{MAX_TICK}")
    if pitch.min() < 0 or pitch.max() > 127 or velocity.min() < 1 or velocity.max() > 127:
        raise MidiError("a pitch or a velocity lies outside 0..127")
    if program.min() < 0 or program.max() > DRUMS:
        raise MidiError("a program lies outside 0..127")
    bpm = events.tempi[:, 1]
    if not np.all(np.isfinite(bpm) & (bpm > 0)):
        raise MidiError("a tempo of zero or infinity")
    _, numerator, denominator = events.meters.T
    if np.any((numerator < 1) | (denominator < 1) | (numerator * 4 > MAX_BAR_BEATS * denominator)):
        raise MidiError(f"a time signature that is none, or with bars over {MAX_BAR_BEATS} beats")
