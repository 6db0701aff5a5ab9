"""What whole windows of ids say, id by id, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from common.compiled import compiled
from data.tokens.cursor import Cursors, Ints, advance, at_start
from data.tokens.vocabulary import NEVER, Kind, Vocabulary, Words


@dataclass(frozen=True)
class Windows:
    """What B windows of T ids say. Times are in grid steps from the first bar of each.

    Attributes:
        kind: (B, T) the Kind of each id.
        value: (B, T) its number within its kind.
        bar_length: (B, T) at each Bar the steps of that bar; elsewhere 0.
        position: (B, T) steps from the bar line to the latest Bar or Position.
        now: (B, T) time of the latest Bar or Position.
        note_at: (B, T) place of the latest Note since then; -1: there is none.
        note_end: (B, T) at each Note when it ends; NEVER without its Duration.
    """

    kind: Ints
    value: Ints
    bar_length: Ints
    position: Ints
    now: Ints
    note_at: Ints
    note_end: Ints


def read_windows(ids: ArrayLike, vocabulary: Vocabulary) -> Windows:
    """Read windows of ids (B, T) that begin at Start or at a Bar, Pad at either end.

    Raises:
        IndexError: an id outside the vocabulary.
    """
    ids = np.asarray(ids, dtype=np.int64)
    kind = vocabulary.kind_of[ids]
    value = ids - vocabulary.words.firsts[kind]
    bar_length, position, now = np.zeros((3, *ids.shape), dtype=np.int64)
    note_at, note_end = np.full(ids.shape, -1), np.full(ids.shape, NEVER)
    windows = Windows(kind, value, bar_length, position, now, note_at, note_end)
    at = at_start(vocabulary, len(ids))
    _read(vocabulary.words, at, ids, bar_length, position, now, note_at, note_end)
    return windows


@compiled
def _read(
    words: Words,
    at: Cursors,
    ids: Ints,
    bar_length: Ints,
    position: Ints,
    now: Ints,
    note_at: Ints,
    note_end: Ints,
) -> None:
    """Read ids (B, T) and note, (B, T) each, what `Windows` says."""
    B, T = ids.shape
    for row in range(B):
        bar_at = note = -1
        here = at[row]
        for t in range(T):
            advance(words, here, ids[row, t])
            kind = here.kind
            if kind == Kind.BAR:
                bar_at = t
            elif kind == Kind.NOTE:
                note = t
            elif kind == Kind.DURATION and note >= 0:
                note_end[row, note] = here.note_end
            if bar_at >= 0:
                bar_length[row, bar_at] = here.bar_length
            position[row, t] = here.now - here.bar_start
            now[row, t] = here.now
            note_at[row, t] = note if here.note >= 0 else -1
