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


def transposition_range(ids: NDArray[np.int64], vocabulary: Vocabulary) -> tuple[int, int]:
    """The lowest and the highest number of semitones by which a piece can move, (-k, l)."""
    notes = ids[(vocabulary.kind_of[ids] == Kind.NOTE) & ~vocabulary.is_drum_note[ids]]
    if not len(notes):
        return 0, 0
    pitch = (notes - vocabulary.first(Kind.NOTE)) % vocabulary.pitch_count
    return -int(pitch.min()), vocabulary.pitch_count - 1 - int(pitch.max())
