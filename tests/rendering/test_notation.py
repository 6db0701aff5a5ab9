"""Notation, read back by music21, and as it is engraved."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch
from xml.etree import ElementTree

import music21
import numpy as np
import pytest
from hypothesis import given, settings

from data.chords import Span, parse_chord
from data.keys import parse_key
from data.score import DRUMS, SECONDS, UNNAMED, Grid, Part
from rendering.measures import MAX_RINGING_BARS, Measures
from rendering.notation import NEW, engrave, has_notation, to_musicxml
from tests.music import EMPTY, GRID, line, piece, scores

pytestmark = pytest.mark.filterwarnings("ignore::music21.musicxml.xmlObjects.MusicXMLWarning")


def programs_of(xml):
    """The program of each voice of each staff; of drums -1."""
    root = ElementTree.fromstring(xml)
    numbers = {
        its.get("id"): int(its.findtext("midi-program", "0")) - 1
        for its in root.iter("midi-instrument")
    }
    return [
        {
            note.findtext("voice"): numbers[note.find("instrument").get("id")]
            for note in part.iter("note")
            if note.find("instrument") is not None
        }
        for part in root.iter("part")
        for _ in range(int(part.findtext("measure/attributes/staves")))
    ]


def sounds(part, starts, steps_per_beat):
    """Yield the notes and chords of a part as music21 has them: onset and end in steps, voice.

    music21 moves what follows a bar that is too short for its meter, so bars are counted here.
    """
    for bar, start in zip(part.getElementsByClass("Measure"), starts, strict=True):
        for element in bar.recurse().notes:
            onset = start + round(element.getOffsetInHierarchy(bar) * steps_per_beat)
            end = onset + round(element.quarterLength * steps_per_beat)
            yield onset, end, str(element.activeSite.id), element


def read_back(xml, starts, steps_per_beat=12):
    """What music21 reads: (program, onset, end, pitch) of each note, and onsets of drums."""
    parts, notes, drums = music21.converter.parseData(xml, format="musicxml").parts, [], []
    for part, of_voices in zip(parts, programs_of(xml), strict=True):
        held, found = {}, sounds(part, starts, steps_per_beat)
        for onset, end, voice, element in sorted(found, key=lambda each: each[:2]):
            program = of_voices.get(voice, next(iter(of_voices.values())))
            for note in getattr(element, "notes", [element]):
                kind = note.tie.type if note.tie else ""
                goes_on = kind in ("stop", "continue")
                if program == -1:
                    drums += [] if goes_on else [onset]
                    continue
                pitch = note.pitch.midi
                begin = held.pop((program, pitch)) if goes_on else onset
                if kind in ("start", "continue"):
                    held[program, pitch] = begin
                else:
                    notes.append((program, begin, end, pitch))
        assert not held
    return Counter(notes), Counter(drums)


def bar_starts(score):
    """The steps at which the bars begin that are written."""
    lengths = [bar.length * score.grid.steps_per_beat // 12 for bar in Measures(score).bars]
    return np.append(0, np.cumsum(lengths))


def written(score):
    """What is to be read: of a note that rings on and on, what is written of it."""
    until, notes, drums = bar_starts(score)[-1], [], []
    for onset, duration, pitch, _, program in score.notes.tolist():
        if program == DRUMS:
            drums.append(onset)
        else:
            notes.append((program, onset, min(onset + duration, until), pitch))
    return Counter(notes), Counter(drums)


@settings(deadline=None, max_examples=15)
@given(scores(GRID, Grid(4)))
def test_music21_reads_the_same_notes(score):
    with patch("rendering.measures.is_played", lambda *_: False):  # random notes would be rounded
        xml = to_musicxml(score)
        assert read_back(xml, bar_starts(score)[:-1], score.grid.steps_per_beat) == written(score)
    hidden = ElementTree.fromstring(xml).findall(".//note[@print-object='no']")
    assert all(note.find("rest") is not None for note in hidden)


SOPRANO, ALTO = [67, 72, 71, 72, 74], [64, 67, 67, 67, 67]
TENOR, BASS = [60, 60, 62, 60, 59], [48, 48, 43, 48, 43]
UPBEAT = ((4, 4, 12), (4, 4, 48))


def chorale():
    """Four voices, an upbeat and a bar."""
    voices = enumerate((SOPRANO, ALTO, TENOR, BASS), start=40)
    return piece([row for program, its in voices for row in line(its, program=program)], UPBEAT)


def texts(xml, path):
    return [element.text for element in ElementTree.fromstring(xml).iterfind(path)]


def test_four_voices_stand_on_two_staves():
    xml = to_musicxml(chorale())
    assert texts(xml, "part-list/score-part/part-name") == ["Violin\nViola", "Cello\nContrabass"]
    assert texts(xml, "part/measure/attributes/clef/sign") == ["G", "F"]
    stems = Counter(zip(texts(xml, "part/measure/note/voice"), texts(xml, ".//stem"), strict=True))
    assert stems == {("1", "up"): 10, ("2", "down"): 10}
    parts = music21.converter.parseData(xml, format="musicxml").parts
    offsets = [[bar.offset for bar in part.getElementsByClass("Measure")] for part in parts]
    assert offsets == [[0, 1], [0, 1]]  # the upbeat is as long as it is
    assert [bar.get("number") for bar in ElementTree.fromstring(xml)[2]] == ["0", "1"]


def test_parts_with_names_have_staves_in_their_order():
    grid = Grid(parts=(Part("Voice", 0), Part("High", 73), Part("Keys", 0)))
    rows = [(0, 12, 60, 80, 0), (0, 12, 84, 80, 1), (0, 12, 40, 80, 2), (0, 12, 38, 80, DRUMS)]
    rows += [(0, 12, 72, 80, 2), (0, 12, 65, 80, UNNAMED)]
    xml = to_musicxml(piece(rows, grid=grid))
    names = texts(xml, "part-list/score-part/part-name")
    assert names == ["Voice", "High", "Keys", "Acoustic Grand Piano", "Drums"]
    assert len(programs_of(xml)) == 6  # two hands of the keys


@pytest.mark.parametrize(
    ("rows", "bars", "types"),
    [
        # quarter, half, quarter; a note over the middle of the bar is cut there
        ([(0, 12), (12, 24), (36, 12)], ((4, 4, 48),), ["quarter", "half", "quarter"]),
        ([(0, 6), (6, 24), (30, 18)], ((4, 4, 48),), ["eighth", "quarter.", "eighth", "quarter."]),
        ([(0, 18), (18, 6), (24, 24)], ((4, 4, 48),), ["quarter.", "eighth", "half"]),
        ([(0, 9), (9, 3), (12, 36)], ((4, 4, 48),), ["eighth.", "16th", "half."]),
        # three in the time of two, in a quarter, in a half and in half a quarter
        ([(0, 4), (4, 4), (8, 4)], ((1, 4, 12),), ["eighth/3"] * 3),
        ([(0, 8), (8, 8), (16, 8)], ((2, 4, 24),), ["quarter/3"] * 3),
        ([(0, 6), (6, 2), (8, 4)], ((1, 4, 12),), ["eighth", "16th/3", "eighth/3"]),
        # 6/8 has two beats
        ([(0, 12), (12, 12), (24, 12)], ((6, 8, 36),), ["quarter", "eighth", "eighth", "quarter"]),
        ([(0, 36)], ((6, 8, 36),), ["half."]),
        # 9/8 has no note that lasts it out
        ([(0, 54)], ((9, 8, 54),), ["half.", "quarter."]),
        # rests show the beats
        ([(0, 6), (30, 6)], ((3, 4, 36),), ["eighth", "eighth", "quarter", "eighth", "eighth"]),
    ],
)
def test_note_values_show_the_beat(rows, bars, types):
    xml = to_musicxml(piece([(onset, steps, 67, 80, 0) for onset, steps in rows], bars))
    written = [
        note.findtext("type") + "." * len(note.findall("dot")) + "/3" * bool(triplets(note))
        for note in ElementTree.fromstring(xml).iter("note")
    ]
    assert written == types


def triplets(note):
    return note.findtext("time-modification/actual-notes")


def test_pitches_are_spelled_in_the_key_and_accidentals_hold_for_a_bar():
    pitches = [64, 66, 68, 69, 71, 73, 75, 76, 70, 70, 71, 70]
    xml = to_musicxml(piece(line(pitches), ((4, 4, 48),) * 3), parse_key("E major"))
    assert texts(xml, ".//fifths") == ["4"]
    names = [
        note.name for note in music21.converter.parseData(xml, format="musicxml").flatten().notes
    ]
    assert names == ["E", "F#", "G#", "A", "B", "C#", "D#", "E", "A#", "A#", "B", "A#"]
    assert texts(xml, ".//accidental") == ["sharp"]
    flat = to_musicxml(piece(line([63, 65, 67, 68])), parse_key("E flat major"))
    assert texts(flat, ".//alter") == ["-1", "-1"]
    assert texts(flat, ".//accidental") == []


def test_drums_stand_on_a_staff_of_their_own():
    beat = [(0, 1, 36, 80, DRUMS), (0, 1, 42, 80, DRUMS), (6, 1, 42, 80, DRUMS)]
    xml = to_musicxml(piece([*beat, *line([60, 62])]))
    assert texts(xml, "part-list/score-part/part-name") == ["Acoustic Grand Piano", "Drums"]
    drums = ElementTree.fromstring(xml).findall("part")[1]
    assert [note.text for note in drums.iter("notehead")] == ["x", "x"]
    assert [note.text for note in drums.iterfind("measure/note/type")][:3] == ["eighth"] * 3
    assert sorted(texts(xml, ".//midi-unpitched")) == ["37", "43"]


def test_what_is_played_is_rounded_to_what_can_be_read():
    late = [(12 * i + i % 2, 10, 60 + i, 80, 0) for i in range(8)]
    score = piece(late, ((4, 4, 48),) * 2)
    assert texts(to_musicxml(score), ".//type") == ["quarter"] * 8
    beat = [(12 * i - i % 2, 1, 38, 80, DRUMS) for i in range(8)]
    drummed = to_musicxml(piece([*beat, (95, 1, 36, 80, DRUMS)], ((4, 4, 48),) * 2))
    assert set(texts(drummed, ".//type")) == {"quarter", "eighth", "16th"}


def test_new_notes_are_colored_where_some_are_given():
    score = chorale()
    is_given = score.notes["onset"] < 12
    picture = engrave(to_musicxml(score, is_given=is_given))
    assert picture.count(NEW) >= 16
    assert NEW not in engrave(to_musicxml(score, is_given=np.zeros(20, dtype=bool)))


def test_the_picture_is_the_same_each_time_and_has_every_note():
    written = to_musicxml(chorale())
    picture = engrave(written)
    with ThreadPoolExecutor(1) as other:  # and in any thread
        assert other.submit(engrave, written).result() == picture
    assert set(re.findall(r'id="(n[0-9]+)"', picture)) >= {f"n{row}" for row in range(20)}
    ElementTree.fromstring(picture)


def test_long_music_has_its_pages_below_each_other():
    score = piece(line([60, 62, 64, 65] * 150), ((4, 4, 48),) * 150)
    picture = ElementTree.fromstring(engrave(to_musicxml(score)))
    pages = [child for child in picture if child.tag.endswith("svg")]
    ends = [int(page.get("y")) + int(page.get("height")) for page in pages]
    assert len(pages) > 1
    assert [int(page.get("y")) for page in pages] == [0, *ends[:-1]]
    assert int(picture.get("height")) == ends[-1]


def test_a_bar_wider_than_a_line_is_engraved_without_a_warning(capfd):
    rows = [(at, 1, pitch, 80, 40) for at in range(24) for pitch in range(36, 76)]
    engrave(to_musicxml(piece(rows, [(4, 4, 48)])))
    assert capfd.readouterr() == ("", "")


def test_music_without_notes_is_one_bar_of_rest():
    xml = to_musicxml(EMPTY)
    assert len(texts(xml, ".//rest")) == 1
    engrave(xml)


def test_music_on_a_grid_of_seconds_has_no_notation():
    assert not has_notation(SECONDS)
    assert has_notation(GRID)
    with pytest.raises(ValueError, match="seconds"):
        to_musicxml(piece([(0, 50, 60, 80, 0)], grid=SECONDS))


def test_a_note_that_rings_on_and_on_ends():
    score = piece([(0, 48 * 40, 60, 80, 0)])
    assert len(texts(to_musicxml(score), ".//note/duration")) == 1 + MAX_RINGING_BARS


def test_symbols_stand_where_their_chords_begin():
    chords = [Span(0, 24, parse_chord("Bbmaj7/D")), Span(24, 48, parse_chord("F#m7b5"))]
    xml = to_musicxml(piece(line([60] * 4)), parse_key("F"), chords=chords)
    found = music21.converter.parseData(xml).flatten().getElementsByClass("ChordSymbol")
    symbols = [(float(each.offset), each.figure) for each in found]
    assert symbols == [(0, "B-maj7/D"), (2, "F#ø7")]
    assert texts(xml, ".//words") == ["IVmaj65", "viiø7/ii"]


def test_voices_far_from_these_registers_have_a_staff_each():
    rows = [(o, d, p - 24, v, program) for o, d, p, v, program in chorale().notes.tolist()]
    xml = to_musicxml(piece(rows, UPBEAT))
    assert len(texts(xml, "part-list/score-part/part-name")) == 4
