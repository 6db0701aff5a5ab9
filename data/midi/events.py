"""What a MIDI file says."""

from dataclasses import dataclass

from common.arrays import Ints, Reals

MAX_FILE_BYTES = 32 * 2**20  # the largest file that is read


@dataclass(frozen=True)
class Events:
    """What a MIDI file says, in ticks, before anything is brought to a grid.

    Notes come track by track, and last as long as the sustain pedal holds them.
    """

    ticks_per_beat: int  # in a quarter note
    notes: Ints  # (N, 5) start, end, pitch, velocity, program (128: drums)
    meters: Ints  # (M, 3) tick, numerator, denominator
    tempi: Reals  # (K, 2) tick, a whole number; quarter notes a minute
    tracks: tuple[tuple[str, int], ...] = ()  # of each track with notes: its name and their count
    clipped_bytes: int = 0  # data bytes of the file that were over 127
