"""Voice leading in four parts: counts parallels.

A piece is in four parts if it has four programs, apart from drums, each of which plays one note at
a time. For other pieces every measure is NaN.
"""

from collections.abc import Sequence

import numpy as np

from common.arrays import Ints
from data.keys import pitched_notes
from data.score import Score
from data.statistics import REST, Music

PARTS = 4
PAIRS = np.triu_indices(PARTS, 1)  # the higher and the lower voice in each of the six pairs
UNISON, FIFTH = 0, 7  # semitones, ignoring octaves


def four_parts(score: Score) -> tuple[Ints, Ints] | None:
    """Return when what sounds changes, (S + 1,), and the pitches of the voices until then, (S, 4).

    The first voice is the highest. A voice without a note has REST. None: the piece is not in four
    parts.
    """
    notes = np.sort(pitched_notes(score), order=("program", "onset"))
    onset, program = notes["onset"].astype(np.int64), notes["program"]
    end, goes_on = onset + notes["duration"], program[1:] == program[:-1]
    if len(notes) - goes_on.sum() != PARTS or np.any(goes_on & (onset[1:] < end[:-1])):
        return None
    times = np.unique(np.concatenate([onset, end]))
    return times, Music(score).pitches(times[:-1])


def count_parallels(score: Score, interval: int) -> float:
    """Count the parallels of an interval, such as FIFTH, per 100 bars.

    In a parallel, two voices move to other notes at the same time and in the same direction, and
    form that interval, ignoring octaves, both before and after. Each pair of voices counts
    separately. NaN: the piece is not in four parts, or its time is not counted in beats.
    """
    parts = four_parts(score)
    if parts is None or not score.grid.has_meter:
        return float("nan")
    _, pitch = parts
    moves = np.diff(pitch, axis=0) * ((pitch[1:] != REST) & (pitch[:-1] != REST))
    high, low = (np.sign(moves[:, voices]) for voices in PAIRS)
    apart = np.abs(pitch[:, PAIRS[0]] - pitch[:, PAIRS[1]]) % 12
    is_kept = (apart[:-1] == interval) & (apart[1:] == interval)
    found = int((is_kept & (high == low) & (high != 0)).sum())
    return 100 * found / len(score.bars)


def parallels(scores: Sequence[Score]) -> float | None:
    """Return the parallel fifths, unisons and octaves of pieces per 100 bars, on average.

    None: most of the pieces are not in four parts.
    """
    found = [count_parallels(score, FIFTH) + count_parallels(score, UNISON) for score in scores]
    counts = np.array(found)[~np.isnan(found)]
    return float(counts.mean()) if 2 * len(counts) > len(found) else None
