"""Who plays together in pieces, and what: the programs of each, and how each of them plays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Ints
from common.options import Count
from data.keys import pitched_notes
from data.score import DRUMS, Score

RARE = 0.001  # the share of notes at either end that a range leaves out
DOUBLE_STOPS = 0.01  # the share of the notes of a program that may begin while another sounds


@dataclass(frozen=True)
class Ensemble:
    """Programs, rising, that play pieces together, and how many pieces."""

    pieces: Count
    programs: tuple[Count, ...]


def ensembles_of(scores: Iterable[Score]) -> tuple[Ensemble, ...]:
    """Return the sets of programs that play pieces, the most frequent first."""
    counts = Counter(tuple(np.unique(score.notes["program"]).tolist()) for score in scores)
    return tuple(Ensemble(count, programs) for programs, count in counts.most_common() if programs)


def pitches_played(scores: Iterable[Score]) -> dict[int, tuple[int, ...]]:
    """Return which pitches each program has.

    Drums have those that they play, all others any from their lowest to their highest.
    """
    pitches: dict[int, set[int]] = {}
    for score in scores:
        for program, pitch in np.unique(score.notes[["program", "pitch"]]).tolist():
            pitches.setdefault(program, set()).add(pitch)
    return {
        program: tuple(sorted(its if program == DRUMS else range(min(its), max(its) + 1)))
        for program, its in sorted(pitches.items())
    }


def pitch_ranges(scores: Sequence[Score]) -> dict[int, tuple[int, int]]:
    """Return the lowest and the highest pitch of each program but drums, as a rule.

    One note in 1,000 is out at either end.
    """
    pitches: dict[int, list[Ints]] = {}
    for notes in map(pitched_notes, scores):
        for program in np.unique(notes["program"]).tolist():
            pitches.setdefault(program, []).append(notes["pitch"][notes["program"] == program])
    ranges = {}
    for program, each in sorted(pitches.items()):
        ends = np.quantile(np.concatenate(each), [RARE, 1 - RARE], method="nearest")
        ranges[program] = (int(ends[0]), int(ends[1]))
    return ranges


def monophonic_programs(scores: Sequence[Score]) -> tuple[int, ...]:
    """Return the programs but drums that play a note at a time, as a rule: singers, winds."""
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
