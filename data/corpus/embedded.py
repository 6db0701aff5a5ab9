"""What the embedded corpora share: scores as they are printed, and a folder of their MIDI files."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import music21
import numpy as np

from common.files import replace_folder, write_json
from data.canonical import canonical
from data.midi.io import write_midi
from data.score import BAR, NOTE, Grid, Score

VELOCITY = 80
FORMAT = 1  # raised when the same scores would give other files

Quarters = float | Fraction  # a time or a length in quarter notes, exact in either type
Line = list[tuple[Quarters, Quarters, int]]  # start, end and pitch of each note of a voice


class Bar(NamedTuple):
    """A bar as it is printed; its meter says how long it may be."""

    meter: tuple[int, int]
    start: Quarters
    end: Quarters


class LeftOutError(ValueError):
    """Raised for an entry that is no piece for the corpus; the message is the reason."""


Pieces = Iterable[tuple[str, Score | LeftOutError]]  # names and pieces, or why a piece is left out


@dataclass(frozen=True)
class BuildReport:
    """What the build of an embedded corpus kept, and what it left out."""

    entries: int  # pieces that music21 has
    kept: list[str]  # the names of the pieces that were written, each to NAME.mid
    left_out: dict[str, list[str]]  # the names of the others, by reason

    def __str__(self) -> str:
        reasons = "; ".join(f"{len(names)} {reason}" for reason, names in self.left_out.items())
        kept = f"{len(self.kept)} of music21's {self.entries} entries kept"
        return f"{kept}\nleft out: {reasons or 'none'}"


def build_folder(report_path: Path, grid: Grid, read: Callable[[], Pieces]) -> BuildReport:
    """Write the pieces that `read` yields to NAME.mid, beside a report of what was left out.

    If the folder already has the same build, it is left as it is. Otherwise the files are written
    beside it, and only a complete build takes its place.

    Raises:
        FileExistsError: the folder has something in it that no build made.
    """
    folder = report_path.parent
    settings = {"format": FORMAT, "music21": music21.__version__, **grid.to_json()}
    if report := _built_before(report_path, settings):
        return report
    is_foreign = folder.exists() and not report_path.is_file()
    if is_foreign and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is in use: name a new folder for the corpus")
    kept: list[str] = []
    left_out: dict[str, list[str]] = {}
    with replace_folder(folder) as temporary:
        for name, piece in read():
            if isinstance(piece, LeftOutError):
                left_out.setdefault(str(piece), []).append(name)
            else:
                write_midi(piece, temporary / f"{name}.mid")
                kept.append(name)
        report = BuildReport(len(kept) + sum(map(len, left_out.values())), kept, left_out)
        write_json({"settings": settings, **asdict(report)}, temporary / report_path.name)
    return report


def _built_before(report_path: Path, settings: Mapping[str, object]) -> BuildReport | None:
    """Return the report of a complete build with these settings, if there is one."""
    try:
        found = json.loads(report_path.read_text(encoding="utf-8"))
        is_same = found.pop("settings") == settings
        report = BuildReport(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not one of our reports
        return None
    is_whole = all((report_path.parent / f"{name}.mid").is_file() for name in report.kept)
    return report if is_same and is_whole else None


def add_note(line: Line, start: Quarters, end: Quarters, pitch: int, is_tied: bool) -> None:
    """Add a note to a voice; if it is tied to the note before it, make that note longer."""
    if is_tied and line and line[-1][1:] == (start, pitch):
        start = line.pop()[0]
    line.append((start, end, pitch))


def notated_score(
    bars: Iterable[Bar],
    lines: Mapping[int, Line],
    tempo_bpm: Callable[[tuple[int, int]], int],
    grid: Grid,
) -> Score:
    """Bring printed music to a grid; half way between two steps goes up.

    Args:
        bars: one after the other.
        lines: the voice of each program.
        tempo_bpm: returns the quarter notes a minute for a meter.
        grid: of the score.
    """

    def step(time: Quarters) -> int:
        return math.floor(time * grid.steps_per_beat + 0.5)

    long = [bar for bar in bars if step(bar.end) > step(bar.start)]
    rows = [(*bar.meter, step(bar.end) - step(bar.start)) for bar in long]
    tempi = [tempo_bpm(bar.meter) for bar in long]
    notes = [
        (step(start), step(end) - step(start), pitch, VELOCITY, program)
        for program, line in lines.items()
        for start, end, pitch in line
    ]
    return canonical(np.array(notes, NOTE), np.array(rows, BAR), np.array(tempi), grid)[0]
