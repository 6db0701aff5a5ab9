"""Decides how the files of a folder are read: some of them settle what the options leave open."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path

from common.worker_pool import MOST_ITEMS, Failed, guarded
from data.corpus.advice import Trial, advised_grid
from data.corpus.options import OPEN, CorpusOptions
from data.corpus.reader import read_piece, read_trial
from data.midi.instruments import MOST_COMMON, Instruments, common_programs
from data.midi.parts import common_parts
from data.score import DRUMS, Grid, Part

MOST_FILES = 100  # files that are tried
LEAST_GAIN = 0.01  # share of the notes: a smaller gain is not worth keeping tracks apart


@dataclass(frozen=True)
class Chosen:
    """What the chosen options do to the files that were tried.

    Attributes:
        options: as the command takes them.
        lost: the share of the notes that are merged or cut short.
        lost_without: the same by beats and programs, without the chosen options.
        replaced: the programs there whose notes the common instruments play.
    """

    options: str
    lost: float
    lost_without: float
    replaced: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reading:
    """How the files of a folder are read.

    Attributes:
        options: which leave nothing open.
        grid: that pieces are brought to, with the parts that some files have in common.
        instruments: that are kept, with the programs that are common.
        chosen: the options that the files decided; None: there are none.
    """

    options: CorpusOptions
    grid: Grid
    instruments: Instruments
    chosen: Chosen | None = None


def some_of(files: Sequence[Path]) -> Sequence[Path]:
    """Return at most MOST_FILES files from all over a folder."""
    return files[:: max(1, -(-len(files) // MOST_FILES))]


def reading_of(files: Sequence[Path], options: CorpusOptions, workers: int) -> Reading:
    """Return how to read files as the options say.

    Args:
        files: of music.
        options: some of the files settle what these leave open.
        workers: how many processes share the work.
    """
    some, instruments = some_of(files), options.kept_instruments
    trials = list[Trial]()
    if options.is_open or options.instruments == "common" or options.parts == "track":
        read = partial(read_trial, grid=options.time_grid, instruments=instruments)
        found = guarded(read, some, workers, most_items=MOST_ITEMS)
        trials = [each for _, each in found if not isinstance(each, Failed)]
    tracks = [trial.tracks for trial in trials]
    if not options.is_open:
        return _closed(options, tracks)
    usual = {
        each: getattr(CorpusOptions, each) for each in OPEN if getattr(options, each) == "auto"
    }
    without = settled = replace(options, **usual)
    says_beats = options.time_signature or options.steps_per_beat != CorpusOptions.steps_per_beat
    if options.grid == "auto" and not says_beats:
        settled = replace(settled, **advised_grid(trials))
    programs = {part.program for piece in tracks for part in piece} - {DRUMS}
    many = MOST_COMMON if len(some) == len(files) else MOST_COMMON // 2  # others may have more
    if options.instruments == "auto" and len(programs) > many:
        settled = replace(settled, instruments="common")
    lost_by = cache(partial(_lost, some, workers=workers))
    reading = _closed(settled, tracks)
    if options.parts == "auto" and common_parts(tracks):
        by_track = _closed(replace(settled, parts="track"), tracks)
        if lost_by(reading) - lost_by(by_track) > LEAST_GAIN:
            reading = by_track
    words = _words(without, reading.options)
    if not words:
        return reading
    common = reading.instruments.common
    replaced = tuple(sorted(programs.difference(common))) if common else ()
    chosen = Chosen(words, lost_by(reading), lost_by(_closed(without, tracks)), replaced)
    return replace(reading, chosen=chosen)


def _closed(options: CorpusOptions, tracks: Sequence[Sequence[Part]]) -> Reading:
    """Return how to read files by options that leave nothing open.

    Args:
        options: these options.
        tracks: who plays in each of some of the files.
    """
    grid, instruments = options.time_grid, options.kept_instruments
    if options.instruments == "common":
        programs = common_programs([part.program for part in piece] for piece in tracks)
        instruments = replace(instruments, common=programs)
    if options.parts == "track":
        grid = replace(grid, parts=common_parts(tracks))
    return Reading(options, grid, instruments)


def _lost(some: Sequence[Path], reading: Reading, workers: int) -> float:
    """Return the share of the notes in some files that are merged or cut short."""
    found = guarded(partial(_count_lost, reading=reading), some, workers, most_items=MOST_ITEMS)
    counts = [each for _, each in found if not isinstance(each, Failed)]
    notes, lost = map(sum, zip((0, 0), *counts, strict=True))
    return lost / max(1, notes)


def _count_lost(path: Path, reading: Reading) -> tuple[int, int] | Failed:
    """Return how many notes a file has, and how many of them are merged or cut short."""
    found = read_piece(path, reading.grid, reading.instruments)
    if isinstance(found, Failed):
        return found
    merged, cut = found.changes.merged, found.changes.cut
    return len(found.score.notes) + merged, merged + cut


def _words(before: CorpusOptions, after: CorpusOptions) -> str:
    """Return the options that turn `before` into `after`, as the command takes them."""
    changed = [f for f in fields(after) if getattr(before, f.name) != getattr(after, f.name)]
    return " ".join(
        f"--{field.name.replace('_', '-')} {getattr(after, field.name)}"
        for field in changed
        if getattr(after, field.name) is not None
    )
