"""No rests: every instrument that may play sounds from its first chance to the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from data.tokens.cursor import Ints
from data.tokens.vocabulary import NEVER, Kind
from generation.constrained_state import ConstrainedState, bar_ends
from generation.given import GivenTokens


class NoRests:
    """A rule that masks what would leave an instrument silent where it may begin a note.

    Where its note ends another has to begin, and before those of instruments that come later. The
    rule yields where nothing else is left.

    Args:
        given: what is given.
        plays: (P,) the programs of which the model may play notes.
    """

    def __init__(self, given: GivenTokens, plays: NDArray[np.bool_]) -> None:
        vocabulary = given.vocabulary
        self._given, self._vocabulary, self._plays = given, vocabulary, plays
        self._program_of = np.arange(vocabulary.counts[Kind.NOTE]) // vocabulary.pitch_count
        self._steps = np.arange(vocabulary.longest_bar)
        self._is_in_chord = np.isin([*Kind], (Kind.POSITION, Kind.DURATION, Kind.VELOCITY))

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take ids away from a mask (B, V), after all other rules; never all of a row."""
        vocabulary, before = self._vocabulary, mask.copy()
        positions, notes = vocabulary.ids(Kind.POSITION), vocabulary.ids(Kind.NOTE)
        soonest = self._soonest_end(state)
        steps = state.at.bar_start[:, None] + self._steps
        mask[:, positions] &= steps <= soonest[:, None]
        bar_end = state.at.bar_start + state.at.bar_length
        mask[:, bar_ends(vocabulary)] &= (soonest >= bar_end)[:, None]

        is_due = self._is_due(before[:, notes], state)
        rows = np.flatnonzero(is_due.any(axis=1))
        first = is_due[rows].argmax(axis=1)  # of the programs that have to begin a note now
        kept = np.zeros_like(mask[rows])
        kept[:, notes] = mask[rows, notes] & (self._program_of <= first[:, None])
        mask[rows] = kept
        is_empty = ~mask.any(axis=1)
        mask[is_empty] = before[is_empty]

    def _soonest_end(self, state: ConstrainedState) -> Ints:
        """Return the first step (B,) at which an instrument has to begin another note."""
        end = state.latest.end
        may_begin = self._given.notes.may_begin(end.clip(0))  # (B, P, P)
        may_begin = np.diagonal(may_begin, axis1=1, axis2=2) & self._plays  # each where its ends
        may_begin &= end >= (state.at.now + self._is_in_chord[state.at.kind])[:, None]
        return np.asarray(np.where(may_begin, end, NEVER).min(axis=1))

    def _is_due(self, notes: NDArray[np.bool_], state: ConstrainedState) -> NDArray[np.bool_]:
        """Return (B, P) whether programs would rest from now on, and may begin a note instead.

        Args:
            notes: (B, N) which notes may come next.
            state: where the rows stand.
        """
        by_program = np.asarray(notes.reshape(len(notes), len(self._plays), -1).any(axis=2))
        latest, now = state.latest, state.at.now[:, None]
        is_silent = (latest.end <= now) & (latest.onset < now)
        return np.asarray(by_program & is_silent & self._given.notes.may_begin(state.at.now))
