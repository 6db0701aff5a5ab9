"""Survey the pieces of a corpus: what they hold, and which vocabulary holds all of them."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.score import (
    DRUMS,
    MOST_PROGRAM,
    TEMPO_LEVELS,
    VELOCITY_LEVELS,
    Grid,
    GridChanges,
    Score,
    ScoreBatch,
)
from data.tokens.vocabulary import COMMON_METERS, Vocabulary, VocabularyError


@dataclass(frozen=True)
class MusicCounts:
    """What the pieces that are used hold."""

    programs: dict[int, int]  # notes of each
    pitches: list[int]  # the lowest and the highest but the drums'; none of drums alone
    velocities: list[int]  # all that occur, rising
    meters: dict[str, int]  # bars of each, such as "3/4", the commonest first
    tempos: dict[int, int]  # bars of each in quarter notes a minute, rising
    grid_changes: GridChanges
    unkept_notes: int  # of instruments that were not asked for


class Survey:
    """Counts what pieces hold: `add` them, then ask for `counts` or a `vocabulary`."""

    def __init__(self) -> None:
        self.programs = np.zeros(MOST_PROGRAM + 1, dtype=np.int64)  # notes of each
        self.pitches = np.zeros(2 * 128, dtype=np.int64)  # notes of each; from 128 on the drums'
        self.velocities = np.zeros(128, dtype=np.int64)  # notes of each
        self.meters: Counter[tuple[int, int]] = Counter()  # bars of each
        self.tempos: Counter[int] = Counter()  # bars of each
        self.grid_changes = GridChanges()
        self.unkept_notes = 0

    def add(self, scores: Score | ScoreBatch) -> None:
        """Count the music of a piece or several."""
        notes, bars = scores.notes, scores.bars
        self.programs += np.bincount(notes["program"], minlength=len(self.programs))
        pitch = notes["pitch"] + 128 * (notes["program"] == DRUMS)
        self.pitches += np.bincount(pitch, minlength=len(self.pitches))
        self.velocities += np.bincount(notes["velocity"], minlength=len(self.velocities))
        meters = bars["numerator"].tolist(), bars["denominator"].tolist()
        self.meters.update(zip(*meters, strict=True))
        self.tempos.update(scores.tempo_bpm.tolist())

    def add_changes(self, changes: GridChanges, unkept_notes: int) -> None:
        """Count what reading a piece changed, and the notes that it left out."""
        totals = {name: getattr(self.grid_changes, name) + n for name, n in vars(changes).items()}
        worst = max(self.grid_changes.worst_error_steps, changes.worst_error_steps)
        self.grid_changes = GridChanges(**totals | {"worst_error_steps": worst})
        self.unkept_notes += unkept_notes

    def counts(self) -> MusicCounts:
        """Return the counts so far."""
        meters = sorted(self.meters.items(), key=lambda meter: (-meter[1], meter[0]))
        pitches = np.flatnonzero(self.pitches[:128]).tolist()
        return MusicCounts(
            programs={n: int(self.programs[n]) for n in np.flatnonzero(self.programs).tolist()},
            pitches=[pitches[0], pitches[-1]] if pitches else [],
            velocities=np.flatnonzero(self.velocities).tolist(),
            meters={f"{n}/{d}": count for (n, d), count in meters},
            tempos=dict(sorted(self.tempos.items())),
            grid_changes=self.grid_changes,
            unkept_notes=self.unkept_notes,
        )

    def vocabulary(self, grid: Grid, transpose: int = 0) -> Vocabulary:
        """Return the vocabulary of every piece seen, moved by up to `transpose` semitones.

        Tempi and velocities are all levels from the lowest to the highest seen.

        Raises:
            VocabularyError: no notes were seen.
        """
        pitches = np.flatnonzero(self.pitches) % 128
        if not len(pitches):
            raise VocabularyError("there are no notes to make a vocabulary of")
        return Vocabulary(
            meters=tuple(sorted({*(COMMON_METERS if grid.has_meter else ()), *self.meters})),
            tempos=_levels_between(TEMPO_LEVELS, list(self.tempos)),
            programs=tuple(np.flatnonzero(self.programs).tolist()),
            lowest_pitch=max(0, int(pitches.min()) - transpose),
            highest_pitch=min(127, int(pitches.max()) + transpose),
            velocities=_levels_between(VELOCITY_LEVELS, np.flatnonzero(self.velocities).tolist()),
            grid=grid,
        )


def _levels_between(levels: NDArray[np.int32], seen: list[int]) -> tuple[int, ...]:
    return tuple(level for level in levels.tolist() if min(seen) <= level <= max(seen))
