"""Echo: where the latest notes of a program occurred before, in any key, and what followed there.

When a tune comes again, a sequence moves a step up, or an accompaniment keeps its figure, what
comes next is almost certain. This is the match model of data compression, for each program (Mahoney
2005, Adaptive Weighing of Context Models for Lossless Data Compression).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.tokens.cursor import record_of

LEAST = 2  # how many steps, from note to note, must be equal
LENGTHS = (3, 4, 6, 10, 17)  # in steps: where each class of longer matches begins
DUE = (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 18, 19, 24, 25, 36, 37, 48, 49)  # grid steps, likewise

_MOVE = 2 * (len(LENGTHS) + 1)  # before it: lengths of matches in the same key, then in others
_DUE = _MOVE + 2 * OCTAVE + 1
ECHO_WIDTH = _DUE + len(DUE) + 1


class Line:
    """What a program in a row plays next, by its echo: a record in an array, changed in place."""

    latest: int  # the number of the latest note; -1: none
    length: int  # how many steps match, at most; of equal matches the latest counts; 0: none
    move: int  # semitones from the latest note to the next
    due: int  # when the next note is due, in grid steps
    is_moved: int  # 1 if the match is in another key


class Lines(NamedTuple):
    """The notes of B rows, at most C in each, and the lines of P programs; changed in place.

    A note's step leads from the note before it in its program: by how many semitones the pitch
    moves, and how much time lies between the two.
    """

    pitch: Ints  # (B, C) counted from the program's lowest
    onset: Ints  # (B, C) in grid steps
    before: Ints  # (B, C) the number of the note before it in its program; -1: none
    matched: Ints  # (B, C) how many steps, back from this note, equal those back from the latest
    of_programs: NDArray[Any]  # (B, P) of Line

    @classmethod
    def of_none(cls, batch: int, notes: int, programs: int) -> Lines:
        """Return the lines of rows that have read nothing, with room for `notes` notes in each."""
        of_programs = np.zeros((batch, programs), record_of(Line))
        of_programs["latest"] = -1
        pitch, onset, before, matched = np.zeros((4, batch, notes), np.int64)
        return cls(pitch, onset, before, matched, of_programs)


@compiled_inside
def add(lines: Lines, row: int, program: int, note: int) -> None:
    """Read a note of a program, whose pitch and onset are already there; find what it echoes."""
    pitch, onset = lines.pitch[row], lines.onset[row]
    before, matched = lines.before[row], lines.matched[row]
    line = lines.of_programs[row, program]
    previous = line.latest
    line.latest = note
    line.length = matched[note] = 0
    before[note] = previous
    if previous < 0:
        return
    longest = LEAST - 1
    later, earlier = note, previous  # each earlier note of the program, and the one after it
    while before[earlier] >= 0:
        prior = before[earlier]
        is_same = pitch[earlier] - pitch[prior] == pitch[note] - pitch[previous]
        is_same &= onset[earlier] - onset[prior] == onset[note] - onset[previous]
        matched[earlier] = matched[prior] + 1 if is_same else 0
        if matched[earlier] > longest:
            longest = line.length = matched[earlier]
            line.move = pitch[later] - pitch[earlier]
            line.due = onset[note] + onset[later] - onset[earlier]
            line.is_moved = pitch[earlier] != pitch[note]
        later, earlier = earlier, prior
    matched[earlier] = 0


@compiled_inside
def columns(line: Line, now: int) -> tuple[int, int, int]:
    """Return which of ECHO_WIDTH columns describe a program's echo that is still due."""
    length, soon = 0, 0
    for least in LENGTHS:
        length += line.length >= least
    for least in DUE:
        soon += line.due - now >= least
    length += (len(LENGTHS) + 1) * line.is_moved
    move = min(max(line.move, -OCTAVE), OCTAVE)
    return length, _MOVE + OCTAVE + move, _DUE + soon
