"""What a musician would count in a piece: some 570 numbers, in groups that have names.

They apply to any music. Voices are the programs of a piece, apart from drums, from the highest on
average to the lowest. If there are more than four, the two highest and the two lowest count. If a
voice plays chords, its highest notes are its line. What a piece does not have, such as the
intervals between two voices in a tune for one, is NaN. A share is between 0 and 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ids, Ints, Reals
from common.interface import OCTAVE
from data.extremes import note_density
from data.keys import KEY_PROFILES, high_to_low, pitched_notes
from data.score import BAR, NOTE, Grid, Score

Figures: TypeAlias = dict[str, float]  # by their names

VERSION = 1  # raised when a statistic changes, since critics (data/critic.py) weigh them

REST = -1
VOICES = ("soprano", "alto", "tenor", "bass")
OF_FEW = {1: (0,), 2: (0, 3), 3: (0, 1, 3)}  # which of VOICES there are, if fewer than four
LEAST_NOTES = 3  # in a line that is counted

LARGE = 8  # semitones; larger leaps are in one class
STEP = 2  # semitones at most; a leap goes farther
INTERVALS = (
    *("large leaps down", "fifths down", "tritones down", "fourths down", "major thirds down"),
    *("minor thirds down", "whole steps down", "semitones down", "notes struck again"),
    *("semitones up", "whole steps up", "minor thirds up", "major thirds up", "fourths up"),
    *("tritones up", "fifths up", "large leaps up"),
)
CLASSES = (
    *("unisons and octaves", "semitones", "whole steps", "minor thirds", "major thirds", "fourths"),
    *("tritones", "fifths", "minor sixths", "major sixths", "minor sevenths", "major sevenths"),
)
ABOVE = tuple(f"{n} semitones up" for n in range(OCTAVE))
# Intervals in semitones, ignoring octaves.
THIRDS, FIFTHS, SIXTHS, PERFECT = (3, 4), (6, 7), (8, 9), (0, 7)
FIFTH = 7
DURATIONS = (
    *("sixteenths", "eighths", "dotted eighths", "quarters", "dotted quarters", "halves"),
    *("dotted halves", "longer notes"),
)
BEATS = (1 / 4, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3)  # the longest of each but the last
PLACES = (
    *("on beat 1", "on beat 2", "on beat 3", "on beat 4 and later"),
    *("half way from beats 1 and 3", "half way from beats 2 and 4", "elsewhere"),
)

CHORDS: dict[str, tuple[tuple[int, ...], ...]] = {  # semitones above the root; the first to fit
    "major triads": ((0, 4, 7),),
    "minor triads": ((0, 3, 7),),
    "diminished triads": ((0, 3, 6),),
    "augmented triads": ((0, 4, 8),),
    "dominant sevenths": ((0, 4, 7, 10), (0, 4, 10)),
    "minor sevenths": ((0, 3, 7, 10), (0, 3, 10)),
    "half-diminished sevenths": ((0, 3, 6, 10),),
    "diminished sevenths": ((0, 3, 6, 9),),
    "major sevenths": ((0, 4, 7, 11), (0, 4, 11)),
    "suspended fourths": ((0, 5, 7),),
    "major thirds alone": ((0, 4),),
    "minor thirds alone": ((0, 3),),
    "fifths alone": ((0, 7),),
    "octaves alone": ((0,),),
}
KINDS = (*CHORDS, "other chords")
TRIADS, DOMINANTS, SEVENTHS = (0, 1), (0, 4), (4, 5, 6, 7, 8)  # among KINDS
PROGRESSIONS = {  # of roots, in semitones above the tonic
    **{"V-I": (7, 0), "IV-I": (5, 0), "I-IV": (0, 5), "I-V": (0, 7), "IV-V": (5, 7)},
    **{"II-V": (2, 7), "V-VI": (7, 9), "VI-II": (9, 2), "VII-I": (11, 0)},
}


def _read_chords() -> tuple[Ints, Ints]:
    """Return the kind and the root of each set of pitch classes above the bass, (4096,) each."""
    kinds, roots = np.full(1 << OCTAVE, len(CHORDS)), np.zeros(1 << OCTAVE, dtype=np.int64)
    shapes = [(kind, shape) for kind, each in enumerate(CHORDS.values()) for shape in each]
    for kind, shape in reversed(shapes):
        for root in reversed(range(OCTAVE)):
            members = sum(1 << (root + step) % OCTAVE for step in shape)
            if members & 1:  # the bass is one of them
                kinds[members], roots[members] = kind, root
    return kinds, roots


CHORD_KINDS, CHORD_ROOTS = _read_chords()


@dataclass(frozen=True)
class Line:
    """N notes that follow each other."""

    onset: Ints
    end: Ints
    pitch: Ints
    place: Reals  # place in the bar, in beats

    @cached_property
    def steps(self) -> Ints:
        """(N - 1,) the semitones from note to note."""
        return np.diff(self.pitch)

    def notes_at(self, times: Ints) -> Ints:
        """Return the index of the note that sounds at each time; REST: none does."""
        note = np.searchsorted(self.onset, times, side="right") - 1
        return np.where((note >= 0) & (self.end[note] > times), note, REST)


@dataclass(frozen=True)
class Chords:
    """What sounds at T times."""

    sets: Bools  # (T, 12) whether each pitch class sounds
    bass: Ints  # (T,) the lowest pitch
    kind: Ints  # (T,) among KINDS
    root: Ints  # (T,) pitch class


class Music:
    """A piece as its statistics read it.

    Attributes:
        lines: of VOICES; None for those that the piece does not have.
        beats: (B,) the steps of all beats from the first onset to the last; dotted quarters in 6/8.
        beat_in_bar: (B,) the number of each beat in its bar, from 0.
        onsets: (S,) the steps at which notes begin.
        beat_steps: how many steps a beat has, on average.
        tonic: of the key that fits the whole piece best.
    """

    def __init__(self, score: Score) -> None:
        self.score, self.notes = score, pitched_notes(score)
        notes, bars = self.notes, score.bars
        numerator, denominator = (bars[n].astype(np.int64) for n in ("numerator", "denominator"))
        is_compound = (numerator > 3) & (numerator % 3 == 0) & (denominator >= 8)
        beat = 4 * score.grid.steps_per_beat // denominator * np.where(is_compound, 3, 1)
        beat = np.maximum(beat, 1)  # (M,)
        counts = -(-bars["length"].astype(np.int64) // beat)
        number = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        beats = np.repeat(score.bar_starts[:-1], counts) + number * np.repeat(beat, counts)
        self.beat_steps = float(beat.mean()) if len(beat) else 1.0
        self.onsets = np.unique(notes["onset"]).astype(np.int64)
        first, last = self.onsets[[0, -1]] if len(self.onsets) else (0, -1)
        is_heard = (beats >= first) & (beats <= last)
        self.beats, self.beat_in_bar = beats[is_heard], number[is_heard]
        self.bar = np.searchsorted(score.bar_starts, notes["onset"], side="right") - 1  # (N,)
        self._place = (notes["onset"] - score.bar_starts[self.bar]) / beat[self.bar]
        self.sounding = np.bincount(notes["pitch"] % OCTAVE, notes["duration"], OCTAVE)  # (12,)
        self.tonic = int((KEY_PROFILES @ self.sounding).argmax()) % OCTAVE
        self.lines = self._lines()

    def _lines(self) -> list[Line | None]:
        program, pitch = self.notes["program"], self.notes["pitch"].astype(np.int64)
        by_height = high_to_low(self.score)
        if len(by_height) > len(VOICES):
            by_height = by_height[:2] + by_height[-2:]
        lines: list[Line | None] = [None] * len(VOICES)
        for slot, own in zip(OF_FEW.get(len(by_height), range(4)), by_height, strict=False):
            at = np.flatnonzero(program == own)  # sorted by onset, then by pitch
            onset = self.notes["onset"][at].astype(np.int64)
            at = at[np.append(onset[1:] != onset[:-1], True)]  # the highest note at each onset
            onset = self.notes["onset"][at].astype(np.int64)
            end = onset + self.notes["duration"][at]
            end[:-1] = np.minimum(end[:-1], onset[1:])
            lines[slot] = Line(onset, end, pitch[at], self._place[at])
        return lines

    def pitches(self, times: Ints) -> Ints:
        """Return (T, 4): the pitch of each voice at these times; REST: it has none."""
        found = np.full((len(times), len(VOICES)), REST)
        for slot, line in enumerate(self.lines):
            if line is not None:
                note = line.notes_at(times)
                found[:, slot] = np.where(note == REST, REST, line.pitch[note])
        return found

    def chords_at(self, times: Ints) -> Chords:
        """Read the chords at these times, which must rise."""
        notes = self.notes
        onset, pitch = notes["onset"].astype(np.int64), notes["pitch"].astype(np.int64)
        first = np.searchsorted(times, onset)
        count = np.searchsorted(times, onset + notes["duration"]) - first
        at = np.arange(count.sum()) - np.repeat(count.cumsum() - count - first, count)
        pitch = np.repeat(pitch, count)  # of each note, at each time at which it sounds
        sets = np.zeros((len(times), OCTAVE), dtype=bool)
        sets[at, pitch % OCTAVE] = True
        bass = np.full(len(times), np.iinfo(np.int64).max)
        np.minimum.at(bass, at, pitch)
        sets, bass = sets[sets.any(axis=1)], bass[sets.any(axis=1)]
        above = np.take_along_axis(sets, (bass[:, None] + np.arange(OCTAVE)) % OCTAVE, axis=1)
        members = above @ (1 << np.arange(OCTAVE))
        return Chords(sets, bass, CHORD_KINDS[members], (bass + CHORD_ROOTS[members]) % OCTAVE)

    @cached_property
    def chords(self) -> Chords:
        """The chords on those beats on which anything sounds."""
        return self.chords_at(self.beats)

    @cached_property
    def chords_by_place(self) -> dict[str, Chords]:
        """These chords, and those half a beat later."""
        between = self.chords_at(self.beats + int(self.beat_steps) // 2)
        return {"on beats": self.chords, "between beats": between}

    @cached_property
    def moves(self) -> Ints:
        """(S, 4) the pitches of the voices at each onset."""
        return self.pitches(self.onsets)


@dataclass(frozen=True)
class Group:
    """Statistics that belong together: their name, and the function that computes them."""

    name: str
    compute: Callable[..., Figures]  # takes the piece, and a voice or two slots
    slots: tuple[int, ...]  # the voices that it is about, by their place in VOICES
    needs_pitch: bool

    def of(self, music: Music) -> Figures:
        """Return the statistics of a piece; {} if it has nothing to count, or hardly a note."""
        lines = [music.lines[slot] for slot in self.slots]
        is_hardly = len(lines) == 1 and (lines[0] is None or len(lines[0].pitch) < LEAST_NOTES)
        if is_hardly or (self.needs_pitch and not len(music.onsets)):
            return {}
        return self.compute(music, *(lines if len(lines) == 1 else self.slots))


GROUPS: list[Group] = []


def _group(name: str, voices: int = 0, needs_pitch: bool = False) -> Callable[[Any], Any]:
    """Register a function of a piece, of each of its voices (voices=1), or of each pair (voices=2).

    Such functions take (Music), (Music, Line), or (Music, high slot, low slot), and return Figures.
    """

    def register(compute: Callable[..., Figures]) -> Callable[..., Figures]:
        for slots in combinations(range(len(VOICES)), voices):
            whose = " and ".join(VOICES[slot] for slot in slots)
            own = f"{name}, {whose}" if whose else name
            GROUPS.append(Group(own, compute, slots, needs_pitch))
        return compute

    return register


_of_pitches = partial(_group, needs_pitch=True)
_of_voices, _of_pairs = partial(_group, voices=1), partial(_group, voices=2)


def _shares(names: Sequence[str], numbers: Ids, first: int = 0) -> Figures:
    """Return the share of each number from `first` on, by name; {}: there are no numbers."""
    if not len(numbers):
        return {}
    counts = np.bincount(numbers, minlength=first + len(names))[first:]
    return dict(zip(names, (counts / len(numbers)).tolist(), strict=True))


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _entropy(*columns: Ids) -> float:
    """Return the entropy of rows of numbers in bits; NaN if there are none."""
    _, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    share = counts / max(counts.sum(), 1)
    return float(-(share * np.log2(share)).sum()) if len(share) else float("nan")


def _classes(steps: Ints) -> Ints:
    """Return the number of each interval in INTERVALS."""
    return np.clip(steps, -LARGE, LARGE) + LARGE


# Of each voice


@_of_voices("intervals")
def _intervals(_: Music, line: Line) -> Figures:
    return _shares(INTERVALS, _classes(line.steps))


@_of_voices("durations")
def _durations(music: Music, line: Line) -> Figures:
    return _shares(DURATIONS, np.searchsorted(BEATS, (line.end - line.onset) / music.beat_steps))


@_of_voices("places of notes in the bar")
def _places(_: Music, line: Line) -> Figures:
    beat, part = np.minimum(line.place.astype(np.int64), 3), line.place % 1
    place = np.where(part == 0, beat, np.where(part == 0.5, 4 + beat % 2, 6))
    return _shares(PLACES, place)


@_of_voices("contour")
def _contour(_: Music, line: Line) -> Figures:
    moves, off_beat = line.steps[line.steps != 0], line.place % 1 != 0
    turns, leaps = np.sign(moves[:-1]) != np.sign(moves[1:]), np.abs(moves) > STEP
    come, go = line.steps[:-1], line.steps[1:]
    by_step = (np.abs(line.steps) <= STEP) & (line.steps != 0)
    passes = by_step[:-1] & by_step[1:] & (np.sign(come) == np.sign(go))
    neighbors = by_step[:-1] & (come == -go)
    return {
        "turns": _mean(turns),
        "turns after leaps": _mean(turns[leaps[:-1]]),
        "steps after leaps": _mean(~leaps[1:][leaps[:-1]]),
        "leaps after leaps, onward": _mean(leaps[:-1] & leaps[1:] & ~turns),
        "passing notes off the beat": _mean(passes[off_beat[1:-1]]),
        "neighbor notes off the beat": _mean(neighbors[off_beat[1:-1]]),
        "passing notes on the beat": _mean(passes[~off_beat[1:-1]]),
        "notes struck again on the beat": _mean((line.steps == 0) & ~off_beat[1:]),
        "notes off the beat that are reached by step": _mean(by_step[off_beat[1:]]),
        "entropy of intervals, bits": _entropy(line.steps),
        "entropy of intervals after one another, bits": _entropy(come, go) - _entropy(go),
    }


@_of_voices("rhythm")
def _rhythm(music: Music, line: Line) -> Figures:
    durations = line.end - line.onset
    span = (music.onsets[-1] - music.onsets[0]) / music.beat_steps
    after = _entropy(durations[:-1], durations[1:]) - _entropy(durations[1:])
    return {
        "durations like the one before": _mean(durations[1:] == durations[:-1]),
        "entropy of durations, bits": _entropy(durations),
        "entropy of durations after one another, bits": after,
        "notes a beat": len(durations) / max(span, 1),
        "rests between notes": _mean(line.onset[1:] > line.end[:-1]),
    }


@_of_voices("height")
def _height(_: Music, line: Line) -> Figures:
    low, median, high = np.quantile(line.pitch, (0.05, 0.5, 0.95)).tolist()
    own = {"deviation": float(line.pitch.std()), "range": float(np.ptp(line.pitch))}
    return {"low notes": low, "median": median, "high notes": high, **own}


@_of_voices("degrees from the tonic")
def _degrees(music: Music, line: Line) -> Figures:
    return _shares(ABOVE, (line.pitch - music.tonic) % OCTAVE)


# Of each pair of voices


@_of_pairs("intervals on beats")
def _verticals(music: Music, high: int, low: int) -> Figures:
    pitch = music.pitches(music.beats)[:, [high, low]]
    pitch = pitch[(pitch != REST).all(axis=1)]
    return _shares(CLASSES, (pitch[:, 0] - pitch[:, 1]) % OCTAVE)


@_of_pairs("motion")
def _motion(music: Music, high: int, low: int) -> Figures:
    pitch = music.moves[:, [high, low]]
    pitch = pitch[(pitch != REST).all(axis=1)]
    if len(pitch) < LEAST_NOTES:
        return {}
    distance = pitch[:, 0] - pitch[:, 1]
    steps = np.diff(pitch, axis=0)
    moves = (steps != 0).any(axis=1)
    before, after, steps = distance[:-1][moves] % OCTAVE, distance[1:][moves] % OCTAVE, steps[moves]
    both = (steps != 0).all(axis=1)
    alike = both & (np.sign(steps[:, 0]) == np.sign(steps[:, 1]))
    thirds, sixths = (np.isin(before, each) & np.isin(after, each) for each in (THIRDS, SIXTHS))
    to_perfect = alike & np.isin(after, PERFECT)
    return {
        "in the same direction": _mean(alike),
        "against each other": _mean(both & ~alike),
        "in parallel thirds": _mean(alike & thirds),
        "in parallel sixths": _mean(alike & sixths),
        "to fifths and octaves in the same direction": _mean(to_perfect),
        "in parallel fifths and octaves": _mean(to_perfect & (before == after)),
        "leaps of both": _mean((np.abs(steps) > STEP).all(axis=1)),
        "distance": _mean(distance),
        "deviation of the distance": float(distance.std()),
        "crossings": _mean(distance < 0),
    }


# Of all voices: harmony


@_of_pitches("chords on beats")
def _chord_kinds(music: Music) -> Figures:
    return _shares(KINDS, music.chords.kind)


@_of_pitches("chords on first beats")
def _first_chords(music: Music) -> Figures:
    return _shares(KINDS, music.chords_at(music.beats[music.beat_in_bar == 0]).kind)


@_of_pitches("pitch classes at once")
def _classes_at_once(music: Music) -> Figures:
    found = dict[str, float]()
    for place, chords in music.chords_by_place.items():
        names = [f"{n} {place}" for n in (1, 2, 3, 4, "5 or more")]
        found |= _shares(names, np.minimum(chords.sets.sum(axis=1), 5), first=1)
    return found


@_of_pitches("inversions")
def _inversions(music: Music) -> Figures:
    chords = music.chords
    above = (chords.bass - chords.root) % OCTAVE
    of_triads, of_sevenths = (above[np.isin(chords.kind, each)] for each in (TRIADS, SEVENTHS))
    return {
        "triads in root position": _mean(of_triads == 0),
        "sixth chords": _mean(np.isin(of_triads, THIRDS)),
        "six-four chords": _mean(np.isin(of_triads, FIFTHS)),
        "sevenths in root position": _mean(of_sevenths == 0),
        "six-five chords": _mean(np.isin(of_sevenths, THIRDS)),
        "four-three chords": _mean(np.isin(of_sevenths, FIFTHS)),
        "four-two chords": _mean(of_sevenths >= 9),
    }


@_of_pitches("doublings in triads")
def _doublings(music: Music) -> Figures:
    sounding = music.pitches(music.beats)
    pitch = sounding[(sounding != REST).any(axis=1)]
    chords = music.chords
    if len(pitch) != len(chords.root):  # in a voice of chords, the line is not all of it
        return {}
    above = np.where(pitch == REST, REST, (pitch - chords.root[:, None]) % OCTAVE)
    above = above[np.isin(chords.kind, TRIADS)]
    return {
        f"{what} {times}": _mean(np.isin(above, each).sum(axis=1) == n)
        for what, each in (("root", (0,)), ("third", THIRDS), ("fifth", (FIFTH,)))
        for n, times in enumerate(("once", "twice", "thrice"), start=1)
    }


@_of_pitches("roots of chords from the tonic")
def _roots(music: Music) -> Figures:
    return _shares(ABOVE, (music.chords.root - music.tonic) % OCTAVE)


@_of_pitches("steps of roots from beat to beat")
def _root_steps(music: Music) -> Figures:
    return _shares(ABOVE, np.diff(music.chords.root) % OCTAVE)


@_of_pitches("steps of the lowest note from beat to beat")
def _bass_steps(music: Music) -> Figures:
    return _shares(INTERVALS, _classes(np.diff(music.chords.bass)))


@_of_pitches("progressions")
def _progressions(music: Music) -> Figures:
    root, kind = music.chords.root, music.chords.kind
    same_root, same_kind = np.diff(root) == 0, np.diff(kind) == 0
    is_new = np.append(True, ~(same_root & same_kind))[: len(root)]
    root, kind = root[is_new], kind[is_new]
    degree, step = (root - music.tonic) % OCTAVE, np.diff(root) % OCTAVE
    falls, dominant = step == OCTAVE - FIFTH, np.isin(kind[:-1], DOMINANTS)
    triad = np.isin(kind, TRIADS)
    return {
        "roots that fall a fifth": _mean(falls),
        "dominants that fall a fifth": _mean(falls & dominant),
        "dominants that resolve": _mean(falls & dominant & triad[1:]),
        "deceptive cadences": _mean(dominant & np.isin(step, (1, 2)) & triad[1:]),
        **{
            name: _mean((degree[:-1] == one) & (degree[1:] == other))
            for name, (one, other) in PROGRESSIONS.items()
        },
        "triad to triad": _mean(triad[:-1] & triad[1:]),
        "entropy of chords, bits": _entropy(degree, kind),
        "entropy of steps of roots, bits": _entropy(step),
        "the same chord as a beat before": _mean(same_root & same_kind),
        "the same root as a beat before": _mean(same_root),
    }


@_of_pitches("resolutions")
def _resolutions(music: Music) -> Figures:
    rises, falls, held, stays = ([np.empty(0, dtype=bool)] for _ in range(4))
    sounding = (music.pitches(music.beats) != REST).any(axis=1)
    for line in music.lines:
        if (
            line is None
            or len(line.pitch) < LEAST_NOTES
            or sounding.sum() != len(music.chords.root)
        ):
            continue
        note = line.notes_at(music.beats[sounding])
        is_in = (note != REST) & (note < len(line.steps))
        note, chords = note[is_in], music.chords
        above = (line.pitch[note] - chords.root[is_in]) % OCTAVE
        third = np.isin(chords.kind[is_in], DOMINANTS) & (above == 4)
        seventh = (chords.kind[is_in] == 4) & (above == 10)
        step = line.steps[note]
        rises.append(step[third] == 1)
        stays.append(step[third] == 0)
        falls.append(np.isin(step[seventh], (-1, -2)))
        held.append(line.onset[note] < music.beats[sounding][is_in])
    return {
        "thirds of major chords that rise a semitone": _mean(np.concatenate(rises)),
        "sevenths that fall": _mean(np.concatenate(falls)),
        "notes held over a beat": _mean(np.concatenate(held)),
        "thirds of major chords that stay": _mean(np.concatenate(stays)),
    }


@_of_pitches("dissonances")
def _dissonances(music: Music) -> Figures:
    clashes = {
        f"{what} {place}": _mean(np.any(sets & np.roll(sets, step, axis=1), axis=1))
        for place, sets in ((place, each.sets) for place, each in music.chords_by_place.items())
        for what, step in (("semitones", 1), ("whole steps", 2), ("tritones", 6))
    }
    before, after = music.chords.sets[:-1], music.chords.sets[1:]
    new, gone = after & ~before, before & ~after
    rise, fall = (_mean((new & np.roll(gone, step, axis=1)).sum(axis=1)) for step in (1, -1))
    return {
        **clashes,
        "pitch classes that rise a semitone a beat": rise,
        "pitch classes that fall a semitone a beat": fall,
    }


@_of_pitches("keys")
def _keys(music: Music) -> Figures:
    fits = KEY_PROFILES @ music.sounding
    best = np.sort(fits)
    by_bar = np.zeros((len(music.score.bars), OCTAVE))
    np.add.at(by_bar, (music.bar, music.notes["pitch"] % OCTAVE), music.notes["duration"])
    heard = by_bar + np.vstack([by_bar[1:], by_bar[-1:]])  # in two bars
    keys = (heard @ KEY_PROFILES.T).argmax(axis=1)
    shares = np.roll(music.sounding, -music.tonic) / music.sounding.sum()
    return {
        **{f"time {n} semitones above the tonic": share for n, share in enumerate(shares)},
        "clearness": (best[-1] - best[-2]) / max(best[-1], 1),
        "bars in the key of the piece": _mean(keys == fits.argmax()),
        "changes of key, a bar": _mean(np.diff(keys) != 0),
        "entropy of keys, bits": _entropy(keys),
        "pitch classes a bar": _mean((by_bar > 0).sum(axis=1)),
    }


# Of all voices: texture, and the whole


@_of_pitches("texture")
def _texture(music: Music) -> Figures:
    lines = [line for line in music.lines if line is not None]
    count = np.sum([np.isin(music.onsets, line.onset) for line in lines], axis=0)
    on_beat = np.isin(music.onsets, music.beats)
    begin = dict[str, float]()
    for place, each in zip(music.chords_by_place, (on_beat, ~on_beat), strict=True):
        names = [f"{n} voices begin {place}" for n in (1, 2, 3, 4)]
        begin |= _shares(names, np.minimum(count[each], 4), first=1)
    return {
        **begin,
        "voices at once": _mean((music.moves != REST).sum(axis=1)),
        "beats with an onset": _mean(np.isin(music.beats, music.onsets)),
        "onsets on beats": _mean(on_beat),
    }


@_of_pitches("spacing")
def _spacing(music: Music) -> Figures:
    pitch = music.pitches(music.beats)
    pitch = pitch[(pitch != REST).all(axis=1)]
    gaps = -np.diff(pitch, axis=1)  # (T, 3)
    return {
        "soprano and alto beyond an octave": _mean(gaps[:, 0] > 12),
        "alto and tenor beyond an octave": _mean(gaps[:, 1] > 12),
        "tenor and bass beyond a twelfth": _mean(gaps[:, 2] > 19),
        "upper voices within an octave": _mean(np.less(pitch[:, 0] - pitch[:, 2], 12)),
        "unisons": _mean((gaps == 0).any(axis=1)),
    }


@_of_pitches("ending")
def _ending(music: Music) -> Figures:
    chords, notes = music.chords_at(music.onsets[-2:]), music.notes
    last = notes[notes["onset"] + notes["duration"] > music.onsets[-1]]
    outer = [line.steps for line in music.lines if line is not None]
    highest, lowest = (steps[-1] if len(steps) else np.nan for steps in (outer[0], outer[-1]))
    root, before = chords.root[-1], chords.root[0]
    end = (last["onset"] + last["duration"]).min()
    return {
        "on a triad": chords.kind[-1] in TRIADS,
        "on the tonic": root == music.tonic,
        "in root position": chords.bass[-1] % OCTAVE == root,
        "after its dominant": (before - root) % OCTAVE == FIFTH,
        "last chord, beats": (end - music.onsets[-1]) / music.beat_steps,
        "last step of the highest voice": highest,
        "last step of the lowest voice": lowest,
    }


# Of all notes, drums too

MOST_BARS_APART = 16  # the most between bars that are compared: two phrases of eight
RUN_NOTES = 8  # how many notes in a row can count as repeated


@_group("repetition")
def _repetition(music: Music) -> Figures:
    notes, found = music.score.notes, dict[str, float]()
    bar, place = music.score.bar_positions
    begins = np.searchsorted(bar, np.arange(len(music.score.bars) + 1))
    kinds = {"notes": ("program", "pitch", "duration"), "rhythm": ("program", "duration")}
    for what, names in kinds.items():
        items = np.column_stack([place, *(notes[name] for name in names)])
        number = np.unique(items, axis=0, return_inverse=True)[1].reshape(-1)
        bars = [{*number[begin:end].tolist()} for begin, end in pairwise(begins)]
        likest, alike = np.zeros(len(bars)), list[Reals]()
        for apart in range(1, MOST_BARS_APART + 1):
            pairs = zip(bars, bars[apart:], strict=False)
            shared = np.array([len(one & other) / max(len(one | other), 1) for one, other in pairs])
            likest[: len(shared)] = np.maximum(likest[: len(shared)], shared)
            likest[apart:] = np.maximum(likest[apart:], shared)
            alike.append(shared)
        found[f"{what} of the bar before"] = _mean(alike[0])
        found[f"{what} of bars near"] = _mean(np.concatenate(alike[1:]))
        found[f"{what} of the likest bar near"] = _mean(likest)
    return found | {"notes in runs of eight that come again": _in_repeated_runs(music)}


def _in_repeated_runs(music: Music) -> float:
    """Return the share of notes in runs that occur again at another time, in any key and voice."""
    times = defaultdict[tuple[Any, ...], set[int]](set)  # when each run begins
    runs, notes = list[tuple[int, tuple[Any, ...]]](), 0  # from which note on each runs
    for line in music.lines:
        if line is not None:
            steps = [*zip(line.steps.tolist(), np.diff(line.onset).tolist(), strict=True)]
            for first, onset in enumerate(line.onset[: 1 - RUN_NOTES].tolist()):
                run = tuple(steps[first : first + RUN_NOTES - 1])
                times[run].add(onset)
                runs.append((notes + first, run))
            notes += len(line.pitch)
    is_repeated = np.zeros(notes, dtype=bool)
    for first, run in runs:
        is_repeated[first : first + RUN_NOTES] |= len(times[run]) > 1
    return _mean(is_repeated) if runs else float("nan")


@_group("pace")
def _pace(music: Music) -> Figures:
    score = music.score
    onsets = np.unique(score.notes["onset"])
    in_bars = np.bincount(score.bar_positions[0], minlength=len(score.bars))
    return {
        "notes a second": note_density(score),
        "notes at once": len(score.notes) / len(onsets),
        "onsets a bar": len(onsets) / len(score.bars),
        "deviation of notes a bar": float(in_bars.std()),
    }


def _by_name(music: Music) -> Figures:
    """Return those statistics of a piece with notes that are defined, by their whole names."""
    return {
        f"{group.name}: {each}": figure
        for group in GROUPS
        for each, figure in group.of(music).items()
    }


# A piece that has all statistics: four voices, with notes off the beat.
_ALL = Score(
    np.array([(n, 1, 60 - 9 * v + n, 80, v) for n in range(0, 24, 6) for v in range(4)], NOTE),
    np.array([(4, 4, 48)], BAR),
    np.array([120], dtype=np.int32),
    Grid(),
)
NAMES = [*_by_name(Music(_ALL))]
IS_OF_ENDING = np.array([name.startswith("ending: ") for name in NAMES])  # (F,)


def statistics(music: Music) -> Reals:
    """Return (F,): the statistics of a piece in the order of NAMES; NaN if not defined."""
    found = _by_name(music) if len(music.score.notes) else {}
    return np.array([found.get(name, np.nan) for name in NAMES], dtype=np.float64)
