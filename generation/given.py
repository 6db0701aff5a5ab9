"""A voice that is kept note for note while the model writes the others around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from data.keys import ConstraintError
from data.score import Score
from data.tokens.grammar import GrammarState
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary

# What the tune alone decides: its bars' lengths and tempi, and how its notes go on.
_ITS_OWN = (Kind.LENGTH, Kind.TEMPO, Kind.EXTEND, Kind.DURATION, Kind.VELOCITY)


@dataclass
class GivenState:
    """How far each of B rows is through the tune.

    Attributes:
        at: (B,) which id of the tune comes next.
        sounding: (B, S) how many notes sound in each step of the piece: those of the tune, which
            are known in advance, and the model's so far.
    """

    at: NDArray[np.int64]
    sounding: NDArray[np.int16]


class GivenNotes:
    """The ids of a tune, forced through the grammar one by one, with the model's own between them.

    Args:
        score: of one program that the vocabulary has; a chord may stand in it.
        vocabulary: of the model.
        tempo_bpm: one of the vocabulary's tempi, throughout; None: the tune's own.

    Raises:
        ConstraintError: there is no note in the score, or more than one program.
        VocabularyError: the vocabulary has no token for something in the score.
    """

    def __init__(self, score: Score, vocabulary: Vocabulary, tempo_bpm: int | None = None) -> None:
        programs = np.unique(score.notes["program"]).tolist()
        if len(programs) != 1:
            raise ConstraintError(
                f"the tune to keep must be one voice: it has {len(programs)} programs, {programs}; "
                "choose one of them"
                if programs
                else "there is no note in the tune to keep"
            )
        if tempo_bpm is not None:
            score = replace(score, tempo_bpm=np.full_like(score.tempo_bpm, tempo_bpm))
        self.score = score
        self.program: int = programs[0]
        self.bars = len(score.bars)
        self.end = int(score.bar_starts[-1])
        self._vocabulary = vocabulary
        self._ids = encode(score, vocabulary)
        kinds = np.arange(len(Kind))
        inside_note = [Kind.NOTE, Kind.EXTEND]  # after which the same note goes on
        if len(vocabulary.velocities) > 1:
            inside_note.append(Kind.DURATION)
        self._takes_note = ~np.isin(kinds, inside_note)  # (kind,)
        self._takes_position = self._takes_note & (kinds != Kind.POSITION)
        steps = np.arange(self.end)
        onset, duration = score.notes["onset"].astype(np.int64), score.notes["duration"]
        begun = np.searchsorted(np.sort(onset), steps, side="right")
        ended = np.searchsorted(np.sort(onset + duration), steps, side="right")
        self.kept_sounding = (begun - ended).astype(np.int16)  # (S,)

    def start(self, batch: int) -> GivenState:
        """After Start."""
        return GivenState(np.ones(batch, np.int64), np.tile(self.kept_sounding, (batch, 1)))

    def narrow(self, mask: NDArray[np.bool_], place: GrammarState, state: GivenState) -> None:
        """Leaves (B, V) what can come before the tune's next id, and that id where it is due."""
        vocabulary = self._vocabulary
        token = self._ids[state.at]
        kind = vocabulary.kind_of[token]
        rows, ids = np.arange(len(token)), np.arange(vocabulary.size)

        # A bar is as in the tune, and nothing passes over what the tune has next of its kind.
        for told in (Kind.LENGTH, Kind.TEMPO):
            mask[:, vocabulary.ids(told)] = False
        for ranked in (Kind.POSITION, Kind.NOTE):
            among = vocabulary.ids(ranked)
            mask[:, among] &= (ids[among] <= token[:, None]) | (kind != ranked)[:, None]
        bars = vocabulary.ids(Kind.BAR)
        mask[:, bars] &= (ids[bars] == token[:, None]) | (kind == Kind.END)[:, None]
        mask[:, vocabulary.first(Kind.END)] &= kind == Kind.END
        is_note = kind == Kind.NOTE
        mask[is_note, vocabulary.ids(Kind.POSITION)] = False

        # The tune's own notes are not the model's to play; here they are due.
        is_due = is_note & self._takes_note[place.kind]
        is_due |= (kind == Kind.POSITION) & self._takes_position[place.kind]
        mask[rows[is_due], token[is_due]] = True
        is_forced = np.isin(kind, _ITS_OWN)
        mask[is_forced] = ids == token[is_forced, None]

    def advance(self, state: GivenState, ids: NDArray[np.int64]) -> None:
        """Takes each row's next id, (B,)."""
        state.at += ids == self._ids[state.at]
        np.minimum(state.at, len(self._ids) - 1, out=state.at)

    def add_sounding(
        self,
        state: GivenState,
        rows: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> None:
        """One more note of the model's sounds in these rows, (R,), from its begin to its end."""
        step = np.arange(self.end)
        state.sounding[rows] += (step >= begin[:, None]) & (step < end[:, None])
