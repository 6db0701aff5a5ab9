"""The embedded corpus of four-part Bach chorales in music21, written as a folder of MIDI files.

The scores are read measure by measure, as they are printed: an upbeat is a short bar, a bar with a
repeat sign inside is two bars, repeats are not played twice, and fermatas are not held. (The MIDI
export of music21 gives all voices one program, begins upbeats on the downbeat and unfolds repeats.)
"""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from music21 import common, converter, corpus, note, stream
from tqdm import tqdm

from data.corpus import embedded
from data.corpus.embedded import BuildReport, LeftOutError, Pieces
from data.score import Grid, Score

# One program for each voice, so that two voices on one pitch stay two notes. Lower numbers are
# higher voices.
PROGRAMS = {"Soprano": 40, "Alto": 41, "Tenor": 42, "Bass": 43}  # violin, viola, cello, contrabass
TEMPO_BPM = 80  # quarter notes a minute; most of the scores have no tempo mark
TITLE = "Bach chorales"
# For every .krn there is an .mxl of the same name.
NOT_READ = {".rntxt": "Roman-numeral analyses", ".krn": "second editions of a chorale"}


def build(folder: Path, grid: Grid) -> BuildReport:
    """Write every chorale to `folder/NAME.mid`; see `build_folder`."""
    return embedded.build_folder(folder / "bach.json", grid, partial(_chorales, grid))


def _chorales(grid: Grid) -> Pieces:
    """Yield the name of each entry and its chorale, or why there is none."""
    for path in tqdm(entries(), TITLE, unit="piece"):
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
        LeftOutError: the entry is no piece in notes, or the second edition of one.
    """
    if path.suffix in NOT_READ:
        raise LeftOutError(NOT_READ[path.suffix])
    reader = converter.Converter()
    reader.parseFileNoPickle(path)  # music21's usual way to read unpickles what it finds in /tmp
    return reader.stream


def chorale_score(piece: stream.Score, grid: Grid) -> Score:
    """Return the four voices of a music21 score, without other instruments.

    Tied notes are one note, and grace notes are left out. A measure that is longer than its meter
    says (a recitation, or a last note that is held) becomes as many bars as it fills.

    Raises:
        LeftOutError: there are not four voices.
    """
    voices = _voices(piece)
    bars = _bars(voices["Soprano"])
    notes = {PROGRAMS[name]: _notes(voice) for name, voice in voices.items()}
    return embedded.notated_score(bars, notes, lambda meter: TEMPO_BPM, grid)


def _voices(piece: stream.Score) -> dict[str, stream.Part]:
    """Return the parts that sing, by voice, from the highest down."""
    parts = list(piece.parts)
    # "Soprano Oboe 1 Violin1" is a soprano, doubled by instruments
    first_words = [(part.partName or "?").split()[0] for part in parts]
    count = Counter(first_words)
    if any(count[name] != 1 for name in PROGRAMS):
        raise LeftOutError("without one soprano, one alto, one tenor and one bass")
    return {name: parts[first_words.index(name)] for name in PROGRAMS}


def _bars(voice: stream.Part) -> list[embedded.Bar]:
    """Return the bars. Two measures that only a printed line divides, 7 and 7a, are one bar."""
    bars: list[embedded.Bar] = []
    signature: Any = None  # the first measure has one
    is_closed = True
    measures = [*voice[stream.Measure]]
    ends = [*(measure.offset for measure in measures[1:]), voice.highestTime]
    for measure, end in zip(measures, ends, strict=True):
        start = measure.offset
        signature = measure.timeSignature or signature
        whole = signature.barDuration.quarterLength
        # a repeat sign, a double bar or a new meter separates two bars
        is_closed = is_closed or bool(measure.leftBarline or measure.timeSignature)
        if not is_closed and end - bars[-1].start == whole:
            start = bars.pop().start
        while start < end:
            beats = signature.numerator, signature.denominator
            bars.append(embedded.Bar(beats, start, min(start + whole, end)))
            start += whole
        is_closed = measure.rightBarline is not None
    return bars


def _notes(voice: stream.Part) -> embedded.Line:
    """Return the notes of one voice, with ties joined."""
    notes: embedded.Line = []
    for sound in voice.flatten().notes:
        if sound.duration.isGrace:
            continue
        assert isinstance(sound, note.Note)  # there are no chords
        is_tied = sound.tie is not None and sound.tie.type in ("continue", "stop")
        end = sound.offset + sound.quarterLength
        embedded.add_note(notes, sound.offset, end, sound.pitch.midi, is_tied)
    return notes
