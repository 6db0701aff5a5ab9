"""Where in the piece a row of ids stands after each id.

For `Bar 4/4  Tempo 80  Position 12  Note D4  Duration 12`, with twelve steps to a quarter note:

    after        now  position  note_end
    Bar 4/4        0        -1
    Tempo 80       0        -1
    Position 12   12        12
    Note D4       12        12
    Duration 12   12        12        24

`advance` reads one id of one row. All code that reads ids, to learn or to write, calls it.
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
    """Return the NumPy type of a record that has an int64 for each annotated field of a class.

    A compiled loop takes an array of records, or one record, as a single pointer. With a separate
    array for each field, it would take far longer to compile.
    """
    return records(reversed(get_type_hints(row)))


def records(names: Iterable[str]) -> np.dtype[np.void]:
    """Return the NumPy type of a record that has an int64 of each name."""
    return np.dtype((np.record, [(name, np.int64) for name in names]), align=True)


def record(row: type, **values: int) -> Any:
    """Return one record of a class, with a value for each field."""
    kind = record_of(row)
    return np.array([tuple(values[name] for name in kind.names or ())], kind)[0]


class Cursor:
    """Where a row stands after the ids read so far: a record in an array, changed in place.

    Times are in grid steps.
    """

    kind: int  # the Kind of the latest id
    bar_count: int  # how many bars have begun
    bar_start: int  # when the current bar begins
    bar_length: int  # how long it is
    tempo: int  # the number of the current tempo; -1 until one is known
    position: int  # the latest Position in this bar; -1 before the first
    now: int  # the time of the latest Position or Bar
    note: int  # the number of the latest Note since `now` was set; -1 before the first
    note_bar: int  # the number, from 1, of the bar of the latest Note; 0 before the first
    extends: int  # how many Extends have followed the latest Note
    note_end: int  # when the note of the latest Duration ends


Cursors: TypeAlias = NDArray[Any]  # (B,) of Cursor: at[row].now is one row's, at["now"] all rows'


def at_start(vocabulary: Vocabulary, batch: int, row: type[Cursor] = Cursor) -> Cursors:
    """Return `batch` records, each for a row that has read nothing, or only Start.

    Args:
        vocabulary: what the ids mean.
        batch: how many rows.
        row: the class of the records: Cursor, or one that adds fields to it.
    """
    at = np.zeros(batch, dtype=record_of(row))
    at["kind"] = Kind.START
    at["position"] = at["note"] = -1
    at["tempo"] = -1 if vocabulary.grid.has_meter else 0
    return at


@compiled_inside
def advance(words: Words, here: Cursor, token: int) -> None:
    """Read the next id of a row."""
    kind = words.kind_of[token]
    value = token - words.firsts[kind]  # its number within its kind
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
    """Read the next id of each row; `ids` is (B,)."""
    for row in range(len(ids)):
        advance(words, at[row], ids[row])
