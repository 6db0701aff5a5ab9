"""The grammar: which ids may come next in a row.

A line of ids that it allows, from Start to End, decodes to a Score; and each Score has one such
line. Sampling asks which ids are `allowed`, chooses one, and lets the grammar `advance`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Bools, Ints
from common.compiled import compiled, compiled_inside
from data.tokens.cursor import Cursor, Cursors, advance, advance_rows, at_start
from data.tokens.vocabulary import NEVER, Kind, Vocabulary, Words

Mask = Bools  # (V,) whether each id may come next


class GrammarState(NamedTuple):
    """Where each of B rows stands, and what its notes leave free; changed in place.

    Attributes:
        at: where it stands.
        free_at: (B, N) when each note (program and pitch) may start again: its end.
    """

    at: Cursors
    free_at: Ints


# The kinds that can follow each kind, whatever the piece. `admit` then narrows them: Tempo must
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


class Grammar:
    """The grammar of one vocabulary.

    Attributes:
        vocabulary: of the ids.
        followers: (K, V) whether each id can follow each kind, whatever the piece.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        kinds = dict(_FOLLOWERS)
        if len(vocabulary.velocities) > 1:
            kinds[Kind.DURATION] = (Kind.VELOCITY,)
        self.followers = np.array([np.isin(vocabulary.kind_of, kinds[kind]) for kind in Kind])

    def start(self, batch: int) -> GrammarState:
        """Return the state of `batch` rows after Start."""
        free_at = np.zeros((batch, self.vocabulary.counts[Kind.NOTE]), dtype=np.int64)
        return GrammarState(at_start(self.vocabulary, batch), free_at)

    def allowed(self, state: GrammarState) -> Bools:
        """Return (B, V), whether each id may come next; in every row at least one may."""
        mask = np.empty((len(state.free_at), self.vocabulary.size), dtype=bool)
        _admit_rows(self.vocabulary.words, self.followers, state, mask)
        return mask

    def masks(self, ids: ArrayLike) -> Bools:
        """Return (T - 1, V), what may stand in the place of each of a piece's ids after Start.

        The ids (T,) must be allowed; this is not checked again.
        """
        piece, state = np.asarray(ids, dtype=np.int64), self.start(1)
        masks = np.empty((len(piece) - 1, self.vocabulary.size), dtype=bool)
        _admit_piece(self.vocabulary.words, self.followers, state, piece, masks)
        return masks

    def advance(self, state: GrammarState, ids: ArrayLike) -> None:
        """Take each row's next id, (B,), into the state, which changes in place.

        The ids must be allowed; this is not checked again.
        """
        advance_rows(self.vocabulary.words, state.at, np.asarray(ids, dtype=np.int64))
        rows = np.flatnonzero(state.at["kind"] == Kind.DURATION)
        state.free_at[rows, state.at["note"][rows]] = state.at["note_end"][rows]


@compiled
def _admit_rows(words: Words, followers: Bools, state: GrammarState, mask: Bools) -> None:
    for row in range(len(mask)):
        here = state.at[row]
        admit(words.firsts, followers[here.kind], here, state.free_at[row], mask[row])


@compiled
def _admit_piece(
    words: Words, followers: Bools, state: GrammarState, ids: Ints, masks: Mask
) -> None:
    here, free_at = state.at[0], state.free_at[0]
    for place in range(len(masks)):
        admit(words.firsts, followers[here.kind], here, free_at, masks[place])
        advance(words, here, ids[place + 1])
        if here.kind == Kind.DURATION:
            free_at[here.note] = here.note_end


@compiled_inside
def admit(first: Ints, followers: Mask, here: Cursor, free_at: Ints, mask: Mask) -> None:
    """Set in a mask (V,) which ids may come next in a row.

    Args:
        first: (K + 1,) the first id of each kind.
        followers: (V,) whether each id can follow the row's kind.
        here: where the row stands.
        free_at: (N,) when each of its notes may start again.
        mask: which is set.
    """
    length, soonest = here.bar_length, NEVER
    for free in free_at:
        soonest = min(soonest, free)
    # Positions rise, lie in the bar, and leave some note that could start.
    soonest = max(here.position + 1, soonest - here.bar_start)
    # The first bar must have a Tempo; later only a change has one.
    is_head = here.kind == Kind.BAR or here.kind == Kind.LENGTH
    has_tempo = here.tempo >= 0 or not is_head
    for token in range(first[Kind.BAR], first[Kind.LENGTH]):
        mask[token] = followers[token] and has_tempo
    for token in range(first[Kind.LENGTH], first[Kind.TEMPO]):
        mask[token] = followers[token] and token - first[Kind.LENGTH] + 1 < length
    for token in range(first[Kind.TEMPO], first[Kind.POSITION]):
        mask[token] = followers[token] and token - first[Kind.TEMPO] != here.tempo
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        is_there = soonest <= token - first[Kind.POSITION] < length
        mask[token] = followers[token] and is_there and has_tempo
    # Notes rise within a position, and one that sounds cannot start.
    for note in range(len(free_at)):
        is_free = note > here.note and free_at[note] <= here.now
        mask[first[Kind.NOTE] + note] = followers[first[Kind.NOTE] + note] and is_free
    for token in range(first[Kind.EXTEND], len(mask)):
        mask[token] = followers[token]
    for token in range(first[Kind.BAR]):
        mask[token] = followers[token]
