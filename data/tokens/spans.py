"""Array helpers on windows (B, T) of ids: which note each place belongs to, what sounds there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.interface import SideInput

NEVER = 2**40  # a step that no piece reaches: an end not yet known; also a number of bars or notes
NO_PITCH = -1

Ints = NDArray[np.int64]
SideArrays = SideInput[NDArray[np.integer[Any]]]


class Sounds:
    """N notes with a pitch, each in a row and a place of windows (B, T)."""

    def __init__(
        self,
        rows: Ints,
        places: Ints,
        number: Ints,
        pitch_of: Ints,
        shape: tuple[int, ...],
    ) -> None:
        has_pitch = pitch_of[number] != NO_PITCH
        self.rows, self.places, self.number = rows[has_pitch], places[has_pitch], number[has_pitch]
        self.pitch = pitch_of[self.number]
        lowest = np.full(shape, NEVER)  # (B, T) of each place
        np.minimum.at(lowest, (self.rows, self.places), self.pitch)
        self.lowest = np.where(lowest < NEVER, lowest, NO_PITCH)

    def lowest_by(self, group_of: Ints, count: int) -> Ints:
        """Return (B, T, count), the lowest pitch of each group of notes, or NO_PITCH.

        `group_of` gives the group of each note number.
        """
        lowest = np.full((*self.lowest.shape, count), NEVER)
        np.minimum.at(lowest, (self.rows, self.places, group_of[self.number]), self.pitch)
        return np.where(lowest < NEVER, lowest, NO_PITCH)

    def above(self, root: Ints) -> tuple[Ints, Ints]:
        """Return which notes stand where there is a root (B, T), and their semitones above it."""
        roots = root[self.rows, self.places]
        which = np.flatnonzero(roots != NO_PITCH)
        return which, (self.pitch - roots)[which]


def latest(is_one: NDArray[np.bool_]) -> Ints:
    """Return (B, T), the place of the latest True so far; -1 before the first."""
    places = np.where(is_one, np.arange(is_one.shape[1]), -1)
    return np.asarray(np.maximum.accumulate(places, axis=1))


def row_ends(is_token: NDArray[np.bool_]) -> Ints:
    """Return (B,), the place after the last token of each row: Pad may stand at the right end."""
    return np.asarray(is_token.shape[1] - is_token[:, ::-1].argmax(axis=1))


def take(values: NDArray[np.generic], places: Ints) -> Ints:
    """Return (B, T), what stands in these places of each row; anything where the place is -1."""
    return np.take_along_axis(np.asarray(values), np.maximum(places, 0), axis=1)


def first_reaching(times: Ints, rows: Ints, least: Ints) -> Ints:
    """Return (N,), the first place of each row given whose time is `least` or more.

    Times (B, T) never fall within a row.
    """
    apart = int(times.max(initial=0)) + 3
    row_starts = apart * np.arange(len(times))[:, None]
    wanted = np.minimum(least, apart - 2) + apart * rows
    places = np.searchsorted((times + row_starts).ravel(), wanted)
    return np.asarray(places - times.shape[1] * rows)


def spread(first: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Expand N ranges, first to stop - 1: return the range of each place, and the place."""
    count = np.maximum(stop - first, 0)
    which = np.repeat(np.arange(len(first)), count)
    before = np.cumsum(count) - count
    return which, np.arange(len(which)) - before[which] + first[which]


def set_bits(bits: NDArray[Any], rows: Ints, places: Ints, columns: Ints) -> None:
    """Set the columns (N, C) of bits (B, T, S) beside N ids, each in a row and place."""
    _, length, size = bits.shape
    cells = rows * length + places
    bits.reshape(-1)[cells[:, None] * size + columns] = 1
