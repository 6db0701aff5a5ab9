"""Augmentation as look-up tables over ids: what is spelt changes, how it is spelt does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from data.vocabulary import Kind, Vocabulary


def transposition(vocabulary: Vocabulary, semitones: int) -> NDArray[np.int64]:
    """(V,) the id that each id becomes when the music moves by `semitones`; drums stay.

    -1 where the note would leave the vocabulary. Transposing ids so gives the encoding of the
    transposed piece, since note ids keep their order.
    """
    table = np.arange(vocabulary.size)
    notes = vocabulary.ids(Kind.NOTE)
    pitch = np.tile(np.arange(vocabulary.pitch_count), len(vocabulary.programs)) + semitones
    is_inside = (pitch >= 0) & (pitch < vocabulary.pitch_count)
    moved = np.where(is_inside, table[notes] + semitones, -1)
    table[notes] = np.where(vocabulary.is_drum_note[notes], table[notes], moved)
    return table


def transpositions(vocabulary: Vocabulary, reach: int) -> NDArray[np.int64]:
    """(2 * reach + 1, V) the tables of `transposition` for -reach .. reach semitones."""
    return np.stack([transposition(vocabulary, shift) for shift in range(-reach, reach + 1)])


def transposition_ranges(
    ids: NDArray[np.int64], begins: NDArray[np.int64], vocabulary: Vocabulary
) -> NDArray[np.int64]:
    """(P, 2) the lowest and the highest number of semitones by which each piece can move, (-k, l).

    Args:
        ids: (N,) the ids of P pieces, end to end.
        begins: (P,) where each begins.
    """
    is_pitched = (vocabulary.kind_of[ids] == Kind.NOTE) & ~vocabulary.is_drum_note[ids]
    pitch = (ids - vocabulary.first(Kind.NOTE)) % vocabulary.pitch_count
    highest = vocabulary.pitch_count - 1
    if not len(begins):
        return np.empty((0, 2), dtype=np.int64)
    lowest = np.minimum.reduceat(np.where(is_pitched, pitch, vocabulary.pitch_count), begins)
    ranges = np.stack(
        [-lowest, highest - np.maximum.reduceat(np.where(is_pitched, pitch, -1), begins)], axis=1
    )
    ranges[lowest > highest] = 0  # nothing that has a pitch
    return ranges


def transposition_range(ids: NDArray[np.int64], vocabulary: Vocabulary) -> tuple[int, int]:
    """That of one piece."""
    ((low, high),) = transposition_ranges(ids, np.zeros(1, dtype=np.int64), vocabulary).tolist()
    return low, high
