"""The language of chord tracks, such as "Am | F C/E | Dm7 E7:2".

    Am | F | C | G7       one chord a bar; without bar lines, Am F C G7 means the same
    F C/E | Dm7 E7:2      a number is a length in quarter notes; chords without one share the rest
                          of their bar, in whole beats where possible
    Am | N.C. | F         N.C.: a bar without a chord
    G:1 | C | F           for a tune with an upbeat: the first bar is as short as the upbeat

The first bar of the track goes to the first bar of the piece in which something new may begin. An
upbeat has no chord unless the track has a bar for it. After its last bar the track repeats.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TypeAlias

from data.chords import Chord, parse_chord, plain
from data.score import Grid
from generation.note_text import parse_length, quoted

# The last two chords of a piece; "" stands for any chord. In minor the scale is the harmonic one.
CADENCES = {
    "authentic": ("V7", "I"),
    "half": ("", "V"),
    "deceptive": ("V7", "VI"),
    "plagal": ("IV", "I"),
}
MOST_CHORDS = 4096
_NONE = ("N.C.", "NC", "R")


# Chords, bar by bar: each with its length in quarter notes, or None for a share of what is left.
ChordTrack: TypeAlias = tuple[tuple[tuple[Chord | None, Fraction | None], ...], ...]


def parse_chord_track(text: str) -> ChordTrack:
    """Return the track that a text describes (see this module's docstring for the language).

    Raises:
        ValueError: the text is not a chord track, or a bar has no chord; the message is one line.
    """
    text = plain(text).strip()
    inside = text.removeprefix("|").removesuffix("|")
    bars = re.split(r"[|\r\n]+", inside) if "|" in text else inside.split()
    symbols = sum(len(bar.split()) for bar in bars)
    if symbols > MOST_CHORDS:
        raise ValueError(f"there are {symbols:,} chords: write {MOST_CHORDS:,} at most")
    track = tuple(tuple(map(_read, bar.split())) for bar in bars)
    if not track or not all(track):
        raise ValueError('a bar of the chords is empty: write Am | F, or "N.C." for no chord')
    return track


def upbeat_bars(track: ChordTrack, steps: int, grid: Grid) -> int:
    """Return 1 if the track's first bar is for an upbeat of `steps` steps, else 0.

    It is if all its chords have lengths that add up to the upbeat.
    """
    quarters = sum((length or 0 for _, length in track[0]), Fraction(0))
    has_lengths = all(length for _, length in track[0])
    return int(has_lengths and len(track) > 1 and quarters * grid.steps_per_beat == steps)


def _read(word: str) -> tuple[Chord | None, Fraction | None]:
    """Read a chord and its length."""
    shown = quoted(word)
    name, colon, written = word.partition(":")
    chord = parse_chord(name)
    if chord is None and name not in _NONE:
        raise ValueError(f"there is no chord {shown}: write chords as Am, F#m7, Bb or C/E")
    length = parse_length(written, shown) if colon else None
    if length is not None and not length:
        raise ValueError(f"{shown} has no length")
    return chord, length
