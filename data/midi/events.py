"""What a MIDI file says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_FILE_BYTES = 32 * 2**20  # of a MIDI file that is read


@dataclass(frozen=True)
class Events:
    """What a MIDI file says, times in ticks, before anything is brought to a grid.

    Notes lie track after track, and are as long as the sustain pedal holds them.
    """

    ticks_per_beat: int  # a quarter note
    notes: NDArray[np.int64]  # (N, 5) start, end, pitch, velocity, program (128: drums)
    meters: NDArray[np.int64]  # (M, 3) tick, numerator, denominator
    tempi: NDArray[np.float64]  # (K, 2) tick, a whole number; quarter notes a minute
    tracks: tuple[tuple[str, int], ...] = ()  # name and notes of each that has any, where known
    clipped_bytes: int = 0  # of the file that were over 127, where data should stand
