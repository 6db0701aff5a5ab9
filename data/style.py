"""What a model knows about its training set: who plays what, and how pieces are built.

It is found in training pieces and kept in the model file. Where nobody says what new music should
be like, it is like these pieces. The thresholds that decide this are here, each with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import numpy as np

from common.arrays import Bools, Ints
from common.interface import OCTAVE
from common.options import Count, Measure, Range, Share
from data.critic import Critic
from data.ensembles import (
    Ensemble,
    ensembles_of,
    known_registers,
    monophonic_programs,
    pitch_ranges,
    pitches_played,
)
from data.extremes import FEW_BARS, Extremes, Usual
from data.followed_keys import count_keys
from data.forms import Form, form_of
from data.harmony import ends_on_triad
from data.keys import PROFILES, Key
from data.loops import Loops, going_on, known_loops, lags
from data.rhythms import Rhythm, rhythms_of
from data.score import Score
from data.texture import has_regular_bars, polyphony, rests
from data.voice_leading import parallels

Pitch = Annotated[int, Range(0, 127)]

Counted = TypeVar("Counted", Ensemble, Rhythm)

VERSION = 3  # raised when a field changes

ONE_NOTE = 1.02  # polyphony; folk tunes have 1
FEW_RESTS = 0.03  # Bach's chorales have 0.01
FEW_PARALLELS = 2  # in 100 bars; Bach's chorales have 1.6
MOSTLY_REGULAR = 0.95  # share of pieces; Bach's chorales have 0.98
MOSTLY_CLOSING = 0.7  # share of pieces; Bach's chorales have 0.99, songs for voice and piano 0.77
SMALL_BANDS = 0.25  # share of pieces: a seed of as many programs as these is a whole band
EXCEPTIONS = 0.02  # share of pieces: this few say nothing about the others
MORE_OR_FEWER_BARS = 1  # than the piece has whose form a new piece takes
FEW_FORMS = 8  # with fewer such pieces, the openings of longer ones lend their forms, too
LONG_REPEAT_BARS = 3.5  # about four, a line of a tune; shorter repeats come by themselves


@dataclass(frozen=True)
class Style:
    """What a model knows about its training set. By default, each field is unknown.

    Attributes:
        voices: how many instruments at least half of the pieces have.
        ensembles: the sets of programs that play pieces, the most frequent first.
        rhythms: the sets of steps of a beat on which notes begin, the most frequent first.
        meter: that most bars have; None: there are no bars.
        tempo_bpm: of the middle bar, if bars are sorted by tempo; None: there are no bars.
        loops: of each piece; () if bars seldom come again.
        registers: of each piece, the pitches that each of its programs has there (`registers_of`);
            () if few programs play.
        pitches: which pitches each program has (`pitches_played`).
        ranges: the lowest and highest pitch that each program usually has, without drums.
        monophonic: the programs that usually play one note at a time.
        polyphony: how many pitches sound at once, on average; None: there are only drums.
        rests: the share of the time in which instruments rest, on average.
        parallels_per_100_bars: parallel fifths, unisons and octaves; None: most pieces are not in
            four parts.
        regular_bars: the share of the pieces whose bars are regular (`has_regular_bars`).
        closing: the share of the pieces that end on a triad in root position.
        keys: by mode, how many pieces follow the key of each of the 12 tonics.
        forms: of the pieces; in music for one voice, with long repeats only.
        extremes: the limits that no piece exceeds.
        usual: the range in which nine of ten pieces lie.
        temperature, rhythm_temperature, top_p: those with which the model's pieces are most like
            the training set's (evaluation/fit_sampling.py).
        critic: separates the model's pieces from the training set's (evaluation/fit_critic.py).
        version: of these fields.

    Raises:
        ValueError: no pieces can have such a value.
    """

    voices: Count = 0
    ensembles: tuple[Ensemble, ...] = ()
    rhythms: tuple[Rhythm, ...] = ()
    meter: tuple[Count, Count] | None = None
    tempo_bpm: Count | None = None
    loops: tuple[Loops, ...] = ()
    registers: tuple[dict[int, tuple[Pitch, ...]], ...] = ()
    pitches: dict[int, tuple[Pitch, ...]] = field(default_factory=dict)
    ranges: dict[int, tuple[Pitch, Pitch]] = field(default_factory=dict)
    monophonic: tuple[Count, ...] = ()
    polyphony: Measure | None = None
    rests: Share | None = None
    parallels_per_100_bars: Measure | None = None
    regular_bars: Share | None = None
    closing: Share | None = None
    keys: dict[str, tuple[Count, ...]] = field(default_factory=dict)
    forms: tuple[Form, ...] = ()
    extremes: Extremes | None = None
    usual: Usual | None = None
    temperature: Measure | None = None
    rhythm_temperature: Measure | None = None
    top_p: Share | None = None
    critic: Critic | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"this program reads version {VERSION}, not {self.version}")
        if any(low > high for low, high in self.ranges.values()):
            raise ValueError("ranges must rise")
        counts = {mode: len(keys) for mode, keys in self.keys.items()}
        if counts and counts != dict.fromkeys(PROFILES, OCTAVE):
            raise ValueError(f"keys must be {OCTAVE} of each of {', '.join(PROFILES)}")
        if 0 in (self.top_p, self.rhythm_temperature):
            raise ValueError("top_p and rhythm_temperature must be above 0")

    @classmethod
    def of(cls, pieces: Sequence[Score]) -> Style:
        """Return the style of pieces; if there are none, nothing is known."""
        with_notes = [score for score in pieces if len(score.notes)]
        if not with_notes:
            return cls()
        voices = int(np.median([len(np.unique(score.notes["program"])) for score in pieces]))
        at_once = np.array([polyphony(score) for score in with_notes])
        at_once = at_once[~np.isnan(at_once)]  # NaN: only drums
        repeat_bars = LONG_REPEAT_BARS if voices == 1 else 0
        return cls(
            voices=voices,
            ensembles=ensembles_of(pieces),
            rhythms=rhythms_of(pieces),
            meter=_meter_of_most_bars(with_notes),
            tempo_bpm=_tempo_of_middle_bar(with_notes),
            loops=known_loops(pieces),
            registers=known_registers(with_notes),
            pitches=pitches_played(pieces),
            ranges=pitch_ranges(pieces),
            monophonic=monophonic_programs(pieces),
            polyphony=float(at_once.mean()) if len(at_once) else None,
            rests=float(np.mean([rests(score) for score in with_notes])),
            parallels_per_100_bars=parallels(pieces),
            regular_bars=float(np.mean([has_regular_bars(score) for score in pieces])),
            closing=float(np.mean([ends_on_triad(score) for score in with_notes])),
            keys=count_keys(pieces),
            forms=tuple(form_of(score, repeat_bars) for score in with_notes),
            extremes=Extremes.of(with_notes),
            usual=Usual.of(with_notes),
        )

    @property
    def meters(self) -> list[tuple[int, int]]:
        """The time signatures of these pieces, the most frequent first; none is known: []."""
        return [meter for meter, _ in Counter(form.meter for form in self.forms).most_common()]

    @property
    def first_bars(self) -> tuple[tuple[int, int, int], ...]:
        """The time signatures of these pieces, each with steps of a first bar, once each."""
        return tuple({(*form.meter, form.first_bar_steps): None for form in self.forms})

    @property
    def is_of_one_voice(self) -> bool:
        """Whether there is one instrument, which plays one note at a time."""
        return self.voices == 1 and self.polyphony is not None and self.polyphony <= ONE_NOTE

    @property
    def is_strict(self) -> bool:
        """Whether there are four parts with hardly any parallels, or a single part."""
        parallels = self.parallels_per_100_bars
        return self.is_of_one_voice or (parallels is not None and parallels < FEW_PARALLELS)

    @property
    def hardly_rests(self) -> bool:
        """Whether instruments hardly ever rest."""
        return self.rests is not None and self.rests < FEW_RESTS

    @property
    def has_regular_bars(self) -> bool:
        """Whether nearly all pieces have regular bars."""
        return self.regular_bars is not None and self.regular_bars >= MOSTLY_REGULAR

    @property
    def mostly_closes(self) -> bool:
        """Whether most pieces end on a triad in root position."""
        return self.closing is not None and self.closing >= MOSTLY_CLOSING

    def is_exceeded_by(self, score: Score) -> bool:
        """Return whether a piece goes beyond all training pieces."""
        return self.extremes is not None and self.extremes.are_exceeded_by(score)

    def is_unusual(self, score: Score) -> bool:
        """Return whether a piece loops, or is emptier or fuller than others; no short one is."""
        if self.usual is None or len(score.bars) < FEW_BARS:
            return False
        return not all(self.usual.has(score)) or self.is_exceeded_by(score)

    def joining(self, programs: Sequence[int], voices: int, known: Sequence[int]) -> list[int]:
        """Return the programs that join those of a seed, as they play together in these pieces.

        None join if the seed has as many voices as some pieces with these programs, or as the
        median of all pieces, or as many programs as a quarter of all bands. Otherwise those join
        that are in the most frequent ensemble with the seed's programs.

        Args:
            programs: of the seed.
            voices: how many voices the seed has.
            known: all programs of the model, which join if no ensemble is known.
        """
        pieces = sum(each.pieces for each in self.ensembles)
        theirs = [each for each in self.ensembles if {*programs} <= {*each.programs}]
        alike = sum(each.pieces for each in theirs if len(each.programs) == voices)
        own = len({*programs})
        small = sum(each.pieces for each in self.ensembles if len(each.programs) <= own)
        is_band = bool(self.registers) and own > 1 and small >= SMALL_BANDS * pieces
        if is_band or voices >= (self.voices or len(known)) or alike > EXCEPTIONS * pieces:
            return []
        with_them = (each.programs for each in theirs if len(each.programs) > own)
        together = next(with_them, () if self.ensembles else known)
        return sorted({*together} - {*programs})

    @property
    def tune(self) -> int | None:
        """The program that plays tunes: the highest in the ensemble that plays the most pieces.

        That is the one whose range has the highest middle. None: no program is known to have
        pitches.
        """
        each = (set(each.programs) & set(self.ranges) for each in self.ensembles)
        together = next(filter(None, each), set())
        return max(sorted(together), key=lambda program: sum(self.ranges[program]), default=None)

    # What new pieces should be like, drawn as often as the training pieces are like that.

    def draw_keys(self, count: int, rng: np.random.Generator) -> list[Key | None]:
        """Draw the keys of `count` pieces; None: no key is known."""
        counts = np.array([n for mode in PROFILES for n in self.keys.get(mode, ())])
        if not counts.any():
            return [None] * count
        drawn = rng.choice(len(counts), count, p=counts / counts.sum()).tolist()
        return [Key(number % OCTAVE, [*PROFILES][number // OCTAVE]) for number in drawn]

    def draw_regular(self, count: int, rng: np.random.Generator) -> Bools | None:
        """Draw which of `count` pieces have bars of one length, (count,).

        None: nothing is drawn, since nearly all training pieces have such bars, or it is unknown.
        """
        if self.regular_bars is None or self.has_regular_bars:
            return None
        return rng.random(count) < self.regular_bars

    def draw_ensembles(
        self,
        count: int,
        rng: np.random.Generator,
        known: Sequence[int],
        given: Set[int] = frozenset(),
    ) -> list[tuple[int, ...]]:
        """Draw the programs that play in `count` pieces, from those that are known; []: none is.

        Each draw has the given programs, and others beside them.
        """
        ensembles = [
            each
            for each in self.ensembles
            if {*each.programs} <= {*known} | given and {*each.programs} - given
        ]
        if not ensembles:
            return []
        fitting = [each for each in ensembles if given <= {*each.programs}] or ensembles
        drawn = _drawn(fitting, count, rng)
        return [tuple(sorted({*given, *each.programs})) for each in drawn]

    def draw_rhythms(
        self,
        count: int,
        rng: np.random.Generator,
        steps_per_beat: int,
        given: Set[int] = frozenset(),
    ) -> Bools:
        """Draw on which steps of a beat notes may begin in `count` pieces, (count, steps_per_beat).

        All pieces have the steps on which notes are given. (count, 0): no rhythms are known.
        """
        if not self.rhythms:
            return np.empty((count, 0), dtype=bool)
        fitting = [rhythm for rhythm in self.rhythms if given <= {*rhythm.steps}] or self.rhythms
        drawn, steps = _drawn(fitting, count, rng), np.arange(steps_per_beat)
        return np.array([np.isin(steps, [*given, *each.steps]) for each in drawn])

    def draw_loops(
        self, rng: np.random.Generator, programs: Sequence[int], playing: Sequence[Sequence[int]]
    ) -> Ints:
        """Draw how many bars before each program (P,) played the same in B pieces, (B, bars, P).

        If training pieces have the programs that are `playing` in a new piece, it is as in one of
        these. (B, 0, P): no loops are known.
        """
        drawn = []
        for ensemble in playing if self.loops else ():
            alike = [each for each in self.loops if {*each.of} == {*ensemble}] or self.loops
            drawn.append(lags(alike[rng.integers(len(alike))], programs))
        return np.stack(drawn) if drawn else np.empty((len(playing), 0, len(programs)), np.int64)

    def draw_loops_after(
        self, rng: np.random.Generator, programs: Sequence[int], begun: Loops, count: int
    ) -> Ints:
        """Draw as `draw_loops` does how `count` pieces go on whose first bars have these loops.

        Instruments go on as in the same training piece where it has several that began alike.
        """
        drawn = []
        for _ in range(count):
            known = [self.loops[number] for number in rng.permutation(len(self.loops))]
            drawn.append(lags(going_on(begun, known, programs), programs))
        return np.stack(drawn)

    def draw_registers(
        self, rng: np.random.Generator, playing: Sequence[Sequence[int]]
    ) -> list[dict[int, tuple[int, ...]]]:
        """Draw which pitches programs have in pieces, as in a training piece with those playing.

        Where none has these programs nothing is known of the piece.
        """
        drawn = []
        for ensemble in playing if self.registers else ():
            alike = [each for each in self.registers if each.keys() == {*ensemble}] or [{}]
            drawn.append(alike[rng.integers(len(alike))])
        return drawn

    def draw_final_positions(
        self, count: int, rng: np.random.Generator, meter: tuple[int, int] | None
    ) -> Ints:
        """Draw how many steps after the last bar line final chords begin, (count,); -1: unknown.

        Args:
            count: of pieces.
            rng: of the random choice.
            meter: the time signature; None: any.
        """
        known = [form.final_position for form in self.forms if meter in (None, form.meter)]
        return rng.choice(known, count) if known else np.full(count, -1)

    def draw_form(
        self,
        meter: tuple[int, int],
        first_bar_steps: int,
        bars: int,
        final_position: int,
        last_bar: int,
        rng: np.random.Generator,
    ) -> Form | None:
        """Draw the form of a piece whose first bar is written; None: no other begins like it.

        The form has about as many bars, and a final chord at the same position if there is one. Or
        it is that of the first `bars` bars of a longer piece, where the last bar begins at the step
        `last_bar`.
        """
        begin = meter, first_bar_steps
        alike = [form for form in self.forms if (form.meter, form.first_bar_steps) == begin]
        near = [form for form in alike if abs(form.bars - bars) <= MORE_OR_FEWER_BARS]
        longer = [form for form in alike if form.bars > bars + MORE_OR_FEWER_BARS]
        if len(near) < FEW_FORMS and longer:
            near += [each.opening(bars, last_bar, final_position) for each in longer]
        elif not near:
            most = max((form.bars for form in alike), default=0)
            near = [form for form in alike if form.bars == most]
        near = [form for form in near if form.final_position == final_position] or near
        return near[rng.integers(len(near))] if near else None


def _meter_of_most_bars(pieces: Sequence[Score]) -> tuple[int, int] | None:
    meters = Counter(
        (numerator, denominator)
        for score in pieces
        for numerator, denominator, _ in (score.bars.tolist() if score.grid.has_meter else [])
    )
    return max(meters, key=meters.__getitem__, default=None)


def _tempo_of_middle_bar(pieces: Sequence[Score]) -> int | None:
    tempi = [bpm for score in pieces if score.grid.has_meter for bpm in score.tempo_bpm.tolist()]
    return sorted(tempi)[len(tempi) // 2] if tempi else None


def _drawn(known: Sequence[Counted], count: int, rng: np.random.Generator) -> list[Counted]:
    """Draw `count` of what is known, each as often as pieces have it."""
    pieces = np.array([each.pieces for each in known])
    numbers = rng.choice(len(known), count, p=pieces / pieces.sum())
    return [known[number] for number in numbers.tolist()]
