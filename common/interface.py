"""What `data` and `model` must agree on, in one place; this module imports neither.

A token's id says little. At the token C4, it helps to know that this is the third beat, that an A
sounds below, and that the tenor had a G before. A large model would work this out from the ids so
far. A small model is told instead: this is the side input. `data/tokens/features.py` makes it.

Arrays are NumPy's where `data` makes them, and torch's where `model` reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from common.arrays import Ids

Array = TypeVar("Array")
Other = TypeVar("Other")

PAD = 0  # the id that fills places without a token
NOT_SCORED = -100  # a target that the loss leaves out
OCTAVE = 12  # semitones
SHARED_REFERENCES = 4  # pitches from which the notes of every program are counted
ENDS = 2  # ends of other notes, from which durations are counted


class SideInput(NamedTuple, Generic[Array]):
    """What stands beside each id, for B windows of T tokens. Beside Pad everything is 0.

    A feature is a statement that holds or does not, such as "an A sounds"; features are numbered. A
    reference is a pitch from which the next note is counted, such as the lowest that sounds.
    Counted like this, a step up is the same in every key. Each of P programs (instruments) has
    references of its own. If there are too many programs, P is 0, and `references` and `moves` have
    no columns.
    """

    # int32 (B, T, K): the numbers, from 1 up, of the features that hold; the rest is filled with 0.
    bag: Array
    # int64 (B, T, 2 P + SHARED_REFERENCES): pitches, counted from 1 for the vocabulary's lowest; 0:
    # there is none. The first P are what each program played before. The next P are what each
    # program would play next if it repeated itself. Then come those that all programs share: the
    # latest note, the lowest that sounds, the lowest before, and the tonic (the note that the key
    # is named after).
    references: Array
    # int64 (B, T, P): the semitones by which each program has just moved, plus the number of
    # pitches in the vocabulary, so that the sum is above 0; 0: it has not moved.
    moves: Array
    # int64 (B, T, 12): 1 for each pitch class that sounds, counted from the vocabulary's lowest
    # pitch.
    sounding: Array
    # int64 (B, T, ENDS): how many grid steps a note that has just begun must still last, beyond its
    # Extends, to end together with as many of the notes that sound as possible, and to end together
    # with the note before it; 0: there is none.
    ends: Array
    time: Array  # int64 (B, T): grid steps since the first bar of the window

    def window(self: SideInput[Any], number: int) -> SideInput[Any]:
        """Return what stands beside one of the windows: views, with B = 1."""
        return self.map(lambda array: array[number : number + 1])

    def map(self, function: Callable[[Array], Other]) -> SideInput[Other]:
        """Apply a function to each of the arrays."""
        return SideInput(*map(function, self))


SideArrays = SideInput[Ids]
