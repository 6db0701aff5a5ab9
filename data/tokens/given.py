"""Given notes: notes that a piece keeps, where others may begin, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.interface import OCTAVE, SHARED_REFERENCES
from data.score import Score
from data.tokens.spans import NEVER, NO_PITCH, Ints, SideArrays, set_bits
from data.tokens.vocabulary import Vocabulary

_NOTES = 2**20  # more than any vocabulary has
SOON = np.array([1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 96, 192])  # steps until a note is due

# Widths of what is told of a voice: whether it is closed; of its next given note the pitch class,
# how soon it is due, the step to it from the given note before, and where it lies above the tonic,
# the latest note and the lowest that sounds; of the note after, the first two and the tonic.
_OF_NEXT = (OCTAVE, len(SOON) + 1, 2 * OCTAVE + 1, OCTAVE, OCTAVE, OCTAVE)
_OF_AFTER = (OCTAVE, len(SOON) + 1, OCTAVE)
VOICE_WIDTH = 1 + sum(_OF_NEXT) + sum(_OF_AFTER)


@dataclass(frozen=True)
class GivenNotes:
    """G given notes of a piece, in the order of their tokens, and where others may begin.

    Times are in grid steps from the piece's beginning.
    """

    onset: Ints  # (G,)
    note: Ints  # (G,) the number of each note, by program and pitch
    is_open: NDArray[np.bool_]  # (P, S) whether others of a program may begin at a step; later: yes

    @classmethod
    def of(cls, score: Score, is_open: NDArray[np.bool_], vocabulary: Vocabulary) -> GivenNotes:
        """Return the notes of a score, for all of which the vocabulary has tokens."""
        notes = score.notes
        program = np.searchsorted(vocabulary.programs, notes["program"])
        number = program * vocabulary.pitch_count + notes["pitch"] - vocabulary.lowest_pitch
        return cls(notes["onset"].astype(np.int64), number.astype(np.int64), is_open)

    @cached_property
    def keys(self) -> Ints:
        """(G,) numbers that rise with the order of the tokens: one for each onset and note."""
        return self.onset * _NOTES + self.note + 1

    def count_read(self, now: Ints, note: Ints) -> Ints:
        """Count the given notes that were read where ids stand.

        Args:
            now: time of each id, of any shape.
            note: number of the latest note that begins there; -1: none has.
        """
        return np.searchsorted(self.keys, now * _NOTES + note + 1, side="right")

    def may_begin(self, now: ArrayLike) -> NDArray[np.bool_]:
        """Return (..., P), whether other notes of a program may begin at times now (...)."""
        return np.asarray(self._is_open_at[np.minimum(now, self.is_open.shape[1])])

    @cached_property
    def _is_open_at(self) -> NDArray[np.bool_]:
        """(S + 1, P) the region step by step; the last step stands for all later ones."""
        return np.vstack([self.is_open.T, np.ones((1, len(self.is_open)), dtype=bool)])


class GivenFeatures:
    """The block of side input that tells of given notes still to come.

    Args:
        given: the notes.
        voice_of: (N,) the voice, from 0, of each note number.
        pitch_of: (N,) the pitch of each, counted from the vocabulary's lowest; NO_PITCH of drums.
        lowest_pitch: of the vocabulary.
        horizon: steps; what is due later is not told.
        first_column: of the block.
        has_references: whether the side input has references to count from.
    """

    def __init__(
        self,
        given: GivenNotes,
        voice_of: Ints,
        pitch_of: Ints,
        lowest_pitch: int,
        horizon: int,
        first_column: int,
        has_references: bool,
    ) -> None:
        self.given, self._lowest_pitch, self._horizon = given, lowest_pitch, horizon
        self._first_column, self._has_references = first_column, has_references
        self._voices = int(voice_of.max()) + 1
        voice, size = voice_of[given.note], len(given.note)
        # of each note, and of none at the end
        self._onset = np.append(given.onset, NEVER)
        self._pitch = np.append(pitch_of[given.note], NO_PITCH)
        self._before = np.full(size + 1, NO_PITCH)  # pitch of the given note before, in its voice
        self._following = np.full((size + 1, self._voices, 2), size)  # by how many were read
        for number in range(self._voices):
            own = np.flatnonzero(voice == number)
            self._before[own[1:]] = self._pitch[own[:-1]]
            first = np.searchsorted(own, np.arange(size + 1))[:, None] + np.arange(2)
            self._following[:, number] = np.append(own, (size, size))[first]

    def set(self, side: SideArrays, now: Ints, note: Ints, is_token: NDArray[np.bool_]) -> None:
        """Set the block beside ids (B, T) of one piece, whose key, if it is known, is set already.

        It stays 0 where nothing new may begin, and where nothing is given until the horizon: what
        is due later makes a model surer of the notes before it, and no better at them.

        Args:
            side: of these ids; what is given counts from its references.
            now: (B, T) time of each in the piece.
            note: (B, T) the number of the latest note that begins there; -1: none has.
            is_token: (B, T) whether it is none of Pad.
        """
        closed, read = ~self.given.may_begin(now), self.given.count_read(now, note)
        is_told = is_token & ~closed.all(axis=-1)
        is_told &= closed.any(axis=-1) | (self._onset[read] <= now + self._horizon)
        rows, places = np.nonzero(is_told)
        now, read, closed = now[is_told], read[is_told], closed[is_told]
        if closed.shape[1] != self._voices:
            closed = np.asarray(closed.all(axis=1, keepdims=True))
        roots = np.full((3, len(rows)), NO_PITCH)
        if self._has_references:
            latest, lowest, _, tonic = side.references[rows, places, -SHARED_REFERENCES:].T - 1
            roots = np.stack((tonic, latest, lowest))
        for voice in range(self._voices):
            at = self._first_column + voice * VOICE_WIDTH
            following = self._following[read, voice].T  # (2, N)
            is_late = self._onset[following] > now + self._horizon
            following = np.where(is_late, len(self.given.note), following)
            columns = [(closed[:, voice], np.zeros_like(now), 1)]
            columns += self._note_columns(following[0], now, roots, has_step=True)
            columns += self._note_columns(following[1], now, roots[:1], has_step=False)
            for is_there, column, width in columns:
                set_bits(side.bits, rows[is_there], places[is_there], at + column[is_there, None])
                at += width

    def _note_columns(
        self, which: Ints, now: Ints, roots: Ints, has_step: bool
    ) -> list[tuple[NDArray[np.bool_], Ints, int]]:
        """Return what is told of given notes (N,): where it is known, as which of how many columns.

        Args:
            which: places among the given notes; the last means none.
            now: (N,) when each is told of.
            roots: (R, N) pitches to count from, or NO_PITCH.
            has_step: whether the step from the given note before is told.
        """
        pitch, before = self._pitch[which], self._before[which]
        has_pitch, is_there = pitch != NO_PITCH, which < len(self.given.note)
        soon = np.searchsorted(SOON, self._onset[which] - now, side="right")
        columns = [
            (has_pitch, (pitch + self._lowest_pitch) % OCTAVE, OCTAVE),
            (is_there, soon, len(SOON) + 1),
        ]
        if has_step:
            step = np.clip(pitch - before, -OCTAVE, OCTAVE) + OCTAVE
            columns.append((has_pitch & (before != NO_PITCH), step, 2 * OCTAVE + 1))
        for root in roots:
            columns.append((has_pitch & (root != NO_PITCH), (pitch - root) % OCTAVE, OCTAVE))
        return columns
