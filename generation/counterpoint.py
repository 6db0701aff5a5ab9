"""Strict counterpoint: no parallel fifths, unisons or octaves between instruments.

Where a piece is in parts, each of which plays a note at a time, two that move together, a fifth or
an octave apart before and after, sound like one (Fux 1725, Gradus ad Parnassum).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.interface import OCTAVE
from data.score import DRUMS
from data.tokens.spans import NO_PITCH
from data.tokens.vocabulary import Kind
from generation.constrained_state import ConstrainedState
from generation.given import GivenTokens

_PERFECT = np.isin(np.arange(OCTAVE), (0, 7))  # unisons, octaves and fifths, by semitones


class StrictCounterpoint:
    """A rule that masks notes with which an instrument would move in parallel with another.

    It yields where no other note is left.

    Args:
        given: what is given.
    """

    def __init__(self, given: GivenTokens) -> None:
        self._vocabulary = given.vocabulary
        programs = np.array(given.vocabulary.programs)
        self._is_pitched = programs != DRUMS
        self._given = given
        # of each program the lowest given note that begins at a step; at the last step none does
        size = int(given.notes.onset.max(initial=-1)) + 2
        self._begins = np.full((size, len(programs)), NO_PITCH)
        order = np.argsort(-given.notes.note, kind="stable")
        program, pitch = np.divmod(given.notes.note[order], given.vocabulary.pitch_count)
        self._begins[given.notes.onset[order], program] = pitch

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take notes away from a mask (B, V), after all other rules; never all of a row."""
        among = self._vocabulary.ids(Kind.NOTE)
        notes: NDArray[np.bool_] = mask[:, among]
        kept = np.asarray(notes & ~self._is_parallel(state))
        rows, token = self._given.next_ids(state.next_given)
        is_note = self._vocabulary.kind_of[token] == Kind.NOTE
        rows, note = rows[is_note], token[is_note] - among.start
        kept[rows, note] = notes[rows, note]
        is_left = np.asarray(kept.any(axis=1) | ~notes.any(axis=1))
        mask[:, among] = np.where(is_left[:, None], kept, notes)

    def _is_parallel(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """Return (B, N) whether a note that begins now would move in parallel with another."""
        latest, now = state.latest, state.now[:, None]
        is_new = latest.onset == now
        old = np.where(is_new, latest.pitch_before, latest.pitch)  # (B, P)
        end = np.where(is_new, latest.end_before, latest.end)
        is_old = (end >= now) & self._is_pitched
        due = self._begins[np.minimum(state.now, len(self._begins) - 1)]
        new = np.where(is_new, latest.pitch, due)
        way = np.where(is_old & (new != NO_PITCH), np.sign(new - old), 0)  # where each has gone

        apart = np.abs(old[:, :, None] - old[:, None]) % OCTAVE  # (B, P, P)
        may_be: NDArray[np.bool_] = (
            np.take(_PERFECT, apart) & is_old[:, :, None] & (way != 0)[:, None]
        )
        may_be[:, np.arange(len(way[0])), np.arange(len(way[0]))] = False
        pitch = np.arange(self._vocabulary.pitch_count)
        after = np.abs(pitch - new[..., None]) % OCTAVE  # (B, P, K)
        is_parallel = may_be[..., None] & (after[:, None] == apart[..., None])
        goes = np.sign(pitch - old[..., None])  # (B, P, K)
        is_parallel &= goes[:, :, None] == way[:, None, :, None]
        return np.asarray(is_parallel.any(axis=2)).reshape(len(way), -1)
