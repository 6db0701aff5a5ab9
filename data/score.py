"""Score: a piece of music as notes and bars on a grid of time.

A grid step is a twelfth of a quarter note, if nothing else is said. So the tune C D, a quarter
each, in a bar of 4/4, is two notes, onsets 0 and 12, durations 12 and 12, in a bar of 48 steps.

Tokens, statistics and pictures all start from a Score. A piece has one Score, its canonical form,
so two pieces are the same music exactly when their Scores are equal.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Bools, Ints, Reals, Records, offsets

Whole = TypeVar("Whole", int, Ints)

DRUMS = 128  # the program number of percussion; 0-127 are General MIDI's
FAMILY_PROGRAMS = 8  # General MIDI has 16 families, of eight programs each
UNNAMED = 129  # with named parts: General MIDI's program 0, where no part plays it
MOST_PROGRAM = UNNAMED + 127
LONGEST_NAME = 48  # of a part
MOST_PARTS = 16  # with names

NOTE = np.dtype(
    [
        ("onset", "<i4"),  # grid steps
        ("duration", "<i4"),  # grid steps
        ("pitch", "<i2"),  # 0-127
        ("velocity", "<i2"),  # in a Score one of VELOCITY_LEVELS
        ("program", "<i2"),  # 0-128 (128: drums); with named parts see `Grid.parts`
    ]
)
BAR = np.dtype([("numerator", "<i4"), ("denominator", "<i4"), ("length", "<i4")])  # grid steps

# The meters that a MIDI file can say: a byte, over a power of two.
MOST_NUMERATOR, DENOMINATORS = 255, tuple(2**power for power in range(8))

MAX_BAR_BEATS = 16  # quarter notes: a longer bar is split
MOST_STEPS = {"beats": 96, "seconds": 1000}  # a quarter note, or a second

# The tempi a Score can hold (beats a minute): within 2% of any, and the usual ones exactly.
TEMPO_LEVELS = np.array([*range(16, 120, 2), *range(120, 301, 5)], dtype=np.int32)
# The velocities a Score can hold: 32 levels, four apart.
VELOCITY_LEVELS = np.array([*range(4, 128, 4), 127], dtype=np.int32)


@dataclass(frozen=True)
class Part:
    """Who plays: a name, such as MELODY, and one of General MIDI's programs."""

    name: str
    program: int


@dataclass(frozen=True)
class Grid:
    """What a note's numbers count: the steps of time, and who plays.

    `beats` follows the beat: bars follow the time signatures, and 12 steps a quarter note hold
    sixteenths and triplets of eighths exactly. `seconds` follows the clock, for performances that
    keep no reliable beat. There a second takes the place of the quarter note: every bar is one of
    1/4 at 60 quarter notes a minute. With that one constant in place of meter and tempo, all code
    that counts bars and beats counts seconds, and pieces and tokens stay one to one.

    Where `parts` are named, a note's `program` counts them from 0. Then General MIDI's program p of
    no part has the number UNNAMED + p. Drums are DRUMS, and no part.

    Raises:
        ValueError: no such grid.
    """

    steps_per_beat: int = 12  # steps a quarter note, or a second
    kind: Literal["beats", "seconds"] = "beats"
    parts: tuple[Part, ...] = ()  # none: a note's `program` is General MIDI's
    meter: tuple[int, int] | None = None  # that files have whose own is wrong (data.midi.bars)

    def __post_init__(self) -> None:
        if self.kind not in ("beats", "seconds"):
            raise ValueError(f"grid must be beats or seconds, not {self.kind!r}")
        if not 1 <= self.steps_per_beat <= MOST_STEPS[self.kind]:
            most, told = MOST_STEPS[self.kind], self.steps_per_beat
            raise ValueError(f"grid: steps_per_beat must be 1 to {most:,}, not {told:,}")
        if len(self.parts) > MOST_PARTS or len({*self.parts}) < len(self.parts):
            raise ValueError(f"grid: there are at most {MOST_PARTS} parts, each once")
        for part in self.parts:
            if not (0 < len(part.name) <= LONGEST_NAME and part.name.isprintable()):
                raise ValueError(f"grid: a part's name has 1 to {LONGEST_NAME} letters")
            if not 0 <= part.program < DRUMS:
                raise ValueError(f"grid: a part's program is 0 to 127, not {part.program}")
        if self.meter is not None and not (self.has_meter and can_be_said(*self.meter)):
            raise ValueError("grid: a time signature is one such as 6/8, and for beats alone")

    def to_json(self) -> dict[str, Any]:
        """Return the grid as JSON has it; parts and meter only where there are any."""
        fields: dict[str, Any] = {"steps_per_beat": self.steps_per_beat, "kind": self.kind}
        if self.parts:
            fields["parts"] = [[part.name, part.program] for part in self.parts]
        return fields if self.meter is None else fields | {"meter": [*self.meter]}

    def general_midi(self, program: int) -> int:
        """Return General MIDI's program, or DRUMS, of a note's `program`."""
        if not self.parts or program == DRUMS:
            return program
        return self.parts[program].program if program < DRUMS else program - UNNAMED

    @property
    def has_meter(self) -> bool:
        """Whether bars have meters and tempi of their own: where the grid follows the beat."""
        return self.kind == "beats"

    @property
    def default_meter(self) -> tuple[int, int]:
        """Numerator and denominator where a piece gives none."""
        return (4, 4) if self.has_meter else (1, 4)

    @property
    def default_tempo_bpm(self) -> int:
        """Quarter notes a minute where a piece gives none."""
        return 120 if self.has_meter else 60

    def bar_steps(self, numerator: Whole, denominator: Whole) -> Whole:
        """Return the steps of a whole bar of this meter, or these meters, rounded up."""
        return -(-numerator * 4 * self.steps_per_beat // denominator)

    def beat_steps(self, numerator: int, denominator: int) -> int:
        """Return the steps of a beat: a quarter note, three eighths in 6/8, an eighth in 5/8."""
        part = self.bar_steps(1, max(denominator, 4))
        return 3 * part if is_compound(numerator, denominator) else part


SECONDS = Grid(100, "seconds")  # the seconds grid: finer than onsets can be heard apart


@dataclass(frozen=True, eq=False)
class Score:
    """A piece in canonical form, made by `canonical` (data/canonical.py), or cut out of another."""

    notes: Records  # (N,) of NOTE, sorted by (onset, program, pitch)
    bars: Records  # (M,) of BAR; each starts where the one before ends
    tempo_bpm: NDArray[np.int32]  # (M,) one of TEMPO_LEVELS a bar, in quarter notes a minute
    grid: Grid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Score):
            return NotImplemented
        return (
            self.grid == other.grid
            and np.array_equal(self.notes, other.notes)
            and np.array_equal(self.bars, other.bars)
            and np.array_equal(self.tempo_bpm, other.tempo_bpm)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal, but not hashable

    @property
    def bar_starts(self) -> Ints:
        """(M + 1,) first step of each bar; the last entry is the end of the last bar."""
        return offsets(self.bars["length"])

    @property
    def bar_positions(self) -> tuple[Ints, Ints]:
        """(N,) the index of the bar each note begins in, and (N,) the step in that bar."""
        onset, starts = self.notes["onset"].astype(np.int64), self.bar_starts
        bar = np.searchsorted(starts, onset, side="right") - 1
        return bar, onset - starts[bar]

    @property
    def has_upbeat(self) -> bool:
        """Whether the first bar is shorter than its meter says."""
        if not len(self.bars):
            return False
        numerator, denominator, length = self.bars[0].tolist()
        is_alone = len(self.bars) == 1 or self.bars[0] != self.bars[1]  # else all are cut alike
        return bool(length < self.grid.bar_steps(numerator, denominator) and is_alone)

    @property
    def first_number(self) -> int:
        """The number that people give the first bar: 0 of an upbeat, or of a second, else 1."""
        return int(self.grid.has_meter and not self.has_upbeat)

    @property
    def end_step(self) -> int:
        """The step at which the last bar is over and the last note has ended."""
        ends = self.notes["onset"].astype(np.int64) + self.notes["duration"]
        return int(max(self.bar_starts[-1], ends.max(initial=0)))

    def step_seconds(self, steps: ArrayLike) -> Reals:
        """Return the seconds from the beginning at which steps fall, by the bars' tempi.

        Past the last bar its tempo goes on.
        """
        starts = self.bar_starts
        seconds_per_step = 60.0 / (self.tempo_bpm * self.grid.steps_per_beat)
        seconds = np.concatenate([[0.0], np.cumsum(self.bars["length"] * seconds_per_step)])
        steps = np.asarray(steps, dtype=np.float64)
        if not len(self.bars):
            return np.zeros_like(steps)
        bar = np.clip(np.searchsorted(starts, steps, side="right") - 1, 0, len(self.bars) - 1)
        return np.asarray(seconds[bar] + (steps - starts[bar]) * seconds_per_step[bar])

    def excerpt(self, begin: int, end: int) -> "Score":
        """Return the bars number `begin` to `end` - 1, from 0, with the notes that begin there.

        Empty bars at the end are left out.
        """
        bar, _ = self.bar_positions
        is_inside = (bar >= begin) & (bar < end)
        notes = self.notes[is_inside].copy()
        notes["onset"] -= self.bar_starts[begin]
        bars = slice(begin, bar[is_inside].max(initial=begin - 1) + 1)
        return Score(notes, self.bars[bars], self.tempo_bpm[bars], self.grid)


def is_compound(numerator: int, denominator: int) -> bool:
    """Return whether the beats of a meter have three parts each, as in 6/8."""
    return numerator % 3 == 0 and numerator > 3 and denominator >= 8


def can_be_said(numerator: ArrayLike, denominator: ArrayLike) -> Bools:
    """Return whether a MIDI file can say each meter."""
    above, below = np.asarray(numerator), np.asarray(denominator)[..., None]
    is_power: Bools = (below == DENOMINATORS).any(axis=-1)
    return is_power & (above >= 1) & (above <= MOST_NUMERATOR)


def nearest_level(levels: NDArray[np.int32], values: ArrayLike) -> NDArray[np.int32]:
    """Return the nearest of the rising `levels` to each value; half way goes up."""
    midpoints = (levels[1:] + levels[:-1]) / 2
    return levels[np.searchsorted(midpoints, np.asarray(values), side="right")]
