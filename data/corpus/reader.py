"""The pieces in some MIDI files: read, checked, brought to the grid, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.corpus.duplicates import fingerprints, lowest_pitches
from data.corpus.worker_pool import find_midi_files
from data.midi.instruments import Instruments, fold
from data.midi.io import read_events
from data.midi.quantize import Events, MidiError, batch_from_events, has_beats, refusals
from data.score import Grid, GridChanges, ScoreBatch, reduced

MOST_AT_ONCE = 2**16 - 1  # pieces
MOST_TOKENS = 2**20  # of a piece: to score one of more would hold up a run for minutes


@dataclass(frozen=True)
class Readings:
    """What the first pass takes from some files; of each piece in them, in order."""

    names: list[str]
    batch_of_scores: ScoreBatch
    sizes: list[int]  # tokens, about
    losses: list[GridChanges]
    marks: list[bytes]  # what copies share
    lowest_pitches: list[int]
    has_beats: list[bool]
    unkept_notes: list[int]  # of instruments that were not asked for
    left_out: list[tuple[str, str]]  # name and reason of each file that is no piece

    @property
    def told(self) -> list[str]:
        """A line for people about each file that is no piece."""
        return [f"{name}: left out: {reason}" for name, reason in self.left_out]


def read_pieces(
    names: Iterable[str], folder: Path, grid: Grid, instruments: Instruments
) -> Readings:
    """The music in some files, or why they are left out."""
    played: dict[str, Events] = {}
    reasons: dict[str, str] = {}
    order = []
    for name in names:
        order.append(name)
        try:
            played[name] = read_events(folder / name)
        except (MidiError, OSError) as error:
            reasons[name] = _reason(error, folder / name)
    kept = {name: fold(events, instruments) for name, events in played.items()}
    refused = refusals(list(kept.values()), grid)
    for number, (name, events) in enumerate(played.items()):
        if number in refused:
            reasons[name] = refused[number]
        elif not len(events.notes):
            reasons[name] = "it holds no notes"
        elif not len(kept[name].notes):
            reasons[name] = "it holds no notes of the instruments to keep"
    pieces = [name for name in order if name not in reasons]
    batch_of_scores, losses = batch_from_events([kept[name] for name in pieces], grid)
    sizes = least_tokens(batch_of_scores)
    for number in np.flatnonzero(sizes > MOST_TOKENS).tolist():
        reasons[pieces[number]] = (
            f"it takes over {MOST_TOKENS:,} tokens: too many notes, or held too long"
        )
    is_short = sizes <= MOST_TOKENS
    batch_of_scores = batch_of_scores.some(is_short)
    losses = [lost for lost, short in zip(losses, is_short.tolist(), strict=True) if short]
    pieces = [name for name in pieces if name not in reasons]
    return Readings(
        pieces,
        batch_of_scores,
        sizes[is_short].tolist(),
        losses,
        fingerprints(batch_of_scores),
        lowest_pitches(batch_of_scores).tolist(),
        has_beats([played[name] for name in pieces]).tolist(),
        [len(played[name].notes) - len(kept[name].notes) for name in pieces],
        [(name, reasons[name]) for name in order if name in reasons],
    )


def read_named(paths: Iterable[str | Path], grid: Grid, instruments: Instruments) -> Readings:
    """The music in the named files, and in all MIDI files of the named folders and below.

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
            found, left_out = find_midi_files(path)
            names += [str(path / name) for name in found]
            unread += [(str(path / name), reason) for name, reason in left_out]
            if not found:
                raise MidiError(f"{path}: no .mid or .midi file in it")
        elif not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        else:
            names.append(str(path))
            named.add(str(path))
    if len(names) > MOST_AT_ONCE:
        raise MidiError(f"{len(names):,} files: name at most {MOST_AT_ONCE:,} of them")
    readings = read_pieces(dict.fromkeys(names), Path(), grid, instruments)
    for name, reason in readings.left_out:
        if name in named or not readings.names:
            raise MidiError(f"{name}: {reason}")
    return replace(readings, left_out=sorted(readings.left_out + unread))


def least_tokens(batch_of_scores: ScoreBatch) -> NDArray[np.int64]:
    """(P,) how many tokens each piece takes at least: its notes, their Extends and Durations."""
    longest = batch_of_scores.grid.bar_steps(*batch_of_scores.grid.default_meter)
    of_note = 2 + (batch_of_scores.notes["duration"].astype(np.int64) - 1) // longest
    return np.asarray(reduced(np.add, of_note, batch_of_scores.note_offsets, empty=0))


def _reason(error: Exception, path: Path) -> str:
    """Why a file could not be read, without the path, which is known."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return str(error).removeprefix(f"{path}: ")
