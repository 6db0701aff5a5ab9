"""What whole windows of ids say, id by id, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Ints
from common.compiled import compiled
from data.tokens.cursor import Cursors, advance, at_start
from data.tokens.vocabulary import Kind, Vocabulary, Words


@dataclass(frozen=True)
class Windows:
    """What B windows of T ids say. Times are in grid steps from the first bar of each.

    Attributes:
        kind: (B, T) the Kind of each id.
        value: (B, T) its number within its kind.
        now: (B, T) time of the latest Bar or Position.
        note_at: (B, T) place of the latest Note since then; -1: there is none.
    """

    kind: Ints
    value: Ints
    now: Ints
    note_at: Ints


def read_windows(ids: ArrayLike, vocabulary: Vocabulary) -> Windows:
    """Read windows of ids (B, T) that begin at Start or at a Bar, Pad at either end.

    Raises:
        IndexError: an id outside the vocabulary.
    """
    ids = np.asarray(ids, dtype=np.int64)
    kind = vocabulary.kind_of[ids]
    value = ids - vocabulary.words.firsts[kind]
    now, note_at = np.empty((2, *ids.shape), dtype=np.int64)
    _read(vocabulary.words, at_start(vocabulary, len(ids)), ids, now, note_at)
    return Windows(kind, value, now, note_at)


@compiled
def _read(words: Words, at: Cursors, ids: Ints, now: Ints, note_at: Ints) -> None:
    """Read ids (B, T) and note, (B, T) each, what `Windows` says."""
    B, T = ids.shape
    for row in range(B):
        here, note = at[row], -1
        for t in range(T):
            advance(words, here, ids[row, t])
            if here.kind == Kind.NOTE:
                note = t
            now[row, t] = here.now
            note_at[row, t] = note if here.note >= 0 else -1
