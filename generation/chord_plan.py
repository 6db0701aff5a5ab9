"""Where the requested chords stand in a piece, and which programs can play them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from common.arrays import Bools, Ints, Records, offsets
from common.text import counted
from data.chords import Chord
from data.keys import Key, harmonic_scale, melody_key
from data.score import BAR, DRUMS, NOTE, Grid
from data.tokens.vocabulary import NEVER
from generation.chord_track import CADENCES, ChordTrack, upbeat_bars
from generation.constraints import ConstraintError
from generation.given import GivenTokens
from generation.seeds import Seed

if TYPE_CHECKING:
    from generation.rows import Rules

# What should sound of a chord, a bit each. Where not all of it can, the larger sum is better.
ROOT, THIRD, BASS = 1, 2, 4


@dataclass(frozen=True)
class Placed:
    """A chord within one bar. A chord that lasts into the next bar has another entry there."""

    begin: int  # grid step
    end: int
    chord: Chord | None  # None: there is no chord
    bar: int  # the bar of the chord text, from 0


def fill(
    track: ChordTrack, number: int, begin: int, steps: int, beat: int, grid: Grid
) -> list[Placed]:
    """Return the chords of one bar, each with its place.

    Args:
        track, number: the chords, and the number of the bar in the chord text, from 0.
        begin, steps: the step at which the bar of music begins, and its length in steps.
        beat: steps of a beat.
        grid: the grid of the music.

    Raises:
        ConstraintError: the chords do not fill the bar exactly.
    """
    chords = track[number]
    quarter = Fraction(grid.steps_per_beat)
    fixed = sum((length for _, length in chords if length), Fraction(0)) * quarter
    shares = sum(length is None for _, length in chords)
    left, where = steps - fixed, f"bar {number + 1} of the chords"
    if left < shares or (not shares and left):
        needed = f"{float(fixed / quarter):g} quarter notes"
        needs = f"needs more than {needed}" if shares else f"is {needed} long"
        raise ConstraintError(f"{where} {needs}; the bar has {float(steps / quarter):g}")
    unit = beat if left >= shares * beat and left % beat == 0 else 1
    placed, at, shared = [], Fraction(begin), 0
    for chord, length in chords:
        if length is None:
            units, more = divmod(int(left // unit), shares)
            length = Fraction(unit * (units + (shared < more))) / quarter
            shared += 1
        end = at + length * quarter
        if end.denominator > 1:
            raise ConstraintError(f"in {where} a chord ends between two grid steps")
        placed.append(Placed(int(at), int(end), chord, number))
        at = end
    return placed


def place_chords(track: ChordTrack, bars: Records, begin: int, grid: Grid) -> list[Placed]:
    """Return where the chords of a track stand in some bars; the track repeats until the last bar.

    Args:
        track: the chords.
        bars: (M,) of BAR; the first may be an upbeat.
        begin: the step at which the first bar begins.
        grid: the grid of the music.

    Raises:
        ConstraintError: the chords of a bar do not fill it exactly.
    """
    placed: list[Placed] = []
    number = again = 0
    for index, (*meter, steps) in enumerate(bars.tolist()):
        is_upbeat = index == 0 == begin and steps < grid.bar_steps(*meter)
        if is_upbeat:
            again = upbeat_bars(track, steps, grid)
        if again or not is_upbeat:
            placed += fill(track, number, begin, steps, grid.beat_steps(*meter), grid)
            number = number + 1 if number + 1 < len(track) else again
        begin += steps
    return placed


def key_of(placed: Sequence[Placed]) -> Key | None:
    """Return the key that chords suggest, by how long each of their notes sounds, or None."""
    rows = [
        (each.begin, each.end - each.begin, pitch_class, 1, 0)
        for each in placed
        if each.chord
        for pitch_class in reversed(each.chord.classes)  # so the list ends with the last root
    ]
    return melody_key(np.array(rows, NOTE)) if rows else None


def chord_in(key: Key, name: str) -> Chord | None:
    """Return the chord that a numeral stands for in a key; None for "".

    The numeral is a triad of the key's harmonic scale, such as "IV", or "V7".
    """
    if not name:
        return None
    degree = ("I", "II", "III", "IV", "V", "VI").index(name.removesuffix("7"))
    *lower, leading = harmonic_scale(key)
    scale = [*lower[:6], leading]
    root, third = scale[degree], scale[(degree + 2) % 7]
    kind = "7" if name.endswith("7") else "m" if (third - root) % 12 == 3 else ""
    return Chord(root, kind, root)


class Chords(NamedTuple):
    """The chords of a piece as tables for compiled loops: S steps, C places where a chord begins.

    Times are in grid steps. After the last step, the last `cycle` steps repeat forever; if `cycle`
    is 0, there is no chord from then on.
    """

    place: Ints  # (S + 1,) number of the chord place in force at each step; -1: no chord
    since: Ints  # (S + 1,) steps since that chord began
    is_beat: Bools  # (S + 1,) whether a beat begins
    cycle: int
    classes: Ints  # (C,) a bit for each pitch class of the chord
    bass: Ints  # (C,) pitch class
    root: Ints  # (C,) pitch class
    third: Ints  # (C,) pitch class
    wanted: Ints  # (C,) bits of what should sound: ROOT, THIRD, BASS
    patience: Ints  # (C,) steps after which root and third must sound at the latest
    given: Ints  # (C,) a bit for each pitch class of the given notes that sound until then
    is_free: Bools  # (C, N) which notes may begin with the chord, considering the given notes


def bars_with(track: ChordTrack, seed: Seed) -> int:
    """Return the number of bars of a piece that ends with its chords, or with a longer seed."""
    bars, first = seed.score.bars, seed.first_open_bar
    has_upbeat = first == 0 and seed.score.has_upbeat
    upbeat = has_upbeat and upbeat_bars(track, int(bars[0]["length"]), seed.score.grid) == 0
    return max(len(bars), first + len(track) + upbeat)


@dataclass(frozen=True)
class ChordPlan:
    """Chords in the bars of a piece that is to be written.

    Attributes:
        placed: the chords, in order, from the first bar in which something new may begin.
        bars: (M,) of BAR, from that bar on. If no end is asked for, they hold all chords twice.
        begin: the step at which the first of these bars begins.
        cycle: steps after which all chords repeat at the end; 0: the piece ends with the bars.
    """

    placed: tuple[Placed, ...]
    bars: Records
    begin: int
    cycle: int

    @classmethod
    def closing(
        cls, cadence: str, key: Key, given: GivenTokens, bars: int, meter: tuple[int, int], bar: int
    ) -> ChordPlan:
        """Return the chords of a cadence.

        The last chord begins with its bar. In the last bar of a piece that is all given bars, it
        begins on the beat of the last given note. The chord before it begins half a bar earlier.

        Args:
            cadence: one of CADENCES.
            key: the key of the chords.
            given: what is given.
            bars: the number of bars of the piece.
            meter: the meter of new bars, which are whole.
            bar: the index of the bar with the last chord.

        Raises:
            ConstraintError: all of that bar is given.
        """
        score, grid = given.seed.score, given.vocabulary.grid
        rows = np.array(
            [*score.bars.tolist(), *[(*meter, grid.bar_steps(*meter))] * (bars - given.bars)], BAR
        )
        starts = offsets(rows["length"]).tolist()
        last, end = starts[bar : bar + 2]
        if np.count_nonzero(given.seed.is_closed[last:end]) == end - last:
            raise ConstraintError(
                f"bar {bar + score.first_number} is given: no cadence can be written there"
            )
        beat = grid.beat_steps(*rows[bar].tolist()[:2])
        onset = given.notes.onset
        if given.has_note_in_last_bar and bar + 1 == bars == given.bars:
            last += (int(onset.max()) - last) // beat * beat
        half = max(grid.bar_steps(*rows[bar].tolist()[:2]) // 2 // beat, 1) * beat
        before = max(last - half, given.seed.first_open_step // beat * beat)
        chords = [chord_in(key, name) for name in CADENCES[cadence]]
        where = zip((before, last), (last, end), chords, (bar - 1, bar), strict=True)
        placed = tuple(Placed(*each) for each in where if each[2] and each[0] < each[1])
        return cls(placed, rows, begin=0, cycle=0)

    @property
    def last_bar_start(self) -> int:
        """The step at which the last bar begins."""
        return self.begin + int(self.bars["length"][:-1].sum())

    @property
    def leaves_end(self) -> bool:
        """Whether no chord stands in the last bar or right before it, so that any close will do."""
        return not self.cycle and all(
            each.end < self.last_bar_start for each in self.placed if each.chord
        )

    @classmethod
    def of(
        cls, track: ChordTrack, given: GivenTokens, bars: int | None, meter: tuple[int, int]
    ) -> ChordPlan:
        """Return where the chords of a track stand in a piece.

        Args:
            track: the chords.
            given: what is given.
            bars: the number of bars of the piece; None: its end is not known.
            meter: the meter of new bars, which are whole.

        Raises:
            ConstraintError: the chords of a bar do not fill it, or the track has more bars than the
                piece.
        """
        score, grid = given.seed.score, given.vocabulary.grid
        starts, whole, count = score.bar_starts, grid.bar_steps(*meter), len(track)
        first = given.seed.first_open_bar
        new = 2 * count - (given.end - given.reach) // whole if bars is None else bars - given.bars
        rows = [*score.bars[first:].tolist(), *[(*meter, whole)] * new]
        begin = int(starts[first])
        placed = place_chords(track, np.array(rows, BAR), begin, grid)
        most = max((each.bar for each in placed), default=-1) + 1
        if most < count and bars is not None:
            raise ConstraintError(
                f"there are {count} bars of chords, and {counted(most, 'bar')} to write: "
                "ask for more bars, or give fewer chords"
            )
        cycle = 0
        if bars is None:  # the chords of an upbeat do not repeat
            cycle = whole * len({each.bar for each in placed if each.begin >= begin + rows[0][2]})
        return cls(tuple(placed), np.array(rows, BAR), begin, cycle)

    def tables(self, given: GivenTokens, rules: Rules) -> Chords:
        """Return the chords as tables for compiled loops.

        Args:
            given: what is given.
            rules: everything else that is asked for.

        Raises:
            ConstraintError: no notes that may be played can make one of the chords.
        """
        grid, size = given.vocabulary.grid, self.begin + int(self.bars["length"].sum())
        place, since = np.full(size + 1, -1), np.zeros(size + 1, dtype=np.int64)
        is_beat, at = np.zeros(size + 1, dtype=bool), self.begin
        for number, (*meter, steps) in enumerate(self.bars.tolist()):
            beat = grid.beat_steps(*meter)
            upbeat = steps % beat if number == 0 and steps < grid.bar_steps(*meter) else 0
            is_beat[at + upbeat : at + steps : beat] = True
            at += steps
        here = [each for each in self.placed if each.chord]
        for number, each in enumerate(here):
            place[each.begin : each.end] = number
            since[each.begin : each.end] = np.arange(each.end - each.begin)
        closed = np.flatnonzero(given.seed.is_closed[:size])
        place[closed] = -1
        found = [_at_place(each, given, rules) for each in here]
        columns = np.array([row for row, _ in found], np.int64).reshape(-1, 7).T.copy()
        is_free = np.stack([rules.is_playable, *(its for _, its in found)])[1:]
        return Chords._make([place, since, is_beat, self.cycle, *columns, is_free])


def _at_place(placed: Placed, given: GivenTokens, rules: Rules) -> tuple[tuple[int, ...], Bools]:
    """Return the values of one chord for `Chords`: the fields from `classes` to `given`, `is_free`.

    The first seven come as one tuple of numbers; `is_free` is (N,).
    """
    vocabulary, chord, begin, asked = given.vocabulary, placed.chord, placed.begin, rules.asked
    assert chord
    programs, count = np.array(vocabulary.programs), vocabulary.pitch_count
    half_beat = vocabulary.grid.steps_per_beat // 2
    is_patient = not (asked.is_strict or asked.is_timed) and asked.most_sounding == NEVER
    patience = half_beat if is_patient and placed.end - begin > half_beat else 0
    notes = given.seed.score.notes
    ends = notes["onset"].astype(np.int64) + notes["duration"]
    sounds = (notes["onset"] <= begin) & (ends > begin)
    is_pitched = notes["program"] != DRUMS
    heard = (notes["onset"] <= begin + patience) & (ends > begin) & is_pitched
    is_monophonic = rules.parts.is_monophonic
    is_busy = is_monophonic & np.isin(programs, notes["program"][sounds])
    may_begin = (programs != DRUMS) & given.notes.may_begin(begin) & ~is_busy
    is_free = rules.is_playable & np.repeat(may_begin, count)
    is_free[given.notes.note[sounds]] = False
    pitch = np.tile(np.arange(count) + vocabulary.lowest_pitch, len(programs))
    played = np.bincount(pitch[is_free] % 12, minlength=12) > 0
    free = np.flatnonzero(is_free.reshape(len(programs), count).any(axis=1))
    is_single = len(free) < 2 and is_monophonic[free].all() and not (sounds & is_pitched).any()
    is_alone = asked.most_sounding < 2 or is_single
    wanted = 0 if is_alone else ROOT | THIRD
    if len(free) and not is_alone:  # the bass is asked of new notes only if they can go lowest
        is_usual = is_free & rules.parts.is_within
        usual = pitch[is_usual] if is_usual.any() else pitch[is_free]
        kept = np.setdiff1d(notes["program"][heard], programs[free])
        theirs = notes["pitch"][np.isin(notes["program"], kept)]
        wanted |= BASS * bool(usual.min() <= theirs.min(initial=127))
    classes = _bits(np.unique(notes["pitch"][heard] % 12).tolist())
    needed = {BASS: chord.bass, ROOT: chord.root, THIRD: chord.third}
    lacking = [n for bit, n in needed.items() if wanted & bit and not played[n]]
    lacking = [n for n in lacking if len(free) and not (classes >> n & 1)]
    if lacking or (len(free) and not played[list(chord.classes)].any()):
        raise ConstraintError(
            f"in bar {placed.bar + 1} of the chords {chord.name} cannot be played: no note of "
            "it is left to the model; ask for a wider range or no key, or change the chord"
        )
    notes_of = (_bits(chord.classes), chord.bass, chord.root, chord.third)
    return (*notes_of, wanted, patience, classes), is_free


def _bits(classes: Sequence[int]) -> int:
    """Return a bit for each pitch class."""
    return sum(1 << pitch_class for pitch_class in {*classes})


_NONE = np.empty(0, np.int64)
NO_CHORDS = Chords(
    *(_NONE, _NONE, np.empty(0, bool), 0),
    *(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE),
    np.empty((0, 0), bool),
)
