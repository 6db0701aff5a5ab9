"""Voice leading of a four-part Score: parallels.

A piece is in four parts if four programs, drums aside, play one note at a time each. The voices are
ordered by their mean pitch. For other pieces every measure is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from common.arrays import Bools, Ints
from data.keys import pitched_notes
from data.score import Score

PARTS = 4
PAIRS = np.triu_indices(PARTS, 1)  # the higher and the lower voice of each of the six pairs
UNISON, FIFTH = 0, 7  # semitones, octaves apart
REST = -1


@dataclass(frozen=True)
class Parts:
    """Four voices, the highest first, in S slices of time in which no note begins or ends."""

    steps: Ints  # (S,) the duration of each slice
    pitch: Ints  # (S, PARTS) what sounds; REST where nothing does
    begins: Bools  # (S, PARTS) whether that note begins with the slice

    @classmethod
    def of(cls, score: Score) -> Self | None:
        """Return the voices of a piece; None if it is not in four parts."""
        notes = pitched_notes(score)
        notes = notes[np.lexsort((notes["onset"], notes["program"]))]
        programs, voice = np.unique(notes["program"], return_inverse=True)
        onset = notes["onset"].astype(np.int64)
        end = onset + notes["duration"]
        if len(programs) != PARTS or np.any((onset[1:] < end[:-1]) & (voice[1:] == voice[:-1])):
            return None
        sounding = np.bincount(voice, notes["duration"])
        height = np.bincount(voice, notes["duration"] * notes["pitch"].astype(np.int64)) / sounding
        voice = np.argsort(np.argsort(-height, kind="stable"))[voice]
        times = np.unique(np.concatenate([onset, end]))
        first, last = np.searchsorted(times, onset), np.searchsorted(times, end)
        # each note's pitch is added where it begins and subtracted where it ends
        change = np.zeros((len(times), PARTS), dtype=np.int64)
        np.add.at(change, (first, voice), notes["pitch"].astype(np.int64) - REST)
        np.add.at(change, (last, voice), REST - notes["pitch"].astype(np.int64))
        begins = np.zeros((len(times), PARTS), dtype=bool)
        begins[first, voice] = True
        return cls(np.diff(times), np.cumsum(change, axis=0)[:-1] + REST, begins[:-1])


def count_parallels(score: Score, interval: int) -> float:
    """Count the parallels of an interval, such as FIFTH, per 100 bars.

    Two voices move to another note at the same time and in the same direction, that interval
    apart, octaves aside, before and after. Each pair of voices counts by itself. NaN if the piece
    is not in four parts, or time is not counted in beats.
    """
    parts = Parts.of(score)
    if parts is None or not score.grid.has_meter:
        return float("nan")
    pitch = parts.pitch
    moves = np.diff(pitch, axis=0) * (parts.begins[1:] & (pitch[:-1] != REST))
    high, low = (np.sign(moves[:, voices]) for voices in PAIRS)
    apart = np.abs(pitch[:, PAIRS[0]] - pitch[:, PAIRS[1]]) % 12
    is_kept = (apart[:-1] == interval) & (apart[1:] == interval)
    found = int((is_kept & (high == low) & (high != 0)).sum())
    return 100 * found / len(score.bars)


def parallels(scores: Sequence[Score]) -> float | None:
    """Count parallel fifths, unisons and octaves of pieces, per 100 bars.

    None if most of the pieces are not in four parts.
    """
    found = [count_parallels(score, FIFTH) + count_parallels(score, UNISON) for score in scores]
    counts = np.array(found)[~np.isnan(found)]
    return float(counts.mean()) if 2 * len(counts) > len(found) else None
