"""Where music comes to rest: triads in root position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from data.keys import pitched_notes
from data.score import NOTE, Score


def final_chord(score: Score) -> NDArray[np.void]:
    """Return the notes with a pitch that sound at the last onset; none of an empty piece."""
    notes = pitched_notes(score)
    if not len(notes):
        return np.empty(0, NOTE)
    last = notes["onset"].max()
    return np.asarray(notes[notes["onset"] + notes["duration"] > last])


def root_of_triad(chord: NDArray[np.void]) -> int | None:
    """Return the pitch class of the bass of a major or minor triad in root position, else None.

    Pitch classes may be doubled and the fifth may be missing, the third may not.

    Args:
        chord: (N,) of NOTE.
    """
    if not len(chord):
        return None
    bass = int(chord["pitch"].min())
    above = set(((chord["pitch"] - bass) % 12).tolist())
    is_triad = any({0, third} <= above <= {0, third, 7} for third in (3, 4))
    return bass % 12 if is_triad else None
