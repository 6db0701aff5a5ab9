"""What a person may ask of new music, and which notes of a vocabulary that leaves.

A constraint that a model can never meet is refused here, before anything is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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

STRICT, FREE = "strict", "free"  # values of `counterpoint`; FREE is a value of `rests`, too
NO_RESTS, TOGETHER = "none", "together"  # the other values of `rests`
MOST_NOTES = 1000  # a bar


class ConstraintError(ValueError):
    """A request that cannot be met; the message is one line and says what to change."""


@dataclass(frozen=True)
class Constraints:
    """What is asked of new music; None asks for nothing. A seed and given notes stay as they are.

    Attributes:
        key: the key of all notes but drums, such as "D minor" (see `key_pitch_classes`).
        pitch_range: the lowest and the highest pitch of all notes but drums: names such as "C3", or
            MIDI numbers.
        programs: the only programs that may play, by name, or by number as in the vocabulary:
            General MIDI programs, 128 for drums, or the numbers of named parts, from 0.
        max_polyphony: how many notes may sound at once, those of the seed and the given notes
            included.
        tempo_bpm: quarter notes a minute, throughout; the nearest that the vocabulary has.
        busy: about how many new notes begin in a bar, all instruments together. Likely notes still
            win: where the model's music is far from this number, it only comes closer.
        counterpoint: STRICT: no parallel fifths, unisons or octaves between instruments, each of
            which plays one note at a time; FREE: no such rule; None: as in the training pieces.
        regular_bars: all new bars are whole and of one length, except for an upbeat, the last bar,
            and the rest of a given bar; None: as in the training pieces.
        rests: NO_RESTS: an instrument that may play never rests; TOGETHER: it rests only where all
            do; FREE: no such rule; None: as in the training pieces.
        closes: the piece ends on a chord that fills its last bar: a triad in root position, or the
            last requested chord. It always does in strict counterpoint. None: as in the training
            pieces, and wherever notes are given or chords are asked for.
        monophonic: programs that play one note at a time; in strict counterpoint, all do.
        ranges: in strict counterpoint, the lowest and the highest pitch of each program; a program
            that is not in it has no range.
        pitches: the pitches that each program may play. A program is not bound by it if it is not
            in it, or if none of its pitches fits the rest of the request.
        time_signature: numerator and denominator of every new bar, each of which is whole.
        cadence: how the piece ends, one of CADENCES (generation/chord_track.py), in the key that is
            asked for or given; new bars are as with `chords`.
        cadence_bar: the bar with the last chord of the cadence, instead of the last bar; the first
            bar is 1, and an upbeat does not count.
        chords: the chords that the music follows, such as "Am | F C/E | G" (see
            generation/chord_track.py). New bars are then whole, and have one time signature.
        usual_meter: the meter of new bars that must have one, if none is asked for or given; None:
            as in the training pieces.
        first_bars: the meters in which a new piece may begin, if none is asked for, each with steps
            of a first bar; where all bars are regular and these are whole, there is no upbeat.
            None: as in the training pieces; (): any.

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
    busy: float | None = None  # about how many new notes begin in a bar, all voices together
    time_signature: tuple[int, int] | None = None  # the meter of new bars, such as 3/4
    chords: str | None = None  # the chords to follow, bar by bar: "Am | F C/E | Dm7 E7:2"; after
    # the last they repeat (default length: once through)
    cadence: str | None = None  # how the piece ends, in the key that is asked for or given:
    # with V7 I, with V, with V7 VI, with IV I
    cadence_bar: int | None = None  # the bar with the cadence's last chord (default: the last bar)
    counterpoint: str | None = None  # strict: no parallel fifths or octaves between instruments
    # (default: strict if the training set has four parts and hardly any parallels)
    rests: str | None = None  # none: an instrument that may play never rests; together:
    # it rests only where all do (default: as in the training set)
    regular_bars: bool | None = None
    closes: bool | None = None
    usual_meter: tuple[int, int] | None = None
    first_bars: tuple[tuple[int, int, int], ...] | None = None
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
        """The requested key.

        Raises:
            ConstraintError: there is no such key.
        """
        return _parsed(parse_key, self.key)

    @cached_property
    def chord_track(self) -> ChordTrack | None:
        """The requested chords.

        Raises:
            ConstraintError: their text cannot be read.
        """
        return _parsed(parse_chord_track, self.chords)

    @property
    def _range(self) -> str:
        """The pitch range as it was given, for messages."""
        return "{} to {}".format(*self.pitch_range) if self.pitch_range else ""

    def in_style(self, style: Style) -> Constraints:
        """Return the constraints, with what they leave open set as in the training pieces."""
        return replace(
            self,
            counterpoint=self.counterpoint or (STRICT if style.is_strict else FREE),
            rests=self.rests or (TOGETHER if style.hardly_rests else FREE),
            regular_bars=style.has_regular_bars if self.regular_bars is None else self.regular_bars,
            closes=style.mostly_closes or None if self.closes is None else self.closes,
            usual_meter=self.usual_meter or style.meter,
            first_bars=style.first_bars if self.first_bars is None else self.first_bars,
            monophonic=style.monophonic if self.monophonic is None else self.monophonic,
            ranges=self.ranges or style.ranges,
            pitches=self.pitches or style.pitches,
        )

    def candidates(self, vocabulary: Vocabulary) -> Bools:
        """Return bool (N,), which notes of the vocabulary the model may play.

        Raises:
            ConstraintError: it may play none, or has no pitches, and some are asked for.
        """
        playing = self.playing(vocabulary)
        if vocabulary.programs == (DRUMS,) and (
            self.parsed_key or self.pitch_range or self.chord_track or self.cadence
        ):
            raise ConstraintError(
                "the model plays drums alone: it has no key, chords or pitch range to ask for"
            )
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
        return within(self.pitches or {}, may_play.ravel(), vocabulary)

    def playing(self, vocabulary: Vocabulary) -> list[int]:
        """Return which of the vocabulary's programs may play, in ascending order.

        Raises:
            ConstraintError: the vocabulary lacks a program that is asked for.
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
        """Return the vocabulary; if it has a single tempo, replace that with the requested one.

        If no tempo is asked for, the first tempo of the given music takes its place. A model of a
        single tempo writes the same music at any tempo.

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
        """Return the number of the tempo nearest to the requested one; None: any tempo.

        Raises:
            ConstraintError: the tempo lies outside the vocabulary's, or the vocabulary has none.
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
        """Return the number of the requested meter; None: any meter.

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


def within(
    registers: Mapping[int, Sequence[int]], may_play: Bools, vocabulary: Vocabulary
) -> Bools:
    """Return bool (N,), which notes may be played if programs keep to these pitches.

    A program that is not in `registers`, or that may play none of its pitches, keeps all the notes
    that it may play.
    """
    pitches = np.arange(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
    own = [np.isin(pitches, registers.get(p, pitches)) for p in vocabulary.programs]
    before = may_play.reshape(len(own), -1)
    after = before & own
    return np.where(after.any(axis=1, keepdims=True), after, before).ravel()


def _parsed(parse: Callable[[str], T], text: str | None) -> T | None:
    """Parse a text, or return None if there is none; a failure becomes a ConstraintError."""
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
