"""The grammar: which ids may come next, for a batch of rows at once.

A line of ids that it allows, from Start to End, decodes to a Score; and each Score has one such
line. Sampling asks which ids are `allowed`, chooses one, and lets the grammar `advance`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.tokens.cursor import Cursor, advance_rows
from data.tokens.vocabulary import Kind, Vocabulary


@dataclass
class GrammarState:
    """Where each of B rows stands, and what its notes leave free.

    Attributes:
        at: where it stands.
        free_at: (B, N) when each note (program and pitch) may start again: its end.
    """

    at: Cursor
    free_at: NDArray[np.int64]


# The kinds that can follow each kind, whatever the piece. `allowed` then narrows them: Tempo must
# come in the first bar, Velocity exists or does not, positions and notes rise, and so on.
_AFTER_NOTE = (Kind.NOTE, Kind.POSITION, Kind.BAR, Kind.END)
_AFTER_BAR = (Kind.TEMPO, Kind.POSITION, Kind.BAR)
_FOLLOWERS: dict[Kind, tuple[Kind, ...]] = {
    Kind.PAD: (Kind.PAD,),
    Kind.START: (Kind.BAR, Kind.END),
    Kind.END: (Kind.PAD,),
    Kind.BAR: (Kind.LENGTH, *_AFTER_BAR),
    Kind.LENGTH: _AFTER_BAR,
    Kind.TEMPO: (Kind.POSITION, Kind.BAR),
    Kind.POSITION: (Kind.NOTE,),
    Kind.NOTE: (Kind.EXTEND, Kind.DURATION),
    Kind.EXTEND: (Kind.EXTEND, Kind.DURATION),
    Kind.DURATION: _AFTER_NOTE,
    Kind.VELOCITY: _AFTER_NOTE,
}

# The latest kinds after which a rule has something to narrow; after others it is passed over.
_HEADS = {Kind.BAR, Kind.LENGTH}
_BEFORE_POSITION = {kind for kind, nexts in _FOLLOWERS.items() if Kind.POSITION in nexts}
_BEFORE_NOTE = {kind for kind, nexts in _FOLLOWERS.items() if Kind.NOTE in nexts}


class Grammar:
    """The grammar of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        followers = dict(_FOLLOWERS)
        if len(vocabulary.velocities) > 1:
            followers[Kind.DURATION] = (Kind.VELOCITY,)
        self._followers = np.zeros((len(Kind), vocabulary.size), dtype=bool)  # (kind, V)
        for kind, nexts in followers.items():
            for follower in nexts:
                self._followers[kind, vocabulary.ids(follower)] = True
        self._ids = {kind: vocabulary.ids(kind) for kind in Kind}
        self._numbers = {kind: np.arange(vocabulary.counts[kind]) for kind in Kind}

    def start(self, batch: int) -> GrammarState:
        """Return the state of `batch` rows after Start."""
        free_at = np.zeros((batch, self.vocabulary.counts[Kind.NOTE]), dtype=np.int64)
        return GrammarState(Cursor.at_start(self.vocabulary, batch), free_at)

    def allowed(self, state: GrammarState) -> NDArray[np.bool_]:
        """Return (B, V), whether each id may come next; in every row at least one may."""
        ids, numbers = self._ids, self._numbers
        mask = self._followers[state.at.kind]  # a copy: (B, V)
        latest = set(state.at.kind.tolist())

        if latest & _HEADS:
            mask[:, ids[Kind.LENGTH]] &= numbers[Kind.LENGTH] + 1 < state.at.bar_length[:, None]
            # The first bar must have a Tempo; later only a change has one.
            mask[:, ids[Kind.TEMPO]] &= numbers[Kind.TEMPO] != state.at.tempo[:, None]
            is_tempo_due = (state.at.tempo < 0) & (state.at.kind != Kind.START)
            if is_tempo_due.any():
                mask[is_tempo_due, ids[Kind.POSITION]] = False
                mask[is_tempo_due, ids[Kind.BAR]] = False

        if latest & _BEFORE_POSITION:
            # Positions rise, lie in the bar, and leave some note that could start.
            free_at = state.free_at.min(axis=1) - state.at.bar_start
            soonest = np.maximum(state.at.position + 1, free_at)
            positions = mask[:, ids[Kind.POSITION]]
            positions &= numbers[Kind.POSITION] >= soonest[:, None]
            positions &= numbers[Kind.POSITION] < state.at.bar_length[:, None]

        if latest & _BEFORE_NOTE:
            # Notes rise within a position, and one that sounds cannot start.
            notes = mask[:, ids[Kind.NOTE]]
            notes &= numbers[Kind.NOTE] > state.at.note[:, None]
            notes &= state.free_at <= state.at.now[:, None]
        return mask

    def advance(self, state: GrammarState, ids: ArrayLike) -> None:
        """Take each row's next id, (B,), into the state, which changes in place.

        The ids must be allowed; this is not checked again.
        """
        advance_rows(self.vocabulary.words, state.at, np.asarray(ids, dtype=np.int64))
        if Kind.DURATION in state.at.kind.tolist():
            rows = np.flatnonzero(state.at.kind == Kind.DURATION)
            state.free_at[rows, state.at.note[rows]] = state.at.note_end[rows]
