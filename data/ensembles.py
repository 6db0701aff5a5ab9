"""Who plays together in pieces, and what: the programs of each, and the pitches of each program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from data.score import DRUMS, Score


def count_ensembles(scores: Iterable[Score]) -> list[list[int]]:
    """Count the sets of programs that play pieces, the most frequent first.

    Returns:
        For each set how many pieces have it, and its programs, rising.
    """
    counts = Counter(tuple(np.unique(score.notes["program"]).tolist()) for score in scores)
    return [[count, *programs] for programs, count in counts.most_common() if programs]


def pitches_played(scores: Iterable[Score]) -> dict[str, list[int]]:
    """Return which pitches each program has, by its number as text, as JSON has it.

    Drums have those that they play, all others any from their lowest to their highest.
    """
    pitches: dict[int, set[int]] = {}
    for score in scores:
        for program, pitch in np.unique(score.notes[["program", "pitch"]]).tolist():
            pitches.setdefault(program, set()).add(pitch)
    return {
        str(program): sorted(its if program == DRUMS else range(min(its), max(its) + 1))
        for program, its in sorted(pitches.items())
    }
