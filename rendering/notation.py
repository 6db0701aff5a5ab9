"""Notation: a Score as MusicXML, which notation programs open, and engraved as SVG.

MusicXML is written here, not by music21: that takes 0.9 s to import, 0.3 s for a chorale and 11 s
for a song of 100 bars.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from common.arrays import Bools
from common.files import write_file
from common.verovio_toolkit import load_notation
from data.chords import Span
from data.harmony import numeral
from data.instrument_names import sound_name
from data.keys import Key, key_signature, spell_pitch
from data.score import DRUMS, Grid, Score
from rendering.measures import Event, Measures
from rendering.note_values import steps_per_quarter
from rendering.png import png_bytes
from rendering.staves import Part

NEW = "#0072B2"  # the color of notes that were not given, where some were
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE score-partwise PUBLIC '
    '"-//Recordare//DTD MusicXML 4.0 Partwise//EN" "http://www.musicxml.org/dtds/partwise.dtd">\n'
)
# verovio leaves beams black: those before a new note
_BEAM = re.compile(rf'<g id="\w+" class="beam">(\s*<polygon [^>]*>)+\s*<g [^>]* fill="{NEW}"')
_SIZE = re.compile(r'viewBox="0 0 ([0-9]+) ([0-9]+)"')
_TEXT_GLYPH = re.compile("[\ue000-\uf8ff]")  # of verovio's own font: the note of a tempo
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}
_LEAST_TEMPO_CHANGE = 0.05  # that is printed; smaller ones are only played
_VOICES_ON_STAFF = 4  # of which notation programs number as many
# Where drums stand on their staff, as in a treble clef, and those whose heads are crosses.
_DRUM_PLACES = {
    **{35: "F4", 36: "F4", 37: "C5", 38: "C5", 39: "C5", 40: "C5", 41: "G4", 42: "G5", 43: "A4"},
    **{44: "D4", 45: "B4", 46: "G5", 47: "D5", 48: "D5", 49: "A5", 50: "E5", 51: "F5", 52: "A5"},
    **{53: "F5", 54: "E5", 55: "A5", 56: "E5", 57: "A5", 59: "F5"},
}
_OTHER_DRUM = "B4"
_HARMONIES = {  # MusicXML's names of kinds of chords
    **{"": "major", "m": "minor", "dim": "diminished", "aug": "augmented", "7": "dominant"},
    **{"sus2": "suspended-second", "sus4": "suspended-fourth", "maj7": "major-seventh"},
    **{"m7": "minor-seventh", "m7b5": "half-diminished", "dim7": "diminished-seventh"},
    **{"6": "major-sixth", "m6": "minor-sixth", "9": "dominant-ninth"},
}
_CROSSES = {37, 42, 44, 46, 49, 51, 52, 53, 55, 57, 59}
_PAGE_WIDTH, _PAGE_HEIGHT = 2100, 2970  # verovio's units
_ENGRAVING = {  # verovio's options; one high page would take it five times as long
    **{"header": "none", "footer": "none", "breaks": "auto", "svgViewBox": True},
    **{"pageWidth": _PAGE_WIDTH, "pageHeight": _PAGE_HEIGHT, "adjustPageHeight": True},
    **{"scale": 40, "staffLineWidth": 0.2, "pageMarginTop": 100},
}


def has_notation(grid: Grid) -> bool:
    """Return whether music on a grid can be notated: not where it counts seconds."""
    try:
        return bool(steps_per_quarter(grid))
    except ValueError:
        return False


def to_musicxml(
    score: Score, key: Key | None = None, is_given: Bools | None = None, chords: Sequence[Span] = ()
) -> str:
    """Return a Score as MusicXML 4.0, at concert pitch.

    Every note is there with its onset, duration, pitch and instrument. But drums have no duration
    in notation: each lasts until the next. Notes that are held past the last bar end
    MAX_RINGING_BARS (rendering/measures.py) after it. And music that was played, not written, is
    rounded to what can be read (rendering/readable.py).

    Args:
        score: on a grid of beats.
        key: of the signature and the spelling; None: that of `notated_key`.
        is_given: whether each note, (N,), was given; the others are colored, if any was.
        chords: whose symbols stand above it, and below it what they are in the key.

    Raises:
        ValueError: it has no notation: on a grid of seconds, or of beats that no note values fit.
    """
    root = _Writer(score, key, is_given, chords).root
    return f"{_HEAD}{ElementTree.tostring(root, 'unicode')}\n"


def engrave(musicxml: str) -> str:
    """Return MusicXML as one SVG picture, as high as the music is long.

    A note of to_musicxml has the same id in it: n and its index in the Score.
    """
    toolkit = load_notation(musicxml, _ENGRAVING)
    pages = [toolkit.renderToSVG(number + 1) for number in range(toolkit.getPageCount())]
    width = height = 0
    placed = []
    for page in pages:
        width, its = (int(size) for size in _SIZE.findall(page)[0])
        head = f'<svg y="{height}" width="{width}" height="{its}" '
        page = _BEAM.sub(lambda beam: beam[0].replace("<polygon ", f'<polygon fill="{NEW}" '), page)
        placed.append(page.replace("<svg ", head, 1))
        height += its
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    return "\n".join([f'{whole}width="{width}" height="{height}">', ground, *placed, "</svg>\n"])


def notation_png(score: Score, width: int) -> bytes:
    """Return the engraved score of a Score as the content of a PNG file, so many pixels wide."""
    svg = _TEXT_GLYPH.sub("\N{QUARTER NOTE}", engrave(to_musicxml(score)))
    return png_bytes(svg, width)


def write_notation(
    score: Score,
    stem: Path,
    key: Key | None = None,
    is_given: Bools | None = None,
    chords: Sequence[Span] = (),
) -> list[Path]:
    """Write `stem`.musicxml and `stem`.svg, each whole or not at all, and return their paths.

    The arguments are those of `to_musicxml`; notes that were not given are colored in the picture.
    """
    paths = [stem.with_name(f"{stem.name}.musicxml"), stem.with_name(f"{stem.name}.svg")]
    plain = colored = to_musicxml(score, key, chords=chords)
    if is_given is not None and is_given.any():
        colored = to_musicxml(score, key, is_given, chords)
    for path, text in zip(paths, (plain, engrave(colored)), strict=True):
        write_file(text, path)
    return paths


@dataclass(frozen=True)
class _Place:
    """Where a note is written."""

    name: str  # of the part
    part: Part
    staff: int  # from 0
    voice: int  # on the staff, from 0
    is_shared: bool  # with another voice, in this bar

    @property
    def is_drums(self) -> bool:
        """Whether this is a staff of drums."""
        return self.part.staves[self.staff].clef.sign == "percussion"


class _Writer:
    """Writes one Score as `root`."""

    def __init__(
        self, score: Score, key: Key | None, is_given: Bools | None, chords: Sequence[Span]
    ) -> None:
        self._grid, self._program = score.grid, score.notes["program"].tolist()
        self._pitch = score.notes["pitch"].tolist()
        self._tempo_bpm = score.tempo_bpm.tolist()
        self._measures = Measures(score, key)
        scale = self._measures.quarter // score.grid.steps_per_beat
        self._chords = [(span.begin * scale, span.chord) for span in chords]
        self._is_new = np.zeros(len(score.notes), dtype=bool)
        if is_given is not None and is_given.any():
            self._is_new = ~is_given
        self._first_number = score.first_number
        self._shown_bpm = 0.0
        self.root = Element("score-partwise", version="4.0")
        encoding = SubElement(SubElement(self.root, "identification"), "encoding")
        _add(encoding, "software", "Etude")
        page = self._measures.page
        names = SubElement(self.root, "part-list")
        if page.is_choir:
            group = SubElement(names, "part-group", type="start", number="1")
            _add(group, "group-symbol", "bracket")
            _add(group, "group-barline", "yes")
        for number, part in enumerate(page.parts, start=1):
            self._add_name(names, part, f"P{number}")
            self._add_part(part, f"P{number}")
        if page.is_choir:
            SubElement(names, "part-group", type="stop", number="1")

    def _add_name(self, names: Element, part: Part, name: str) -> None:
        element = SubElement(names, "score-part", id=name)
        _add(element, "part-name", part.name)
        rows = [row for staff in part.staves for voice in staff.voices for row in voice.tolist()]
        sounds = {self._instrument(name, row): row for row in rows}
        for identity, row in sorted(sounds.items()):
            its = SubElement(element, "score-instrument", id=identity)
            _add(its, "instrument-name", self._sound_name(row))
        for identity, row in sorted(sounds.items()):
            its = SubElement(element, "midi-instrument", id=identity)
            if self._program[row] == DRUMS:
                _add(its, "midi-channel", 10)
                _add(its, "midi-unpitched", self._pitch[row] + 1)
            else:
                _add(its, "midi-program", self._grid.general_midi(self._program[row]) + 1)

    def _add_part(self, part: Part, name: str) -> None:
        element = SubElement(self.root, "part", id=name)
        staves = [self._measures.staff(staff) for staff in part.staves]
        for number, bar in enumerate(self._measures.bars):
            measure = SubElement(element, "measure", number=str(number + self._first_number))
            if bar.missing:
                measure.set("implicit", "yes")
            self._add_attributes(measure, part, number)
            if name == "P1":
                self._add_tempo(measure, number)
                self._add_chords(measure, number)
            voices = [
                (staff, voice, events, len(its[number]) > 1)
                for staff, its in enumerate(staves)
                for voice, events in its[number]
            ]
            for order, (staff, voice, events, is_shared) in enumerate(voices):
                if order:
                    _add(SubElement(measure, "backup"), "duration", bar.length)
                place = _Place(name, part, staff, voice, is_shared)
                for event in events:
                    for note in event.notes or (None,):
                        self._add_note(measure, event, note, place)
        _add(SubElement(element[-1], "barline", location="right"), "bar-style", "light-heavy")

    def _add_attributes(self, measure: Element, part: Part, number: int) -> None:
        """Add what is new in a bar: its meter; in the first the signature and the clefs too."""
        bars = self._measures.bars
        meter = bars[number].numerator, bars[number].denominator
        if number and meter == (bars[number - 1].numerator, bars[number - 1].denominator):
            return
        element = SubElement(measure, "attributes")
        if number == 0:
            key = self._measures.key
            _add(element, "divisions", self._measures.quarter)
            signature = SubElement(element, "key")
            _add(signature, "fifths", key_signature(key))
            _add(signature, "mode", key.mode)
        time = SubElement(element, "time")
        _add(time, "beats", meter[0])
        _add(time, "beat-type", meter[1])
        if number == 0:
            _add(element, "staves", len(part.staves))
            for place, staff in enumerate(part.staves, start=1):
                clef = SubElement(element, "clef", number=str(place))
                _add(clef, "sign", staff.clef.sign)
                if staff.clef.sign != "percussion":
                    _add(clef, "line", staff.clef.line)
                if staff.clef.octaves:
                    _add(clef, "clef-octave-change", staff.clef.octaves)

    def _add_tempo(self, measure: Element, number: int) -> None:
        """Add a bar's tempo where it is new, in print where it is much so."""
        tempi = self._tempo_bpm[: number + 1]
        if not tempi[number:] or tempi[-2:-1] == tempi[-1:]:
            return
        bpm, bar = tempi[-1], self._measures.bars[number]
        if abs(bpm - self._shown_bpm) < _LEAST_TEMPO_CHANGE * self._shown_bpm:
            SubElement(measure, "sound", tempo=str(bpm))
            return
        self._shown_bpm = bpm
        direction = SubElement(measure, "direction", placement="above")
        metronome = SubElement(SubElement(direction, "direction-type"), "metronome")
        is_dotted = bar.is_compound and bar.denominator == 8
        _add(metronome, "beat-unit", "quarter")
        if is_dotted:
            SubElement(metronome, "beat-unit-dot")
        _add(metronome, "per-minute", round(bpm / 1.5) if is_dotted else bpm)
        SubElement(direction, "sound", tempo=str(bpm))

    def _add_chords(self, measure: Element, number: int) -> None:
        """Add the symbols of the chords that begin in a bar."""
        bars = self._measures.bars
        begin = sum(bar.length for bar in bars[:number])
        for step, chord in self._chords:
            if begin <= step < begin + bars[number].length:
                element = SubElement(measure, "harmony")
                self._add_class(element, "root", chord.root)
                kind = SubElement(element, "kind", text=chord.kind)
                kind.text = _HARMONIES[chord.kind]
                if chord.bass != chord.root:
                    self._add_class(element, "bass", chord.bass)
                _add(element, "offset", step - begin)
                direction = SubElement(measure, "direction", placement="below")
                words = numeral(chord, self._measures.key)
                _add(SubElement(direction, "direction-type"), "words", words)
                _add(direction, "offset", step - begin)

    def _add_class(self, harmony: Element, tag: str, pitch_class: int) -> None:
        """Add the name of a pitch class."""
        letter, sharps, _ = spell_pitch(pitch_class, self._measures.key)
        element = SubElement(harmony, tag)
        _add(element, f"{tag}-step", letter)
        if sharps:
            _add(element, f"{tag}-alter", sharps)

    def _add_note(self, measure: Element, event: Event, note: int | None, place: "_Place") -> None:
        """Add a note, or with None a rest, in the order that MusicXML asks for."""
        is_first, value = note in (None, *event.notes[:1]), event.value
        element = SubElement(measure, "note")
        if event.is_hidden:
            element.set("print-object", "no")
        if note is not None:
            if note not in event.tied_from:
                element.set("id", f"n{note}")  # so the picture has it too
            if self._is_new[note]:
                element.set("color", NEW)
        if not is_first:
            SubElement(element, "chord")
        if note is None:
            SubElement(element, "rest", {"measure": "yes"} if event.is_whole_bar else {})
        else:
            self._add_pitch(element, note)
        _add(element, "duration", value.duration)
        tied = (("stop", event.tied_from), ("start", event.tied_to))
        ties = [kind for kind, notes in tied if note in notes]
        for kind in ties:
            SubElement(element, "tie", type=kind)
        if note is not None:
            SubElement(element, "instrument", id=self._instrument(place.name, note))
        _add(element, "voice", 1 + place.voice + _VOICES_ON_STAFF * place.staff)
        if value.type:
            _add(element, "type", value.type)
        for _ in range(value.dots):
            SubElement(element, "dot")
        if note in event.accidentals:
            _add(element, "accidental", _ACCIDENTALS[self._measures.spelled[note][1]])
        if value.triplet:
            ratio = SubElement(element, "time-modification")
            _add(ratio, "actual-notes", 3)
            _add(ratio, "normal-notes", 2)
        if note is not None:
            if place.is_shared:
                _add(element, "stem", ("up", "down")[place.voice])
            if place.is_drums and self._pitch[note] in _CROSSES:
                _add(element, "notehead", "x")
        if len(place.part.staves) > 1:
            _add(element, "staff", place.staff + 1)
        for level, beam in enumerate(event.beams if is_first else (), start=1):
            SubElement(element, "beam", number=str(level)).text = beam
        if ties or (is_first and event.triplet):
            notations = SubElement(element, "notations")
            for kind in ties:
                SubElement(notations, "tied", type=kind)
            for kind in event.triplet.split() if is_first else ():
                SubElement(notations, "tuplet", type=kind)

    def _add_pitch(self, element: Element, note: int) -> None:
        """Add a note's letter and octave, for a drum those of its place on the staff."""
        if self._program[note] == DRUMS:
            place = SubElement(element, "unpitched")
            where = _DRUM_PLACES.get(self._pitch[note], _OTHER_DRUM)
            _add(place, "display-step", where[0])
            _add(place, "display-octave", where[1])
            return
        letter, sharps, octave = self._measures.spelled[note]
        pitch = SubElement(element, "pitch")
        _add(pitch, "step", letter)
        if sharps:
            _add(pitch, "alter", sharps)
        _add(pitch, "octave", octave)

    def _sound_name(self, note: int) -> str:
        return sound_name(self._program[note], self._pitch[note], self._grid)

    def _instrument(self, part: str, note: int) -> str:
        """Return the name of what plays a note: a program, or one drum."""
        program = self._program[note]
        return f"{part}-D{self._pitch[note]}" if program == DRUMS else f"{part}-I{program + 1}"


def _add(parent: Element, tag: str, content: str | int) -> None:
    """Add an element that holds only text."""
    SubElement(parent, tag).text = str(content)
