"""Notes while they are sampled: ids in, pretty_midi notes out, each as soon as it is complete."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pretty_midi

from data.tokens.cursor import Cursor
from data.tokens.vocabulary import Kind, Vocabulary


class StreamedNote(NamedTuple):
    """A note and the program that plays it."""

    program: int  # of General MIDI, from 0; 128 is drums
    note: pretty_midi.Note  # its times in seconds from the beginning of the piece
    onset_steps: int  # the same times on the grid
    duration_steps: int


class NoteStream:
    """The notes of a piece whose ids come one by one.

    A note's end is computed from the tempo where it begins: no later one is known yet.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.cursor = Cursor.at_start(vocabulary, batch=1)
        self.bar_start, self.bar_seconds = 0, 0.0  # when the bar began

    def add(self, token: int) -> StreamedNote | None:
        """Take the next id and return the note that it completes, if it completes one."""
        vocabulary, cursor = self.vocabulary, self.cursor
        step_seconds = self._step_seconds()  # of the bar before, where one begins
        cursor.advance(np.array([token]))
        kind = cursor.kind.item()
        if kind == Kind.BAR:
            bar_start = cursor.bar_start.item()
            self.bar_seconds += (bar_start - self.bar_start) * step_seconds
            self.bar_start = bar_start
        if kind == Kind.VELOCITY:
            return self._note(vocabulary.velocities[token - vocabulary.first(Kind.VELOCITY)])
        if kind == Kind.DURATION and len(vocabulary.velocities) == 1:
            return self._note(vocabulary.velocities[0])
        return None

    def _note(self, velocity: int) -> StreamedNote:
        cursor, vocabulary, step_seconds = self.cursor, self.vocabulary, self._step_seconds()
        number, pitch = divmod(cursor.note.item(), vocabulary.pitch_count)
        now, end = cursor.now.item(), cursor.note_end.item()
        start = self.bar_seconds + (now - self.bar_start) * step_seconds
        note = pretty_midi.Note(
            velocity, pitch + vocabulary.lowest_pitch, start, start + (end - now) * step_seconds
        )
        return StreamedNote(vocabulary.programs[number], note, now, end - now)

    def _step_seconds(self) -> float:
        """Seconds of a grid step at the tempo in force."""
        tempo_bpm = self.vocabulary.tempos[max(self.cursor.tempo.item(), 0)]
        return 60 / tempo_bpm / self.vocabulary.grid.steps_per_beat
