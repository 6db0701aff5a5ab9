"""Echo: where the latest notes of a program stood before, in any key, and what followed there.

A tune comes again, a sequence goes on a step higher, an accompaniment keeps its figure: then what
follows is all but known. It is the match model of data compression (Mahoney 2005, Adaptive
Weighing of Context Models for Lossless Data Compression), by program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.compiled import compiled
from common.interface import OCTAVE
from data.tokens.cursor import Ints

LEAST = 2  # steps, from note to note, that must be the same
LENGTHS = (3, 4, 6, 10, 17)  # steps: where a class of longer matches begins
DUE = (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 18, 19, 24, 25, 36, 37, 48, 49)  # grid steps, likewise

_MOVE = 2 * (len(LENGTHS) + 1)  # first come the lengths of matches in the same key, then of others
_DUE = _MOVE + 2 * OCTAVE + 1
ECHO_WIDTH = _DUE + len(DUE) + 1


class Lines(NamedTuple):
    """The notes of B rows, C of each at most, and what each of P programs plays next by its echo.

    int64, changed in place. A note's step is that from the note before in its program: by how
    much the pitch moves, and the time between the two.
    """

    pitch: Ints  # (B, C) counted from the lowest of its program
    onset: Ints  # (B, C) in grid steps
    before: Ints  # (B, C) the note before in its program; -1: none
    matched: Ints  # (B, C) how many steps, back from this note, equal those back from the latest
    latest: Ints  # (B, P) the latest note of each program; -1: none
    length: Ints  # (B, P) of the longest match, of which the latest counts; 0: none
    move: Ints  # (B, P) semitones to the next note
    due: Ints  # (B, P) when it is due
    is_moved: Ints  # (B, P) 1 where the match is in another key

    @classmethod
    def of_none(cls, batch: int, notes: int, programs: int) -> Lines:
        """Return the lines of `batch` rows that have read nothing, with room for so many notes."""
        of_notes, of_programs = (batch, notes), (batch, programs)
        return cls(
            pitch=np.zeros(of_notes, np.int64),
            onset=np.zeros(of_notes, np.int64),
            before=np.zeros(of_notes, np.int64),
            matched=np.zeros(of_notes, np.int64),
            latest=np.full(of_programs, -1),
            length=np.zeros(of_programs, np.int64),
            move=np.zeros(of_programs, np.int64),
            due=np.zeros(of_programs, np.int64),
            is_moved=np.zeros(of_programs, np.int64),
        )


@compiled
def add(lines: Lines, row: int, program: int, note: int) -> None:
    """Read a note of a program, whose pitch and onset are there, and find what it echoes."""
    pitch, onset = lines.pitch[row], lines.onset[row]
    before, matched = lines.before[row], lines.matched[row]
    previous = lines.latest[row, program]
    lines.latest[row, program] = note
    lines.length[row, program] = matched[note] = 0
    before[note] = previous
    if previous < 0:
        return
    longest = LEAST - 1
    later, earlier = note, previous  # each note of the program, and the one after it
    while before[earlier] >= 0:
        prior = before[earlier]
        is_same = pitch[earlier] - pitch[prior] == pitch[note] - pitch[previous]
        is_same &= onset[earlier] - onset[prior] == onset[note] - onset[previous]
        matched[earlier] = matched[prior] + 1 if is_same else 0
        if matched[earlier] > longest:
            longest = lines.length[row, program] = matched[earlier]
            lines.move[row, program] = pitch[later] - pitch[earlier]
            lines.due[row, program] = onset[note] + onset[later] - onset[earlier]
            lines.is_moved[row, program] = pitch[earlier] != pitch[note]
        later, earlier = earlier, prior
    matched[earlier] = 0


@compiled
def columns(lines: Lines, row: int, program: int, now: int) -> tuple[int, int, int]:
    """Return which of ECHO_WIDTH columns tell of a program's echo, which is still due."""
    length, soon = 0, 0
    for least in LENGTHS:
        length += lines.length[row, program] >= least
    for least in DUE:
        soon += lines.due[row, program] - now >= least
    length += (len(LENGTHS) + 1) * lines.is_moved[row, program]
    move = min(max(lines.move[row, program], -OCTAVE), OCTAVE)
    return length, _MOVE + OCTAVE + move, _DUE + soon
