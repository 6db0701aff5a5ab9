"""What `data` and `model` must agree on, said once; this module imports neither.

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


class SideInput(NamedTuple, Generic[Array]):
    """What is known of each token beside its id: B windows of T tokens.

    Of P programs, or of none: then `references` and `moves` have no columns. What stands beside
    Pad is 0.
    """

    # int32 (B, T, K), numbers from 1 up of the features that hold, each once; 0 fills up
    bag: Array
    # int64 (B, T, 2 P + SHARED_REFERENCES), pitches from which the next note is counted, from 1 up;
    # 0: there is none. First two of each program, then the shared ones.
    references: Array
    # int64 (B, T, P), semitones by which each program has just moved, plus the number of pitches
    # of a program; 0: it has not.
    moves: Array
    time: Array  # int64 (B, T), grid steps since the first bar of the window

    def window(self: SideInput[Any], number: int) -> SideInput[Any]:
        """Return what stands beside one of the windows, alone: views with B = 1."""
        return self.map(lambda array: array[number : number + 1])

    def map(self, function: Callable[[Array], Other]) -> SideInput[Other]:
        """Apply a function to each of the arrays."""
        return SideInput(*map(function, self))
