"""The embedded corpus: four-part Bach chorales out of music21, as a folder of MIDI files.

The scores are read measure by measure, as notated: an upbeat is a short bar, a bar with a repeat
sign inside is two, repeats are not played twice, and fermatas are not held. (music21's own MIDI
export gives all voices one program, begins upbeats on the downbeat and unfolds repeats.)
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import music21
import numpy as np
from music21 import common, converter, corpus, meter, note, stream
from numpy.typing import NDArray
from tqdm import tqdm

from common.files import replace_folder, write_json
from data.canonical import canonical
from data.midi.io import write_midi
from data.score import BAR, NOTE, Grid, Score

# A program a voice, so that two voices on one pitch stay two notes; low numbers are high voices.
PROGRAMS = {"Soprano": 40, "Alto": 41, "Tenor": 42, "Bass": 43}  # violin, viola, cello, contrabass
VELOCITY = 80
TEMPO_BPM = 80  # quarter notes a minute; most of the scores have no tempo mark
TITLE = "Bach chorales"
REPORT_NAME = "bach.json"
# Every .krn has an .mxl of the same name beside it.
NOT_READ = {".rntxt": "Roman-numeral analyses", ".krn": "second editions of a chorale"}
FORMAT = 1  # goes up when the same scores would give other files

Quarters = float | Fraction  # a time or a length in quarter notes, exact in either type
Settings = dict[str, int | str]  # of a build: other ones give other files


class LeftOutError(ValueError):
    """Raised for an entry that is no piece for the corpus; the message is the reason."""


Pieces = Iterator[tuple[str, Score | LeftOutError]]  # names and pieces, or why each is left out


@dataclass(frozen=True)
class BuildReport:
    """What the build of an embedded corpus kept and what it left out."""

    entries: int  # pieces that music21 has
    kept: list[str]  # names of the pieces that were written, each to NAME.mid
    left_out: dict[str, list[str]]  # names of the others by the reason

    def __str__(self) -> str:
        reasons = "; ".join(f"{len(names)} {reason}" for reason, names in self.left_out.items())
        kept = f"{len(self.kept)} of music21's {self.entries} entries kept"
        return f"{kept}\nleft out: {reasons or 'none'}"


def build(folder: Path, grid: Grid = Grid(), progress: bool = True) -> BuildReport:  # noqa: B008
    """Write every chorale to `folder/NAME.mid`; see `build_folder`."""
    settings = {"format": FORMAT, "music21": music21.__version__, **grid.to_json()}
    chorales = partial(_chorales, grid, progress)
    return build_folder(folder / REPORT_NAME, settings, chorales)


def build_folder(report_path: Path, settings: Settings, read: Callable[[], Pieces]) -> BuildReport:
    """Write the pieces that `read` yields to NAME.mid, beside a report of what was left out.

    A folder that holds the same build already, of these settings, is left as it is. Otherwise the
    files are written beside it, and only a whole build takes its place.

    Raises:
        FileExistsError: the folder holds something that no build made.
    """
    folder = report_path.parent
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
                path = temporary / f"{name}.mid"
                path.parent.mkdir(exist_ok=True)  # NAME may begin with a split's
                write_midi(piece, path)
                kept.append(name)
        entry_count = len(kept) + sum(map(len, left_out.values()))
        report = BuildReport(entry_count, kept, left_out)
        write_json({"settings": settings, **asdict(report)}, temporary / report_path.name)
    return report


def _chorales(grid: Grid, progress: bool) -> Pieces:
    """Yield the name of each entry and its chorale, or why it is none."""
    for path in tqdm(entries(), TITLE, unit="piece", disable=not progress):
        try:
            yield path.stem, chorale_score(read_entry(path), grid)
        except LeftOutError as reason:
            yield path.stem, reason


def entries() -> list[Path]:
    """List the files that music21 has under Bach's name, in a fixed order."""
    folder = common.getCorpusFilePath() / "bach"  # getComposer also matches folders above it
    return sorted(path for path in corpus.getComposer("bach") if folder in path.parents)


def read_entry(path: Path) -> stream.Score:
    """Read music21's score of one entry.

    Raises:
        LeftOutError: it is not a piece in notes, or the second edition of one.
    """
    if path.suffix in NOT_READ:
        raise LeftOutError(NOT_READ[path.suffix])
    reader = converter.Converter()
    reader.parseFileNoPickle(path)  # music21's usual way in unpickles what it finds in /tmp
    return reader.stream


def chorale_score(piece: stream.Score, grid: Grid) -> Score:
    """Return the four voices of a music21 score; other instruments are left out.

    Tied notes are one note, grace notes are none. A measure longer than its meter says (a
    recitation, a last note held) becomes as many bars as it fills.

    Raises:
        LeftOutError: there are no four voices, or they do not fit together.
    """
    voices = _voices(piece)
    lines = {tuple(_bar_lines(voice)) for voice in voices.values()}
    if len(lines) > 1:
        raise LeftOutError("with bar lines that differ between the voices")
    bars = _bars(next(iter(voices.values())), grid)
    rows = [
        (
            nearest_step(start, grid),
            nearest_step(end, grid) - nearest_step(start, grid),
            pitch,
            VELOCITY,
            PROGRAMS[name],
        )
        for name, voice in voices.items()
        for start, end, pitch in _notes(voice)
    ]
    return canonical(np.array(rows, dtype=NOTE), bars, np.full(len(bars), TEMPO_BPM), grid)[0]


def _built_before(report_path: Path, settings: Settings) -> BuildReport | None:
    """Return the report of a whole build with these settings beside its pieces, if there is one."""
    try:
        found = json.loads(report_path.read_text(encoding="utf-8"))
        is_same = found.pop("settings") == settings
        report = BuildReport(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not one of ours
        return None
    is_whole = all((report_path.parent / f"{name}.mid").is_file() for name in report.kept)
    return report if is_same and is_whole else None


def _voices(piece: stream.Score) -> dict[str, stream.Part]:
    """Return the parts that sing, by voice and from the highest down."""
    parts = list(piece.parts)
    # "Soprano Oboe 1 Violin1" is a soprano that instruments double
    first_words = [(part.partName or "?").split()[0] for part in parts]
    count = Counter(first_words)
    if any(count[name] != 1 for name in PROGRAMS):
        raise LeftOutError("without one soprano, one alto, one tenor and one bass")
    return {name: parts[first_words.index(name)] for name in PROGRAMS}


def _bar_lines(voice: stream.Part) -> list[Quarters]:
    """Return where the measures of a voice begin, and the end of the last."""
    return [*(measure.offset for measure in voice[stream.Measure]), voice.highestTime]


def _bars(voice: stream.Part, grid: Grid) -> NDArray[np.void]:
    """Return (M,) of BAR. Two measures that only a line of print parts, 7 and 7a, are one bar."""
    bars: list[tuple[meter.TimeSignature, Quarters, Quarters]] = []
    signature = None
    is_closed = True
    lines = _bar_lines(voice)
    for measure, start, end in zip(voice[stream.Measure], lines, lines[1:], strict=False):
        signature = measure.timeSignature or signature
        if signature is None:
            raise LeftOutError("without a time signature")
        whole = signature.barDuration.quarterLength
        # a repeat sign, a double bar or a new meter stands between two bars
        is_closed = is_closed or bool(measure.leftBarline or measure.timeSignature)
        if not is_closed and end - bars[-1][1] == whole:
            start = bars.pop()[1]
        while start < end:
            bars.append((signature, start, min(start + whole, end)))
            start += whole
        is_closed = measure.rightBarline is not None
    rows = [
        (sign.numerator, sign.denominator, nearest_step(end, grid) - nearest_step(start, grid))
        for sign, start, end in bars
    ]
    return np.array([row for row in rows if row[2] > 0], dtype=BAR)


def _notes(voice: stream.Part) -> list[tuple[Quarters, Quarters, int]]:
    """Return start, end and pitch of each note of one voice, ties joined."""
    notes: list[tuple[Quarters, Quarters, int]] = []
    for sound in voice.flatten().notes:
        if sound.duration.isGrace:
            continue
        if not isinstance(sound, note.Note) or (notes and sound.offset < notes[-1][1]):
            raise LeftOutError("with two notes at once in a voice")
        start, end, pitch = sound.offset, sound.offset + sound.quarterLength, sound.pitch.midi
        is_tied = sound.tie is not None and sound.tie.type in ("continue", "stop")
        if is_tied and notes and notes[-1][1:] == (start, pitch):
            start = notes.pop()[0]
        notes.append((start, end, pitch))
    return notes


def nearest_step(time: Quarters, grid: Grid) -> int:
    """Return the grid step nearest to a time, half way up."""
    return math.floor(time * grid.steps_per_beat + 0.5)
