"""Survey the pieces of a corpus: which vocabulary holds all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from data.score import TEMPO_LEVELS, VELOCITY_LEVELS, Grid, Score
from data.tokens.vocabulary import COMMON_METERS, Vocabulary, VocabularyError


@dataclass
class Survey:
    """Collects what pieces need of a vocabulary: `add` each, then ask for `vocabulary`."""

    meters: set[tuple[int, int]] = field(default_factory=set)
    tempos: set[int] = field(default_factory=set)
    programs: set[int] = field(default_factory=set)
    velocities: set[int] = field(default_factory=set)
    pitches: set[int] = field(default_factory=set)

    def add(self, score: Score) -> None:
        """Take a piece into account."""
        bars, notes = score.bars, score.notes
        meters = bars["numerator"].tolist(), bars["denominator"].tolist()
        self.meters.update(zip(*meters, strict=True))
        self.tempos.update(score.tempo_bpm.tolist())
        fields = {"program": self.programs, "velocity": self.velocities, "pitch": self.pitches}
        for name, seen in fields.items():  # counted, which is quicker than sorted
            seen.update(np.flatnonzero(np.bincount(notes[name])).tolist())

    def vocabulary(self, grid: Grid, transpose: int = 0) -> Vocabulary:
        """Return the vocabulary of every piece seen, moved by up to `transpose` semitones.

        Tempi and velocities are all levels from the lowest to the highest seen.

        Raises:
            VocabularyError: no notes were seen.
        """
        if not self.pitches:
            raise VocabularyError("there are no notes to make a vocabulary of")
        return Vocabulary(
            meters=tuple(sorted({*(COMMON_METERS if grid.has_meter else ()), *self.meters})),
            tempos=_levels_between(TEMPO_LEVELS, self.tempos),
            programs=tuple(sorted(self.programs)),
            lowest_pitch=max(0, min(self.pitches) - transpose),
            highest_pitch=min(127, max(self.pitches) + transpose),
            velocities=_levels_between(VELOCITY_LEVELS, self.velocities),
            grid=grid,
        )


def _levels_between(levels: NDArray[np.int32], seen: set[int]) -> tuple[int, ...]:
    return tuple(level for level in levels.tolist() if min(seen) <= level <= max(seen))
