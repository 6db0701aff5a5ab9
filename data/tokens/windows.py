"""What whole windows of ids say, id by id, as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Ints
from common.compiled import compiled
from data.tokens.cursor import Cursors, advance, at_start
from data.tokens.vocabulary import Kind, Vocabulary, Words


def read_windows(ids: ArrayLike, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Read windows of ids (B, T) that begin at Start or at a Bar, Pad at either end.

    Returns:
        (B, T) time of the latest Bar or Position, in grid steps from the first bar; and (B, T)
        place of the latest Note since then, -1 where there is none.

    Raises:
        IndexError: an id outside the vocabulary.
    """
    ids = np.asarray(ids, dtype=np.int64)
    now, note_at = np.empty((2, *ids.shape), dtype=np.int64)
    _read(vocabulary.words, at_start(vocabulary, len(ids)), ids, now, note_at)
    return now, note_at


@compiled
def _read(words: Words, at: Cursors, ids: Ints, now: Ints, note_at: Ints) -> None:
    """Read ids (B, T) and note what they say, (B, T) each."""
    B, T = ids.shape
    for row in range(B):
        here, note = at[row], -1
        for t in range(T):
            advance(words, here, ids[row, t])
            if here.kind == Kind.NOTE:
                note = t
            now[row, t] = here.now
            note_at[row, t] = note if here.note >= 0 else -1
