"""Stands in for data/reading.py until that is merged: the same names, in this one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """What came of an item that gave no result; the reason is one line."""

    reason: str


def find_midi_files(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The names of the MIDI files below a folder, sorted, and those left out with the reason."""
    names = [
        (Path(root) / name).relative_to(folder).as_posix()
        for root, _, files in os.walk(folder)
        for name in files
        if name.lower().endswith((".mid", ".midi"))
    ]
    return sorted(names), []


def guarded(
    work: Callable[[Item], Result | Failed],
    items: Iterable[Item],
    workers: int,
    limit_seconds: float,
) -> Iterator[tuple[Item, Result | Failed]]:
    """What `work` makes of each item, in their order."""
    for item in items:
        yield item, work(item)


def has_beats(path: Path) -> bool:
    """Stands in for data.quantise.has_beats, which asks the events of a file."""
    return True
