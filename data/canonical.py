"""The canonical form of a score: the one form in which a piece is kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Records, offsets
from common.compiled import compiled
from data.score import (
    BAR,
    DRUMS,
    MOST_NUMERATOR,
    MOST_PROGRAM,
    TEMPO_LEVELS,
    VELOCITY_LEVELS,
    Grid,
    Score,
    can_be_said,
    nearest_level,
)

_VELOCITY_LEVEL_OF = nearest_level(VELOCITY_LEVELS, np.arange(128))  # by MIDI velocity


@dataclass
class GridChanges:
    """What changed when a piece was brought to the grid."""

    merged: int = 0  # notes dropped because another has the same onset, program and pitch
    cut: int = 0  # notes cut because the same program and pitch begins again
    moved: int = 0  # notes whose onset was not on the grid
    error_steps: float = 0.0  # the sum of the steps that each onset moved
    worst_error_steps: float = 0.0  # the most steps that any onset moved
    split_bars: int = 0  # bars that were longer than any meter's, and were split
    clipped_bytes: int = 0  # bytes of the file that were too large and read as 127
    empty_bars: int = 0  # empty bars before the first note, left out of a corpus


def canonical(
    notes: Records, bars: Records, tempo_bpm: ArrayLike, grid: Grid
) -> tuple[Score, GridChanges]:
    """Return the one Score with these notes and bars, and what that merged and cut.

    Of notes with the same onset, program and pitch, the longest stays; of equally long ones, the
    loudest. A note is cut where the same program and pitch begins again.

    Args:
        notes: (N,) of NOTE on the grid, in any order; a duration below 1 counts as 1.
        bars: (M,) of BAR, no longer than their meters say. If notes begin after the last bar, bars
            of its meter are added. Bars after the one in which the last note begins are dropped.
        tempo_bpm: (M,) quarter notes a minute in each bar.
        grid: of the steps. If it has no meter, no bars and tempi need be given.

    Raises:
        ValueError: no Score can have such a note or bar.
    """
    _check_ranges(notes, bars, tempo_bpm, grid)
    voice = notes["program"].astype(np.int64) << 7 | notes["pitch"]
    order = np.argsort(notes["onset"].astype(np.int64) << 16 | voice, kind="stable")
    notes = notes.take(order)  # ten times as fast as notes[order]
    left, cut = _merge_and_cut(notes)
    merged, notes = len(notes) - left, notes[:left]
    notes["velocity"] = _VELOCITY_LEVEL_OF[notes["velocity"]]
    last_onset = int(notes["onset"][-1]) if left else -1
    bars, tempo = _fit_bars(bars, nearest_level(TEMPO_LEVELS, tempo_bpm), last_onset, grid)
    return Score(notes, bars, tempo, grid), GridChanges(merged, cut)


@compiled
def _merge_and_cut(notes: Records) -> tuple[int, int]:
    """Merge and cut notes, sorted by (onset, program, pitch); those left over come first.

    Returns:
        How many are left, and how many of these were cut.
    """
    latest = np.full((MOST_PROGRAM + 1, 128), -1, dtype=np.int32)  # by program and pitch
    left = cut = 0
    for number in range(len(notes)):
        note = notes[number]
        note["duration"] = max(note["duration"], 1)
        before = latest[note["program"], note["pitch"]]
        if before >= 0:
            other, room = notes[before], note["onset"] - notes[before]["onset"]
            if room == 0:
                if (note["duration"], note["velocity"]) > (other["duration"], other["velocity"]):
                    notes[before] = note
                continue
            if other["duration"] > room:
                other["duration"] = room
                cut += 1
        latest[note["program"], note["pitch"]] = left
        notes[left] = note
        left += 1
    return left, cut


def _fit_bars(
    bars: Records, tempo: NDArray[np.int32], last_onset: int, grid: Grid
) -> tuple[Records, NDArray[np.int32]]:
    """Return bars and tempi up to the bar of the last onset; -1: no notes, so no bars."""
    if not len(bars):
        meter = grid.default_meter
        bars = np.array([(*meter, grid.bar_steps(*meter))], dtype=BAR)
        tempo = np.array([grid.default_tempo_bpm], dtype=np.int32)
    lines = offsets(bars["length"])
    numerator, denominator, _ = bars[-1].tolist()
    whole = grid.bar_steps(numerator, denominator)
    added = max((last_onset - int(lines[-1])) // whole + 1, 0)
    begun = int(np.searchsorted(lines[:-1], last_onset, side="right"))
    chosen = np.minimum(np.arange(begun + added), len(bars) - 1)  # the last bar is repeated
    bars = bars[chosen]
    bars["length"][begun:] = whole
    return bars, tempo[chosen]


def _check_ranges(notes: Records, bars: Records, tempo_bpm: ArrayLike, grid: Grid) -> None:
    for name, low, high in (
        ("onset", 0, 2**30),
        ("pitch", 0, 127),
        ("velocity", 1, 127),
        ("program", 0, MOST_PROGRAM if grid.parts else DRUMS),
    ):
        values = notes[name]
        if len(values) and (values.min() < low or values.max() > high):
            raise ValueError(
                f"note {name} must lie in {low}..{high}, got {values.min()}..{values.max()}"
            )
    tempo = np.asarray(tempo_bpm)
    if len(tempo) != len(bars):
        raise ValueError(f"{len(bars)} bars need as many tempi, got {len(tempo)}")
    if not np.all(np.isfinite(tempo) & (tempo > 0)):
        raise ValueError("a tempo must be a positive number of beats a minute")
    if np.any(~can_be_said(bars["numerator"], bars["denominator"])):
        raise ValueError(f"a meter must be 1 to {MOST_NUMERATOR} over a power of 2 up to 128")
    whole = grid.bar_steps(*(bars[n].astype(np.int64) for n in ("numerator", "denominator")))
    if np.any((bars["length"] < 1) | (bars["length"] > whole)):
        raise ValueError("a bar must last at least one step and no longer than its meter says")
    if not grid.has_meter and (
        np.any(bars != np.array((*grid.default_meter, grid.steps_per_beat), dtype=BAR))
        or np.any(tempo != grid.default_tempo_bpm)
    ):
        raise ValueError("on a grid of seconds every bar is a second, of 1/4 at 60 beats a minute")
