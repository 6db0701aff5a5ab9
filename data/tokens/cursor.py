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

from collections.abc import Iterable
from typing import Any, TypeAlias, get_type_hints

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints
from common.compiled import compiled, compiled_inside
from data.tokens.vocabulary import Kind, Vocabulary, Words


def record_of(row: type) -> np.dtype[np.void]:
    """Return the type of arrays whose elements, records, have an int64 for each field of a class.

    Loops take such an array, or a record of it, as one pointer: an array for each field takes far
    longer to compile.
    """
    return records(reversed(get_type_hints(row)))


def records(names: Iterable[str]) -> np.dtype[np.void]:
    """Return the type of arrays whose elements, records, have an int64 of each name."""
    return np.dtype((np.record, [(name, np.int64) for name in names]), align=True)


def record(row: type, **values: int) -> Any:
    """Return one such record, with a value of each field."""
    kind = record_of(row)
    return np.array([tuple(values[name] for name in kind.names or ())], kind)[0]


class Cursor:
    """Where a row stands after the ids read in it: a record of an array, and changed in place.

    Times are in grid steps.
    """

    kind: int  # the Kind of the latest id
    bar_count: int  # bars begun
    bar_start: int  # of the bar that the row is in
    bar_length: int
    tempo: int  # number of the tempo in force, -1 where it is still to be given
    position: int  # the latest Position in the bar, -1 before the first
    now: int  # time of the latest Position or Bar
    note: int  # number of the latest Note since then, -1 before the first
    note_bar: int  # number of the bar, from 1, that the latest Note began in; 0 before the first
    extends: int  # Extends since the latest Note
    note_end: int  # when the note of the latest Duration ends


Cursors: TypeAlias = NDArray[Any]  # (B,) of Cursor: at[row].now, and at["now"] of all rows


def at_start(vocabulary: Vocabulary, batch: int, row: type[Cursor] = Cursor) -> Cursors:
    """Return the places of `batch` rows, of a kind, that have read nothing, or Start alone."""
    at = np.zeros(batch, dtype=record_of(row))
    at["kind"] = Kind.START
    at["position"] = at["note"] = -1
    at["tempo"] = -1 if vocabulary.grid.has_meter else 0
    return at


@compiled_inside
def advance(words: Words, here: Cursor, token: int) -> None:
    """Read the next id of a row."""
    kind = words.kind_of[token]
    value = token - words.firsts[kind]  # the number among those of the kind
    here.kind = kind
    if kind == Kind.BAR:
        here.bar_count += 1
        here.bar_start += here.bar_length
        here.bar_length = words.whole_bars[value]
        here.now = here.bar_start
        here.position = here.note = -1
    elif kind == Kind.LENGTH:
        here.bar_length = value + 1
    elif kind == Kind.TEMPO:
        here.tempo = value
    elif kind == Kind.POSITION:
        here.position = value
        here.now = here.bar_start + value
        here.note = -1
    elif kind == Kind.NOTE:
        here.note = value
        here.note_bar = here.bar_count
        here.extends = 0
    elif kind == Kind.EXTEND:
        here.extends += 1
    elif kind == Kind.DURATION:
        duration = value + 1 + here.extends * words.longest_duration
        here.note_end = here.now + duration


@compiled
def advance_rows(words: Words, at: Cursors, ids: Ints) -> None:
    """Read the next id of each row, (B,)."""
    for row in range(len(ids)):
        advance(words, at[row], ids[row])
