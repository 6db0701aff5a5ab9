"""How pieces end: on triads in root position, and in which key."""

from __future__ import annotations

import numpy as np

from data.harmony import final_chord, root_of_triad
from data.keys import KEY_PROFILES, PROFILES, Key, pitched_notes
from data.score import Score


def estimate_key(score: Score) -> Key:
    """Estimate the key of a piece by the method of Krumhansl & Schmuckler.

    The sounding time of each pitch class is correlated (Pearson) with the profiles of all 24 keys
    (Krumhansl 1990, chapter 4); the best fit wins, and the first of equals. Drums are left out.

    Raises:
        ValueError: there are no notes with a pitch, or all pitch classes sound equally long.
    """
    notes = pitched_notes(score)
    sounding = np.bincount(notes["pitch"] % 12, notes["duration"], 12)  # (12,) steps
    if np.ptp(sounding) == 0:
        raise ValueError("no key: no notes with a pitch, or all pitch classes equally")
    best = int((KEY_PROFILES @ sounding).argmax())  # the same maximum as the correlation's
    return Key(best % 12, list(PROFILES)[best // 12])


def closes_on_tonic(score: Score, key: Key) -> bool:
    """Return whether a piece ends on a triad on a key's tonic, in root position, major or minor.

    Either is enough, so a Picardy third counts.
    """
    return root_of_triad(final_chord(score)) == key.tonic


def ends_on_tonic(score: Score) -> bool:
    """Return whether a piece ends on the tonic's triad (see `closes_on_tonic`).

    The key is estimated from the music before the last bar, so that the ending has no part in it.
    If that music has no key, as in a piece of one bar, the answer is no.
    """
    try:
        key = estimate_key(score.excerpt(0, len(score.bars) - 1))
    except ValueError:
        return False
    return closes_on_tonic(score, key)
