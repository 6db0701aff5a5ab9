"""Music files -> canonical scores: read, checked and brought to the grid, many at once."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from common.arrays import Ints, reduce_segments
from data.canonical import GridChanges, ScoreBatch
from data.corpus.advice import Trial, try_options
from data.corpus.find_files import find_music_files, is_midi
from data.files.read import read_events
from data.midi.events import Events
from data.midi.instruments import Instruments, fold
from data.midi.quantize import MidiError, batch_from_events, refusals
from data.score import Grid

MOST_AT_ONCE = 2**16 - 1  # pieces
MOST_TOKENS = 2**18  # of a piece: to score one of more would hold up a run for minutes


@dataclass(frozen=True)
class MusicFolder:
    """A folder of music files, and one of the MIDI files that its notation became, if it did."""

    path: Path
    converted: Path | None = None

    def file(self, name: str) -> Path:
        """Return the file in which the music of this name lies."""
        return (self.path if is_midi(name) else self.converted or self.path) / name


@dataclass(frozen=True)
class MidiPieces:
    """The P pieces in some music files."""

    names: list[str]  # of their files
    scores: ScoreBatch
    events: list[Events]  # what each file says of the instruments that are kept
    grid_changes: list[GridChanges]  # what bringing each to the grid changed
    unkept_notes: list[int]  # notes of each by instruments that were not asked for
    left_out: list[tuple[str, str]]  # name and reason of each file that is no piece

    @property
    def messages(self) -> list[str]:
        """One line for people about each file that is no piece."""
        return [f"{name}: left out: {reason}" for name, reason in self.left_out]


def read_pieces(
    names: Sequence[str], folder: MusicFolder, grid: Grid, instruments: Instruments
) -> MidiPieces:
    """Read music files by their names in a folder; what is no piece is left out with a reason."""
    played: dict[str, Events] = {}
    reasons: dict[str, str] = {}
    for name in names:
        try:
            played[name] = read_events(folder.file(name))
        except (MidiError, OSError) as error:
            reasons[name] = reason_of(error, folder.file(name))
    kept = {name: fold(events, instruments) for name, events in played.items()}
    refused = refusals(list(kept.values()), grid)
    for number, (name, events) in enumerate(played.items()):
        if number in refused:
            reasons[name] = refused[number]
        elif not len(events.notes):
            reasons[name] = "it holds no notes"
        elif not len(kept[name].notes):
            reasons[name] = "it holds no notes of the instruments to keep"
    pieces = [name for name in names if name not in reasons]
    scores, grid_changes = batch_from_events([kept[name] for name in pieces], grid)
    long = np.flatnonzero(least_tokens(scores) > MOST_TOKENS).tolist()
    if long:  # the others are read again, alone
        reason = f"it takes over {MOST_TOKENS:,} tokens: too many notes, or held too long"
        reasons |= {pieces[number]: reason for number in long}
        pieces = [name for name in pieces if name not in reasons]
        scores, grid_changes = batch_from_events([kept[name] for name in pieces], grid)
    return MidiPieces(
        pieces,
        scores,
        [kept[name] for name in pieces],
        grid_changes,
        [len(played[name].notes) - len(kept[name].notes) for name in pieces],
        [(name, reasons[name]) for name in names if name in reasons],
    )


def read_trials(
    names: Sequence[str], folder: MusicFolder, grid: Grid, instruments: Instruments
) -> list[Trial]:
    """Try other options than a grid's on each music file that can be read and has notes."""
    found = []
    for name in names:
        with suppress(MidiError, OSError):
            events = fold(read_events(folder.file(name)), instruments)
            if len(events.notes):
                found.append(try_options(events, grid))
    return found


def read_paths(paths: Iterable[str | Path], grid: Grid, instruments: Instruments) -> MidiPieces:
    """Read the music files named, and all music files of the folders named and below.

    Raises:
        FileNotFoundError: no such file or folder.
        MidiError: a file that was named is no piece, there is none in a folder, or too many are.
        OSError: a folder cannot be listed.
    """
    names: list[str] = []
    unread: list[tuple[str, str]] = []
    named = set()
    for path in map(Path, paths):
        if path.is_dir():
            found, left_out = find_music_files(path)
            names += [str(path / name) for name in found]
            unread += [(str(path / name), reason) for name, reason in left_out]
            if not found:
                raise MidiError(f"{path}: no music file in it")
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        else:
            names.append(str(path))
            named.add(str(path))
    if len(names) > MOST_AT_ONCE:
        raise MidiError(f"{len(names):,} files: name at most {MOST_AT_ONCE:,} of them")
    read = read_pieces(list(dict.fromkeys(names)), MusicFolder(Path()), grid, instruments)
    for name, reason in read.left_out:
        if name in named or not read.names:
            raise MidiError(f"{name}: {reason}")
    return replace(read, events=[], left_out=sorted(read.left_out + unread))


def least_tokens(scores: ScoreBatch) -> Ints:
    """Count (P,) the tokens of each piece at least: Bars, Notes, their Extends, Durations."""
    longest = scores.grid.bar_steps(*scores.grid.default_meter)
    of_note = 2 + (scores.notes["duration"].astype(np.int64) - 1) // longest
    of_notes = reduce_segments(np.add, of_note, scores.note_offsets, empty=0)
    return np.asarray(of_notes + np.diff(scores.bar_offsets))


def reason_of(error: Exception, path: Path) -> str:
    """Say why a file could not be read, without its path, which is known."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return str(error).removeprefix(f"{path}: ")
