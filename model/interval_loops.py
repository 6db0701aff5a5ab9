"""The interval head (`model/interval_head.py`) and its derivative, as compiled loops.

The letters are the same; M is the number of places in all rows. At each place, the head's table
gives 3 P times the logits of 2 REACH + 1 steps and of no reference; then 3 P times those of 12
pitch classes and of no reference; then 12 P for parallels; and then 12 P for intervals from what
sounds, or none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.arrays import Floats, Ints
from common.compiled import compiled, compiled_inside
from common.interface import OCTAVE
from model.config import CLASSES, REACH, STEPS

ZERO = np.float32(0)


class Notes(NamedTuple):
    """Where the notes lie among the ids."""

    n_programs: int  # P
    n_pitches: int  # N, how many pitches each program has
    first: int  # the id of the first of the P N notes
    n_classes: int  # 12; or 0, if the side input does not tell what sounds


@compiled_inside
def carry(logits: Floats, to: int, rows: Floats, row: int, back: bool) -> None:
    """Add one of the rows to one of the logits; with `back`, add the logit to the row instead."""
    if back:
        rows[row] += logits[to]
    else:
        logits[to] += rows[row]


@compiled
def add_intervals(
    at: Notes,
    by_row: Floats,
    references_of: Ints,
    moves_of: Ints,
    sounding_of: Ints,
    logits: Floats,
    back: bool,
) -> None:
    """Add the logits of notes by their distances to the logits of all ids.

    Args:
        at: where the notes lie.
        by_row: (M, R), what the head's table gives.
        references_of, moves_of, sounding_of: the side input's, (M, 2 P + SHARED_REFERENCES), (M, P)
            and (M, 12).
        logits: (M, V), changed in place.
        back: go backward: add derivatives by logits to derivatives by rows; `by_row` is changed.
    """
    P, N, octave = at.n_programs, at.n_pitches, np.empty(OCTAVE, np.float32)
    for m in range(len(logits)):
        references, moves, rows, out = references_of[m], moves_of[m], by_row[m], logits[m]
        for p in range(P):
            first = at.first + p * N - 1  # notes count from 1, so this is the id before them
            octave[:] = ZERO
            for note in range(1, N + 1 if back else 1):
                octave[(note - 1) % OCTAVE] += out[first + note]
            for k in range(3):
                # its own note, its echo, the latest; the lowest, the lowest before, the tonic
                stepped, classed = references[min(k * P + p, 2 * P)], references[2 * P + 1 + k]
                row = (k * P + p) * STEPS
                low, high = stepped - REACH, stepped + REACH + 1  # the first beyond
                if not stepped:
                    row, low, high = row + STEPS - 1, N + 1, N + 1
                for note in range(1, min(low, N + 1)):
                    carry(out, first + note, rows, row, back)
                for note in range(max(low, 1), min(high, N + 1)):
                    carry(out, first + note, rows, row + note - low, back)
                for note in range(max(high, 1), N + 1):
                    carry(out, first + note, rows, row + 2 * REACH, back)
                row = (3 * P * STEPS) + (k * P + p) * CLASSES
                for note in range(1, OCTAVE + 1):
                    which = (note - classed) % OCTAVE if classed else OCTAVE
                    carry(octave, note - 1, rows, row + which, back)
            row = P * (3 * (STEPS + CLASSES) + OCTAVE) + p * OCTAVE
            for other in range(at.n_classes):
                if sounding_of[m, other]:
                    for note in range(OCTAVE):
                        carry(octave, note, rows, row + (note - other) % OCTAVE, back)
            for note in range(1, 1 if back else N + 1):
                out[first + note] += octave[(note - 1) % OCTAVE]
            for other in range(P):
                note = references[p] + moves[other] - N
                if references[p] and moves[other] and 1 <= note <= N:
                    interval = (references[p] - references[other]) % OCTAVE
                    row = 3 * P * (STEPS + CLASSES) + p * OCTAVE + interval
                    carry(out, first + note, rows, row, back)
