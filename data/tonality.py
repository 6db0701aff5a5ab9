"""Which key a piece is in, and what it ends on: pure functions of a Score."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.score import DRUMS, NOTE, Score

Mode = Literal["major", "minor"]

# How well each of the 12 pitch classes from the tonic up fits the key, as listeners rated them:
# Krumhansl & Kessler 1982; Krumhansl 1990, Cognitive Foundations of Musical Pitch, table 2.1.
PROFILES: dict[Mode, NDArray[np.float64]] = {
    "major": np.array([6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88]),
    "minor": np.array([6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17]),
}


LEAST_HEARD = 8  # notes, before they follow a key
# (24, 12), of all keys, as whole numbers, so that equals are equal however they are added up
_STANDARD = [(profile - profile.mean()) / profile.std() for profile in PROFILES.values()]
_KEYS = np.stack([np.roll(profile, tonic) for profile in _STANDARD for tonic in range(12)])
_KEYS = np.rint(1000 * _KEYS).astype(np.int64)


class Key(NamedTuple):
    """A key: pitch class of the tonic, C = 0, and mode."""

    tonic: int
    mode: Mode


def estimate_key(score: Score) -> Key:
    """The key of a piece by Krumhansl & Schmuckler: the one whose profile the notes follow best.

    Sounding time by pitch class is correlated (Pearson) with the profiles of all 24 keys
    (Krumhansl 1990, chapter 4). Drums have no pitch and are left out. The first of equals wins.

    Raises:
        ValueError: no notes with a pitch, or all pitch classes sound equally long.
    """
    notes = _pitched(score)
    sounding = np.bincount(notes["pitch"] % 12, notes["duration"], 12)  # (12,) steps
    if np.ptp(sounding) == 0:
        raise ValueError("no key: no notes with a pitch, or all pitch classes equally")
    keys = [Key(tonic, mode) for mode in PROFILES for tonic in range(12)]
    profiles = [np.roll(PROFILES[key.mode], key.tonic) for key in keys]  # (24, 12)
    correlation = np.corrcoef([sounding, *profiles])[0, 1:]
    return keys[int(correlation.argmax())]


def follows_key(heard: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The key whose profile notes follow best, of many counts at once.

    Args:
        heard: (..., 12) notes of each pitch class.

    Returns:
        The tonic (...), a pitch class, -1 where fewer than LEAST_HEARD notes were heard or two
        keys fit as well; and its mode (...), 0 major, 1 minor.
    """
    fit = heard @ _KEYS.T  # (..., 24)
    best = fit.argmax(axis=-1)
    is_one = (fit == fit.max(axis=-1, keepdims=True)).sum(axis=-1) == 1
    is_heard = is_one & (heard.sum(axis=-1) >= LEAST_HEARD)
    return np.where(is_heard, best % 12, -1), best // 12


def above_tonic(score: Score) -> Counter[int]:
    """How many notes stand how many semitones above the tonic, 0 to 11; none where no key is."""
    try:
        tonic = estimate_key(score).tonic
    except ValueError:
        return Counter()
    return Counter(((_pitched(score)["pitch"] - tonic) % 12).tolist())


def final_chord(score: Score) -> NDArray[np.void]:
    """(N,) of NOTE: all notes with a pitch that sound at the last onset; none of an empty piece."""
    notes = _pitched(score)
    if not len(notes):
        return np.empty(0, NOTE)
    last = notes["onset"].max()
    return np.asarray(notes[notes["onset"] + notes["duration"] > last])


def root_of_triad(chord: NDArray[np.void]) -> int | None:
    """The pitch class of the bass, if the chord is a major or minor triad in root position.

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


def ends_on_tonic(score: Score) -> bool:
    """Whether a piece ends on the tonic's triad in root position, major or minor.

    So a Picardy third counts. The key is that of the music before the last bar, so that an ending
    cannot speak for itself; where that has no key, as in a piece of one bar, it does not.
    """
    try:
        key = estimate_key(score.excerpt(0, len(score.bars) - 1))
    except ValueError:
        return False
    return root_of_triad(final_chord(score)) == key.tonic


def _pitched(score: Score) -> NDArray[np.void]:
    return np.asarray(score.notes[score.notes["program"] != DRUMS])
