"""The vocabulary: what each token id means, as arithmetic.

A piece is encoded as

    Start ( Bar [Length] [Tempo] ( Position ( Note Extend* Duration [Velocity] )+ )* )* End

Here ( ) is a group, [ ] may be left out, * means any number of times, and + means at least once. So
a piece has bars; a bar has positions, the times at which notes begin; and a position has notes.
With 12 steps to a quarter note, two quarter notes C4 and D4 in a bar of 4/4 at 80 quarter notes a
minute are

    Start  Bar 4/4  Tempo 80  Position 0   Note C4  Duration 12
                              Position 12  Note D4  Duration 12  End

An id is the first id of its kind plus a value. If `first(Kind.DURATION)` is 900, then Duration 1 is
id 900 and Duration 12 is id 911. The ids of the kinds follow each other in the order of `Kind`.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from common import interface
from common.arrays import Bools, Ints
from common.typed_json import from_json
from data.score import DRUMS, Grid
from data.tokens.vocabulary_values import check_values

NEVER = 2**40  # later than any step: an end not yet known; also more bars or notes than exist


class Kind(IntEnum):
    """The kinds of token, in the order of their ids."""

    PAD = interface.PAD  # fills places without a token
    START = 1
    END = 2
    BAR = 3  # a bar of some meter begins
    LENGTH = 4  # the bar is shorter than its meter says: it has this many steps
    TEMPO = 5  # the tempo from this bar on
    POSITION = 6  # where notes begin, in steps from the bar line
    NOTE = 7  # a note's program and pitch
    EXTEND = 8  # adds `longest_duration` to the Duration that follows
    DURATION = 9  # how long the note lasts, in steps
    VELOCITY = 10  # how loud the note is


class VocabularyError(ValueError):
    """Raised if a vocabulary lacks a token for something, or is invalid; the message says why."""


class Words(NamedTuple):
    """The tables of a vocabulary of V ids and M meters, for compiled loops (common/compiled.py)."""

    kind_of: Ints  # (V,) the kind of each id
    firsts: Ints  # (K + 1,) the first id of each Kind, then V
    whole_bars: Ints  # (M,) steps in a whole bar of each meter
    longest_duration: int  # in steps


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a model or corpus, and their ids.

    Attributes:
        meters: (numerator, denominator) of each Bar token, sorted.
        tempos: quarter notes a minute of each Tempo token, rising, from TEMPO_LEVELS. If the grid
            has no meter, there is one tempo, and there are no Tempo or Length tokens.
        programs: rising; 128 is drums (see `Grid` for named parts). Notes are numbered program by
            program, and by pitch within a program.
        lowest_pitch, highest_pitch: each program has tokens for the pitches from the lowest to the
            highest, both included.
        velocities: rising, from VELOCITY_LEVELS. If there is only one, there are no Velocity
            tokens.
        grid: its steps are the unit of positions, lengths and durations.
    """

    meters: tuple[tuple[int, int], ...]
    tempos: tuple[int, ...]
    programs: tuple[int, ...]
    lowest_pitch: int
    highest_pitch: int
    velocities: tuple[int, ...]
    grid: Grid

    def usual_meter(self, most: tuple[int, int] | None = None) -> tuple[int, int]:
        """Return the time signature to assume where nobody names one.

        It is `most`, the commonest one if that is known; else 4/4; else the first of the
        vocabulary.
        """
        usual = most if most in self.meters else self.grid.default_meter
        return usual if usual in self.meters else self.meters[0]

    def usual_tempo(self, most: int | None = None) -> int:
        """Return the quarter notes a minute to assume: `most`, the commonest, or the middle one."""
        return most if most in self.tempos else self.tempos[len(self.tempos) // 2]

    @cached_property
    def whole_bars(self) -> Ints:
        """(M,) steps in a whole bar of each meter."""
        return np.array([self.grid.bar_steps(*meter) for meter in self.meters])

    @cached_property
    def numbers(self) -> dict[str, Ints]:
        """Tables that give the number of each value: `numbers["pitch"][60]` is that of pitch 60.

        A value that the vocabulary lacks has -1. So has the last entry of each table, which stands
        for all larger values. A meter's value is its numerator << 8 | its denominator.
        """
        codes = [numerator << 8 | denominator for numerator, denominator in self.meters]
        pitches = range(self.lowest_pitch, self.highest_pitch + 1)
        known = codes, self.tempos, self.programs, pitches, self.velocities
        names, tables = ("meter", "tempo", "program", "pitch", "velocity"), {}
        for name, values in zip(names, known, strict=True):
            tables[name] = np.full(max(values) + 2, -1)
            tables[name][np.array(values)] = np.arange(len(values))
        return tables

    @cached_property
    def longest_bar(self) -> int:
        """Steps in a whole bar of the longest meter."""
        return int(self.whole_bars.max())

    @cached_property
    def longest_duration(self) -> int:
        """Steps of the longest Duration: a 4/4 bar or a second. Longer notes need Extend tokens."""
        return self.grid.bar_steps(*self.grid.default_meter)

    @cached_property
    def pitch_count(self) -> int:
        """The number of pitches for which each program has tokens."""
        return self.highest_pitch - self.lowest_pitch + 1

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of tokens of each kind."""
        return (
            *(1, 1, 1),
            len(self.meters),
            # Length 1 .. longest_bar - 1; a whole bar needs none
            self.longest_bar - 1 if self.grid.has_meter else 0,
            len(self.tempos) if self.grid.has_meter else 0,
            self.longest_bar,  # Position 0 .. longest_bar - 1
            len(self.programs) * self.pitch_count,
            1,
            self.longest_duration,  # Duration 1 .. longest_duration
            len(self.velocities) if len(self.velocities) > 1 else 0,
        )

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first id of each kind, then the number of all ids."""
        return (0, *np.cumsum(self.counts).tolist())

    @property
    def size(self) -> int:
        """The number of ids."""
        return self.firsts[-1]

    def first(self, kind: Kind) -> int:
        """Return the first id of a kind; the id of its value number n is first(kind) + n."""
        return self.firsts[kind]

    def ids(self, kind: Kind) -> slice:
        """Return the ids of a kind."""
        return slice(self.firsts[kind], self.firsts[kind + 1])

    @cached_property
    def kind_of(self) -> Ints:
        """(V,) the kind of each id."""
        return np.repeat(np.arange(len(Kind)), self.counts)

    @cached_property
    def is_drum_note(self) -> Bools:
        """(V,) whether an id is a note of the drums, which have no pitch to transpose."""
        is_drum = np.zeros(self.size, dtype=bool)
        is_drum[self.ids(Kind.NOTE)] = np.repeat(np.array(self.programs) == DRUMS, self.pitch_count)
        return is_drum

    @cached_property
    def words(self) -> Words:
        """The tables that compiled loops read."""
        return Words(self.kind_of, np.array(self.firsts), self.whole_bars, self.longest_duration)

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The names of the kinds in lower case, in the order of their numbers."""
        return tuple(kind.name.lower() for kind in Kind)

    @property
    def note_kind(self) -> int:
        """The number of the kind of which every note has exactly one token."""
        return int(Kind.NOTE)

    def to_json(self) -> str:
        """Return the vocabulary as JSON; `from_json` gives it back."""
        return json.dumps(dataclasses.asdict(self) | {"grid": self.grid.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Return the vocabulary that `to_json` wrote.

        Raises:
            VocabularyError: `to_json` did not write this text.
        """
        try:
            vocabulary = from_json(cls, text)
            check_values(vars(vocabulary))
        except (ValueError, OverflowError) as error:
            raise VocabularyError(f"not a vocabulary of music: {error}") from None
        return vocabulary
