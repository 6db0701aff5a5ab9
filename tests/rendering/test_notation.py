"""Notation, read back by music21, and as it is engraved."""

import re
from collections import Counter
from xml.etree import ElementTree

import music21
import numpy as np
import pytest
from hypothesis import given, settings

from data.keys import parse_key
from data.score import BAR, DRUMS, NOTE, SECONDS, Grid, canonical
from rendering.measures import MAX_RINGING_BARS, Measures
from rendering.notation import NEW, engrave, to_musicxml
from tests.music import EMPTY, GRID, chord, line, piece, scores

pytestmark = pytest.mark.filterwarnings("ignore::music21.musicxml.xmlObjects.MusicXMLWarning")

CHOIR = [*line([72, 71, 72, 74]), *line([67, 67, 67, 67], program=1)]
CHOIR += [*line([60, 62, 60, 59], program=2), *line([48, 43, 48, 43], program=3)]


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
    lengths = [
        bar.length * score.grid.steps_per_beat // 12 for bar in Measures(score, exact=True).bars
    ]
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


@settings(deadline=None, max_examples=40)
@given(scores(GRID, Grid(4)))
def test_music21_reads_the_same_notes(score):
    xml = to_musicxml(score, exact=True)
    assert read_back(xml, bar_starts(score)[:-1], score.grid.steps_per_beat) == written(score)
