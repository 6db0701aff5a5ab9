"""Runs of notes of a training set, kept out of a piece while it is written.

Each row keeps the lines and the texture of its piece as they would be if no other note were
written: with all that is given, what is still to come included. A note is masked where it would
make a run of the training set whole, with the notes before and after it. So no run that a new note
belongs to is ever in the piece, whatever comes later: this needs no look ahead. A run of given
notes alone may be.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from data.canonical import ScoreBatch
from data.corpus.runs import REPRESENTATIONS, Integers, Place, RunIndex, note_sequence
from data.score import DRUMS
from data.tokens.vocabulary import NEVER, Kind
from generation.given import GivenTokens
from generation.rows import ConstrainedState, WrittenNotes

_TEXTURE = -1  # among the programs of lines


class AvoidCopying:
    """A rule that masks notes with which a run would be whole, and positions that have no others.

    It yields where nothing else is left: where no note may be played but such.

    Args:
        runs: the runs to avoid, for each of REPRESENTATIONS.
        given: what is given.
        is_barred: (N,) the notes that the model may not play.
    """

    def __init__(
        self, runs: dict[str, RunIndex], given: GivenTokens, is_barred: NDArray[np.bool_]
    ) -> None:
        vocabulary = given.vocabulary
        self._runs, self._given, self._vocabulary = runs, given, vocabulary
        self._pitched = [n for n, program in enumerate(vocabulary.programs) if program != DRUMS]
        self._pitches = np.arange(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
        self._playable = (~is_barred).reshape(-1, vocabulary.pitch_count).sum(axis=1)
        most = sum(runs[name].most_pitches for name in REPRESENTATIONS)
        self._most_masked = most * len(self._pitched)  # where nothing given follows
        self._release = vocabulary.grid.steps_per_beat // 8

    def start(self, batch: int) -> list[WrittenNotes]:
        """Return the notes of `batch` rows, each with what is given."""
        given: dict[int, list[Place]] = {number: [] for number in (*self._pitched, _TEXTURE)}
        score = ScoreBatch.from_scores([self._given.seed.score])
        for name in REPRESENTATIONS:
            notes = note_sequence(score, name)
            lines = np.searchsorted(self._vocabulary.programs, notes.program)
            lines = np.where(notes.program < 0, _TEXTURE, lines)
            rows = np.stack([lines, notes.onset, notes.pitch], axis=1)
            for line, onset, pitch in rows.tolist():
                given[line].append((onset, pitch))
        shape = len(self._vocabulary.programs), len(self._pitches)
        return [
            WrittenNotes({n: [*line] for n, line in given.items()}, np.zeros(shape, dtype=np.int64))
            for _ in range(batch)
        ]

    def advance(self, state: ConstrainedState) -> None:
        """Take the notes into the state that the latest ids made whole: their Durations."""
        for row in np.flatnonzero(state.at["kind"] == Kind.DURATION).tolist():
            program, number = divmod(int(state.at[row].note), len(self._pitches))
            if program not in self._pitched:
                continue
            written, onset = state.written[row], int(state.at[row].now)
            note = (onset, int(self._pitches[number]))
            texture = written.lines[_TEXTURE]
            place = bisect_left(texture, note)
            if texture[place : place + 1] != [note]:
                texture.insert(place, note)
            if not (written.held[program, number + 1 :] > onset).any():
                line = written.lines[program]
                here = slice(bisect_left(line, (onset,)), bisect_left(line, (onset + 1,)))
                line[here] = [max([*line[here], note])]
            end = int(state.at[row].note_end) - self._release
            written.held[program, number] = max(end, onset + 1)

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take ids away from a mask (B, V), after all other rules; never all of a row."""
        notes, positions = self._vocabulary.ids(Kind.NOTE), self._vocabulary.ids(Kind.POSITION)
        takes_note = np.asarray(mask[:, notes].any(axis=1))
        sounding = (state.rows.free_at > state.at["now"][:, None]) & (state.rows.free_at < NEVER)
        is_narrow = self._playable.sum() - sounding.sum(axis=1) <= self._most_masked
        is_narrow |= state.at["bar_start"] < self._given.seed.end_step
        is_narrow &= mask[:, positions].any(axis=1)
        for row in np.flatnonzero(takes_note | is_narrow).tolist():
            before = mask[row].copy()
            if takes_note[row]:
                now = int(state.at[row].now)
                mask[row, notes] &= ~self._is_copied(state, row, now, before[notes])
            if is_narrow[row]:
                self._mask_positions(mask[row, positions], state, row, int(sounding[row].sum()))
            for due in self._given.ids[state.at[row].next_given :][:1]:  # the next that is given
                mask[row, due] = before[due]
            if not mask[row].any():
                mask[row] = before

    def _mask_positions(
        self, mask: NDArray[np.bool_], state: ConstrainedState, row: int, sounding: int
    ) -> None:
        """Mask positions of a row at which every note that may begin would make a run whole."""
        allowed = np.flatnonzero(mask)
        steps = state.at[row].bar_start + allowed
        may_begin = self._given.notes.may_begin(steps)  # (S, P)
        few = may_begin @ self._playable - sounding <= self._most_masked
        for place in np.flatnonzero(few).tolist():
            is_free = state.rows.free_at[row] <= steps[place]
            is_free &= np.repeat(may_begin[place], len(self._pitches))
            is_copied = self._is_copied(state, row, int(steps[place]), is_free)
            mask[allowed[place]] = bool(np.any(is_free & ~is_copied))

    def _is_copied(
        self, state: ConstrainedState, row: int, onset: int, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return (N,) whether each note that is asked for, (N,), would make a run whole."""
        written, index = state.written[row], self._runs["line"]
        is_asked = asked.reshape(written.held.shape)
        is_copied = np.zeros_like(is_asked)
        texture, pitches = written.lines[_TEXTURE], np.asarray(is_asked.any(axis=0))
        is_copied[self._pitched] = self._completes_texture(texture, onset, pitches)
        for program in (number for number in self._pitched if is_asked[number].any()):
            line = written.lines[program]
            begin, end = bisect_left(line, (onset,)), bisect_left(line, (onset + 1,))
            completes = _complete(index, line, begin, end, onset, self._pitches)
            if completes.any():
                held = np.flatnonzero(written.held[program] > onset)
                completes[: held.max(initial=0)] = False  # they lie under another
                is_copied[program] |= completes
        return is_copied.ravel()

    def _completes_texture(
        self, texture: list[Place], onset: int, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return (K,) whether each pitch that is asked for would make a run whole."""
        index, completes = self._runs["texture"], np.zeros_like(asked)
        begin, end = bisect_left(texture, (onset,)), bisect_left(texture, (onset + 1,))
        bounds = [-1, *(pitch for _, pitch in texture[begin:end]), 128]
        for place, (low, high) in enumerate(pairwise(bounds), start=begin):
            among = np.flatnonzero(asked & (self._pitches > low) & (self._pitches < high))
            if len(among):
                pitches = self._pitches[among]
                completes[among] = _complete(index, texture, place, place, onset, pitches)
        return completes


def _complete(
    index: RunIndex, line: list[Place], begin: int, end: int, onset: int, pitches: Integers
) -> NDArray[np.bool_]:
    """Return (P,) whether notes in the place of a line's from `begin` to `end` make a run whole."""
    before, after = line[max(begin - index.size, 0) : begin], line[end : end + index.size]
    return index.is_completed(before, onset, pitches, after)
