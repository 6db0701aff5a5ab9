"""Where in the piece the reader stands after each id.

Of `Bar 4/4  Tempo 80  Position 12  Note D4  Duration 12` with steps of a twelfth of a quarter:

    after        now  position  note_end
    Bar 4/4        0        -1
    Tempo 80       0        -1
    Position 12   12        12
    Note D4       12        12
    Duration 12   12        12        24

`advance` reads one id of one row. Whoever reads ids, in training or in writing, calls it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.compiled import compiled
from data.tokens.vocabulary import Kind, Vocabulary, Words

Ints: TypeAlias = NDArray[np.int64]


class Cursor(NamedTuple):
    """Where each of B rows stands after the ids read in it; (B,) each, changed in place.

    Times are in grid steps.
    """

    kind: Ints  # the Kind of the latest id
    bar_count: Ints  # bars begun
    bar_start: Ints  # of the bar that the row is in
    bar_length: Ints
    tempo: Ints  # number of the tempo in force, -1 where it is still to be given
    position: Ints  # the latest Position in the bar, -1 before the first
    now: Ints  # time of the latest Position or Bar
    note: Ints  # number of the latest Note since then, -1 before the first
    note_bar: Ints  # number of the bar, from 1, that the latest Note began in; 0 before the first
    extends: Ints  # Extends since the latest Note
    note_end: Ints  # when the note of the latest Duration ends

    @classmethod
    def at_start(cls, vocabulary: Vocabulary, batch: int) -> Cursor:
        """Return the places of `batch` rows that have read nothing, or Start alone."""
        cursor = cls(*np.zeros((len(cls._fields), batch), dtype=np.int64))
        cursor.kind[:] = Kind.START
        cursor.position[:] = cursor.note[:] = -1
        cursor.tempo[:] = -1 if vocabulary.grid.has_meter else 0
        return cursor


@compiled
def advance(words: Words, cursor: Cursor, row: int, token: int) -> None:
    """Read the next id of a row."""
    kind = words.kind_of[token]
    value = token - words.first_of[token]  # the number among those of the kind
    cursor.kind[row] = kind
    if kind == Kind.BAR:
        cursor.bar_count[row] += 1
        cursor.bar_start[row] += cursor.bar_length[row]
        cursor.bar_length[row] = words.whole_bars[value]
        cursor.now[row] = cursor.bar_start[row]
        cursor.position[row] = cursor.note[row] = -1
    elif kind == Kind.LENGTH:
        cursor.bar_length[row] = value + 1
    elif kind == Kind.TEMPO:
        cursor.tempo[row] = value
    elif kind == Kind.POSITION:
        cursor.position[row] = value
        cursor.now[row] = cursor.bar_start[row] + value
        cursor.note[row] = -1
    elif kind == Kind.NOTE:
        cursor.note[row] = value
        cursor.note_bar[row] = cursor.bar_count[row]
        cursor.extends[row] = 0
    elif kind == Kind.EXTEND:
        cursor.extends[row] += 1
    elif kind == Kind.DURATION:
        duration = value + 1 + cursor.extends[row] * words.longest_duration
        cursor.note_end[row] = cursor.now[row] + duration


@compiled
def advance_rows(words: Words, cursor: Cursor, ids: Ints) -> None:
    """Read the next id of each row, (B,)."""
    for row in range(len(ids)):
        advance(words, cursor, row, ids[row])
