"""How much sounds at once in a piece, how much its instruments rest, and whether bars are even."""

from __future__ import annotations

import numpy as np

from common.arrays import Ints
from data.keys import pitched_notes
from data.score import Score


def polyphony(score: Score) -> float:
    """Return how many different pitches sound on average while any does, as in MusPy."""
    notes = pitched_notes(score)
    if not len(notes):
        return float("nan")
    onset = notes["onset"].astype(np.int64)
    end = onset + notes["duration"]
    each = _covered(onset, end, notes["pitch"].astype(np.int64))
    return each / _covered(onset, end, np.zeros(len(notes), dtype=np.int64))


def rests(score: Score) -> float:
    """Return the share of the time in which programs rest, from the first note to the last end."""
    notes = score.notes
    if not len(notes):
        return float("nan")
    onset = notes["onset"].astype(np.int64)
    end = onset + notes["duration"]
    programs, program = np.unique(notes["program"], return_inverse=True)
    return 1 - _covered(onset, end, program) / int(len(programs) * (end.max() - onset.min()))


def has_regular_bars(score: Score) -> bool:
    """Return whether all bars have one meter, and each shortened bar is completed by the next ones.

    The first and the last bar may be shortened by themselves.
    """
    lengths = score.bars["length"].tolist()
    meters = score.bars[["numerator", "denominator"]].tolist()
    whole_bars = {score.grid.bar_steps(*meter) for meter in meters}
    if len(whole_bars) > 1:
        return False
    owed, whole = 0, max(whole_bars, default=0)
    for length in lengths[1:-1]:
        owed = (owed or whole) - length
        if owed < 0:
            return False
    return owed == 0


def _covered(onset: Ints, end: Ints, group: Ints) -> int:
    """Return for how many steps a note sounds, added up over groups of notes."""
    shift = group * (int(end.max()) + 1)  # one group after the other on one time axis
    order = np.argsort(onset + shift)
    onset, end = (onset + shift)[order], (end + shift)[order]
    silent_from = np.maximum.accumulate(np.append(0, end[:-1]))
    return int(np.maximum(end - np.maximum(onset, silent_from), 0).sum())
