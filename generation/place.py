"""Where one row stands, as numbers, and loops over what may come next in it."""

from __future__ import annotations

from typing import NamedTuple

from common.compiled import compiled_inside
from data.tokens.cursor import Cursor
from data.tokens.grammar import Mask


class Place(NamedTuple):
    """Where one row stands: what a `Cursor` has of it."""

    kind: int
    bar_count: int
    bar_start: int
    bar_length: int
    tempo: int
    position: int
    now: int
    note: int
    note_bar: int
    extends: int
    note_end: int


@compiled_inside
def place_of(at: Cursor, row: int) -> Place:
    """Return where a row stands."""
    return Place(
        at.kind[row],
        at.bar_count[row],
        at.bar_start[row],
        at.bar_length[row],
        at.tempo[row],
        at.position[row],
        at.now[row],
        at.note[row],
        at.note_bar[row],
        at.extends[row],
        at.note_end[row],
    )


@compiled_inside
def forbid(mask: Mask, begin: int, stop: int) -> None:
    """Mask ids from one to before another."""
    for token in range(begin, stop):
        mask[token] = False


@compiled_inside
def any_of(mask: Mask, begin: int, stop: int) -> bool:
    """Return whether any id may come next, from one to before another."""
    is_any = False
    for token in range(begin, stop):
        is_any |= mask[token]
    return is_any
