"""Rounds what was played to what can be read: sixteenths, and triplets of eighths.

A performance that is notated to the twelfth of a beat is a thicket of ties. If many notes begin or
end elsewhere, onsets and ends move a little in notation. What is written to the beat stays as it
is.
"""

import numpy as np

from common.arrays import Ids, Ints

_MOST_ODD = 0.1  # share of onsets and ends off sixteenths and triplets in written music
_LEAST_GAIN = 2  # triplets must fit the notes of a beat better by this many steps


def is_played(times: Ints, quarter: int) -> bool:
    """Return whether notes that begin and end at some times, in steps, were not written."""
    sixteenth, third = quarter // 4, quarter // 3
    is_odd = (times % sixteenth != 0) & (times % third != 0)
    return bool(len(times)) and float(is_odd.mean()) > _MOST_ODD


def rounded(
    onset: Ints, end: Ints, bar_starts: Ints, quarter: int, has_triplets: bool
) -> tuple[Ints, Ints]:
    """Return onsets and ends, (N,) each, on sixteenths, or on triplets in beats that have them.

    `has_triplets` is False in compound meters, where a beat divides into three anyway. A note lasts
    at least a sixteenth.
    """
    sixteenth, third = quarter // 4, quarter // 3

    def beat_of(times: Ints) -> Ints:
        bar = np.searchsorted(bar_starts[1:-1], times, side="right")
        return np.asarray(times - (times - bar_starts[bar]) % quarter)

    beats, of_beat = np.unique(beat_of(onset), return_inverse=True)
    inside = onset - beats[of_beat]
    gain = np.bincount(of_beat, _error(inside, sixteenth) - _error(inside, third), len(beats))
    in_triplets = beats[(gain >= _LEAST_GAIN) & has_triplets]

    def on_grid(times: Ints) -> tuple[Ints, Ints]:
        """Return times on the grid of the beats that they fall into, and its steps there."""
        beat = beat_of(times)
        step = np.where(np.isin(beat, in_triplets), third, sixteenth)
        return beat + _nearest(times - beat, step), step

    (begins, step), (ends, _), last = on_grid(onset), on_grid(end), bar_starts[-1]
    begins = np.where(begins < last, begins, np.maximum(last - step, 0))
    return begins, np.minimum(np.maximum(ends, begins + step), last)


def _nearest(times: Ints, step: Ints | int) -> Ints:
    return np.asarray((times + step // 2) // step * step)


def _error(times: Ints, step: int) -> Ints:
    return np.asarray(np.abs(times - _nearest(times, step)))


def joined_chords(onset: Ints, end: Ints, program: Ids, quarter: int) -> Ints:
    """Return ends (N,) in which notes of a chord that nearly end together end with the latest."""
    _, chord = np.unique(np.stack([onset, program]), axis=1, return_inverse=True)
    earliest, latest = np.full_like(end, np.iinfo(end.dtype).max), np.zeros_like(end)
    np.minimum.at(earliest, chord, end)
    np.maximum.at(latest, chord, end)
    is_near = (latest - earliest <= quarter // 2)[chord]
    return np.where(is_near, latest[chord], end)


def held_until_next(onset: Ints, end: Ints, quarter: int) -> Ints:
    """Return ends, (N,) in one voice, without short rests: notes are held until the next one.

    Before a long rest, they are held to the end of an eighth. No note sounds beyond the next.
    """
    begins = np.append(np.unique(onset), np.iinfo(np.int64).max)
    following = begins[np.searchsorted(begins, onset, side="right")]
    eighth = quarter // 2
    is_near = following - end <= eighth
    ends = np.where(end % (quarter // 4) == 0, -(-end // eighth) * eighth, end)
    return np.asarray(np.minimum(np.where(is_near, following, ends), following))
