"""Chords are found where they are heard, and named in their key."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.chords import KINDS, Chord, parse_chord
from data.harmony import chords_of, numeral, symbol
from data.keys import parse_key
from tests.music import piece, scores


def block(symbols, beats=4):
    """A bar or so of each chord: its bass, and its notes above."""
    rows = []
    for number, text in enumerate(symbols.split()):
        chord = parse_chord(text)
        pitches = [36 + chord.bass, *(60 + each for each in chord.classes)]
        rows += [(12 * beats * number, 12 * beats, pitch, 80, 0) for pitch in {*pitches}]
    return piece(rows)


def found(score):
    return [(span.begin, span.end, span.chord.name) for span in chords_of(score)]


@pytest.mark.parametrize("beats", [1, 2, 4])
def test_chords_are_found_where_they_stand(beats):
    symbols = "Am Dm/F E7 Am G7 C F#dim G C/E F Bdim E Am"
    steps = 12 * beats
    expected = [(steps * n, steps * (n + 1), name) for n, name in enumerate(symbols.split())]
    assert found(block(symbols, beats)) == expected


def test_passing_notes_and_broken_chords_are_no_chords_of_their_own():
    broken = [48, 52, 55, 60, 64, 62, 60, 55, 43, 47, 50, 53, 59, 57, 55, 53]
    rows = [(6 * n, 6 if n % 8 else 12, pitch, 80, 0) for n, pitch in enumerate(broken)]
    assert found(piece(rows)) == [(0, 48, "C"), (48, 96, "G7")]


@pytest.mark.parametrize(
    ("before", "pitches", "name"),
    [
        ("C", (41, 53), "F"),
        ("C", (43, 50, 55), "G"),
        ("Am Dm", (38, 50), "Dm"),
        ("Am Dm", (38, 57), "Dm"),
        ("Am D", (38, 57), "D"),
    ],
)
def test_a_bare_octave_or_fifth_is_the_chord_on_its_lowest_note(before, pitches, name):
    """Of the music's mode, as far as that is heard."""
    end = 48 * len(before.split())
    bare = [(end, 48, pitch, 80, 0) for pitch in pitches]
    score = piece([*block(before).notes.tolist(), *bare])
    assert found(score)[-1][2] == name


def test_a_melody_alone_has_no_chords():
    rows = [(6 * n, 6, pitch, 80, 0) for n, pitch in enumerate([60, 64, 67, 72, 71, 67, 65, 62])]
    assert found(piece(rows)) == []
    bass = [(0, 24, 48, 80, 0), (24, 24, 43, 80, 0)]
    assert found(piece([*rows, *bass])) == [(0, 24, "C"), (24, 48, "G7")]
    assert found(piece([*rows, bass[1]])) == [(24, 48, "G7")]


@given(scores())
def test_spans_follow_each_other(score):
    spans = chords_of(score)
    ends = [0, *(span.end for span in spans)]
    assert all(end <= span.begin < span.end for end, span in zip(ends, spans, strict=False))
    assert not spans or spans[-1].end <= score.bar_starts[-1]


@given(
    st.lists(st.sampled_from(["C", "Dm7", "E7/B", "F/A", "G7", "Abm", "Dbmaj7"]), max_size=9),
    st.integers(-9, 9),
)
def test_moved_music_has_moved_chords(symbols, semitones):
    score = block(" ".join(symbols))
    notes = score.notes.copy()
    notes["pitch"] += np.int16(semitones)
    moved = chords_of(replace(score, notes=notes))
    assert [
        span._replace(chord=shifted(span.chord, semitones)) for span in chords_of(score)
    ] == moved


def shifted(chord, semitones):
    root, bass = ((each + semitones) % 12 for each in (chord.root, chord.bass))
    return chord._replace(root=root, bass=bass)


@pytest.mark.parametrize(
    ("key", "chords", "numerals"),
    [
        ("C", "C Dm Em7 F/A G7/B Am Bdim Bm7b5/D", "I ii iii7 IV6 V65 vi vii° viiø65"),
        ("C", "D7 E A7/C# C7 Bb Ab Fm Dbmaj7", "V7/V V/vi V65/ii V7/IV ♭VII ♭VI iv ♭IImaj7"),
        ("D", "A#dim/C# G#dim7 C#m7b5 Adim", "vii°6/vi vii°7/V viiø7 v°"),
        ("A minor", "Am Bdim C Dm/F E7 F G G#dim7", "i ii° III iv6 V7 VI VII vii°7"),
        ("A minor", "Am/E D G7 Caug Esus4 F6 B7", "i64 V/VII VII7 III+ Vsus4 VIadd6 V7/V"),
        ("A minor", "A7 A", "V7/iv I"),
    ],
)
def test_numerals_say_what_a_chord_is_in_its_key(key, chords, numerals):
    said = [numeral(parse_chord(text), parse_key(key)) for text in chords.split()]
    assert said == numerals.split()


def test_every_chord_has_a_numeral_and_a_symbol_in_every_key():
    for kind in KINDS:
        for root in range(12):
            for bass in range(12):
                chord = Chord(root, kind, bass)
                for key in ("F#", "Eb minor", "C", "B minor"):
                    assert numeral(chord, parse_key(key)).lstrip("♭♯")[0] in "IViv"
                    assert parse_chord(symbol(chord, parse_key(key))) == chord


def test_symbols_are_spelled_in_their_key():
    said = [symbol(parse_chord("Eb/Ab"), parse_key(key)) for key in ("E", "Eb")]
    assert said == ["D#/G#", "Eb/Ab"]
    borrowed = [symbol(parse_chord(name), parse_key("A")) for name in ("F", "F/A", "Bb/D", "E#m")]
    assert borrowed == ["F", "F/A", "Bb/D", "E#m"]  # ♭VI and ♭II; ♯v is not borrowed
    minor = ["Fm/Ab", "Bdim7/Ab", "Dm7b5/Ab", "A7/C#", "E7/G#", "Gm7b5/Db"]
    assert [symbol(parse_chord(name), parse_key("C")) for name in minor] == minor
