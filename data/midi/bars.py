"""Finds beats and bars in files whose time signatures are wrong, and splits bars too long."""

import dataclasses
import math

import numpy as np

from common.arrays import Ints, Reals
from data.midi.events import Events
from data.score import MAX_BAR_BEATS

LEAST_FIT = 0.5  # how well onsets fit beats, from 0 to 1; 0.5: they stray by 0.19 of a division
MOST_ASIDE = 1 / 8  # how far, in grid steps, most notes' beats may lie from the file's
_DIVISIONS = (4, 6, 8)  # into which a quarter note is divided: sixteenths, half triplets, 32nds


def in_force(meters: Ints) -> Ints:
    """Return the meters (M, 3) of a file in order; of several at one tick, only the last."""
    meters = meters[np.argsort(meters[:, 0], kind="stable")]
    return meters[np.diff(meters[:, 0], append=np.inf) > 0]


def is_barred_wrongly(events: Events, meter: tuple[int, int], steps_per_beat: int) -> bool:
    """Return whether a file's time signatures must be wrong if its true meter is `meter`.

    They are wrong if there are none; if all of its bars are parts of this meter's bars, such as 1/4
    and 2/4 in 4/4; or if its notes keep to beats that lie between the steps of the grid. Files that
    `midi_bytes` wrote have a signature of this meter after the last note: their bars are right.
    """
    last = int(events.notes[:, 0].max(initial=0))
    is_meter = np.all(events.meters[:, 1:] == meter, axis=1)
    if np.any(is_meter & (events.meters[:, 0] > last)):
        return False
    heard = in_force(events.meters[events.meters[:, 0] <= last])
    length = meter[0] * 4 / meter[1]
    bars = heard[:, 1] * 4 / heard[:, 2]
    if np.all((bars < length) & (length % bars == 0)):
        return True
    fit, phase, _ = beat_phase(events)
    aside = abs(phase * steps_per_beat - round(phase * steps_per_beat))
    return fit >= LEAST_FIT and aside > MOST_ASIDE


def beat_phase(events: Events) -> tuple[float, float, int]:
    """Find the beats that onsets keep to.

    Returns:
        How well they keep to them, from 0 to 1 (the length of the mean of their phases); by how
        much of a quarter note they come late, from -1/8 to 1/8; and into how many parts the quarter
        note is divided.
    """
    onset = events.notes[:, 0] / events.ticks_per_beat
    if not len(onset):
        return 0.0, 0.0, _DIVISIONS[0]
    found = []
    for division in _DIVISIONS:
        mean = np.exp(2j * np.pi * division * onset).mean()
        found.append((float(np.abs(mean)), float(np.angle(mean)), division))
    best = max(fit for fit, _, _ in found)
    fit, angle, division = next(each for each in found if each[0] > 0.9 * best)  # the coarsest
    phase = angle / (2 * np.pi * division)
    rest = (onset - phase) * division
    return fit, phase + float(np.median(rest - np.rint(rest))) / division, division


def barred_anew(events: Events, meter: tuple[int, int], steps_per_beat: int) -> Events:
    """Return events with bars of this meter, if their own are wrong (see `is_barred_wrongly`).

    Bar lines come where the longest notes begin. Of all possible places, the one is chosen in which
    most of the time begins on a bar line, half a bar, a beat or half a beat. The piece begins with
    the beat of its first note, and what comes before the first bar line is an upbeat.
    """
    if not len(events.notes) or not is_barred_wrongly(events, meter, steps_per_beat):
        return events
    fit, phase, division = beat_phase(events)
    if fit < LEAST_FIT:
        phase = 0.0  # if there is no beat, the file's own is as good as any
    line = phase + _first_place(events, phase, division, meter) / division
    beat, onset = 4 / meter[1], int(events.notes[:, 0].min()) / events.ticks_per_beat
    beats = math.floor((onset - line + 0.5 / steps_per_beat) / beat)  # from line to first note
    zero, upbeat = line + beats * beat, -beats % meter[0] * beat
    notes, tempi = events.notes.copy(), events.tempi.copy()
    shift = -round(zero * events.ticks_per_beat)
    notes[:, :2] = np.maximum(notes[:, :2] + shift, 0)
    tempi[:, 0] = np.where(tempi[:, 0] > 0, np.maximum(tempi[:, 0] + shift, 0), 0)
    lines = [0, round(upbeat * events.ticks_per_beat)] if upbeat else [0]
    meters = np.array([(tick, *meter) for tick in lines], dtype=np.int64)
    return dataclasses.replace(events, notes=notes, tempi=tempi, meters=meters)


def meters_of(events: Events) -> tuple[Ints, int]:
    """Return the meters (M, 3) that hold, from the beginning on.

    Bars longer than MAX_BAR_BEATS are split into bars of 4/4, the last of which may be short.

    Returns:
        The meters, and how many such bars begin before or with the last note.
    """
    meters = in_force(np.concatenate([[[0, 4, 4]], events.meters]))
    is_long = 4 * meters[:, 1] > MAX_BAR_BEATS * meters[:, 2]
    if not is_long.any():
        return meters, 0
    last = int(events.notes[:, 0].max())
    until = np.minimum(np.append(meters[1:, 0], last + 1), last + 1)
    rows, count = [meters[~is_long]], 0
    for (tick, *meter), end in zip(meters[is_long].tolist(), until[is_long].tolist(), strict=True):
        bar_ticks = meter[0] * 4 * events.ticks_per_beat / meter[1]
        end = max(end, tick + 1)
        lines = np.rint(np.arange(tick, end, bar_ticks)).astype(np.int64)
        lines = lines[lines < end]
        rows.append(np.stack([lines, np.full_like(lines, 4), np.full_like(lines, 4)], axis=1))
        count += int(np.count_nonzero(lines <= last))
    return in_force(np.concatenate(rows)), count


def _first_place(events: Events, phase: float, division: int, meter: tuple[int, int]) -> int:
    """Return the first place where a bar line can be, in divisions of the quarter note."""
    start, end = (events.notes[:, :2] / events.ticks_per_beat).T
    length = meter[0] * 4 / meter[1]
    places = round(length * division)
    place = np.rint((start - phase) * division).astype(np.int64) % places
    begins = np.bincount(place, weights=np.minimum(end - start, length), minlength=places)
    accents = _accents(meter, np.arange(places) / division)
    return int(np.argmax([begins @ np.roll(accents, line) for line in range(places)]))


def _accents(meter: tuple[int, int], beats: Reals) -> Reals:
    """Count the levels that begin at each place in a bar, in quarter notes from its line."""
    numerator, unit = meter[0], 4 / meter[1]
    levels = [numerator * unit, unit, unit / 2]
    if numerator % 3 == 0 and numerator > 3:
        levels.append(3 * unit)
    if numerator % 2 == 0:
        levels.append(numerator * unit / 2)
    is_begun = np.array([np.isclose(beats % level, 0) for level in {*levels}])
    return np.asarray(is_begun.sum(axis=0, dtype=np.float64))
