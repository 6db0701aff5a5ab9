"""Which key notes follow: the one whose profile best fits how often each pitch class was heard."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from common.arrays import Ids, Ints
from common.compiled import compiled
from data.keys import KEY_PROFILES, LEAST_HEARD, PROFILES, Key, pitched_notes
from data.score import Score


@compiled
def follow_key(profiles: Ints, heard: Ints) -> tuple[int, int]:
    """Find the key whose profile the notes fit best.

    Args:
        profiles: KEY_PROFILES.
        heard: (12,) how many notes of each pitch class there are.

    Returns:
        The tonic as a pitch class, or -1 if there are fewer than LEAST_HEARD notes or two keys fit
        equally well; and the mode, 0 for major, 1 for minor.
    """
    best, most, second = 0, -(2**60), -(2**60)
    for key in range(len(profiles)):
        fit = 0
        for pitch_class in range(len(heard)):
            fit += profiles[key, pitch_class] * heard[pitch_class]
        if fit > most:
            best, most, second = key, fit, most
        elif fit > second:
            second = fit
    is_heard = heard.sum() >= LEAST_HEARD and most > second
    return best % 12 if is_heard else -1, best // 12


def key_followed(pitches: Ids) -> Key | None:
    """Return the key that notes of these pitches (N,) follow, if any."""
    tonic, mode = follow_key(KEY_PROFILES, np.bincount(pitches % 12, minlength=12))
    return None if tonic < 0 else Key(int(tonic), list(PROFILES)[int(mode)])


def count_keys(scores: Iterable[Score]) -> dict[str, tuple[int, ...]]:
    """Count the keys that pieces follow: how many have each of the 12 tonics, by mode."""
    counts = Counter(key_followed(pitched_notes(score)["pitch"]) for score in scores)
    return {mode: tuple(counts[Key(tonic, mode)] for tonic in range(12)) for mode in PROFILES}
