"""Score: a piece of music as notes and bars on a grid of time.

Time is counted in grid steps, by default twelve to a quarter note. The tune C D, a quarter note
each, in one bar of 4/4, has two notes, with onsets 0 and 12 and durations 12 and 12. Its bar has 48
steps.

Tokens, statistics and pictures are all made from a Score. A Score is a piece's canonical form, and
a piece has exactly one, so two pieces are the same music exactly when their Scores are equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Bools, Ints, Reals, Records, offsets

Whole = TypeVar("Whole", int, Ints)

DRUMS = 128  # the program number of percussion; 0-127 are General MIDI's
FAMILY_PROGRAMS = 8  # General MIDI has 16 families of eight programs each
UNNAMED = 129  # program 0 of General MIDI where parts are named and none of them plays it
MOST_PROGRAM = UNNAMED + 127
LONGEST_NAME = 48  # characters in the name of a part
MOST_PARTS = 16  # named parts in one grid

NOTE = np.dtype(
    [
        ("onset", "<i4"),  # grid steps
        ("duration", "<i4"),  # grid steps
        ("pitch", "<i2"),  # 0-127
        ("velocity", "<i2"),  # 1-127; in a Score, one of VELOCITY_LEVELS
        ("program", "<i2"),  # 0-127, or 128 for drums; with named parts, see `Grid`
    ]
)
BAR = np.dtype([("numerator", "<i4"), ("denominator", "<i4"), ("length", "<i4")])  # grid steps

# The meters that a MIDI file can hold: the numerator is a byte, the denominator a power of 2.
MOST_NUMERATOR, DENOMINATORS = 255, tuple(2**power for power in range(8))

MAX_BAR_BEATS = 16  # quarter notes; a longer bar is split
MOST_STEPS = {"beats": 96, "seconds": 1000}  # in a quarter note, or a second

# The tempi that a Score can hold, in quarter notes a minute. A piece's tempo is rounded to the
# nearest: by 1 at most up to 120, and by about 2% at most from there to 300.
TEMPO_LEVELS = np.array([*range(16, 120, 2), *range(120, 301, 5)], dtype=np.int32)
# The velocities that a Score can hold: 32 levels, four apart.
VELOCITY_LEVELS = np.array([*range(4, 128, 4), 127], dtype=np.int32)


@dataclass(frozen=True)
class Part:
    """A player with a name, such as MELODY, and the General MIDI program that it plays."""

    name: str
    program: int


@dataclass(frozen=True)
class Grid:
    """What the numbers in a note count: steps of time, and programs or parts.

    A grid of `beats` follows the beat: bars follow the time signatures, and 12 steps to a quarter
    note hold sixteenths and eighth-note triplets exactly. A grid of `seconds` follows the clock,
    for performances without a reliable beat. There a second takes the place of the quarter note:
    every bar is a 1/4 bar at 60 quarter notes a minute. So all code that counts bars and beats
    counts seconds instead, and each piece still has exactly one line of tokens.

    If `parts` are named, a note's `program` is the number of its part, counted from 0. A note that
    no part plays has UNNAMED + p, where p is its General MIDI program. Drums are always DRUMS, and
    never a part.

    Raises:
        ValueError: there is no such grid.
    """

    steps_per_beat: int = 12  # steps in a quarter note, or in a second
    kind: Literal["beats", "seconds"] = "beats"
    parts: tuple[Part, ...] = ()  # (): a note's `program` is General MIDI's
    meter: tuple[int, int] | None = None  # replaces wrong time signatures in files (data.midi.bars)

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
            raise ValueError("grid: a time signature is such as 6/8, and needs a grid of beats")

    def to_json(self) -> dict[str, Any]:
        """Return the grid as a JSON object, which has parts and a meter only if the grid does."""
        fields: dict[str, Any] = {"steps_per_beat": self.steps_per_beat, "kind": self.kind}
        if self.parts:
            fields["parts"] = [[part.name, part.program] for part in self.parts]
        return fields if self.meter is None else fields | {"meter": [*self.meter]}

    def general_midi(self, program: int) -> int:
        """Return the General MIDI program, or DRUMS, for the `program` of a note."""
        if not self.parts or program == DRUMS:
            return program
        return self.parts[program].program if program < DRUMS else program - UNNAMED

    @property
    def has_meter(self) -> bool:
        """Whether each bar has its own meter and tempo, as it does if the grid follows the beat."""
        return self.kind == "beats"

    @property
    def default_meter(self) -> tuple[int, int]:
        """The (numerator, denominator) of a piece that names no meter."""
        return (4, 4) if self.has_meter else (1, 4)

    @property
    def default_tempo_bpm(self) -> int:
        """The quarter notes a minute of a piece that names no tempo."""
        return 120 if self.has_meter else 60

    def bar_steps(self, numerator: Whole, denominator: Whole) -> Whole:
        """Return the steps in a whole bar of a meter, or of each meter, rounded up."""
        return -(-numerator * 4 * self.steps_per_beat // denominator)

    def beat_steps(self, numerator: int, denominator: int) -> int:
        """Return the steps in a beat: a quarter in 4/4, three eighths in 6/8, an eighth in 5/8."""
        part = self.bar_steps(1, max(denominator, 4))
        return 3 * part if is_compound(numerator, denominator) else part


SECONDS = Grid(100, "seconds")  # a grid of seconds, finer than the ear can tell onsets apart


@dataclass(frozen=True, eq=False)
class Score:
    """A piece in canonical form: made by `canonical` (data/canonical.py), or cut out of a Score."""

    notes: Records  # (N,) of NOTE, sorted by onset, then program, then pitch
    bars: Records  # (M,) of BAR; each begins where the one before it ends
    tempo_bpm: NDArray[np.int32]  # (M,) quarter notes a minute in each bar, of TEMPO_LEVELS
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

    __hash__ = None  # type: ignore[assignment]  # arrays can be compared, but not hashed

    @property
    def bar_starts(self) -> Ints:
        """(M + 1,) the first step of each bar; the last entry is the end of the last bar."""
        return offsets(self.bars["length"])

    @property
    def bar_positions(self) -> tuple[Ints, Ints]:
        """(N,) the index of the bar in which each note begins, and (N,) the step in that bar."""
        onset, starts = self.notes["onset"].astype(np.int64), self.bar_starts
        bar = np.searchsorted(starts, onset, side="right") - 1
        return bar, onset - starts[bar]

    @property
    def has_upbeat(self) -> bool:
        """Whether the piece begins with an upbeat, a first bar that is shorter than its meter."""
        if not len(self.bars):
            return False
        numerator, denominator, length = self.bars[0].tolist()
        is_alone = len(self.bars) == 1 or self.bars[0] != self.bars[1]  # not all are cut short
        return bool(length < self.grid.bar_steps(numerator, denominator) and is_alone)

    @property
    def first_number(self) -> int:
        """The number that people give the first bar: 0 for an upbeat or a second, 1 otherwise."""
        return int(self.grid.has_meter and not self.has_upbeat)

    @property
    def end_step(self) -> int:
        """The first step at which the last bar is over and every note has ended."""
        ends = self.notes["onset"].astype(np.int64) + self.notes["duration"]
        return int(max(self.bar_starts[-1], ends.max(initial=0)))

    def step_seconds(self, steps: ArrayLike) -> Reals:
        """Return the time of each step in seconds from the beginning, by the tempi of the bars.

        After the last bar, its tempo goes on.
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
        """Return bars `begin` to `end` - 1, counted from 0, with the notes that begin in them.

        Empty bars at the end are left out.
        """
        bar, _ = self.bar_positions
        is_inside = (bar >= begin) & (bar < end)
        notes = self.notes[is_inside].copy()
        notes["onset"] -= self.bar_starts[begin]
        bars = slice(begin, bar[is_inside].max(initial=begin - 1) + 1)
        return Score(notes, self.bars[bars], self.tempo_bpm[bars], self.grid)

    def moved(self, ways: Mapping[int, int]) -> "Score":
        """Return the piece with the notes of programs moved by so many semitones."""
        notes = self.notes.copy()
        for program, way in ways.items():
            notes["pitch"][notes["program"] == program] += way
        return replace(self, notes=notes)


def is_compound(numerator: int, denominator: int) -> bool:
    """Return whether the beats of a meter divide into three, as in 6/8."""
    return numerator % 3 == 0 and numerator > 3 and denominator >= 8


def can_be_said(numerator: ArrayLike, denominator: ArrayLike) -> Bools:
    """Return whether a MIDI file can hold each meter."""
    above, below = np.asarray(numerator), np.asarray(denominator)[..., None]
    is_power: Bools = (below == DENOMINATORS).any(axis=-1)
    return is_power & (above >= 1) & (above <= MOST_NUMERATOR)


def nearest_level(levels: NDArray[np.int32], values: ArrayLike) -> NDArray[np.int32]:
    """Return the level that is nearest to each value; `levels` must rise. Half way rounds up."""
    midpoints = (levels[1:] + levels[:-1]) / 2
    return levels[np.searchsorted(midpoints, np.asarray(values), side="right")]
