"""The language of seed notes, such as "C4:1 E4:.5 [C4 E4 G4]:2".

    C4 F#3 Bb5 E♭4 c4     a note; C4 is middle C, octaves run from -1 to 9
    60 64 67              notes by their MIDI numbers
    [C4 E4 G4]            notes that sound together; everything inside brackets is a note
    Am F C G7 Bbmaj7      a chord symbol: a bass note and three notes near middle C
    C/E Am7/G             a chord over another bass note
    R                     a rest
    C4:2 C4:.5 C4:1/3     a length in quarter notes, which holds until the next length; first 1
    C4:1. C4:.5. C4:1..   a dot at the end makes a length dotted, two dots double-dotted
    C5 D5 / C3:2          a slash by itself, or a new line, begins another voice at the beginning
    C4,E4,G4 C4-E4-G4     commas and hyphens separate notes as spaces do
    G4 | C5 B4 A4 G4      a first bar line that comes early marks an upbeat, if the next one comes
                          after a whole bar; all other bar lines have no effect

Chords begin with a capital letter. A capital letter with the digit 7 is a dominant seventh: C7 is
the chord, c7 and [C7] are the note. A hyphen before a digit separates only numbers, as in 60-64.
After a name it belongs to the name: C-1 is a note, and C-7 is C minor 7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from data.canonical import canonical
from data.chords import ALTERATIONS, CHORDS, STEPS, Chord, parse_chord, plain
from data.score import BAR, NOTE, Grid, Score

MAX_QUARTERS = 4096  # a longer voice is refused as a mistake
_SHOWN = 8  # the most characters of a word that a message repeats

# Kinds of chords whose symbols read as notes here: C6 is the note.
_NOTE_LIKE = ("6", "9")
_LOWEST_BASS = 41  # F2
_LOWEST_UPPER = 57  # A3: with this limit, successive chords lie close to each other

_NAME = re.compile(r"([A-Ga-g])(##|bb|[#bx]|)(-1|[0-9])|([0-9]{1,4})")
_LENGTH = re.compile(
    r"([0-9]{1,4}/(?!0+\b)[0-9]{1,4}|[0-9]{1,4}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})(\.{0,2})"
)
# A number up to a hyphen, or a word; hyphens in a word stand before a digit or at its end.
_WORD = r"[0-9]+(?=-)|(?:[^\s,|:-]|-(?=[0-9])|(?<=\S)-(?=[\s,|:]|$))+"
_WORDS = re.compile(rf"({_WORD})-?")
# A sound and its length. Malformed text matches too, so that the error can name it.
_TOKEN = re.compile(rf"(\[[^\[\]]*\][^\s,|:\[-]*|{_WORD})(?::(-?[^\s,|-]*))?-?|:\S*")
_FORMS = (
    "write notes as C4, F#3, Bb5 or 60, chords as [C4 E4 G4], Am or C/E "
    f"({' '.join(kind for kind in CHORDS if kind not in ('', *_NOTE_LIKE))}), rests as R, "
    "lengths as C4:2, C4:.5 or C4:1/3, voices as C5 / C3"
)


# A note, a chord or a rest: voice, onset and duration in grid steps, and pitches.
_Sound: TypeAlias = tuple[int, int, int, list[int]]


class SeedError(ValueError):
    """Seed notes that cannot be used; the message is one line."""


def parse_seed_notes(
    text: str,
    grid: Grid,
    programs: Sequence[int] = (0,),
    tempo_bpm: float = 120.0,
    meter: tuple[int, int] = (4, 4),
    velocity: int = 80,
) -> Score:
    """Return the Score that a text describes (see this module's docstring for the language).

    Onsets and ends are rounded to the nearest grid step. Rests at the end have no effect.

    Args:
        text: the notes.
        grid: the grid of the Score.
        programs: at least one. The voices of the text take them in order, and voices beyond the
            last program share it. If the text has a single voice, its chords are distributed over
            the programs instead, from the top note down: [C4 E4 G4] with two programs gives G4 to
            the first, and the other notes to the second.
        tempo_bpm: quarter notes a minute, rounded to the nearest that a Score can hold; exact on
            a grid of seconds.
        meter: numerator and denominator of every bar, all whole except an upbeat; no effect on a
            grid of seconds.
        velocity: the velocity of every note, 1-127.

    Raises:
        SeedError: the text cannot be read, or has no notes.
    """
    quarter = 1 if grid.has_meter else Fraction(60 / tempo_bpm)  # beats of the grid
    sounds = _read(text, Fraction(grid.steps_per_beat * quarter))
    has_voices = any(voice for voice, *_ in sounds)
    rows = []
    for voice, onset, duration, pitches in sounds:
        for rank, pitch in enumerate(pitches):
            part = min(voice if has_voices else rank, len(programs) - 1)
            rows.append((onset, duration, pitch, velocity, programs[part]))
    if not rows:
        raise SeedError("there are no notes: write some, as in C4:1 E4:.5 [C4 E4 G4]:2")
    whole = grid.bar_steps(*meter)
    lengths = _first_bars(text, sounds, whole) if grid.has_meter else []
    bars = [(*meter, length) for length in lengths]
    tempi = [tempo_bpm] * len(bars)
    return canonical(np.array(rows, dtype=NOTE), np.array(bars, dtype=BAR), tempi, grid)[0]


def _first_bars(text: str, sounds: Sequence[_Sound], whole: int) -> list[int]:
    """Return the steps of the first bar, and of the second one too if the first is an upbeat.

    Args:
        text, sounds: the text, and the sounds read from it.
        whole: steps of a whole bar.
    """
    first = _voices(text)[0]
    onsets = [onset for voice, onset, *_ in sounds if voice == 0]
    lines = [
        onset
        for before, token, onset in zip(first, first[1:], onsets[1:], strict=False)
        if "|" in token.string[before.end() : token.start()]
    ]
    upbeat, *others = lines or [whole]
    is_early = upbeat < whole and (not others or others[0] - upbeat == whole)
    return [upbeat, whole] if is_early else [whole]


def ambiguous_chords(text: str) -> list[str]:
    """Return a clause if the text is all bare letters, such as C E G, which may be meant as notes.

    With a chord such as Am among them, as in Am F C, bare letters are clearly chords.
    """
    names = [token[1] or "" for tokens in _voices(text) for token in tokens]
    chords = [name for name in names if _symbol(name)]
    if not chords or any(len(name.rstrip("#bx")) > 1 for name in chords):
        return []
    more = " ..." if len(chords) > _SHOWN else ""
    letters = " ".join(chords[:_SHOWN]) + more
    notes = " ".join(f"{name}4" for name in chords[:_SHOWN]) + more
    count = "a chord" if len(chords) == 1 else f"{len(chords)} chords"
    return [f"{letters} was read as {count} (for notes give octaves: {notes})"]


def _step(quarters: Fraction, steps_per_quarter: Fraction) -> int:
    """Return the nearest grid step, halves rounded up."""
    return int((2 * quarters * steps_per_quarter + 1) // 2)


def _voices(text: str) -> list[list[re.Match[str]]]:
    """Return the matches of `_TOKEN` in each voice; an empty line is not a voice."""
    parts = re.split(r"[\r\n]+|(?<!\S)/(?!\S)", plain(text))
    voices = [list(_TOKEN.finditer(part)) for part in parts]
    return [tokens for tokens in voices if tokens]


def _read(text: str, steps_per_quarter: Fraction) -> list[_Sound]:
    """Return every note, chord and rest of a text."""
    sounds: list[_Sound] = []
    count = 0
    for voice, tokens in enumerate(_voices(text)):
        onset, length = Fraction(0), Fraction(1)
        for token in tokens:
            count += 1
            where = f"{quoted(token[0])} (symbol {count})"
            pitches = _pitches(token[1] or token[0], where)
            if token[2] is not None:
                length = parse_length(token[2], where)
            if not _step(length, steps_per_quarter):
                raise SeedError(
                    f"{where} is too short: the grid has {float(steps_per_quarter):g} "
                    "steps a quarter note"
                )
            if onset + length > MAX_QUARTERS:
                raise SeedError(f"longer than {MAX_QUARTERS} quarter notes at {where}")
            start, end = _step(onset, steps_per_quarter), _step(onset + length, steps_per_quarter)
            sounds.append((voice, start, end - start, pitches))
            onset += length
    return sounds


def _pitches(name: str, where: str) -> list[int]:
    """Return the pitches of a note, a chord or a rest, from the top down."""
    if name in ("R", "r"):
        return []
    if ("[" in name) != ("]" in name):
        raise SeedError(f"a bracket without its other half in {where}: write [C4 E4 G4]:2")
    if "[" in name and ":" in name:
        raise SeedError(f"a length inside the bracket in {where}: write [C4 E4 G4]:2")
    if name[0] + name[-1] == "[]" and (inside := _WORDS.findall(name[1:-1])):
        return sorted((parse_pitch(n, f"{quoted(n)} in {where}") for n in inside), reverse=True)
    if chord := _symbol(name):
        return _voiced(chord)
    return [parse_pitch(name, where)]


def _symbol(name: str) -> Chord | None:
    """Return the chord that a name stands for; None if it is a note or a rest."""
    chord = parse_chord(name)
    return None if chord is None or chord.kind in _NOTE_LIKE else chord


def _voiced(chord: Chord) -> list[int]:
    """Return the pitches of a chord, from the top down: three notes and a bass.

    Of a chord of four notes, the upper three leave out the bass note, or else the fifth.
    """
    root, bass, intervals = chord.root, chord.bass, list(CHORDS[chord.kind])
    if len(intervals) > 3:
        over_root = (bass - root) % 12
        intervals.remove(over_root if over_root in intervals else intervals[2])
    upper = (_LOWEST_UPPER + (root + interval - _LOWEST_UPPER) % 12 for interval in intervals)
    return [*sorted(upper, reverse=True), _LOWEST_BASS + (bass - _LOWEST_BASS) % 12]


def parse_pitch(name: str, where: str) -> int:
    """Return the MIDI number of a note's name, or of a number as text.

    Raises:
        SeedError: `name` is not a note; `where` names the word for the message.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise SeedError(f"cannot read {where}: {_FORMS}")
    letter, accidental, octave, number = match.groups()
    if number:
        pitch = int(number)
    else:
        pitch = 12 * (int(octave) + 1) + STEPS[letter.upper()] + ALTERATIONS[accidental]
    if not 0 <= pitch <= 127:
        raise SeedError(f"{where} is out of range: notes go from C-1 to G9, which are 0 to 127")
    return pitch


def parse_length(written: str, where: str) -> Fraction:
    """Return a length in quarter notes, dots included.

    Raises:
        SeedError: `written` is not a length; `where` names the word for the message.
    """
    match = _LENGTH.fullmatch(written)
    if not match:
        raise SeedError(
            f"cannot read the length of {where}: write quarter notes as :2, :.5 or :1/3, "
            "with a dot at the end if dotted"
        )
    quarters, dots = match.groups()
    return Fraction(quarters) * (2 - Fraction(1, 2 ** len(dots)))


def quoted(token: str) -> str:
    """Return a word, quoted and shortened, for a message."""
    return repr(token if len(token) <= 24 else token[:21] + "...")
