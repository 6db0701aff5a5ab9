"""Chords by their symbols: "Am", "C/E", "Bbmaj7"."""

from __future__ import annotations

import re
from typing import NamedTuple

STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ALTERATIONS = {"": 0, "#": 1, "##": 2, "x": 2, "b": -1, "bb": -2}
NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
# The notes of a chord, in semitones above its root; the second is the third or replaces it.
CHORDS = {
    "": (0, 4, 7),
    "m": (0, 3, 7),
    "dim": (0, 3, 6),
    "aug": (0, 4, 8),
    "sus2": (0, 2, 7),
    "sus4": (0, 5, 7),
    "7": (0, 4, 7, 10),
    "maj7": (0, 4, 7, 11),
    "m7": (0, 3, 7, 10),
    "m7b5": (0, 3, 6, 10),
    "dim7": (0, 3, 6, 9),
    "6": (0, 4, 7, 9),
    "m6": (0, 3, 7, 9),
    "9": (0, 4, 7, 10, 2),
}
KINDS = tuple(CHORDS)
# Other ways to write some of these symbols.
_ALIASES = {
    **{"maj": "", "min": "m", "-": "m", "°": "dim", "+": "aug", "sus": "sus4", "M7": "maj7"},
    **{"min7": "m7", "-7": "m7", "ø": "m7b5", "-7b5": "m7b5", "°7": "dim7"},
}

_PLAIN = str.maketrans(
    {**dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-"), "♯": "#", "♭": "b", "♮": ""}
    | {"𝄪": "##", "𝄫": "bb"}
)
_LETTER = "([A-G])(##|bb|[#bx]|)"
_KIND = "|".join(map(re.escape, (*CHORDS, *_ALIASES)))
_SYMBOL = re.compile(rf"{_LETTER}({_KIND})(?:/{_LETTER})?")


class Chord(NamedTuple):
    """A chord: the pitch classes of its root and its bass, C = 0, and its kind, one of CHORDS."""

    root: int
    kind: str
    bass: int

    @property
    def classes(self) -> tuple[int, ...]:
        """The pitch classes of its notes from the root up; a bass that is none of them is last."""
        own = [(self.root + interval) % 12 for interval in CHORDS[self.kind]]
        return (*own, *({self.bass} - {*own}))

    @property
    def name(self) -> str:
        """The symbol of the chord."""
        under = "" if self.bass == self.root else f"/{NAMES[self.bass]}"
        return f"{NAMES[self.root]}{self.kind}{under}"

    @property
    def third(self) -> int:
        """The pitch class of its third, or of the note that replaces it."""
        return self.classes[1]


class Span(NamedTuple):
    """A chord, and the time that it covers."""

    begin: int  # in grid steps
    end: int
    chord: Chord


def plain(text: str) -> str:
    """Return a text in signs that a keyboard has: hyphens, # and b."""
    return text.translate(_PLAIN)


def parse_chord(symbol: str) -> Chord | None:
    """Return the chord that a symbol stands for; None: there is none."""
    match = _SYMBOL.fullmatch(plain(symbol))
    if match is None:
        return None
    letter, accidental, kind, bass_letter, bass_accidental = match.groups()
    root = (STEPS[letter] + ALTERATIONS[accidental]) % 12
    if bass_letter:
        bass = (STEPS[bass_letter] + ALTERATIONS[bass_accidental]) % 12
    return Chord(root, _ALIASES.get(kind, kind), bass if bass_letter else root)
