"""Given notes: notes that are kept as they are while the model writes others around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from data.score import Score
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_state import ConstrainedState
from generation.constraints import ConstraintError, Constraints

# What the given notes alone decide: lengths and tempi of bars, and how their notes go on.
_GIVEN_ALONE = (Kind.LENGTH, Kind.TEMPO, Kind.EXTEND, Kind.DURATION, Kind.VELOCITY)


class GivenNotes:
    """Notes of one program that are forced through the grammar, one id after the other.

    Between their ids the model writes its own. The bars and tempi are theirs, and the piece ends
    with their last bar.

    Args:
        score: the notes, of one program that the vocabulary has; there may be chords.
        vocabulary: of the model.
        constraints: of the piece; the tempo holds for the given notes too.

    Attributes:
        score: the notes, at that tempo.
        program: who plays them.
        end: the step at which the last bar ends.
        sounding: (S,) how many of them sound in each step.

    Raises:
        ConstraintError: no note, more than one program, or notes that the constraints rule out.
        VocabularyError: the vocabulary has no token for something in the score.
    """

    def __init__(self, score: Score, vocabulary: Vocabulary, constraints: Constraints) -> None:
        programs = np.unique(score.notes["program"]).tolist()
        if not programs:
            raise ConstraintError("there are no given notes to keep")
        if len(programs) > 1:
            raise ConstraintError(
                f"the given notes must be one voice: they have {len(programs)} programs, "
                f"{programs}; choose one of them"
            )
        tempo = constraints.tempo_number(vocabulary)
        if tempo is not None:
            tempi = np.full_like(score.tempo_bpm, vocabulary.tempos[tempo])
            score = replace(score, tempo_bpm=tempi)
        self.score = score
        self.program: int = programs[0]
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
        self.sounding = (begun - ended).astype(np.int16)
        self._check(constraints)

    def _check(self, constraints: Constraints) -> None:
        """Refuse constraints that the given notes break, or that leave no room beside them."""
        meters = {*map(tuple, self.score.bars[["numerator", "denominator"]].tolist())}
        if constraints.time_signature and meters != {constraints.time_signature}:
            raise ConstraintError(
                "the given notes have bars of their own: ask for no time signature"
            )
        limit = constraints.max_polyphony
        if limit and self.sounding.max() > limit:
            raise ConstraintError(
                f"of the given notes {self.sounding.max()} sound at once: "
                f"a polyphony of {limit} is too few"
            )
        if limit and self.sounding.min() >= limit:
            raise ConstraintError(
                f"a polyphony of {limit} leaves no room beside the given notes: ask for more"
            )

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Mask what would pass over the next given id; force that id where it is due."""
        vocabulary = self._vocabulary
        token = self._ids[state.next_given]  # (B,)
        kind = vocabulary.kind_of[token]
        rows, ids = np.arange(len(token)), np.arange(vocabulary.size)

        for own in (Kind.LENGTH, Kind.TEMPO):
            mask[:, vocabulary.ids(own)] = False
        for rising in (Kind.POSITION, Kind.NOTE):
            among = vocabulary.ids(rising)
            mask[:, among] &= (ids[among] <= token[:, None]) | (kind != rising)[:, None]
        bars = vocabulary.ids(Kind.BAR)
        mask[:, bars] &= (ids[bars] == token[:, None]) | (kind == Kind.END)[:, None]
        mask[:, vocabulary.first(Kind.END)] &= kind == Kind.END
        is_note = kind == Kind.NOTE
        mask[is_note, vocabulary.ids(Kind.POSITION)] = False

        is_due = is_note & self._takes_note[state.kind]
        is_due |= (kind == Kind.POSITION) & self._takes_position[state.kind]
        mask[rows[is_due], token[is_due]] = True
        is_forced = np.isin(kind, _GIVEN_ALONE)
        mask[is_forced] = ids == token[is_forced, None]

    def advance(self, state: ConstrainedState, ids: NDArray[np.int64]) -> None:
        """Take each row's next id, (B,), which may be the next given one."""
        state.next_given += ids == self._ids[state.next_given]
        np.minimum(state.next_given, len(self._ids) - 1, out=state.next_given)

    def add_sounding(
        self,
        state: ConstrainedState,
        rows: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> None:
        """Count one more note of the model's in these rows, (R,), from its begin to its end."""
        step = np.arange(self.end)
        state.sounding[rows] += (step >= begin[:, None]) & (step < end[:, None])
