"""A bag of numbers that a loop fills: the features that hold beside one id."""

from __future__ import annotations

from typing import NamedTuple

from common.arrays import Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE

NO_PITCH = -1


class Bag(NamedTuple):
    """The numbers put in so far; a number may stand there more than once."""

    numbers: Ints  # (M,)
    size: Ints  # (1,) how many there are


@compiled_inside
def put(bag: Bag, feature: int) -> None:
    """Put in a feature."""
    bag.numbers[bag.size[0]] = feature
    bag.size[0] += 1


@compiled_inside
def put_above(bag: Bag, block: int, pitch: int, root: int) -> None:
    """Put in how far a pitch lies above a root, within the octave; nothing if there is no root."""
    if root != NO_PITCH:
        put(bag, block + (pitch - root) % OCTAVE)
