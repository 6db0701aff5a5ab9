"""Turns notation into MIDI with verovio: MusicXML, MEI, Humdrum and ABC.

verovio turns every kind into MEI, and the MEI into MIDI. Ties are joined, transposing instruments
sound as they do, and repeats, endings, D.C. and D.S. are written out. What has no time of its own
in print is left to players and stays out: grace notes, cue notes, and the signs for trills, turns
and rolled chords. Chord symbols are silent. We take parts, bars and dynamics from the MEI, and put
them into the MIDI. verovio reads little ABC, so music21 turns it into MusicXML first.
"""

import base64
import bisect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import symusic

from common.verovio_toolkit import load_notation
from common.worker_pool import Failed
from data.files.musicxml import made_plain
from data.files.part_programs import programs_of
from data.files.source_text import NotationError
from data.score import can_be_said

Meter = tuple[int, int]

VELOCITY = 80  # without dynamics
# Dynamics hold from where they stand on, in their part.
_VELOCITIES = {
    **{"pppp": 8, "ppp": 16, "pp": 33, "p": 49, "fp": 49, "mp": 64},
    **{"mf": 80, "f": 96, "ff": 112, "fff": 120, "ffff": 127},
}
_NAMESPACE = ' xmlns="http://www.music-encoding.org/ns/mei"'
_ID = "{http://www.w3.org/XML/1998/namespace}id"
_OPTIONS = {"breaks": "none", "midiNoCue": True}
_NOISE = 1e-3  # of a quarter note: the error in verovio's sums of durations


def midi_of(kind: str, text: str) -> bytes:
    """Return the music in notation as the bytes of a MIDI file.

    Damaged notation may end the process, or take much time or memory: see `data.files.read`.

    Args:
        kind: of notation, as `data.files.source_text.kind_of` returns it.
        text: the notation.

    Raises:
        NotationError: no music can be read in the text.
    """
    if kind == "abc":
        kind, text = "xml", _musicxml_of_abc(text)
    try:
        if kind == "xml":
            text = made_plain(text)
        mei = load_notation(text, _OPTIONS | {"inputFrom": kind}).getMEI()
        document = ElementTree.fromstring(mei.replace(_NAMESPACE, ""))
        parts = _take_parts(document)
        _remove_small(document)
        plain = ElementTree.tostring(document, "unicode")
        # another seed than above, so that no new id is one of the MEI: that may end the process
        toolkit = load_notation(plain, _OPTIONS | {"inputFrom": "mei", "xmlIdSeed": 2})
        timemap = toolkit.renderToTimemap({"includeMeasures": True, "includeRests": True})
        midi = symusic.Score.from_midi(base64.b64decode(toolkit.renderToMIDI()))
    except (ValueError, RuntimeError, ElementTree.ParseError) as error:
        raise NotationError(f"no music in it ({error})") from None
    lines = [(each["qstamp"], each["measureOn"]) for each in timemap if "measureOn" in each]
    if not lines:
        raise NotationError("it holds no measures")
    measures = [(begin, name.partition("-rend")[0]) for begin, name in lines]
    score = symusic.Score(midi.ticks_per_quarter)
    score.tempos = midi.tempos
    score.time_signatures = _signatures(midi, measures, timemap[-1]["qstamp"])
    begins = {note: each["qstamp"] for each in reversed(timemap) for note in each.get("on", ())}
    levels = _levels(document, measures, begins, midi.ticks_per_quarter)
    programs = programs_of([(part.name, part.program) for part in parts])
    for number, (part, program) in enumerate(zip(parts, programs, strict=True)):
        staves = [track for track in midi.tracks if track.name == str(number)]
        is_drum = any(track.is_drum for track in staves)
        track = symusic.Track(part.name, 0 if is_drum else program, is_drum)
        dynamics = [level for staff in part.staves for level in levels.get(staff, ())]
        track.notes = _notes(staves, sorted(dynamics))
        score.tracks.append(track)
    return bytes(score.dumps_midi())


def midi_or_reason(notation: tuple[str, str]) -> bytes | Failed:
    """Return the music in a (kind, text) of notation as a MIDI file, or the reason why it cannot.

    This runs in a process of its own, where nobody sees what native code prints.
    """
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        return midi_of(*notation)
    except NotationError as error:
        return Failed(str(error))


@dataclass
class _Part:
    """A part of a score."""

    name: str
    program: int | None  # that the score names, if any
    staves: list[str] = field(default_factory=list)


def _take_parts(document: Element) -> list[_Part]:
    """Return the parts of a score, and name each staff by the number of its part.

    The staves of a group are one part if the group has a brace, a name or an instrument, and they
    have no names.
    """
    parts: list[_Part] = []
    number_of: dict[str, int] = {}

    def visit(group: Element, shared: _Part | None) -> None:
        for child in group:
            staff = child.get("n", "")
            if child.tag == "staffGrp":
                symbol = child.find("grpSym")
                symbol = child if symbol is None else symbol
                part = _Part(_name(child), _program(child))
                is_part = part.name or part.program is not None or symbol.get("symbol") == "brace"
                visit(child, part if is_part else shared)
            elif child.tag == "staffDef" and staff not in number_of:
                part = _Part(_name(child), _program(child))
                if shared and not part.name:
                    shared.program = part.program if shared.program is None else shared.program
                    part = shared
                if part not in parts:
                    parts.append(part)
                part.staves.append(staff)
                number_of[staff] = parts.index(part)

    for definition in document.iter("scoreDef"):
        visit(definition, None)
    for staff in document.iter("staffDef"):
        for label in staff.findall("label"):
            staff.remove(label)
        ElementTree.SubElement(staff, "label").text = str(number_of.get(staff.get("n", ""), 0))
    return parts


def _name(element: Element) -> str:
    label = element.find("label")
    words = element.get("label", "") if label is None else " ".join(label.itertext())
    return " ".join(words.split())


def _program(element: Element) -> int | None:
    instrument = element.find("instrDef")
    said = "" if instrument is None else instrument.get("midi.instrnum", "")
    return int(said) if said.isdecimal() and int(said) < 128 else None


def _remove_small(document: Element) -> None:
    """Remove grace notes, and the signs that roll chords."""
    for parent in document.iter():
        for child in [*parent]:
            if child.tag in ("arpeg", "graceGrp") or child.get("grace"):
                parent.remove(child)


def _signatures(
    midi: symusic.Score, measures: Sequence[tuple[float, str]], end: float
) -> list[symusic.TimeSignature]:
    """Return the time signatures that give the measures their lengths.

    There is one where the meter is new, and after each measure that is shorter than its meter says.
    A longer measure has a meter of its own. A measure that is repeated has the meter of its first
    time, since verovio does not say it again.

    Args:
        midi: from verovio, with the printed signatures, staff by staff.
        measures: where each begins, in quarter notes, and its name, in the order of playing.
        end: of the last measure, in quarter notes.
    """
    printed: dict[int, Meter] = {}
    for each in midi.time_signatures:
        printed.setdefault(each.time, (each.numerator, each.denominator))
    ticks, meters = sorted(printed), dict[str, Meter]()
    ends = [*(begin for begin, _ in measures[1:]), end]
    rows: list[tuple[float, Meter]] = []
    is_whole = True
    for (begin, name), until in zip(measures, ends, strict=True):
        at = bisect.bisect(ticks, round(begin * midi.ticks_per_quarter))
        meter = meters.setdefault(name, printed[ticks[at - 1]] if at else (4, 4))
        if until - begin < _NOISE:
            continue
        meter, was_whole = _lengthened(meter, until - begin), is_whole
        is_whole = _is_multiple(until - begin, 4 * meter[0] / meter[1])
        if not was_whole or not rows or rows[-1][1] != meter:
            rows.append((begin, meter))
    if rows and not is_whole:
        rows.append((end, rows[-1][1]))
    return [
        symusic.TimeSignature(round(begin * midi.ticks_per_quarter), *meter)
        for begin, meter in rows
    ]


def _lengthened(meter: Meter, quarters: float) -> Meter:
    """Return a meter for bars of this length: a longer one, unless each is several bars."""
    bar, denominator = 4 * meter[0] / meter[1], meter[1]
    if quarters < bar or _is_multiple(quarters, bar):
        return meter
    for unit in (denominator, 2 * denominator, 4 * denominator):
        count = round(quarters * unit / 4)
        if _is_multiple(quarters, 4 / unit) and can_be_said(count, unit):
            return count, unit
    return meter


def _is_multiple(quarters: float, unit: float) -> bool:
    return abs(quarters - unit * round(quarters / unit)) < _NOISE


def _levels(
    document: Element,
    measures: Sequence[tuple[float, str]],
    begins: Mapping[str, float],
    ticks_per_quarter: int,
) -> dict[str, list[tuple[int, int]]]:
    """Return the dynamics of each staff in the order of playing: tick and velocity.

    Args:
        document: the score.
        measures: where each begins, in quarter notes, and its name, in the order of playing.
        begins: when each note begins, in quarter notes, by its name.
        ticks_per_quarter: of the result.
    """
    signs: dict[str, list[tuple[float, str, int]]] = {}
    first = {name: begin for begin, name in reversed(measures)}
    beat = 1.0  # in quarter notes
    for element in document.iter():
        unit = element.get("meter.unit") or (element.tag == "meterSig" and element.get("unit"))
        if unit and unit.isdecimal() and int(unit):
            beat = 4 / int(unit)
        if element.tag == "measure":
            name = element.get(_ID, "")
            found = signs.setdefault(name, [])
            for sign in element.iter("dynam"):
                velocity = _VELOCITIES.get("".join(sign.itertext()).strip())
                if velocity is None:
                    continue
                staff, begin = _note_of(sign, element, begins)
                place = (float(sign.get("tstamp") or 1) - 1) * beat
                if sign.get("tstamp") is None and begin is not None:
                    place = begin - first.get(name, begin)
                found.append((place, sign.get("staff", staff).split(" ")[0], velocity))
    levels: dict[str, list[tuple[int, int]]] = {}
    for begin, name in measures:
        for place, staff, velocity in signs.get(name, ()):
            tick = round((begin + place) * ticks_per_quarter)
            levels.setdefault(staff, []).append((tick, velocity))
    return levels


def _note_of(
    sign: Element, measure: Element, begins: Mapping[str, float]
) -> tuple[str, float | None]:
    """Return the staff of the note or chord at which a sign stands, and when it begins, if any."""
    start = sign.get("startid", "").removeprefix("#")
    for staff in measure.iter("staff"):
        for element in staff.iter():
            if start and element.get(_ID) == start:
                names = (each.get(_ID, "") for each in element.iter())
                found = [begins[name] for name in names if name in begins]
                return staff.get("n", ""), min(found, default=None)
    return "", None


def _notes(staves: Sequence[symusic.Track], dynamics: Sequence[tuple[int, int]]) -> symusic.Note:
    """Return the notes of a part; verovio ends each note a tick early, which is undone."""
    columns = [track.notes.numpy() for track in staves]
    start, duration, pitch = (
        np.concatenate([np.empty(0, np.int32), *(each[name] for each in columns)])
        for name in ("time", "duration", "pitch")
    )
    velocities = np.array([VELOCITY, *(velocity for _, velocity in dynamics)])
    level = np.searchsorted([tick for tick, _ in dynamics], start, side="right")
    return symusic.Note.from_numpy(
        start, duration + 1, pitch.astype(np.int8), velocities[level].astype(np.int8)
    )


def _musicxml_of_abc(text: str) -> str:
    """Return a tune in ABC as MusicXML.

    Raises:
        NotationError: music21 is missing, or cannot read the tune.
    """
    try:
        from music21 import abcFormat, exceptions21
        from music21.abcFormat.translate import abcToStreamScore
        from music21.musicxml.m21ToXml import GeneralObjectExporter
    except ModuleNotFoundError:
        raise NotationError("to read ABC needs music21: `make install` installs it") from None
    try:
        handler = abcFormat.ABCHandler(abcVersion=(2, 1, 0))  # accidentals hold through the bar
        handler.process(text)
        score = abcToStreamScore(handler)
        for part in score.parts:
            if not part.hasMeasures():  # music21 makes no measures of a single bar
                part.makeMeasures(inPlace=True)
        exporter = GeneralObjectExporter(score)
        exporter.makeNotation = False  # else it fills upbeats and short bars with rests
        return str(exporter.parse(), "utf-8")
    # music21 checks little, and raises these for tunes that it cannot read
    except (
        *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
        *(TypeError, ValueError, exceptions21.Music21Exception),
    ) as error:
        raise NotationError(f"music21, which reads ABC, cannot ({type(error).__name__})") from None
