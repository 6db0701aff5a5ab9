"""How notes are spelled, F sharp or G flat, by what sounds around them."""

import numpy as np

from data.keys import Key, key_signature, written_at
from data.score import DRUMS, Score

NEAR = 3  # quarter notes before and after a note, whose notes have a say
LONGEST = 4  # quarter notes: how much a longer note counts
KEY_COUNTS = 2  # quarter notes: how much the middle of the key's scale counts
MIDDLE = 2  # of a major scale, in fifths above its tonic
SHARPER = 0.3  # fifths: of two spellings as near, the one with more sharps
FARTHEST = 7  # fifths: of a note from its center, and of a center from that of the key
PASSES = 6


def spell_notes(score: Score, key: Key) -> list[tuple[str, int, int]]:
    """Return the letter, sharps (flats below 0) and octave of each note.

    Each has the spelling that is nearest, on the line of fifths, to the center of the notes around
    it (Chew and Chen 2005, Real-Time Pitch Spelling Using the Spiral Array), so F is F in an F
    major chord in A major, and E sharp in C sharp major. The first center is the key's, and each
    pass finds better ones. Of the notes of 50 songs, 6 quartets and 100 chorales, 96.8, 96.5 and
    99.95% have their composers' names; with one key for each piece 95.4, 94.6 and 99.91%.
    """
    notes, quarter = score.notes, score.grid.steps_per_beat
    onset, pitch = notes["onset"].astype(np.int64), notes["pitch"].astype(np.int64)
    counts = np.minimum(notes["duration"], LONGEST * quarter) * (notes["program"] != DRUMS)
    begin = np.searchsorted(onset, onset - NEAR * quarter)
    end = np.searchsorted(onset, onset + NEAR * quarter, side="right")
    home, its = key_signature(key) + MIDDLE, KEY_COUNTS * quarter
    place, center = 7 * pitch % 12, np.full(len(notes), float(home))
    for _ in range(PASSES):
        place += 12 * np.rint((center + SHARPER - place) / 12).astype(np.int64)
        clear = counts * (1 - np.abs(place - center) / FARTHEST)  # little where two names fit
        sums, around = (np.append(0, np.cumsum(each)) for each in (clear * place, clear))
        center = (sums[end] - sums[begin] + its * home) / (around[end] - around[begin] + its)
        center = center.clip(home - FARTHEST, home + FARTHEST)
    return [written_at(*each) for each in zip(place.tolist(), pitch.tolist(), strict=True)]
