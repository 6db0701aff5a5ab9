"""The grammar: which ids may come next in a row.

Each line of ids that it allows, from Start to End, decodes to a Score, and each Score has exactly
one such line. Sampling asks which ids are `allowed`, chooses one, and lets the grammar `advance`.
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
    """Where each of B rows stands, and which of its notes may start; changed in place.

    Attributes:
        at: where each row stands.
        free_at: (B, N) when each note (program and pitch) may start again: when it has ended.
    """

    at: Cursors
    free_at: Ints


# The kinds that can ever follow each kind. `Grammar` puts Velocity after Duration if there is one,
# and `admit` narrows the rest: the first bar must have a Tempo, positions and notes rise, and so
# on.
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
        vocabulary: what the ids mean.
        followers: (K, V) whether each id can ever follow each kind.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        kinds = dict(_FOLLOWERS)
        if len(vocabulary.velocities) > 1:
            kinds[Kind.DURATION] = (Kind.VELOCITY,)
        self.followers = np.array([np.isin(vocabulary.kind_of, kinds[kind]) for kind in Kind])

    def start(self, batch: int) -> GrammarState:
        """Return the state of `batch` rows that have read only Start."""
        free_at = np.zeros((batch, self.vocabulary.counts[Kind.NOTE]), dtype=np.int64)
        return GrammarState(at_start(self.vocabulary, batch), free_at)

    def allowed(self, state: GrammarState) -> Bools:
        """Return (B, V): whether each id may come next. In every row at least one may."""
        mask = np.empty((len(state.free_at), self.vocabulary.size), dtype=bool)
        _admit_rows(self.vocabulary.words, self.followers, state, mask)
        return mask

    def masks(self, ids: ArrayLike) -> Bools:
        """Return (T - 1, V): which ids the grammar allows in the place of each id after Start.

        The grammar must allow the piece's own ids (T,); this is not checked.
        """
        piece, state = np.asarray(ids, dtype=np.int64), self.start(1)
        masks = np.empty((len(piece) - 1, self.vocabulary.size), dtype=bool)
        _admit_piece(self.vocabulary.words, self.followers, state, piece, masks)
        return masks

    def advance(self, state: GrammarState, ids: ArrayLike) -> None:
        """Read the next id of each row, (B,), and change the state in place.

        The grammar must allow the ids; this is not checked.
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
    """Set in `mask` which ids may come next in one row.

    Args:
        first: (K + 1,) the first id of each kind.
        followers: (V,) whether each id can ever follow the kind of the row's latest id.
        here: where the row stands.
        free_at: (N,) when each note may start again.
        mask: (V,) the result.
    """
    length, soonest = here.bar_length, NEVER
    for free in free_at:
        soonest = min(soonest, free)
    # A Position is later than the one before, lies in the bar, and leaves a note that may start.
    soonest = max(here.position + 1, soonest - here.bar_start)
    # The first bar must have a Tempo; a later one has a Tempo only where the tempo changes.
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
    # Within a position notes rise, and a note that still sounds cannot start.
    for note in range(len(free_at)):
        is_free = note > here.note and free_at[note] <= here.now
        mask[first[Kind.NOTE] + note] = followers[first[Kind.NOTE] + note] and is_free
    for token in range(first[Kind.EXTEND], len(mask)):
        mask[token] = followers[token]
    for token in range(first[Kind.BAR]):
        mask[token] = followers[token]
