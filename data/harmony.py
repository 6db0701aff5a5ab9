"""Find the chords of music from its notes alone, and name them in a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from common.arrays import Ints, Reals, Records, offsets, segment_ids
from common.interface import OCTAVE
from data.chords import CHORDS, KINDS, Chord, Span
from data.keys import (
    Key,
    fifths_in,
    fifths_of,
    harmonic_scale,
    pitched_notes,
    spell_class,
    written_at,
)
from data.score import NOTE, Grid, Score

LONGEST = 16  # half beats: the longest chord
_AT_ONCE = 1024  # half beats that are judged together

# How well a chord fits a span of half beats. Each half beat counts the share of its sound that
# belongs to the chord, minus OUTSIDE times the share that does not. These count once for each span:
OUTSIDE = 1.0
FIRST_IS_NO_ROOT = 0.2  # subtracted if the lowest note where the chord begins is not its root
LACKS = (1.15, 1.4, 0.15, 0.8, 0.8)  # subtracted for each missing chord note, from the root up
RARE = {  # subtracted for the kind of the chord
    **{"aug": 1.2, "sus2": 1.6, "sus4": 1.2, "7": 0.2, "maj7": 2.8, "m7": 1.9, "m7b5": 1.9},
    **{"dim7": 1.9, "6": 2.1, "m6": 2.1, "9": 2.4},
}
CHANGE = (0.2, 0.25, 1.1)  # subtracted for beginning at a bar line, on another beat, off the beat


class Pulse(NamedTuple):
    """The half beats of music, H of them."""

    edges: Ints  # (H + 1,) grid steps
    level: Ints  # (H,) 0 where a bar begins, 1 on another beat, 2 off the beat

    @classmethod
    def of(cls, bars: Records, grid: Grid) -> Pulse:
        """Return the half beats of bars, (M,) of BAR; only the first of an upbeat may be short."""
        edges, levels, at = list[int](), list[int](), 0
        for number, (*meter, steps) in enumerate(bars.tolist()):
            beat = grid.beat_steps(*meter)
            half = max(beat // 2, 1)
            is_upbeat = number == 0 and steps < grid.bar_steps(*meter)
            early = -steps % beat if is_upbeat else 0
            for step in range(-(early % half), steps, half):
                edges.append(at + max(step, 0))
                levels.append(0 if step <= 0 else 1 + bool((step + early) % beat))
            at += steps
        return cls(np.array([*edges, at]), np.array(levels, dtype=np.int64))


def _templates() -> Reals:
    """Return (36, K), the weights of evidence for each of K chords.

    The evidence is, for each pitch class, how long it sounds, whether it sounds at all, and whether
    it is the lowest note where the chord begins.
    """
    columns = []
    for above in CHORDS.values():
        for root in range(OCTAVE):
            classes = (root + np.array(above)) % OCTAVE
            sounds, lacks, first = np.full(OCTAVE, -OUTSIDE), np.zeros(OCTAVE), np.zeros(OCTAVE)
            sounds[classes], lacks[classes] = 1, LACKS[: len(above)]
            first[np.arange(OCTAVE) != root] = -FIRST_IS_NO_ROOT
            columns.append(np.concatenate([sounds, lacks, first]))
    return np.stack(columns, axis=1)


_TEMPLATES = _templates()
_AGAINST = [RARE.get(kind, 0) + sum(LACKS[: len(above)]) for kind, above in CHORDS.items()]
_AGAINST_ALL = np.repeat(_AGAINST, OCTAVE)  # (K,), kinds of 12 roots each


def find_chords(onset: Ints, end: Ints, pitch: Ints, pulse: Pulse) -> list[Span]:
    """Return the sequence of chords that together fit the notes of music best.

    The bass of a chord is the lowest note where the chord begins, if it belongs to the chord, else
    the root. A pitch class that sounds alone is the root. A triad whose third does not sound gets
    the third that is more common in the music. Where nothing sounds, there is no chord.

    In seven chorales that people analyzed, the root is right for 87% of the time, and root and kind
    for 74%; in 1,034 folk tunes with chords, for 99% and 94% (benchmarks/RESULTS.md).

    Args:
        onset, end, pitch: (N,) of notes with a pitch; times in grid steps.
        pulse: the half beats of the music.
    """
    heard, first = _heard(onset, end, pitch, pulse)
    H = len(pulse.level)
    sums = np.concatenate([np.zeros((1, OCTAVE)), np.cumsum(heard, axis=0)])  # (H + 1, 12)
    bass = np.eye(OCTAVE + 1)[first][:, :OCTAVE]  # (H, 12), zeros where nothing sounds
    change = np.array(CHANGE)[pulse.level]
    best, last = np.zeros(H + 1), np.zeros((H + 1, 2), dtype=np.int64)
    for low in range(1, H + 1, _AT_ONCE):
        stops = np.arange(low, min(low + _AT_ONCE, H + 1))  # (S,)
        begins = stops[:, None] - np.arange(1, LONGEST + 1)  # (S, LONGEST)
        is_before, begins = begins < 0, begins.clip(0)
        within = sums[stops][:, None] - sums[begins]  # (S, LONGEST, 12)
        evidence = np.concatenate([within, within > 1e-9, bass[begins]], axis=-1)
        fits = evidence @ _TEMPLATES - _AGAINST_ALL  # (S, LONGEST, 36) -> (S, LONGEST, K)
        fits = fits.round(9)  # so that ties stay ties, whatever the order of the sums
        chord = fits.argmax(axis=-1)
        fit = np.where(is_before, -np.inf, fits.max(axis=-1) - change[begins])
        for row, stop in enumerate(stops.tolist()):
            reached = fit[row] + best[begins[row]]
            longest = int(reached.argmax())
            best[stop] = reached[longest]
            last[stop] = begins[row, longest], chord[row, longest]
    spans, stop = list[Span](), H
    while stop:
        begin, number = last[stop].tolist()
        heard_at = np.flatnonzero(first[begin:stop] < OCTAVE)
        if len(heard_at):
            low, high = (begin + heard_at[[0, -1]]).tolist()
            found = _chord(number, int(first[low]), sums[stop] - sums[begin], sums[-1])
            spans.append(Span(int(pulse.edges[low]), int(pulse.edges[high + 1]), found))
        stop = begin
    return joined(spans[::-1])


def hold(spans: Sequence[Span], onset: Ints, end: Ints, pitch: Ints, pulse: Pulse) -> list[bool]:
    """Return for each chord whether the notes keep the rules of requested chords.

    generation/chords.py has those rules.

    Args:
        spans: the chords.
        onset, end, pitch, pulse: the music, as in `find_chords`.
    """
    beats, bar_lines = (pulse.edges[:-1][pulse.level <= most] for most in (1, 0))
    found = []
    for begin, stop, chord in spans:
        its = np.isin(pitch % OCTAVE, chord.classes)
        lines = [begin, *bar_lines[(bar_lines > begin) & (bar_lines < stop)].tolist()]
        sounding = [(onset <= line) & (end > line) for line in lines]
        early = (onset < pulse.edges[pulse.edges > begin][0]) & (end > begin)
        later = (onset > begin) & (onset < stop) & np.isin(onset, beats)
        found.append(
            {chord.root, chord.third} <= {*(pitch[early] % OCTAVE).tolist()}
            and all(s.any() and pitch[s].min() % OCTAVE == chord.bass for s in sounding)
            and all(its[s].all() for s in (*sounding, later))
        )
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans, with adjacent spans of the same chord joined into one."""
    found = list[Span]()
    for span in spans:
        if found and found[-1].end == span.begin and found[-1].chord == span.chord:
            found[-1] = found[-1]._replace(end=span.end)
        else:
            found.append(span)
    return found


def _chord(number: int, lowest: int, here: Reals, everywhere: Reals) -> Chord:
    """Return the chord of a number, with the lowest note as its bass if that belongs to it.

    Args:
        number: the number of the chord among K.
        lowest: the pitch class of the lowest note.
        here, everywhere: (12,) how long each pitch class sounds in this span, and in all the music.
    """
    (sounding,) = np.nonzero(here > 1e-9)
    if len(sounding) == 1:
        number = int(sounding[0])
    root, kind = number % OCTAVE, KINDS[number // OCTAVE]
    minor, major = (root + 3) % OCTAVE, (root + 4) % OCTAVE
    if kind in ("", "m") and not {minor, major} & {*sounding.tolist()}:
        kind = "m" if everywhere[minor] > everywhere[major] else ""
    chord = Chord(root, kind, root)
    return chord._replace(bass=lowest) if lowest in chord.classes else chord


def _heard(onset: Ints, end: Ints, pitch: Ints, pulse: Pulse) -> tuple[Reals, Ints]:
    """Return what sounds in each half beat, and its bass.

    Returns:
        (H, 12), the share of each pitch class in the sound; and (H,), the pitch class of the lowest
        of the notes that sound first, or OCTAVE if nothing sounds.
    """
    H = len(pulse.level)
    begin_at = np.searchsorted(pulse.edges, onset, side="right") - 1
    count = np.searchsorted(pulse.edges, end).clip(max=H) - begin_at
    parts = offsets(count.clip(0))  # a note has a part in each half beat
    note = segment_ids(parts)
    at = np.arange(parts[-1]) - parts[note] + begin_at[note]
    begin = np.maximum(onset[note], pulse.edges[at])
    heard = np.zeros((H, OCTAVE))
    np.add.at(heard, (at, pitch[note] % OCTAVE), np.minimum(end[note], pulse.edges[at + 1]) - begin)
    heard /= np.maximum(heard.sum(axis=1, keepdims=True), 1)
    order = np.lexsort((pitch[note], begin, at))
    is_first = np.diff(at[order], prepend=-1) > 0
    first = np.full(H, OCTAVE)
    first[at[order][is_first]] = pitch[note][order][is_first] % OCTAVE
    return heard, first


def chords_of(score: Score) -> list[Span]:
    """Return the chords of a piece where notes sound together; none on a grid of seconds.

    A melody alone is not enough: in 299 melodies of Nottingham, half of the roots that
    `find_chords` finds differ from the tunes' own chords.
    """
    notes = np.sort(pitched_notes(score), order="onset")
    onset, duration, pitch = (notes[n].astype(np.int64) for n in ("onset", "duration", "pitch"))
    if not len(notes) or not score.grid.has_meter or not len(score.bars):
        return []
    end = onset + duration
    latest = np.append(0, np.maximum.accumulate(end)[:-1])  # end of what began before
    meets = np.flatnonzero(onset < latest)
    begin, stop = onset[meets], np.minimum(end, latest)[meets]
    return [
        span
        for span in find_chords(onset, end, pitch, Pulse.of(score.bars, score.grid))
        if np.any((begin < span.end) & (stop > span.begin))
    ]


def spelled(chord: Chord, key: Key) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return how the root and the bass of a chord are written in a key: letters, and their sharps.

    Major chords on flat degrees are spelled as in minor, and a bass as a note of its chord: Fm/Ab
    in C major, where G# would be nearer to the key.
    """
    is_borrowed = numeral(chord, key).startswith(("♭I", "♭V"))
    key = Key(key.tonic, "minor") if is_borrowed else key
    root, bass = (spell_class(each, key) for each in (chord.root, chord.bass))
    above = (chord.bass - chord.root) % OCTAVE
    if above in CHORDS[chord.kind]:
        up = -9 if (chord.kind, above) == ("dim7", 9) else fifths_of(above, -6)
        letter, sharps, _ = written_at(fifths_in(chord.root, key) + up, chord.bass)
        bass = (letter, sharps) if abs(sharps) < 2 else bass
    return root, bass


def symbol(chord: Chord, key: Key) -> str:
    """Return the symbol of a chord, spelled as in a key."""
    root, bass = (letter + "#" * sharps + "b" * -sharps for letter, sharps in spelled(chord, key))
    return f"{root}{chord.kind}" + (f"/{bass}" if chord.bass != chord.root else "")


# Scale degrees by semitones above the tonic, with the sign of those outside the scale.
_DEGREES = {
    "major": (*("I", "♭II", "II", "♭III", "III", "IV"), *("♯IV", "V", "♭VI", "VI", "♭VII", "VII")),
    "minor": (*("I", "♭II", "II", "III", "♯III", "IV"), *("♯IV", "V", "VI", "♯VI", "VII", "VII")),
}
# Figures for the bass, by the number of notes: triads and seventh chords.
_FIGURES = {3: ("", "6", "64"), 4: ("7", "65", "43", "42")}
_LEADING = {"": ("V", 5), "7": ("V", 5)} | dict.fromkeys(("dim", "dim7", "m7b5"), ("VII", 1))
_SIGNS = {"dim": "°", "dim7": "°", "m7b5": "ø", "aug": "+", "maj7": "maj"}


def numeral(chord: Chord, key: Key) -> str:
    """Return the Roman numeral of a chord in a key, such as V65, or V7/V for a dominant of V.

    A major triad on the tonic of a minor key is I, not V/iv: most of them end a phrase.
    """
    own, scale = {*chord._replace(bass=chord.root).classes}, harmonic_scale(key)
    of, up = _LEADING.get(chord.kind, ("", 0))  # its numeral, and the interval, where it leads
    target = (chord.root + up) % OCTAVE
    is_applied = bool(up) and not own <= {*scale} and target in scale and target != key.tonic
    is_applied &= (chord.root, chord.kind) != (key.tonic, "")
    of = of if is_applied else _DEGREES[key.mode][(chord.root - key.tonic) % OCTAVE]
    above = CHORDS[chord.kind]
    is_small = above[1] == 3
    text = (of.lower() if is_small else of) + _SIGNS.get(chord.kind, "")
    place = chord.classes.index(chord.bass)
    if chord.kind in ("6", "m6"):
        text += "add6"
    elif chord.kind in ("sus2", "sus4", "9"):
        text += chord.kind
    elif place < len(above):
        text += _FIGURES[len(above)][place]
    if is_applied:
        third = (target + 4) % OCTAVE in scale
        its = _DEGREES[key.mode][(target - key.tonic) % OCTAVE]
        text += f"/{its if third else its.lower()}"
    return text


def final_chord(score: Score) -> Records:
    """Return the notes with a pitch that sound at the last onset; none for an empty piece."""
    notes = pitched_notes(score)
    if not len(notes):
        return np.empty(0, NOTE)
    last = notes["onset"].max()
    return np.asarray(notes[notes["onset"] + notes["duration"] > last])


def root_of_triad(chord: Records) -> int | None:
    """Return the root of a chord if it is a major or minor triad in root position, else None.

    Pitch classes may be doubled, and the fifth may be missing, but not the third.

    Args:
        chord: (N,) of NOTE.
    """
    if not len(chord):
        return None
    bass = int(chord["pitch"].min())
    above = set(((chord["pitch"] - bass) % 12).tolist())
    is_triad = any({0, third} <= above <= {0, third, 7} for third in (3, 4))
    return bass % 12 if is_triad else None


def ends_on_triad(score: Score) -> bool:
    """Return whether a piece ends on a major or minor triad in root position."""
    return root_of_triad(final_chord(score)) is not None
