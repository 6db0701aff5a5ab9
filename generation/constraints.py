"""What is asked of new music, and what that leaves of a vocabulary.

A constraint that a model can never meet is refused here, before anything is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pretty_midi

from common.arrays import Bools
from data.chords import plain
from data.instrument_names import instrument_name
from data.keys import Key, key_pitch_classes, parse_key
from data.score import DRUMS, TEMPO_LEVELS, Score, nearest_level
from data.tokens.vocabulary import Vocabulary
from generation.chord_track import CADENCES, ChordTrack, parse_chord_track
from generation.note_text import SeedError, parse_pitch

if TYPE_CHECKING:
    from data.style import Style

T = TypeVar("T")

STRICT, FREE = "strict", "free"  # counterpoint; rests are free, too
NO_RESTS, TOGETHER = "none", "together"  # rests, too
MOST_NOTES = 1000  # a bar


class ConstraintError(ValueError):
    """Music that cannot be as it is asked for; the message is one line and says what to change."""


@dataclass(frozen=True)
class Constraints:
    """What is asked of new music; None asks for nothing. A seed and given notes stay as they are.

    Attributes:
        key: all notes but drums belong to this key, such as "D minor" (see `key_pitch_classes`).
        pitch_range: all notes but drums lie between these two, both included: names such as "C3",
            or MIDI numbers.
        programs: only these play, by name, or by number as the vocabulary has them: General MIDI's
            programs, 128 for drums; where parts have names, their numbers from 0.
        max_polyphony: so many notes at most sound at once, those of the seed and the given notes
            counted.
        tempo_bpm: quarter notes a minute, throughout; the nearest that the vocabulary has.
        busy: about so many new notes begin in a bar, all instruments together. The likeliest still
            comes: where the music is far from it, it gets nearer, and no more.
        counterpoint: STRICT: no parallel fifths, unisons or octaves between instruments, each of
            which plays a note at a time; FREE: as the model likes; None: as its music is.
        regular_bars: all new bars are of one length and whole, but for an upbeat, the last one, and
            the rest of a given bar; None: as its music is.
        rests: NO_RESTS: an instrument that may play sounds to the end; TOGETHER: it rests only
            where all do; FREE or None, likewise.
        closes: the piece ends on a chord that fills its last bar, as always in strict
            counterpoint: a triad in root position, or the last that is asked for; None: as its
            music is, and where notes are given or chords are asked for.
        monophonic: programs that play a note at a time; all do in strict counterpoint.
        ranges: in strict counterpoint, the lowest and highest pitch of each program; a program
            that is not in it has none.
        pitches: the pitches of each program, but for one that is not in it, or has none of those
            that are asked for.
        time_signature: numerator and denominator of every new bar, each a whole one.
        cadence: how the piece ends, one of CADENCES (generation/chord_track.py), in its key, which
            is asked for or given; new bars are as with chords.
        cadence_bar: the bar that has its last chord instead of the last one; the first is 1, an
            upbeat not counted.
        chords: chords that hold, such as "Am | F C/E | G" (see generation/chord_track.py). New bars
            are then of one time signature, and whole.
        usual_meter: that one, where none is asked for or given; None: as its music is.

    Raises:
        ConstraintError: a value that no vocabulary can meet.
    """

    key: str | None = None  # such as "D minor", Bb or "F# major"; minor includes its raised
    # sixth and seventh
    pitch_range: tuple[str | int, str | int] | None = None  # the lowest and the highest, as C3 C6
    programs: tuple[int | str, ...] | None = None  # the only instruments that may play: by name,
    # or as General MIDI programs from 0 (128: drums); with --best-of, pieces in which all
    # play come first
    max_polyphony: int | None = None  # how many notes may sound at once
    tempo_bpm: float | None = None  # quarter notes a minute
    busy: float | None = None  # about so many new notes in a bar, of all voices together
    time_signature: tuple[int, int] | None = None  # of new bars, such as 3/4
    chords: str | None = None  # that hold, bar by bar: "Am | F C/E | Dm7 E7:2"; then they come
    # again (default length: until they are over)
    cadence: str | None = None  # how the piece ends, in the key that is asked for or given:
    # with V7 I, with V, with V7 VI, with IV I
    cadence_bar: int | None = None  # which bar has its last chord instead of the last one
    counterpoint: str | None = None  # strict: no parallel fifths or octaves between instruments
    # (default: where the training set has four parts and hardly any)
    rests: str | None = None  # none: an instrument that may play sounds to the end; together:
    # it rests only where all do (default: where those of the training set hardly rest)
    regular_bars: bool | None = None
    closes: bool | None = None
    usual_meter: tuple[int, int] | None = None
    monophonic: tuple[int, ...] | None = None
    ranges: dict[int, tuple[int, int]] | None = field(default=None, hash=False)
    pitches: dict[int, tuple[int, ...]] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        _ = self.parsed_key, self.chord_track
        if self.pitch_range is not None:
            low, high = map(_pitch, self.pitch_range)
            if low > high:
                raise ConstraintError(
                    f"the pitch range {self._range} is reversed: give the lower note first"
                )
        if self.max_polyphony is not None and self.max_polyphony < 1:
            raise ConstraintError(f"the polyphony must be 1 note or more, not {self.max_polyphony}")
        if self.busy is not None and not 0 < self.busy <= MOST_NOTES:
            raise ConstraintError(
                f"busy must be above 0 and at most {MOST_NOTES} notes a bar, not {self.busy:g}"
            )
        if self.counterpoint not in (None, STRICT, FREE):
            raise ConstraintError(f"counterpoint must be strict or free, not {self.counterpoint!r}")
        if self.cadence not in (None, *CADENCES):
            raise ConstraintError(
                f"there is no cadence {self.cadence!r}: ask for {_listed(CADENCES)}"
            )
        if self.cadence is not None and self.chords is not None:
            raise ConstraintError("chords say how a piece ends: ask for no cadence")
        if self.cadence_bar is not None and (self.cadence is None or self.cadence_bar < 1):
            raise ConstraintError(f"say which cadence bar {self.cadence_bar} has; the first is 1")
        if self.rests not in (None, NO_RESTS, TOGETHER, FREE):
            raise ConstraintError(f"rests must be none, together or free, not {self.rests!r}")
        if self.programs is not None and not self.programs:
            raise ConstraintError("no programs are left to play: name at least one")

    @cached_property
    def parsed_key(self) -> Key | None:
        """The key that is asked for.

        Raises:
            ConstraintError: there is no such key.
        """
        return _parsed(parse_key, self.key)

    @cached_property
    def chord_track(self) -> ChordTrack | None:
        """The chords that are asked for.

        Raises:
            ConstraintError: they cannot be read.
        """
        return _parsed(parse_chord_track, self.chords)

    @property
    def _range(self) -> str:
        """The pitch range as it was given, for messages."""
        return "{} to {}".format(*self.pitch_range) if self.pitch_range else ""

    def in_style(self, style: Style) -> Constraints:
        """Return them with what they leave open as it is in training pieces."""
        return replace(
            self,
            counterpoint=self.counterpoint or (STRICT if style.is_strict else FREE),
            rests=self.rests or (TOGETHER if style.hardly_rests else FREE),
            regular_bars=style.has_regular_bars if self.regular_bars is None else self.regular_bars,
            closes=style.mostly_closes or None if self.closes is None else self.closes,
            usual_meter=self.usual_meter or style.meter,
            monophonic=style.monophonic if self.monophonic is None else self.monophonic,
            ranges=self.ranges or style.ranges,
            pitches=self.pitches or style.pitches,
        )

    def candidates(self, vocabulary: Vocabulary) -> Bools:
        """Return whether the model may play each note of the vocabulary, (N,).

        Raises:
            ConstraintError: it may play no note.
        """
        playing = self.playing(vocabulary)
        pitches = np.arange(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
        fits = np.ones(len(pitches), dtype=bool)
        if self.parsed_key is not None:
            fits &= key_pitch_classes(self.parsed_key)[pitches % 12]
        if self.pitch_range is not None:
            low, high = map(_pitch, self.pitch_range)
            fits &= (pitches >= low) & (pitches <= high)
        if playing != [DRUMS] and not fits.any():
            asked_for = " in ".join(filter(None, (self._range, self.key)))
            lowest, highest = map(pretty_midi.note_number_to_name, pitches[[0, -1]].tolist())
            raise ConstraintError(
                f"the model has no note for {asked_for}: "
                f"its notes go from {lowest} to {highest}; ask for a wider range or another key"
            )
        programs = np.array(vocabulary.programs)[:, None]
        may_play = np.isin(programs, playing) & (fits | (programs == DRUMS))  # (P, K)
        for number, program in enumerate(vocabulary.programs):
            known = may_play[number] & np.isin(pitches, (self.pitches or {}).get(program, pitches))
            may_play[number] = known if known.any() else may_play[number]
        return np.asarray(may_play).ravel()

    def playing(self, vocabulary: Vocabulary) -> list[int]:
        """Return which of the vocabulary's programs may play, rising.

        Raises:
            ConstraintError: it lacks one that is asked for.
        """
        if self.programs is None:
            return list(vocabulary.programs)
        grid = vocabulary.grid
        named: dict[int | str, list[int]] = {number: [number] for number in vocabulary.programs}
        for number in vocabulary.programs:
            named.setdefault(instrument_name(number, grid).casefold(), []).append(number)
        asked = [p.casefold() if isinstance(p, str) else p for p in self.programs]
        if unknown := [each for each in asked if each not in named]:
            known = [f"{n} ({instrument_name(n, grid)})" for n in vocabulary.programs]
            raise ConstraintError(
                f"the model has no program {_listed(unknown)}: it knows {_listed(known)}"
            )
        return sorted({number for each in asked for number in named[each]})

    def retimed(self, vocabulary: Vocabulary, given: Score | None = None) -> Vocabulary:
        """Return the vocabulary; if it has only one tempo, with the one that is asked for.

        Where none is asked for it is the first of what is given, if anything is. A model of one
        tempo writes the same music at any.

        Raises:
            ConstraintError: a tempo that no vocabulary can have.
        """
        tempo_bpm = self.tempo_bpm
        if tempo_bpm is None and given is not None and len(given.tempo_bpm):
            tempo_bpm = int(given.tempo_bpm[0])
        if tempo_bpm is None or not vocabulary.grid.has_meter or len(vocabulary.tempos) > 1:
            return vocabulary
        if not TEMPO_LEVELS[0] <= tempo_bpm <= TEMPO_LEVELS[-1]:
            raise ConstraintError(
                f"there is no tempo of {tempo_bpm:g}: ask for {TEMPO_LEVELS[0]} to "
                f"{TEMPO_LEVELS[-1]} quarter notes a minute"
            )
        return replace(vocabulary, tempos=(int(nearest_level(TEMPO_LEVELS, tempo_bpm)),))

    def tempo_number(self, vocabulary: Vocabulary) -> int | None:
        """Return the number of the nearest tempo to the one asked for; None: any tempo.

        Raises:
            ConstraintError: it lies outside the vocabulary's tempi, or there are none.
        """
        if self.tempo_bpm is None:
            return None
        if not vocabulary.grid.has_meter:
            raise ConstraintError("the model counts seconds, not beats: it has no tempo to ask for")
        tempos, nearest = np.array(vocabulary.tempos), nearest_level(TEMPO_LEVELS, self.tempo_bpm)
        if not (math.isfinite(self.tempo_bpm) and tempos[0] <= nearest <= tempos[-1]):
            known = f"{tempos[0]} to {tempos[-1]}" if len(tempos) > 1 else f"{tempos[0]} only"
            raise ConstraintError(
                f"the model has no tempo of {self.tempo_bpm:g}: it knows {known} "
                "quarter notes a minute"
            )
        return int(np.abs(tempos - self.tempo_bpm).argmin())

    def meter_number(self, vocabulary: Vocabulary) -> int | None:
        """Return the number of the meter asked for; None: any meter.

        Raises:
            ConstraintError: the vocabulary does not have it.
        """
        if self.time_signature is None:
            return None
        if not vocabulary.grid.has_meter:
            raise ConstraintError("the model counts seconds, not bars: it has no time signatures")
        if self.time_signature not in vocabulary.meters:
            raise ConstraintError(
                "the model has no time signature {}/{}: ".format(*self.time_signature)
                + f"it knows {_listed(f'{n}/{d}' for n, d in vocabulary.meters)}"
            )
        return vocabulary.meters.index(self.time_signature)


def _parsed(parse: Callable[[str], T], text: str | None) -> T | None:
    """Return what a text means; None: there is none."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise ConstraintError(str(error)) from None


def _pitch(name: str | int) -> int:
    """Return the MIDI number of a note's name, or of a number as text."""
    text = str(name).strip()
    try:
        return parse_pitch(plain(text), "")
    except SeedError:
        raise ConstraintError(
            f"there is no note {text[:20]!r}: write a range as C3 C6, from C-1 to G9"
        ) from None


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


UNCONSTRAINED = Constraints()
