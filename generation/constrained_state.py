"""The state of pieces that are written under constraints: one for all the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.corpus.runs import Place
from data.keys import Key
from data.tokens.features import Context, Heard
from data.tokens.grammar import GrammarState
from data.tokens.vocabulary import Kind, Vocabulary


def bar_ends(vocabulary: Vocabulary) -> slice:
    """Return the ids with which a bar can end: End, and those of the next Bar."""
    return slice(vocabulary.first(Kind.END), vocabulary.ids(Kind.BAR).stop)


@dataclass
class WrittenNotes:
    """The notes of one row, as runs see them.

    Attributes:
        lines: the notes of each pitched program's line, by its number, and of the texture.
        held: (P, K) until when each program's pitches keep lower notes out of its line.
    """

    lines: dict[int, list[Place]]
    held: NDArray[np.int64]


@dataclass
class LatestNotes:
    """The latest note of each of P programs of B rows, and the one before it; all (B, P).

    Pitches count from the vocabulary's lowest; everything is -1 before the first note.
    """

    onset: NDArray[np.int64]
    pitch: NDArray[np.int64]
    end: NDArray[np.int64]
    pitch_before: NDArray[np.int64]
    end_before: NDArray[np.int64]

    @classmethod
    def none(cls, batch: int, programs: int) -> LatestNotes:
        """Return the state of rows in which no program has played."""
        return cls(*np.full((5, batch, programs), -1))

    def read(self, state: GrammarState, pitch_count: int) -> None:
        """Take the notes that the latest ids made whole: their Durations."""
        rows = np.flatnonzero(state.at.kind == Kind.DURATION)
        program, pitch = np.divmod(state.at.note[rows], pitch_count)
        is_first = self.onset[rows, program] != state.at.now[rows]  # of a chord the lowest counts
        rows, program, pitch = rows[is_first], program[is_first], pitch[is_first]
        self.pitch_before[rows, program] = self.pitch[rows, program]
        self.end_before[rows, program] = self.end[rows, program]
        self.pitch[rows, program] = pitch
        self.onset[rows, program] = state.at.now[rows]
        self.end[rows, program] = state.at.note_end[rows]


@dataclass
class Window:
    """What the decoder has read of B rows since they began, or began anew.

    Attributes:
        heard: what side input has heard in it.
        context: what else is told beside it.
        bars_before: (B,) bars of the piece before it.
    """

    heard: Heard
    context: Context
    bars_before: NDArray[np.int64]


@dataclass
class ConstrainedState(GrammarState):
    """Where each of B rows stands. Times are in grid steps.

    Of the grammar's state `free_at` is NEVER for notes that the model may not play.

    Attributes:
        note_ends: (B, N) when each note ended or will end, whether the model may play it or not.
        last_end: (B,) the latest of them.
        whole_bar: (B,) length of a whole bar of the meter in force.
        upbeat: (B,) length of the first bar, where it is shorter than a whole one; else 0.
        owed: (B,) length of the bars that shall make the latest shortened one whole; 0: none.
        final_position: (B,) steps from the last bar line to where the final chord shall begin; -1:
            the model decides.
        keys: of each row the key that the model knows it to be in; None: it knows of none.
        limit: (B,) no note begins from this step on; NEVER: there is no limit, or not yet.
        new_notes: (B,) notes begun after the seed.
        bar_notes, past_notes: (B,) notes begun in this bar, and in the bars before it.
        next_given: (B,) place of the next id of what is given.
        sounding: (B, S) how many notes sound in each step until the given notes are over: they,
            known in advance, and the model's so far.
        written: the notes of each row, as runs see them; none where no runs are avoided.
        latest: the notes that strict counterpoint and instruments without rests look at.
        window: what the decoder has read; None before it reads.
    """

    note_ends: NDArray[np.int64]
    last_end: NDArray[np.int64]
    whole_bar: NDArray[np.int64]
    upbeat: NDArray[np.int64]
    owed: NDArray[np.int64]
    final_position: NDArray[np.int64]
    keys: Sequence[Key | None]
    limit: NDArray[np.int64]
    new_notes: NDArray[np.int64]
    bar_notes: NDArray[np.int64]
    past_notes: NDArray[np.int64]
    next_given: NDArray[np.int64]
    sounding: NDArray[np.int16]
    written: list[WrittenNotes]
    latest: LatestNotes
    window: Window | None = None
