"""What a MIDI file says."""

from dataclasses import dataclass

from common.arrays import Ints, Reals

MAX_FILE_BYTES = 32 * 2**20  # of a MIDI file that is read


@dataclass(frozen=True)
class Events:
    """What a MIDI file says, times in ticks, before anything is brought to a grid.

    Notes lie track after track, and are as long as the sustain pedal holds them.
    """

    ticks_per_beat: int  # a quarter note
    notes: Ints  # (N, 5) start, end, pitch, velocity, program (128: drums)
    meters: Ints  # (M, 3) tick, numerator, denominator
    tempi: Reals  # (K, 2) tick, a whole number; quarter notes a minute
    tracks: tuple[tuple[str, int], ...] = ()  # name and notes of each that has any, where known
    clipped_bytes: int = 0  # of the file that were over 127, where data should stand
