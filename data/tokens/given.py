"""Given notes: notes that a piece keeps, where others may begin, and what is told about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Bools, Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.score import Score
from data.tokens.bag import NO_PITCH, Bag, put
from data.tokens.vocabulary import NEVER, Vocabulary

SOON = (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 96, 192)  # grid steps: where each class begins

# The widths of what is told about a voice. First, whether it is closed. Then, of its next given
# note: its pitch class; how soon it is due; the step to it from the given note before; and its
# place above the tonic, above the latest note and above the lowest that sounds. Of the given note
# after that: its pitch class, how soon it is due, and its place above the tonic.
DUE_WIDTH = len(SOON) + 1
_STEP_WIDTH = 2 * OCTAVE + 1
_NEXT_WIDTH = OCTAVE + DUE_WIDTH + _STEP_WIDTH + 3 * OCTAVE
VOICE_WIDTH = 1 + _NEXT_WIDTH + OCTAVE + DUE_WIDTH + OCTAVE


@dataclass(frozen=True)
class GivenNotes:
    """The G given notes of a piece, in the order of their tokens, and where others may begin.

    Times are in grid steps from the beginning of the piece.
    """

    onset: Ints  # (G,)
    note: Ints  # (G,) the number of each note's program and pitch
    is_open: Bools  # (P, S) whether other notes of a program may begin at a step; after S: yes

    @classmethod
    def of(cls, score: Score, is_open: Bools, vocabulary: Vocabulary) -> GivenNotes:
        """Return the notes of a score as given notes; the vocabulary must have tokens for all."""
        notes = score.notes
        program = np.searchsorted(vocabulary.programs, notes["program"])
        number = program * vocabulary.pitch_count + notes["pitch"] - vocabulary.lowest_pitch
        return cls(notes["onset"].astype(np.int64), number.astype(np.int64), is_open)

    def may_begin(self, now: ArrayLike) -> Bools:
        """Return (..., P): whether other notes of each program may begin at times `now` (...)."""
        return np.asarray(self.is_open_at[np.minimum(now, self.is_open.shape[1])])

    @cached_property
    def is_open_at(self) -> Bools:
        """(S + 1, P) whether other notes may begin; the last step stands for all later ones."""
        steps = np.vstack([self.is_open.T, np.ones((1, len(self.is_open)), dtype=bool)])
        return np.ascontiguousarray(steps)  # one memory order: each needs its own compilation


class Given(NamedTuple):
    """The given notes of K pieces, at most G in each, as loops read them.

    A voice is a program; if there are many programs, all of them together are one voice.
    """

    onset: Ints  # (K, G + 1); NEVER after the last
    note: Ints  # (K, G + 1)
    pitch: Ints  # (K, G + 1); NO_PITCH for drums
    voice: Ints  # (K, G + 1)
    pitch_before: Ints  # (K, G + 1) of the given note before in its voice; NO_PITCH: there is none
    is_closed: Bools  # (K, S + 1, P) whether no others may begin; later steps are as the last
    voices: int


def gathered(pieces: Sequence[GivenNotes], voice_of: Ints, pitch_of: Ints) -> Given:
    """Return the given notes of pieces; each piece gets the number of its place in the list.

    Args:
        pieces: K of them.
        voice_of, pitch_of: (N,) of each program and pitch by its number; NO_PITCH for drums.
    """
    voices = int(voice_of.max()) + 1
    size = 1 + max((len(piece.note) for piece in pieces), default=0)
    steps = max((len(piece.is_open_at) for piece in pieces), default=1)
    onset, note, pitch, voice, before = np.full((5, len(pieces), size), NO_PITCH)
    programs = pieces[0].is_open_at.shape[1] if pieces else 1
    is_closed = np.zeros((len(pieces), steps, programs), dtype=bool)
    onset[:] = NEVER
    for k, piece in enumerate(pieces):
        count = len(piece.note)
        onset[k, :count], note[k, :count] = piece.onset, piece.note
        pitch[k, :count], voice[k, :count] = pitch_of[piece.note], voice_of[piece.note]
        is_closed[k, : len(piece.is_open_at)] = ~piece.is_open_at
        for one in range(voices):
            own = np.flatnonzero(voice[k] == one)
            before[k, own[1:]] = pitch[k, own[:-1]]
    return Given(onset, note, pitch, voice, before, is_closed, voices)


@compiled_inside
def first_to_come(given: Given, k: int, now: int, note: int, horizon: int) -> int:
    """Return the first given note of a piece that is still to come; -1: nothing is told.

    Nothing is told where no new note may begin. Nothing is told either where every program is open
    and no given note is due within the horizon: told about later ones, a model became surer, not
    better.

    Args:
        given, k: the notes, and the number of the piece.
        now: the time of the id in the piece.
        note: the number of the latest note that begins there; -1: none does.
        horizon: in steps; what is due later is not told.
    """
    onset = given.onset[k]
    closed = given.is_closed[k, min(now, given.is_closed.shape[1] - 1)]
    to_come = shut = 0  # the first given note that was not yet read; how many programs are closed
    while onset[to_come] < now or (onset[to_come] == now and given.note[k, to_come] <= note):
        to_come += 1
    for is_closed in closed:
        shut += is_closed
    if shut == len(closed) or not (shut or onset[to_come] <= now + horizon):
        return -1
    return to_come


@compiled_inside
def tell_given(
    bag: Bag,
    first: int,
    given: Given,
    k: int,
    to_come: int,
    now: int,
    horizon: int,
    roots: tuple[int, int, int],
    lowest_pitch: int,
) -> None:
    """Tell, beside an id, the given notes of a piece that are still to come.

    Args:
        bag: of the features beside the id.
        first: the first feature of the block.
        given, k, now, horizon: as in `first_to_come`.
        to_come: the number of the first of these notes.
        roots: the tonic, the latest and the lowest pitch, to count from; NO_PITCH: there is none.
        lowest_pitch: of the vocabulary.
    """
    onset = given.onset[k]
    closed = given.is_closed[k, min(now, given.is_closed.shape[1] - 1)]
    for voice in range(given.voices):
        at = first + voice * VOICE_WIDTH
        if given.voices > 1 and closed[voice]:  # a single voice is open here
            put(bag, at)
        at += 1
        n, told = to_come, 0
        while onset[n] <= now + horizon:
            if given.voice[k, n] == voice:
                _tell_note(bag, at, given, k, n, now, roots, lowest_pitch, told == 0)
                if told:
                    break
                told = 1
                at += _NEXT_WIDTH
            n += 1


@compiled_inside
def put_due(bag: Bag, block: int, steps: int) -> None:
    """Put in how soon something is due, as one of DUE_WIDTH features."""
    soon = 0
    for least in SOON:
        soon += steps >= least
    put(bag, block + soon)


@compiled_inside
def _tell_note(
    bag: Bag,
    at: int,
    given: Given,
    k: int,
    n: int,
    now: int,
    roots: tuple[int, int, int],
    lowest_pitch: int,
    is_next: bool,
) -> None:
    """Tell of one given note, the next of its voice or the one after it."""
    pitch, before = given.pitch[k, n], given.pitch_before[k, n]
    put_due(bag, at + OCTAVE, given.onset[k, n] - now)
    if pitch == NO_PITCH:
        return
    put(bag, at + (pitch + lowest_pitch) % OCTAVE)
    at += OCTAVE + DUE_WIDTH
    if is_next:
        if before != NO_PITCH:
            put(bag, at + OCTAVE + min(max(pitch - before, -OCTAVE), OCTAVE))
        at += _STEP_WIDTH
    for number in range(3 if is_next else 1):
        if roots[number] != NO_PITCH:
            put(bag, at + number * OCTAVE + (pitch - roots[number]) % OCTAVE)
