"""Echo: where the latest notes of a program stood before, in any key, and what followed there.

A tune comes again, a sequence goes on a step higher, an accompaniment keeps its figure: then what
follows is all but known. It is the match model of data compression (Mahoney 2005, Adaptive
Weighing of Context Models for Lossless Data Compression), by program.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from common.interface import OCTAVE
from data.tokens.spans import Ints

LEAST = 2  # steps, from note to note, that must be the same
LENGTHS = (3, 4, 6, 10, 17)  # steps: where a class of longer matches begins
DUE = (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 18, 19, 24, 25, 36, 37, 48, 49)  # grid steps, likewise

_MOVE = 2 * (len(LENGTHS) + 1)  # first come the lengths of matches in the same key, then of others
_DUE = _MOVE + 2 * OCTAVE + 1
ECHO_WIDTH = _DUE + len(DUE) + 1


class Echo(NamedTuple):
    """The next note of a program, if it goes on as it did after the longest match.

    Of matches of the same length the latest counts.
    """

    match_column: int  # says how long the match is, and whether in the same key
    move_column: int  # says by how much the pitch moves, up to an octave
    due: int  # when the note is due, in grid steps
    pitch: int

    def columns(self, now: int) -> tuple[int, int, int]:
        """Return the columns, of ECHO_WIDTH, that tell of it at a time when it is still due."""
        return self.match_column, self.move_column, _DUE + bisect_right(DUE, self.due - now)


@dataclass
class EchoLine:
    """The notes of one program as they are read, and how often each step came before."""

    notes: list[tuple[int, int]] = field(default_factory=list)  # pitch and onset
    # the notes, by number, to which each interval and time between two notes has led
    led_to: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    # to which earlier notes as many steps led as to the latest, and how many those are
    matches: dict[int, int] = field(default_factory=dict)

    def add(self, pitch: int, onset: int) -> Echo | None:
        """Read the next note, and return what to expect after it, if anything."""
        notes, number = self.notes, len(self.notes)
        notes.append((pitch, onset))
        if not number:
            return None
        pitch_before, onset_before = notes[-2]
        same = self.led_to[pitch - pitch_before, onset - onset_before]
        self.matches = {note: self.matches.get(note - 1, 0) + 1 for note in same}
        same.append(number)
        length, note = max(((its, note) for note, its in self.matches.items()), default=(0, 0))
        if length < LEAST:
            return None
        (old_pitch, old_onset), (next_pitch, next_onset) = notes[note : note + 2]
        moved = (len(LENGTHS) + 1) * (old_pitch != pitch)
        move = max(-OCTAVE, min(OCTAVE, next_pitch - old_pitch))
        return Echo(
            match_column=moved + bisect_right(LENGTHS, length),
            move_column=_MOVE + OCTAVE + move,
            due=onset + next_onset - old_onset,
            pitch=pitch + next_pitch - old_pitch,
        )


class Echoes(NamedTuple):
    """The echo after each of N notes: the fields of `Echo`, (N,) each, -1 where there is none."""

    match_column: Ints
    move_column: Ints
    due: Ints
    pitch: Ints

    def columns(self, now: Ints) -> Ints:
        """Return (N, 3), as `Echo.columns` at times (N,)."""
        due = _DUE + np.searchsorted(DUE, self.due - now, side="right")
        return np.stack([self.match_column, self.move_column, due], axis=1)

    def take(self, which: Ints) -> Echoes:
        """Return those of some notes."""
        return Echoes(*(values[which] for values in self))


def read_echoes(rows: Ints, program: Ints, pitch: Ints, onset: Ints) -> tuple[Echoes, Ints]:
    """Return the echo after each of N notes of some windows, in their order.

    Args:
        rows, program, pitch, onset: (N,) the window of each note, and what it is.

    Returns:
        The echoes; and (N,) which note of its program is next in its window, 0 if none is.
    """
    lines: dict[tuple[int, int], EchoLine] = defaultdict(EchoLine)
    latest: dict[tuple[int, int], int] = {}
    after = np.zeros(len(rows), dtype=np.int64)
    echoes = np.full((len(rows), len(Echo._fields)), -1)
    of_notes = (values.tolist() for values in (rows, program, pitch, onset))
    for number, (row, its_program, its_pitch, its_onset) in enumerate(zip(*of_notes, strict=True)):
        line = row, its_program
        if line in latest:
            after[latest[line]] = number
        latest[line] = number
        echo = lines[line].add(its_pitch, its_onset)
        if echo is not None:
            echoes[number] = echo
    return Echoes(*echoes.T), after
