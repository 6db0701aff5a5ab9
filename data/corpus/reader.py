"""Reads music files into canonical scores on the grid, and checks them."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from common.worker_pool import Failed
from data.canonical import GridChanges
from data.corpus.advice import Trial, try_options
from data.corpus.find_files import find_music_files
from data.files.read import read_events
from data.midi.events import Events
from data.midi.instruments import Instruments, fold
from data.midi.quantize import MidiError, score_from_events
from data.score import Grid, Score

MOST_TOKENS = 2**18  # tokens of a piece: to score a longer one would hold up a run for minutes


@dataclass(frozen=True)
class ReadPiece:
    """The piece in a music file."""

    score: Score
    events: Events  # what the file says about the instruments that are kept
    changes: GridChanges  # what bringing it to the grid changed
    unkept_notes: int  # notes of instruments that were not to be kept


@dataclass(frozen=True)
class MidiPieces:
    """The pieces in some music files."""

    names: list[str]  # the names of their files
    scores: list[Score]
    unkept_notes: list[int]  # in each, notes of instruments that were not to be kept
    left_out: list[tuple[str, str]]  # the name of each file that is no piece, and the reason

    @property
    def messages(self) -> list[str]:
        """One line for people about each file that is no piece."""
        return [f"{name}: left out: {reason}" for name, reason in self.left_out]


def read_piece(path: Path, grid: Grid, instruments: Instruments) -> ReadPiece | Failed:
    """Read a music file."""
    try:
        played = read_events(path)
        kept = fold(played, instruments)
        score, changes = score_from_events(kept, grid)
    except (MidiError, OSError) as error:
        return reason_of(error, path)
    if not len(kept.notes):
        which = " of the instruments to keep" if len(played.notes) else ""
        return Failed(f"it holds no notes{which}")
    if least_tokens(score) > MOST_TOKENS:
        most = f"{MOST_TOKENS:,} tokens"
        return Failed(f"it takes over {most}: too many notes, or held too long")
    return ReadPiece(score, kept, changes, len(played.notes) - len(kept.notes))


def read_trial(path: Path, grid: Grid, instruments: Instruments) -> Trial | Failed:
    """Try options other than a grid's on a music file, if it can be read and has notes."""
    with suppress(MidiError, OSError):
        events = fold(read_events(path), instruments)
        if len(events.notes):
            return try_options(events, grid)
    return Failed("nothing to try")


def read_paths(paths: Iterable[str | Path], grid: Grid, instruments: Instruments) -> MidiPieces:
    """Read music files, named one by one or in folders and below them.

    Raises:
        FileNotFoundError: there is no such file or folder.
        MidiError: a file that was named is no piece, or a folder has none.
        OSError: a folder cannot be listed.
    """
    names: list[str] = []
    unread: list[tuple[str, str]] = []
    named = set()
    for path in map(Path, paths):
        if path.is_dir():
            inside, left_out = find_music_files(path)
            names += [str(path / name) for name in inside]
            unread += [(str(path / name), reason) for name, reason in left_out]
            if not inside:
                raise MidiError(f"{path}: no music file in it")
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        else:
            names.append(str(path))
            named.add(str(path))
    read, reasons = MidiPieces([], [], [], unread), list[tuple[str, str]]()
    for name in dict.fromkeys(names):
        found = read_piece(Path(name), grid, instruments)
        if isinstance(found, Failed):
            reasons.append((name, found.reason))
        else:
            read.names.append(name)
            read.scores.append(found.score)
            read.unkept_notes.append(found.unkept_notes)
    for name, reason in reasons:
        if name in named or not read.names:
            raise MidiError(f"{name}: {reason}")
    return replace(read, left_out=sorted(reasons + unread))


def least_tokens(score: Score) -> int:
    """Count the tokens that a piece has at least: its Bars, Notes, Extends and Durations."""
    longest = score.grid.bar_steps(*score.grid.default_meter)
    extends = (score.notes["duration"].astype(np.int64) - 1) // longest
    return len(score.bars) + 2 * len(extends) + int(extends.sum())


def reason_of(error: Exception, path: Path) -> Failed:
    """Say why a file could not be read, without naming its path again."""
    if isinstance(error, OSError) and error.strerror:
        return Failed(f"cannot be read ({error.strerror})")
    return Failed(str(error).removeprefix(f"{path}: "))
