"""Counts what the pieces of a corpus have, by their ids, and finds the vocabulary that they need.

Which tokens a corpus needs is known only when all of it has been read. Until then, its pieces are
ids of the widest vocabulary, that of every possible piece. A table translates these into ids of its
own.
"""

from dataclasses import dataclass

import numpy as np

from common.arrays import Ids, Ints
from data.canonical import GridChanges
from data.score import DRUMS, Grid
from data.tokens.context import bar_tempos
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError
from data.tokens.vocabulary_values import widest_values

COMMON_METERS = (
    *((n, 2) for n in (2, 3)),
    *((n, 4) for n in (2, 3, 4, 5, 6)),
    *((n, 8) for n in (3, 5, 6, 7, 9, 12)),
)


@dataclass(frozen=True)
class MusicCounts:
    """What there is in the pieces that are used."""

    programs: dict[int, int]  # how many notes each program has
    pitches: tuple[int, ...]  # the lowest and the highest, without drums; (): drums alone
    velocities: tuple[int, ...]  # all that occur, rising
    meters: dict[str, int]  # how many bars each has, such as "3/4", the commonest first
    tempos: dict[int, int]  # how many bars each has, in quarter notes a minute, rising
    grid_changes: GridChanges
    unkept_notes: int  # notes of instruments that were not to be kept


class Survey:
    """Counts what pieces have: `add` them, then ask for `counts` or a `vocabulary`."""

    def __init__(self, grid: Grid) -> None:
        self.wide = Vocabulary(**widest_values(grid))  # the vocabulary of every piece on the grid
        self._ids = np.zeros(self.wide.size, dtype=np.int64)  # how often each id occurs
        self._tempos = np.zeros(self.wide.size, dtype=np.int64)  # in how many bars each tempo holds
        self._grid_changes = GridChanges()
        self._unkept_notes = 0

    def add(self, ids: Ids) -> None:
        """Count the music of some pieces: ids (N,) of the widest vocabulary, end to end."""
        self._ids += np.bincount(ids, minlength=self.wide.size)
        self._tempos += np.bincount(
            bar_tempos(ids.astype(np.int64), self.wide), minlength=self.wide.size
        )

    def add_changes(self, changes: GridChanges, unkept_notes: int) -> None:
        """Count what reading a piece changed, and the notes that it left out."""
        totals = {name: getattr(self._grid_changes, name) + n for name, n in vars(changes).items()}
        worst = max(self._grid_changes.worst_error_steps, changes.worst_error_steps)
        self._grid_changes = GridChanges(**totals | {"worst_error_steps": worst})
        self._unkept_notes += unkept_notes

    def counts(self) -> MusicCounts:
        """Return the counts so far."""
        wide, notes = self.wide, self._notes()
        bars = dict(zip(wide.meters, self._ids[wide.ids(Kind.BAR)].tolist(), strict=True))
        meters = sorted(filter(bars.get, bars), key=lambda meter: (-bars[meter], meter))
        # if bars have no tempi of their own, there is one
        of_tempi = self._tempos[wide.ids(Kind.TEMPO)].tolist() or [sum(bars.values())]
        tempos = zip(wide.tempos, of_tempi, strict=True)
        programs = zip(wide.programs, notes.sum(axis=1).tolist(), strict=True)
        pitches = np.flatnonzero(notes[np.array(wide.programs) != DRUMS].any(axis=0)).tolist()
        return MusicCounts(
            programs={program: count for program, count in programs if count},
            pitches=(pitches[0], pitches[-1]) if pitches else (),
            velocities=tuple(self._velocities()),
            meters={f"{n}/{d}": bars[n, d] for n, d in meters},
            tempos={tempo: count for tempo, count in tempos if count},
            grid_changes=self._grid_changes,
            unkept_notes=self._unkept_notes,
        )

    def vocabulary(self, transpose: int = 0) -> Vocabulary:
        """Return the vocabulary of all pieces seen, moved by up to `transpose` semitones.

        Its tempi and velocities are all levels from the lowest to the highest that was seen.

        Raises:
            VocabularyError: no notes were seen.
        """
        wide, notes = self.wide, self._notes()
        pitches = np.flatnonzero(notes.any(axis=0)).tolist()
        if not pitches:
            raise VocabularyError("there are no notes to make a vocabulary from")
        bars = self._ids[wide.ids(Kind.BAR)]
        seen = {wide.meters[number] for number in np.flatnonzero(bars).tolist()}
        programs = np.flatnonzero(notes.any(axis=1)).tolist()
        return Vocabulary(
            meters=tuple(sorted(seen.union(COMMON_METERS if wide.grid.has_meter else ()))),
            tempos=_levels_between(wide.tempos, [*self.counts().tempos]),
            programs=tuple(wide.programs[number] for number in programs),
            lowest_pitch=max(0, pitches[0] - transpose),
            highest_pitch=min(127, pitches[-1] + transpose),
            velocities=_levels_between(wide.velocities, self._velocities()),
            grid=wide.grid,
        )

    def _notes(self) -> Ints:
        """Return how many notes of each program and pitch there are."""
        return self._ids[self.wide.ids(Kind.NOTE)].reshape(len(self.wide.programs), -1)

    def _velocities(self) -> list[int]:
        counts = self._ids[self.wide.ids(Kind.VELOCITY)].tolist()
        return [level for level, n in zip(self.wide.velocities, counts, strict=True) if n]


def _levels_between(levels: tuple[int, ...], seen: list[int]) -> tuple[int, ...]:
    return tuple(level for level in levels if min(seen) <= level <= max(seen))


def translation(wide: Vocabulary, vocabulary: Vocabulary) -> Ints:
    """Return (V,): for each id of the widest vocabulary, that of another; -1: it has none."""
    numbers = {kind: np.arange(count) for kind, count in zip(Kind, vocabulary.counts, strict=True)}
    numbers[Kind.BAR] = np.array([wide.meters.index(meter) for meter in vocabulary.meters])
    numbers[Kind.TEMPO] = np.searchsorted(wide.tempos, vocabulary.tempos)
    numbers[Kind.VELOCITY] = np.searchsorted(wide.velocities, vocabulary.velocities)
    programs = np.searchsorted(wide.programs, vocabulary.programs)
    pitches = np.arange(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
    numbers[Kind.NOTE] = np.add.outer(programs * wide.pitch_count, pitches).ravel()
    table = np.full(wide.size, -1)
    for kind, count in zip(Kind, vocabulary.counts, strict=True):
        if count:
            table[wide.first(kind) + numbers[kind]] = vocabulary.first(kind) + np.arange(count)
    return table
