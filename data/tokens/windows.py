"""Reads whole windows of ids into arrays that say, id by id, where each one stands."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Ints
from common.compiled import compiled
from data.tokens.cursor import Cursors, advance, at_start
from data.tokens.vocabulary import Kind, Vocabulary, Words


def read_windows(ids: ArrayLike, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Read windows of ids (B, T) that begin at Start or at a Bar, with Pad at either end.

    Returns:
        (B, T) the time of the latest Bar or Position, in grid steps from the first bar; and (B, T)
        the place of the latest Note since then, or -1.

    Raises:
        IndexError: an id is outside the vocabulary.
    """
    ids = np.asarray(ids, dtype=np.int64)
    now, note_at = np.empty((2, *ids.shape), dtype=np.int64)
    _read(vocabulary.words, at_start(vocabulary, len(ids)), ids, now, note_at)
    return now, note_at


@compiled
def _read(words: Words, at: Cursors, ids: Ints, now: Ints, note_at: Ints) -> None:
    """Read ids (B, T), and fill `now` and `note_at`, (B, T) each."""
    B, T = ids.shape
    for row in range(B):
        here, note = at[row], -1
        for t in range(T):
            advance(words, here, ids[row, t])
            if here.kind == Kind.NOTE:
                note = t
            now[row, t] = here.now
            note_at[row, t] = note if here.note >= 0 else -1
