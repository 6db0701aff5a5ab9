"""Some files of a folder, read with other options: what is advised is measured first."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from data.corpus.advice import Trial, advised_grid
from data.corpus.options import CorpusOptions
from data.corpus.reader import read_pieces, read_tracks
from data.corpus.worker_pool import Failed, guarded_batches
from data.midi.parts import common_parts
from data.score import FAMILY_PROGRAMS, Grid
from data.tokens.vocabulary import Vocabulary

MOST_FILES = 100  # that are tried
MANY_TOKENS = 4000  # for which it is worth to fold instruments
LEAST_GAIN = 0.01  # of the notes, for which it is worth to tell tracks apart


@dataclass(frozen=True)
class Measured:
    """What options that are advised make of the files that are tried.

    Attributes:
        options: as the command takes them.
        beside: others that are advised and in force, too.
        lost_without: the share of the notes that are merged or cut short without the options.
        lost: likewise with them.
        tokens: different ones that there are with them; 0 where that was not counted.
    """

    options: str
    beside: str
    lost_without: float
    lost: float
    tokens: int = 0


def some_of(files: Sequence[str]) -> Sequence[str]:
    """Return files from all over a folder, MOST_FILES at most."""
    return files[:: max(1, -(-len(files) // MOST_FILES))]


def grid_of(folder: Path, files: Sequence[str], options: CorpusOptions, workers: int) -> Grid:
    """Return the grid that pieces are brought to, with the parts that some files have in common."""
    grid = options.time_grid
    if options.parts == "program":
        return grid
    read = partial(read_tracks, folder=folder, instruments=options.kept_instruments)
    found = guarded_batches(read, some_of(files), workers)
    tracks = [each for _, pieces in found if not isinstance(pieces, Failed) for each in pieces]
    return replace(grid, parts=common_parts(tracks))


def measured_options(
    folder: Path,
    files: Sequence[str],
    options: CorpusOptions,
    trials: Sequence[Trial],
    vocabulary: Vocabulary,
    workers: int,
) -> list[Measured]:
    """Return the options beyond those at hand that are worth it, each measured with the others.

    Args:
        folder: of the files.
        files: their names.
        options: those at hand.
        trials: of some of the files.
        vocabulary: that the options at hand give.
        workers: processes that share the work.
    """

    def measure(base: CorpusOptions, tokens: int = 0, **change: Any) -> Measured:
        other = replace(base, **change)
        without, lost = (_lost(folder, files, each, workers) for each in (base, other))
        return Measured(_words(base, other), _words(options, base), without, lost, tokens)

    found = []
    base = replace(options, **advised_grid(trials))
    if options.parts == "program" and options.instruments == "original":
        families = {program - program % FAMILY_PROGRAMS for program in vocabulary.programs}
        tokens = replace(vocabulary, programs=tuple(sorted(families))).size
        if vocabulary.size > MANY_TOKENS and 2 * tokens <= vocabulary.size:
            found.append(measure(options, tokens, instruments="family"))
            base = replace(base, instruments="family")
    if options.parts == "program" and common_parts(trial.tracks for trial in trials):
        parts = measure(base, parts="track")
        if parts.lost_without - parts.lost > LEAST_GAIN:
            found.append(parts)
    return found


def _lost(folder: Path, files: Sequence[str], options: CorpusOptions, workers: int) -> float:
    """Return the share of the notes that are merged or cut short, of some files."""
    grid = grid_of(folder, files, options, workers)
    read = partial(read_pieces, folder=folder, grid=grid, instruments=options.kept_instruments)
    notes = lost = 0
    for _, pieces in guarded_batches(read, some_of(files), workers):
        if not isinstance(pieces, Failed):
            merged = sum(changes.merged for changes in pieces.grid_changes)
            notes += len(pieces.scores.notes) + merged
            lost += merged + sum(changes.cut for changes in pieces.grid_changes)
    return lost / max(1, notes)


def _words(before: CorpusOptions, after: CorpusOptions) -> str:
    """Return the options that make one out of the other, as the command takes them."""
    changed = [f for f in fields(after) if getattr(before, f.name) != getattr(after, f.name)]
    return " ".join(
        f"--{field.name.replace('_', '-')} {getattr(after, field.name)}"
        for field in changed
        if getattr(after, field.name) is not None
    )
