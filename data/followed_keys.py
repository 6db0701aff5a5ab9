"""Which key notes follow: the one whose profile fits best how often each pitch class was heard."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from common.arrays import Ids, Ints
from common.compiled import compiled
from data.keys import KEY_PROFILES, LEAST_HEARD, PROFILES, Key, pitched_notes
from data.score import Score


@compiled
def follow_key(profiles: Ints, heard: Ints) -> tuple[int, int]:
    """Find the key whose profile notes follow best.

    Args:
        profiles: KEY_PROFILES.
        heard: (12,) notes of each pitch class.

    Returns:
        The tonic, a pitch class, -1 where fewer than LEAST_HEARD notes were heard or two keys fit
        as well; and its mode, 0 major, 1 minor.
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
    """Return the key that notes of these pitches (N,) follow, if there is one."""
    tonic, mode = follow_key(KEY_PROFILES, np.bincount(pitches % 12, minlength=12))
    return None if tonic < 0 else Key(int(tonic), list(PROFILES)[int(mode)])


def count_keys(scores: Iterable[Score]) -> dict[str, tuple[int, ...]]:
    """Count the keys that pieces follow: by mode, how many have each of the 12 tonics."""
    counts = Counter(key_followed(pitched_notes(score)["pitch"]) for score in scores)
    return {mode: tuple(counts[Key(tonic, mode)] for tonic in range(12)) for mode in PROFILES}
