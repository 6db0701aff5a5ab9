"""Score: a piece of music as notes on a time grid, in the one canonical form.

Everything else rests on this: tokens, statistics and pictures all start from a Score, and two
Scores are the same music exactly when they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.arrays import offsets, reduce_segments, segment_ids

Whole = TypeVar("Whole", int, NDArray[np.int64])

DRUMS = 128  # the program number of percussion; 0-127 are General MIDI's
FAMILY_PROGRAMS = 8  # General MIDI has 16 families, of eight programs each
UNNAMED = 129  # with named parts: the number of General MIDI's program 0 where no part plays it
MOST_PROGRAM = UNNAMED + 127
LONGEST_NAME = 48  # of a part
MOST_PARTS = 16  # with names; the side input tells so many apart

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
        if self.steps_per_beat < 1:
            raise ValueError(f"grid: steps_per_beat must be 1 or more, not {self.steps_per_beat}")
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


SECONDS = Grid(100, "seconds")  # the seconds grid: finer than onsets can be heard apart


@dataclass(frozen=True, eq=False)
class Score:
    """A piece in canonical form (see `canonical`); build one with `canonical`, not by hand."""

    notes: NDArray[np.void]  # (N,) of NOTE, sorted by (onset, program, pitch)
    bars: NDArray[np.void]  # (M,) of BAR; each starts where the one before ends
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
    def bar_starts(self) -> NDArray[np.int64]:
        """(M + 1,) first step of each bar; the last entry is the end of the last bar."""
        return offsets(self.bars["length"])

    @property
    def bar_positions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
        return bool(length < self.grid.bar_steps(numerator, denominator))

    @property
    def end_step(self) -> int:
        """The step at which the last bar is over and the last note has ended."""
        ends = self.notes["onset"].astype(np.int64) + self.notes["duration"]
        return int(max(self.bar_starts[-1], ends.max(initial=0)))

    def step_seconds(self, steps: ArrayLike) -> NDArray[np.float64]:
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
        """Return the bars number `begin` to `end` - 1, from 0, with the notes that begin there."""
        starts, onset, end = self.bar_starts, self.notes["onset"], min(end, len(self.bars))
        notes = self.notes[(onset >= starts[begin]) & (onset < starts[end])].copy()
        notes["onset"] -= starts[begin]
        return canonical(notes, self.bars[begin:end], self.tempo_bpm[begin:end], self.grid)[0]


@dataclass(frozen=True)
class ScoreBatch:
    """P pieces on one grid, canonical, end to end.

    Piece i has notes[note_offsets[i] : note_offsets[i + 1]], and likewise bars and tempi. Its
    onsets count from its own beginning.
    """

    notes: NDArray[np.void]  # (N,) of NOTE
    bars: NDArray[np.void]  # (M,) of BAR
    tempo_bpm: NDArray[np.int32]  # (M,)
    note_offsets: NDArray[np.int64]  # (P + 1,)
    bar_offsets: NDArray[np.int64]  # (P + 1,)
    grid: Grid

    @classmethod
    def from_scores(cls, scores: Sequence[Score]) -> Self:
        """Join pieces, one at least, which are all on the same grid."""
        return cls(
            np.concatenate([score.notes for score in scores]),
            np.concatenate([score.bars for score in scores]),
            np.concatenate([score.tempo_bpm for score in scores]),
            offsets([len(score.notes) for score in scores]),
            offsets([len(score.bars) for score in scores]),
            scores[0].grid,
        )

    def __len__(self) -> int:
        return len(self.note_offsets) - 1

    def __getitem__(self, index: int) -> Score:
        """Return the piece of that number."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        note = slice(self.note_offsets[index], self.note_offsets[index + 1])
        bar = slice(self.bar_offsets[index], self.bar_offsets[index + 1])
        return Score(self.notes[note], self.bars[bar], self.tempo_bpm[bar], self.grid)

    def select(self, is_chosen: NDArray[np.bool_]) -> "ScoreBatch":
        """Return the pieces that (P,) is true for."""
        note_counts, bar_counts = np.diff(self.note_offsets), np.diff(self.bar_offsets)
        bars = np.repeat(is_chosen, bar_counts)
        return ScoreBatch(
            self.notes[np.repeat(is_chosen, note_counts)],
            self.bars[bars],
            self.tempo_bpm[bars],
            offsets(note_counts[is_chosen]),
            offsets(bar_counts[is_chosen]),
            self.grid,
        )


@dataclass
class GridChanges:
    """What bringing a piece to the grid changed."""

    merged: int = 0  # notes dropped since another has the same onset, program and pitch
    cut: int = 0  # notes shortened since the same program and pitch begins again
    moved: int = 0  # notes whose onset was not on the grid
    error_steps: float = 0.0  # sum over notes of how far the onset moved
    worst_error_steps: float = 0.0  # the largest of those moves
    split_bars: int = 0  # that were longer than any meter's
    clipped_bytes: int = 0  # of the file, read as 127


def can_be_said(numerator: ArrayLike, denominator: ArrayLike) -> NDArray[np.bool_]:
    """Return whether a MIDI file can say each meter."""
    above = np.asarray(numerator)
    return np.isin(denominator, DENOMINATORS) & (above >= 1) & (above <= MOST_NUMERATOR)


def nearest_level(levels: NDArray[np.int32], values: ArrayLike) -> NDArray[np.int32]:
    """Return the nearest of the rising `levels` to each value; half way goes up."""
    midpoints = (levels[1:] + levels[:-1]) / 2
    return levels[np.searchsorted(midpoints, np.asarray(values), side="right")]


# Bits of a sorting key that a voice (see `_voice`) and an onset take.
_VOICE_BITS, _ONSET_BITS = 16, 31
_VELOCITY_LEVEL_OF = nearest_level(VELOCITY_LEVELS, np.arange(128))  # of each MIDI velocity


def canonical(
    notes: NDArray[np.void], bars: NDArray[np.void], tempo_bpm: ArrayLike, grid: Grid
) -> tuple[Score, GridChanges]:
    """Return the one Score for these notes and bars, and what that merged and cut.

    Args:
        notes: (N,) of NOTE on the grid, in any order; a duration below 1 counts as 1.
        bars: (M,) of BAR, no longer than their meters say. The last meter goes on until the last
            onset lies in a bar; empty bars at the end go.
        tempo_bpm: (M,) quarter notes a minute, one a bar.
        grid: of the steps. Where it has no meter, no bars and no tempi need be given.

    Of notes with the same onset, program and pitch the longest, then the loudest, stays; a note
    is cut where the same program and pitch begins again.

    Raises:
        ValueError: a note or a bar that no Score can hold.
    """
    ends = offsets([len(notes)]), offsets([len(bars)])
    batch, changes = canonical_batch(notes, bars, tempo_bpm, *ends, grid)
    return batch[0], changes[0]


def canonical_batch(
    notes: NDArray[np.void],
    bars: NDArray[np.void],
    tempo_bpm: ArrayLike,
    note_offsets: NDArray[np.int64],
    bar_offsets: NDArray[np.int64],
    grid: Grid,
) -> tuple[ScoreBatch, list[GridChanges]]:
    """Make P pieces canonical, fewer than 2^16 and given end to end; see `canonical`.

    Raises:
        ValueError: a note or a bar that no Score can hold.
    """
    _check_ranges(notes, bars, tempo_bpm, grid)
    # Sorted by (piece, program, pitch, onset): the next row is the next note of the same voice.
    piece, voice = segment_ids(note_offsets), _voice(notes)
    onset, duration = notes["onset"].astype(np.int64), np.maximum(notes["duration"], 1)
    key = (piece << _VOICE_BITS | voice) << _ONSET_BITS | onset
    order = np.argsort(key)
    is_repeat = key[order[1:]] == key[order[:-1]]
    merged = np.bincount(piece[order[1:][is_repeat]], minlength=len(note_offsets) - 1)
    if is_repeat.any():
        at = np.flatnonzero(np.append(is_repeat, False) | np.append(False, is_repeat))
        equal = order[at]
        order[at] = equal[np.lexsort((-notes["velocity"][equal], -duration[equal], key[equal]))]
        order = order[np.append(True, ~is_repeat)]
    piece, voice, onset, duration = piece[order], voice[order], onset[order], duration[order]
    is_same_voice = (voice[1:] == voice[:-1]) & (piece[1:] == piece[:-1])
    room = np.where(is_same_voice, onset[1:] - onset[:-1], duration[:-1])
    is_cut = duration[:-1] > room
    cut = np.bincount(piece[:-1][is_cut], minlength=len(note_offsets) - 1)
    duration[:-1][is_cut] = room[is_cut]

    # And now by (piece, onset, program, pitch).
    by_onset = np.argsort((piece << _ONSET_BITS | onset) << _VOICE_BITS | voice)
    notes = notes[order[by_onset]]
    notes["duration"] = duration[by_onset]
    notes["velocity"] = _VELOCITY_LEVEL_OF[notes["velocity"]]
    note_offsets = offsets(np.diff(note_offsets) - merged)

    tempo = nearest_level(TEMPO_LEVELS, tempo_bpm)
    last_onset = reduce_segments(
        np.maximum, notes["onset"].astype(np.int64), note_offsets, empty=-1
    )
    bars, tempo, bar_offsets = _fit_bars(bars, tempo, bar_offsets, last_onset, grid)
    changes = [GridChanges(*counts) for counts in zip(merged.tolist(), cut.tolist(), strict=True)]
    return ScoreBatch(notes, bars, tempo, note_offsets, bar_offsets, grid), changes


def _voice(notes: NDArray[np.void]) -> NDArray[np.int64]:
    """Return one number for (program, pitch) of each note, rising with program, then pitch."""
    return np.asarray(notes["program"].astype(np.int64) * 128 + notes["pitch"])


def _fit_bars(
    bars: NDArray[np.void],
    tempo: NDArray[np.int32],
    bar_offsets: NDArray[np.int64],
    last_onset: NDArray[np.int64],
    grid: Grid,
) -> tuple[NDArray[np.void], NDArray[np.int32], NDArray[np.int64]]:
    """Return bars, tempi and offsets up to the bar of each piece's last onset; none for -1."""
    bar_counts = np.diff(bar_offsets)
    if not bar_counts.all():
        at = bar_offsets[:-1][bar_counts == 0]
        meter = grid.default_meter
        bars = np.insert(bars, at, np.array((*meter, grid.bar_steps(*meter)), dtype=BAR))
        tempo = np.insert(tempo, at, grid.default_tempo_bpm)
        bar_offsets = offsets(np.maximum(bar_counts, 1))
    piece, lines = segment_ids(bar_offsets), offsets(bars["length"])
    begins = lines[bar_offsets[:-1]]
    whole = grid.bar_steps(*(bars[n].astype(np.int64) for n in ("numerator", "denominator")))
    count = (lines[:-1] - begins[piece] <= last_onset[piece]).astype(np.int64)  # of each bar
    last_bar = bar_offsets[1:] - 1
    beyond = last_onset - (lines[bar_offsets[1:]] - begins)
    count[last_bar] += np.maximum(beyond // whole[last_bar] + 1, 0)
    chosen = np.repeat(np.arange(len(bars)), count)
    is_added = chosen == np.append(-1, chosen[:-1])
    bars = bars[chosen]
    bars["length"][is_added] = whole[chosen[is_added]]
    return bars, tempo[chosen], offsets(np.bincount(piece[chosen], minlength=len(last_onset)))


def _check_ranges(
    notes: NDArray[np.void], bars: NDArray[np.void], tempo_bpm: ArrayLike, grid: Grid
) -> None:
    for name, low, high in (
        ("onset", 0, 2**30),
        ("pitch", 0, 127),
        ("velocity", 1, 127),
        ("program", 0, MOST_PROGRAM if grid.parts else DRUMS),
    ):
        values = notes[name]
        if len(values) and (values.min() < low or values.max() > high):
            raise ValueError(
                f"note {name} must lie in {low}..{high}, got {values.min()}..{values.max()}"
            )
    tempo = np.asarray(tempo_bpm)
    if len(tempo) != len(bars):
        raise ValueError(f"{len(bars)} bars need as many tempi, got {len(tempo)}")
    if not np.all(np.isfinite(tempo) & (tempo > 0)):
        raise ValueError("a tempo must be a positive number of beats a minute")
    if np.any(~can_be_said(bars["numerator"], bars["denominator"])):
        raise ValueError(f"a meter must be 1 to {MOST_NUMERATOR} over a power of 2 up to 128")
    whole = grid.bar_steps(*(bars[n].astype(np.int64) for n in ("numerator", "denominator")))
    if np.any((bars["length"] < 1) | (bars["length"] > whole)):
        raise ValueError("a bar must last at least one step and no longer than its meter says")
    if not grid.has_meter and (
        np.any(bars != np.array((*grid.default_meter, grid.steps_per_beat), dtype=BAR))
        or np.any(tempo != grid.default_tempo_bpm)
    ):
        raise ValueError("on a grid of seconds every bar is a second, of 1/4 at 60 beats a minute")
