"""The language of chord tracks, such as "Am | F C/E | Dm7 E7:2", and where their chords stand.

    Am | F | C | G7       a chord a bar; so is Am F C G7, without bar lines
    F C/E | Dm7 E7:2      of a bar's chords those without a length, in quarter notes, share what is
                          left, in whole beats where they can
    Am | N.C. | F         a bar without a chord
    G:1 | C | F           before a tune with an upbeat: a first bar that is as short as it

The first bar is the first in which something new may begin; an upbeat has no chord, if it is not
given one. Where the chords are over they come again, from their first bar on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from data.chords import Chord, parse_chord, plain
from data.score import Grid
from generation.note_text import SeedError, parse_length

# The last two chords of a piece, "" where it is any; in minor those of its harmonic scale.
CADENCES = {
    "authentic": ("V7", "I"),
    "half": ("", "V"),
    "deceptive": ("V7", "VI"),
    "plagal": ("IV", "I"),
}
MOST_CHORDS = 4096
_NONE = ("N.C.", "NC", "R")
_SHOWN = 24  # letters at most that a message repeats


@dataclass(frozen=True)
class Placed:
    """A chord where it begins: at the beginning of a bar, too, that it goes on into."""

    begin: int  # grid step
    end: int
    chord: Chord | None  # None: there is no chord
    bar: int  # of the text, from 0


@dataclass(frozen=True)
class ChordTrack:
    """Chords, bar by bar: each with its length in quarter notes, or None for a share of the rest.

    Raises:
        ValueError: no bars, or a bar without a chord.
    """

    bars: tuple[tuple[tuple[Chord | None, Fraction | None], ...], ...]

    def __post_init__(self) -> None:
        if not self.bars or not all(self.bars):
            raise ValueError('a bar of the chords is empty: write Am | F, or "N.C." for no chord')

    @classmethod
    def parse(cls, text: str) -> ChordTrack:
        """Return the track that a text describes (this module's docstring has the language).

        Raises:
            ValueError: it is none; the message is one line.
        """
        text = plain(text).strip()
        symbols = len(text.split())
        if symbols > MOST_CHORDS:
            raise ValueError(f"there are {symbols:,} chords: write {MOST_CHORDS:,} at most")
        inside = text.removeprefix("|").removesuffix("|")
        bars = re.split(r"[|\r\n]+", inside) if "|" in text else inside.split()
        return cls(tuple(tuple(map(_read, bar.split())) for bar in bars))

    def upbeat(self, steps: int, grid: Grid) -> int:
        """Return how many of the bars, 1 or 0, are for an upbeat: the first, if it is as short."""
        quarters = sum((length or 0 for _, length in self.bars[0]), Fraction(0))
        has_lengths = all(length for _, length in self.bars[0])
        return int(has_lengths and len(self.bars) > 1 and quarters * grid.steps_per_beat == steps)

    def fill(self, number: int, begin: int, steps: int, beat: int, grid: Grid) -> list[Placed]:
        """Return the chords of a bar where they stand.

        Args:
            number: of the bar of the text, from 0.
            begin, steps: of the bar of music.
            beat: its steps.
            grid: of the music.

        Raises:
            ValueError: they do not fill the bar.
        """
        chords = self.bars[number]
        quarter = Fraction(grid.steps_per_beat)
        fixed = sum((length for _, length in chords if length), Fraction(0)) * quarter
        shares = sum(length is None for _, length in chords)
        left, where = steps - fixed, f"bar {number + 1} of the chords"
        if left < shares or (not shares and left):
            raise ValueError(
                f"{where} is {float(fixed / quarter):g} quarter notes long"
                f"{' and more' * bool(shares)}, and the bar has {float(steps / quarter):g}"
            )
        unit = beat if left >= shares * beat and left % beat == 0 else 1
        placed, at, shared = [], Fraction(begin), 0
        for chord, length in chords:
            if length is None:
                units, more = divmod(int(left // unit), shares)
                length = Fraction(unit * (units + (shared < more))) / quarter
                shared += 1
            end = at + length * quarter
            if end.denominator > 1:
                raise ValueError(f"in {where} a chord ends between two grid steps")
            placed.append(Placed(int(at), int(end), chord, number))
            at = end
        return placed


def _read(word: str) -> tuple[Chord | None, Fraction | None]:
    """Read a chord and its length."""
    shown = repr(word if len(word) <= _SHOWN else word[: _SHOWN - 3] + "...")
    name, colon, written = word.partition(":")
    chord = parse_chord(name)
    if chord is None and name not in _NONE:
        raise ValueError(f"there is no chord {shown}: write chords as Am, F#m7, Bb or C/E")
    try:
        length = parse_length(written, shown) if colon else None
    except SeedError as error:
        raise ValueError(str(error)) from None
    if length is not None and not length:
        raise ValueError(f"{shown} has no length")
    return chord, length


def place_chords(track: ChordTrack, bars: NDArray[np.void], grid: Grid) -> list[Placed]:
    """Return where the chords of a track stand in bars, again and again until the last.

    Args:
        track: the chords.
        bars: (M,) of BAR; the first may be an upbeat.
        grid: of the music.

    Raises:
        ValueError: the chords do not fill a bar.
    """
    placed: list[Placed] = []
    begin = number = again = 0
    for index, (*meter, steps) in enumerate(bars.tolist()):
        is_upbeat = index == 0 and steps < grid.bar_steps(*meter)
        if is_upbeat:
            again = track.upbeat(steps, grid)
        if again or not is_upbeat:
            placed += track.fill(number, begin, steps, grid.beat_steps(*meter), grid)
            number = number + 1 if number + 1 < len(track.bars) else again
        begin += steps
    return placed
