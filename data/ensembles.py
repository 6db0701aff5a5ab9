"""Who plays together in pieces: the programs of each piece, and how each program plays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Ints
from common.interface import OCTAVE
from common.options import Count
from data.keys import pitched_notes
from data.score import DRUMS, Score

RARE = 0.001  # the share of notes at each end that a range leaves out
SELDOM = 0.02  # likewise for a register
FEW_TOGETHER = 4  # programs: if a model has no more than these, all may play in every piece
DOUBLE_STOPS = 0.01  # the share of a program's notes that may begin while another sounds


@dataclass(frozen=True)
class Ensemble:
    """Programs, rising, that play together, and in how many pieces."""

    pieces: Count
    programs: tuple[Count, ...]


def ensembles_of(scores: Iterable[Score]) -> tuple[Ensemble, ...]:
    """Return the sets of programs that play pieces, the most frequent first."""
    counts = Counter(tuple(np.unique(score.notes["program"]).tolist()) for score in scores)
    return tuple(Ensemble(count, programs) for programs, count in counts.most_common() if programs)


def pitches_played(scores: Iterable[Score]) -> dict[int, tuple[int, ...]]:
    """Return which pitches each program has.

    Drums have those that they play. All others have every pitch from their lowest to their highest.
    """
    pitches: dict[int, set[int]] = {}
    for score in scores:
        for program, pitch in np.unique(score.notes[["program", "pitch"]]).tolist():
            pitches.setdefault(program, set()).add(pitch)
    return {
        program: tuple(sorted(its if program == DRUMS else range(min(its), max(its) + 1)))
        for program, its in sorted(pitches.items())
    }


def registers_of(score: Score) -> dict[int, tuple[int, ...]]:
    """Return which pitches each program of a piece has, as a rule; drums have all that they strike.

    In one piece a guitar plays chords, in another a tune, high above. A register has an octave at
    least, so that it has notes of any key.
    """
    registers = {}
    for program in np.unique(score.notes["program"]).tolist():
        own = score.notes["pitch"][score.notes["program"] == program]
        low, high = _ends(own, SELDOM)
        lacks = max(OCTAVE - 1 - (high - low), 0)
        low = min(max(low - lacks // 2, 0), 128 - OCTAVE)
        high = max(high, low + OCTAVE - 1)
        kit = np.unique(own).tolist()
        registers[program] = tuple(kit if program == DRUMS else range(low, high + 1))
    return registers


def known_registers(scores: Iterable[Score]) -> tuple[dict[int, tuple[int, ...]], ...]:
    """Return the registers of pieces; none if so few programs play that none are ever drawn."""
    found = tuple(map(registers_of, scores))
    return found if len({*()}.union(*found)) > FEW_TOGETHER else ()


def pitch_ranges(scores: Sequence[Score]) -> dict[int, tuple[int, int]]:
    """Return the lowest and highest pitch that each program usually has, without drums.

    At each end, one note in 1,000 is left out.
    """
    pitches: dict[int, list[Ints]] = {}
    for notes in map(pitched_notes, scores):
        for program in np.unique(notes["program"]).tolist():
            pitches.setdefault(program, []).append(notes["pitch"][notes["program"] == program])
    return {program: _ends(np.concatenate(each), RARE) for program, each in sorted(pitches.items())}


def _ends(pitches: Ints, left_out: float) -> tuple[int, int]:
    """Return the lowest and highest of some pitches, but for a share of them at each end."""
    low, high = np.quantile(pitches, [left_out, 1 - left_out], method="nearest").tolist()
    return low, high


def monophonic_programs(scores: Sequence[Score]) -> tuple[int, ...]:
    """Return the programs that usually play one note at a time, such as singers and winds.

    Drums are not among them.
    """
    doubles, notes_of = Counter[int](), Counter[int]()
    for notes in map(pitched_notes, scores):
        for program in np.unique(notes["program"]).tolist():
            own = notes[notes["program"] == program]
            onset = own["onset"].astype(np.int64)
            sounds_until = np.maximum.accumulate(onset + own["duration"])
            doubles[program] += int((onset[1:] < sounds_until[:-1]).sum())
            notes_of[program] += len(own)
    return tuple(
        program
        for program in sorted(notes_of)
        if doubles[program] <= DOUBLE_STOPS * notes_of[program]
    )
