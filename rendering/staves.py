"""Staves: what a Score is written on, when its notes are written there, and in which voice."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from common.arrays import Ints
from data.instrument_names import instrument_name
from data.score import DRUMS, FAMILY_PROGRAMS, Score

_MIDDLE_C = 60
# The families of General MIDI, from the top of an orchestral page to its bottom; drums come last.
_FAMILY_ORDER = (9, 8, 7, 1, 14, 13, 10, 11, 12, 15, 6, 3, 0, 2, 5, 4, DRUMS // FAMILY_PROGRAMS)
# Four voices share two staves if the mean pitch of each lies here: S, A, T, B.
_REGISTERS = ((62, 84), (55, 77), (48, 69), (36, 60))
_MOST_OVERLAPS = 0.02  # of a voice's notes, if four voices share two staves
_LEAST_ON_STAFF = 0.12  # of an instrument's notes above and below middle C, to have two staves
_HARP, _VIOLA = 46, 41
_TWO_HANDED = (*range(24), _HARP)  # may have two staves even for one voice
_HIGH, _LOW = 92, 38  # mean pitches, beyond which a clef moves the notes by an octave


class Clef(NamedTuple):
    """A clef: its sign, the line on which it stands, and by how many octaves it moves the notes."""

    sign: str
    line: int | None
    octaves: int = 0


_TREBLE, _ALTO, _BASS = Clef("G", 2), Clef("C", 3), Clef("F", 4)
_PERCUSSION = Clef("percussion", None)


@dataclass(frozen=True)
class Staff:
    """Five lines.

    Attributes:
        clef: at the beginning of the staff.
        voices: for each voice, the upper one first, the indices of its notes in the Score.
        shows_all_rests: whether every voice shows its rests, not only the first.
    """

    clef: Clef
    voices: tuple[Ints, ...]
    shows_all_rests: bool = False


@dataclass(frozen=True)
class Part:
    """What has a name at the left of the page: an instrument, or two that share a staff."""

    name: str
    staves: tuple[Staff, ...]


@dataclass(frozen=True)
class Page:
    """The parts of a Score from the top down; a bracket joins those of four voices."""

    parts: tuple[Part, ...]
    is_choir: bool = False


def arrange(score: Score, onset: Ints, end: Ints, cuts: bool = False) -> Page:
    """Return the parts in which a Score is written: four voices on two staves, or instruments.

    Args:
        score: with N notes.
        onset: (N,) when each note is written to begin, in notation steps.
        end: (N,) when each note is written to end.
        cuts: whether a note will be shortened to the next onset in its voice.
    """
    programs = np.unique(score.notes["program"]).tolist()
    rows = {program: np.flatnonzero(score.notes["program"] == program) for program in programs}
    notes = _Notes(score.notes["pitch"].astype(np.int64), onset, end, cuts)
    mean = {program: float(notes.pitch[its].mean()) for program, its in rows.items()}
    falling = sorted(programs, key=lambda program: -mean[program])
    if len(programs) == len(_REGISTERS) and DRUMS not in programs:
        its = zip(falling, _REGISTERS, strict=True)
        fits = all(low <= mean[program] <= high for program, (low, high) in its)
        if fits and all(notes.are_one_voice(rows[program]) for program in programs):
            upper, lower = (
                Part(
                    "\n".join(instrument_name(program, score.grid) for program in pair),
                    (Staff(clef, tuple(rows[program] for program in pair), True),),
                )
                for pair, clef in ((falling[:2], _TREBLE), (falling[2:], _BASS))
            )
            return Page((upper, lower), is_choir=True)
    falling.sort(key=lambda program: _place_on_page(score.grid.general_midi(program)))
    if score.grid.parts:  # parts have an order, and programs without a name follow
        falling = sorted(programs, key=lambda program: (program == DRUMS, program))
    parts = [
        Part(
            instrument_name(program, score.grid),
            (Staff(_PERCUSSION, (rows[program],)),)
            if program == DRUMS
            else notes.staves(score.grid.general_midi(program), rows[program]),
        )
        for program in falling
    ]
    return Page(tuple(parts) or (Part("", (Staff(_TREBLE, ()),)),))


def _place_on_page(program: int) -> int:
    """Return a number that rises from the top of the page down; a harp stands with the pianos."""
    return _FAMILY_ORDER.index(0 if program == _HARP else program // FAMILY_PROGRAMS)


@dataclass(frozen=True)
class _Notes:
    """The pitches, onsets and ends of all notes, (N,) each; see `arrange`."""

    pitch: Ints
    onset: Ints
    end: Ints
    cuts: bool

    def are_one_voice(self, rows: Ints) -> bool:
        """Return whether nearly all of these notes begin after the one before has ended."""
        overlaps = np.count_nonzero(self.onset[rows[1:]] < self.end[rows[:-1]])
        return bool(overlaps <= _MOST_OVERLAPS * len(rows))

    def staves(self, program: int, rows: Ints) -> tuple[Staff, ...]:
        """Return the staves of a General MIDI program: two if two hands play high and low."""
        is_low = self.pitch[rows] < _MIDDLE_C
        has_two_hands = program in _TWO_HANDED or not self.are_one_voice(rows)
        if has_two_hands and _LEAST_ON_STAFF < is_low.mean() < 1 - _LEAST_ON_STAFF:
            halves = ((_TREBLE, rows[~is_low]), (_BASS, rows[is_low]))
            return tuple(Staff(clef, self.voices(half)) for clef, half in halves)
        mean = float(self.pitch[rows].mean())
        if program == _VIOLA:
            clef = _ALTO
        elif mean < _MIDDLE_C - 3:
            clef = _BASS._replace(octaves=-1) if mean < _LOW else _BASS
        else:
            clef = _TREBLE._replace(octaves=1) if mean > _HIGH else _TREBLE
        return (Staff(clef, self.voices(rows)),)

    def voices(self, rows: Ints) -> tuple[Ints, ...]:
        """Divide the notes of a staff between two voices where they overlap, the upper one first.

        Notes that begin and end together are a chord in one voice. A note that finds neither voice
        free goes to the one that is nearer in pitch.
        """
        onset, end, pitch = self.onset[rows], self.end[rows], self.pitch[rows]
        voice = np.zeros(len(rows), dtype=np.int64)
        busy_until, spans, latest = [0, 0], [(-1, -1), (-1, -1)], [0, 0]
        first = 0  # the first note since all voices were silent
        order = np.lexsort((-pitch, onset))
        for place, note in enumerate(order.tolist()):
            span, height = (int(onset[note]), int(end[note])), int(pitch[note])
            if span[0] >= max(busy_until):
                _put_upper_first(voice, pitch, order[first:place])
                first = place
            free = [number for number in (0, 1) if busy_until[number] <= span[0]]
            if span in spans:
                chosen = spans.index(span)
            elif free:
                chosen = free[0]
            else:
                chosen = int(abs(latest[1] - height) < abs(latest[0] - height))
            voice[note], spans[chosen], latest[chosen] = chosen, span, height
            busy_until[chosen] = span[1] if self.cuts else max(busy_until[chosen], span[1])
        _put_upper_first(voice, pitch, order[first:])
        return tuple(rows[voice == number] for number in (0, 1) if np.any(voice == number))


def _put_upper_first(voice: Ints, pitch: Ints, notes: Ints) -> None:
    """Exchange the voices of some notes, in place, if the second voice is higher."""
    second = voice[notes] == 1
    is_mixed = second.any() and not second.all()
    if is_mixed and pitch[notes][second].mean() > pitch[notes][~second].mean():
        voice[notes] = 1 - voice[notes]
