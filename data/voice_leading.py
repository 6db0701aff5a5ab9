"""Voice leading of a four-part Score: parallels.

A piece is in four parts if four programs, drums aside, play one note at a time each. For other
pieces every measure is NaN.
"""

from collections.abc import Sequence

import numpy as np

from common.arrays import Ints
from data.keys import pitched_notes
from data.score import Score
from data.statistics import REST, Music

PARTS = 4
PAIRS = np.triu_indices(PARTS, 1)  # the higher and the lower voice of each of the six pairs
UNISON, FIFTH = 0, 7  # semitones, octaves apart


def four_parts(score: Score) -> tuple[Ints, Ints] | None:
    """Return when what sounds changes, (S + 1,), and (S, 4) the pitches of the voices until then.

    The highest voice is the first; where one has no note it has REST. None: the piece is not in
    four parts.
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

    Two voices move to another note at the same time and in the same direction, that interval
    apart, octaves aside, before and after. Each pair of voices counts by itself. NaN if the piece
    is not in four parts, or time is not counted in beats.
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
    """Count parallel fifths, unisons and octaves of pieces, per 100 bars.

    None if most of the pieces are not in four parts.
    """
    found = [count_parallels(score, FIFTH) + count_parallels(score, UNISON) for score in scores]
    counts = np.array(found)[~np.isnan(found)]
    return float(counts.mean()) if 2 * len(counts) > len(found) else None
