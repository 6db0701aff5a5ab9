"""Notation: a Score as MusicXML, which notation programs open, and engraved as SVG.

MusicXML is written here, not by music21. That takes 0.9 s to import, 0.3 s for a chorale, and 11 s
for a song of 100 bars.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from common.arrays import Bools
from common.files import write_file
from common.verovio_toolkit import load_notation
from data.chords import Span
from data.harmony import numeral, spelled
from data.instrument_names import HI_HAT_EDGES, sound_name
from data.keys import Key, key_signature
from data.score import DRUMS, Grid, Score
from rendering.measures import Event, Measures
from rendering.note_values import steps_per_quarter
from rendering.png import png_bytes
from rendering.staves import Part

NEW = "#0072B2"  # the color of notes that were not given, if some were
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE score-partwise PUBLIC '
    '"-//Recordare//DTD MusicXML 4.0 Partwise//EN" "http://www.musicxml.org/dtds/partwise.dtd">\n'
)
# verovio leaves beams black; this finds those before a new note
_BEAM = re.compile(rf'<g id="\w+" class="beam">(\s*<polygon [^>]*>)+\s*<g [^>]* fill="{NEW}"')
_SIZE = re.compile(r'viewBox="0 0 ([0-9]+) ([0-9]+)"')
_TEXT_GLYPH = re.compile("[\ue000-\uf8ff]")  # in verovio's own font: the note of a tempo mark
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}
_LEAST_TEMPO_CHANGE = 0.05  # a smaller change of tempo is played, but not printed
_VOICES_ON_STAFF = 4  # notation programs number this many
# The places of drums on their staff, as in a treble clef, and the drums whose heads are crosses.
_DRUM_PLACES = {
    **{35: "F4", 36: "F4", 37: "C5", 38: "C5", 39: "C5", 40: "C5", 41: "G4", 42: "G5", 43: "A4"},
    **{44: "D4", 45: "B4", 46: "G5", 47: "D5", 48: "D5", 49: "A5", 50: "E5", 51: "F5", 52: "A5"},
    **{53: "F5", 54: "E5", 55: "A5", 56: "E5", 57: "A5", 59: "F5"},
}
_DRUM_PLACES |= {edge: _DRUM_PLACES[drum] for edge, drum in HI_HAT_EDGES.items()}
_OTHER_DRUM = "B4"
_HARMONIES = {  # MusicXML's names for kinds of chords
    **{"": "major", "m": "minor", "dim": "diminished", "aug": "augmented", "7": "dominant"},
    **{"sus2": "suspended-second", "sus4": "suspended-fourth", "maj7": "major-seventh"},
    **{"m7": "minor-seventh", "m7b5": "half-diminished", "dim7": "diminished-seventh"},
    **{"6": "major-sixth", "m6": "minor-sixth", "9": "dominant-ninth"},
}
_CROSSES = {*HI_HAT_EDGES, 37, 42, 44, 46, 49, 51, 52, 53, 55, 57, 59}
_TRIPLET = ("actual-notes", 3), ("normal-notes", 2)
_Content: TypeAlias = Element | str | tuple[str, str | int | None] | None
_PAGE_WIDTH, _PAGE_HEIGHT = 2100, 2970  # in verovio's units
_ENGRAVING = {  # verovio's options; one high page would take five times as long
    **{"header": "none", "footer": "none", "breaks": "auto", "svgViewBox": True},
    **{"pageWidth": _PAGE_WIDTH, "pageHeight": _PAGE_HEIGHT, "adjustPageHeight": True},
    **{"scale": 40, "staffLineWidth": 0.2, "pageMarginTop": 100},
}


def has_notation(grid: Grid) -> bool:
    """Return whether music on a grid can be notated: it cannot if the grid counts seconds."""
    try:
        return bool(steps_per_quarter(grid))
    except ValueError:
        return False


def to_musicxml(
    score: Score, key: Key | None = None, is_given: Bools | None = None, chords: Sequence[Span] = ()
) -> str:
    """Return a Score as MusicXML 4.0, at concert pitch.

    Every note is there with its onset, duration, pitch and instrument, with three exceptions. Drums
    have no duration in notation: each lasts until the next one. Notes that are held after the last
    bar end MAX_RINGING_BARS (rendering/measures.py) after it. And music that was played, not
    written, is rounded to what can be read (rendering/readable.py).

    Args:
        score: on a grid of beats.
        key: of the signature and the spelling; None: `notated_key` finds it.
        is_given: (N,) whether each note was given; the others are colored, if any note was.
        chords: their symbols stand above the score, and below it what they are in the key.

    Raises:
        ValueError: the Score has no notation: its grid has seconds, or beats that no note values
            fit.
    """
    root = _Writer(score, key, is_given, chords).root()
    return f"{_HEAD}{ElementTree.tostring(root, 'unicode')}\n"


def engrave(musicxml: str) -> str:
    """Return MusicXML as one SVG picture, as high as the music needs.

    A note of to_musicxml has the same id in the picture: n, and its index in the Score.
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
    """Return the engraved Score as the content of a PNG file that is `width` pixels wide."""
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

    The arguments are those of `to_musicxml`. Notes that were not given are colored in the picture.
    """
    paths = [stem.with_name(f"{stem.name}.musicxml"), stem.with_name(f"{stem.name}.svg")]
    plain = to_musicxml(score, key, chords=chords)
    colored = plain if is_given is None else to_musicxml(score, key, is_given, chords)
    for path, text in zip(paths, (plain, engrave(colored)), strict=True):
        write_file(text, path)
    return paths


class _Place(NamedTuple):
    """Where a note is written."""

    name: str  # the id of the part
    part: Part
    staff: int  # from 0
    voice: int  # on the staff, from 0
    is_shared: bool  # whether another voice is on the staff in this bar


class _Writer:
    """Writes one Score, element by element."""

    def __init__(
        self, score: Score, key: Key | None, is_given: Bools | None, chords: Sequence[Span]
    ) -> None:
        self._score, self._measures = score, Measures(score, key)
        self._program, self._pitch = (score.notes[n].tolist() for n in ("program", "pitch"))
        self._tempo_bpm = score.tempo_bpm.tolist()
        scale = self._measures.quarter // score.grid.steps_per_beat
        self._chords = [(span.begin * scale, span.chord) for span in chords]
        self._is_new = np.zeros(len(score.notes), dtype=bool)
        if is_given is not None and is_given.any():
            self._is_new = ~is_given
        self._shown_bpm = 0.0

    def root(self) -> Element:
        """Return the whole document."""
        page = self._measures.page
        parts = [(part, f"P{number}") for number, part in enumerate(page.parts, start=1)]
        names = [self._name(part, name) for part, name in parts]
        if page.is_choir:
            bracket = ("group-symbol", "bracket"), ("group-barline", "yes")
            begin = _element("part-group", *bracket, type="start", number="1")
            names = [begin, *names, _element("part-group", type="stop", number="1")]
        return _element(
            "score-partwise",
            _element("identification", _element("encoding", ("software", "Etude"))),
            _element("part-list", *names),
            *(self._part(part, name) for part, name in parts),
            version="4.0",
        )

    def _name(self, part: Part, name: str) -> Element:
        """Return the name of a part, and what plays it."""
        rows = [row for staff in part.staves for voice in staff.voices for row in voice.tolist()]
        sounds, midi, grid = [], [], self._score.grid
        for identity, row in sorted({self._instrument(name, row): row for row in rows}.items()):
            program, pitch = self._program[row], self._pitch[row]
            sound = ("instrument-name", sound_name(program, pitch, grid))
            number = [("midi-program", grid.general_midi(program) + 1)]
            if program == DRUMS:
                number = [("midi-channel", 10), ("midi-unpitched", pitch + 1)]
            sounds.append(_element("score-instrument", sound, id=identity))
            midi.append(_element("midi-instrument", *number, id=identity))
        return _element("score-part", ("part-name", part.name), *sounds, *midi, id=name)

    def _part(self, part: Part, name: str) -> Element:
        staves = [self._measures.staff(staff) for staff in part.staves]
        measures = []
        for number, bar in enumerate(self._measures.bars):
            content = [self._attributes(part, number)]
            if name == "P1":
                content += [self._tempo(number), *self._harmonies(number)]
            voices = [
                (_Place(name, part, staff, voice, len(its[number]) > 1), events)
                for staff, its in enumerate(staves)
                for voice, events in its[number]
            ]
            for order, (place, events) in enumerate(voices):
                if order:
                    content.append(_element("backup", ("duration", bar.length)))
                for event in events:
                    content += [self._note(event, note, place) for note in event.notes or (None,)]
            shown = str(number + self._score.first_number)
            implicit = "yes" if bar.length < bar.whole else None
            measures.append(_element("measure", *content, number=shown, implicit=implicit))
        measures[-1].append(_element("barline", ("bar-style", "light-heavy"), location="right"))
        return _element("part", *measures, id=name)

    def _attributes(self, part: Part, number: int) -> Element | None:
        """Return what is new in a bar: its meter, and in the first bar also signature and clefs."""
        bars, key = self._measures.bars, self._measures.key
        meter = bars[number].numerator, bars[number].denominator
        if number and meter == (bars[number - 1].numerator, bars[number - 1].denominator):
            return None
        time = _element("time", ("beats", meter[0]), ("beat-type", meter[1]))
        if number:
            return _element("attributes", time)
        clefs = [
            _element(
                "clef",
                ("sign", staff.clef.sign),
                ("line", staff.clef.line),
                ("clef-octave-change", staff.clef.octaves or None),
                number=str(place),
            )
            for place, staff in enumerate(part.staves, start=1)
        ]
        return _element(
            "attributes",
            ("divisions", self._measures.quarter),
            _element("key", ("fifths", key_signature(key)), ("mode", key.mode)),
            time,
            ("staves", len(clefs)),
            *clefs,
        )

    def _tempo(self, number: int) -> Element | None:
        """Return the tempo of a bar if it is new; it is printed only if it is very different."""
        tempi = self._tempo_bpm[: number + 1]
        if not tempi[number:] or tempi[-2:-1] == tempi[-1:]:
            return None
        bpm, bar = tempi[-1], self._measures.bars[number]
        sound = _element("sound", tempo=str(bpm))
        if abs(bpm - self._shown_bpm) < _LEAST_TEMPO_CHANGE * self._shown_bpm:
            return sound
        self._shown_bpm = bpm
        is_dotted = bar.is_compound and bar.denominator == 8
        metronome = _element(
            "metronome",
            ("beat-unit", "quarter"),
            _element("beat-unit-dot") if is_dotted else None,
            ("per-minute", round(bpm / 1.5) if is_dotted else bpm),
        )
        kind = _element("direction-type", metronome)
        return _element("direction", kind, sound, placement="above")

    def _harmonies(self, number: int) -> Iterator[Element]:
        """Yield the symbols of the chords that begin in a bar, and what they are in the key."""
        begin, end = self._measures.starts[number : number + 2].tolist()
        for step, chord in self._chords:
            if begin <= step < end:
                offset = ("offset", step - begin)
                kind = _element("kind", _HARMONIES[chord.kind], text=chord.kind)
                names = spelled(chord, self._measures.key)
                root, bass = map(_pitch_class, ("root", "bass"), names)
                under = None if chord.bass == chord.root else bass
                yield _element("harmony", root, kind, under, offset)
                words = _element("direction-type", ("words", numeral(chord, self._measures.key)))
                yield _element("direction", words, offset, placement="below")

    def _note(self, event: Event, note: int | None, place: _Place) -> Element:
        """Return a note, or with None a rest, with elements in the order that MusicXML requires."""
        is_first, value = note in (None, *event.notes[:1]), event.value
        tied = (("stop", event.tied_from), ("start", event.tied_to))
        ties = [kind for kind, notes in tied if note in notes]
        beams, triplet = (event.beams, event.triplet.split()) if is_first else ((), [])
        notations = [
            *(_element("tied", type=kind) for kind in ties),
            *(_element("tuplet", type=kind) for kind in triplet),
        ]
        by, accidental, stem, head = None, None, None, None
        if note is not None:
            by = _element("instrument", id=self._instrument(place.name, note))
            if note in event.accidentals:
                accidental = _ACCIDENTALS[self._measures.spelled[note][1]]
            stem = ("up", "down")[place.voice] if place.is_shared else None
            head = "x" if self._program[note] == DRUMS and self._pitch[note] in _CROSSES else None
        is_named = note is not None and note not in event.tied_from  # so the picture has it, too
        return _element(
            "note",
            None if is_first else _element("chord"),
            self._pitch_or_rest(event, note),
            ("duration", value.duration),
            *(_element("tie", type=kind) for kind in ties),
            by,
            ("voice", 1 + place.voice + _VOICES_ON_STAFF * place.staff),
            ("type", value.type or None),
            *(_element("dot") for _ in range(value.dots)),
            ("accidental", accidental),
            _element("time-modification", *_TRIPLET) if value.triplet else None,
            ("stem", stem),
            ("notehead", head),
            ("staff", place.staff + 1 if len(place.part.staves) > 1 else None),
            *(_element("beam", beam, number=str(n)) for n, beam in enumerate(beams, start=1)),
            _element("notations", *notations) if notations else None,
            print_object="no" if event.is_hidden else None,
            id=f"n{note}" if is_named else None,
            color=NEW if note is not None and self._is_new[note] else None,
        )

    def _pitch_or_rest(self, event: Event, note: int | None) -> Element:
        """Return the letter and octave of a note, or of a drum's place on the staff."""
        if note is None:
            return _element("rest", measure="yes" if event.is_whole_bar else None)
        if self._program[note] == DRUMS:
            place = _DRUM_PLACES.get(self._pitch[note], _OTHER_DRUM)
            return _element("unpitched", ("display-step", place[0]), ("display-octave", place[1]))
        letter, sharps, octave = self._measures.spelled[note]
        return _element("pitch", ("step", letter), ("alter", sharps or None), ("octave", octave))

    def _instrument(self, part: str, note: int) -> str:
        """Return the id of what plays a note: a program, or a single drum."""
        program = self._program[note]
        return f"{part}-D{self._pitch[note]}" if program == DRUMS else f"{part}-I{program + 1}"


def _pitch_class(tag: str, name: tuple[str, int]) -> Element:
    """Return a pitch class by its letter and sharps."""
    letter, sharps = name
    return _element(tag, (f"{tag}-step", letter), (f"{tag}-alter", sharps or None))


def _element(tag: str, *content: _Content, **attributes: str | None) -> Element:
    """Return an element with its content: elements, text, or a tag with its text.

    Content and attributes that are None are left out.
    """
    given = {name: value for name, value in attributes.items() if value is not None}
    element = Element(tag, {name.replace("_", "-"): value for name, value in given.items()})
    for each in content:
        if isinstance(each, str):
            element.text = each
        elif isinstance(each, tuple):
            name, text = each
            if text is not None:
                element.append(_element(name, str(text)))
        elif each is not None:
            element.append(each)
    return element
