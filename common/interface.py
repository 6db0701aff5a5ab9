"""What `data` and `model` must agree on, said once; this module imports neither.

A token's id says little. At the token C4, say, the model should know that it is the third beat,
that an A sounds below, that the tenor had a G before. A large model would work that out from the
ids so far. A small one is told: this is the side input. `data/tokens/features.py` makes it.

An array is NumPy's where `data` makes it, and torch's where `model` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

Array = TypeVar("Array")
Other = TypeVar("Other")

PAD = 0  # the id that fills places without a token
NOT_SCORED = -100  # a target that no loss counts
OCTAVE = 12  # semitones
SHARED_REFERENCES = 4  # pitches that the notes of every program are counted from
ENDS = 2  # of notes that sound, from which durations are counted


class SideInput(NamedTuple, Generic[Array]):
    """What stands beside each id: B windows of T tokens. Beside Pad all is 0.

    A feature is something that holds or does not, such as "an A sounds"; each has a number. A
    reference is a pitch from which the next note is counted, such as the lowest that sounds: a
    step up is the same in every key. Each of P programs (instruments) has references of its own.
    Where there are too many programs, P is 0: `references` and `moves` have no columns.
    """

    # int32 (B, T, K), the numbers, from 1 up, of the features that hold; 0 fills the rest
    bag: Array
    # int64 (B, T, 2 P + SHARED_REFERENCES), pitches, the vocabulary's lowest being 1; 0: none.
    # First P that each program had before, then P that it plays next if it goes on as before,
    # then those of all: the latest note, the lowest that sounds, the lowest before, the tonic
    # (the note that the key is named after).
    references: Array
    # int64 (B, T, P), semitones by which each program has just moved, plus the number of pitches in
    # the vocabulary, so that it is above 0; 0: it has not moved.
    moves: Array
    # int64 (B, T, 12), 1 for each pitch class that sounds, counted from the vocabulary's lowest
    sounding: Array
    # int64 (B, T, ENDS), grid steps that a note which has just begun would still last, beyond its
    # Extends, to end with most of what sounds, and with the note before it; 0: there is none.
    ends: Array
    time: Array  # int64 (B, T), grid steps since the first bar of the window

    def window(self: SideInput[Any], number: int) -> SideInput[Any]:
        """Return what stands beside one of the windows, alone: views with B = 1."""
        return self.map(lambda array: array[number : number + 1])

    def map(self, function: Callable[[Array], Other]) -> SideInput[Other]:
        """Apply a function to each of the arrays."""
        return SideInput(*map(function, self))
