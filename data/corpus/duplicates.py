"""Copies of a piece, in any key."""

import hashlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from data.arrays import reduce_segments
from data.score import DRUMS, ScoreBatch


def fingerprints(scores: ScoreBatch) -> list[bytes]:
    """Return 16 bytes a piece: a hash of onset, duration, program and relative pitch of each note.

    Pitches count from the lowest, the drums' as they are. So the same music in another key, at
    another tempo or loudness has the same fingerprint.
    """
    notes = scores.notes
    lowest = np.repeat(lowest_pitches(scores), np.diff(scores.note_offsets))
    pitch = np.where(notes["program"] == DRUMS, notes["pitch"], notes["pitch"] - lowest)
    columns = np.stack([notes["onset"], notes["duration"], notes["program"], pitch]).astype("<i4")
    return [
        hashlib.blake2b(columns[:, begin:end].tobytes(), digest_size=16).digest()
        for begin, end in pairwise(scores.note_offsets.tolist())
    ]


def lowest_pitches(scores: ScoreBatch) -> NDArray[np.int16]:
    """Return (P,) the lowest pitch of each piece's notes but the drums'; 127 where it has none."""
    notes = scores.notes
    pitch = np.where(notes["program"] == DRUMS, np.int16(127), notes["pitch"])
    return reduce_segments(np.minimum, pitch, scores.note_offsets, empty=127)
