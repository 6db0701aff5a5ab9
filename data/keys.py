"""Keys by name, "D minor" or "F#", and the pitch classes that belong to them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

_STEPS = {"c": 0, "d": 2, "e": 4, "f": 5, "g": 7, "a": 9, "b": 11}
_ALTERATIONS = {"": 0, "#": 1, "♯": 1, "sharp": 1, "b": -1, "♭": -1, "flat": -1}
_MAJOR = (0, 2, 4, 5, 7, 9, 11)
_MINOR = (0, 2, 3, 5, 7, 8, 9, 10, 11)  # with its raised sixth and seventh
_MODES = {"major": _MAJOR, "maj": _MAJOR, "minor": _MINOR, "min": _MINOR}

_KEY = re.compile(
    r"\s*(?P<tonic>[A-Ga-g])(?:[ -]?(?P<alteration>(?i:sharp|flat))|(?P<sign>[#♯b♭]))?"
    r"[ -]*(?:(?P<mode>(?i:major|maj|minor|min))|(?P<letter>[mM]))?\s*"
)


class ConstraintError(ValueError):
    """A wish that cannot be met; the message is one line: what, what is known, what to do."""


def key_pitch_classes(name: str) -> NDArray[np.bool_]:
    """(12,) whether each pitch class, C first, belongs to a key; minor has nine of them.

    Args:
        name: a tonic and a mode, as in "D minor", "Bb major", "F♯ min", "e-flat minor", "Am". A
            tonic alone is major if it is a capital and minor if it is not.

    Raises:
        ConstraintError: no such key.
    """
    match = _KEY.fullmatch(name)
    if not match:
        raise ConstraintError(
            f'there is no key {name!r}: write a tonic and a mode, as in "D minor", "Bb major", "F#"'
        )
    if match["mode"]:
        mode = _MODES[match["mode"].lower()]
    elif match["letter"]:
        mode = _MAJOR if match["letter"] == "M" else _MINOR
    else:
        mode = _MAJOR if match["tonic"].isupper() else _MINOR
    alteration = _ALTERATIONS[(match["alteration"] or match["sign"] or "").lower()]
    tonic = _STEPS[match["tonic"].lower()] + alteration
    belongs = np.zeros(12, dtype=bool)
    belongs[(tonic + np.array(mode)) % 12] = True
    return belongs
