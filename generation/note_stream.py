"""Turn ids into pretty_midi notes during sampling, each as soon as it is complete."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pretty_midi

from common.arrays import Ids
from data.score import Score
from data.tokens.cursor import Cursor, Cursors
from data.tokens.vocabulary import Kind, Vocabulary


class StreamedNote(NamedTuple):
    """A note and the program that plays it."""

    program: int  # General MIDI, from 0; 128 is drums
    note: pretty_midi.Note  # times in seconds from the beginning of the piece
    onset_steps: int  # the onset in grid steps
    duration_steps: int  # the duration in grid steps

    def moved(self, semitones: int) -> StreamedNote:
        """Return the note at another pitch."""
        note = self.note
        moved = pretty_midi.Note(note.velocity, note.pitch + semitones, note.start, note.end)
        return self._replace(note=moved)


class NoteStream:
    """The notes of B pieces whose ids arrive one by one.

    The end of a note is computed from the tempo at its onset, because later tempi are not known
    yet.

    Args:
        vocabulary: the vocabulary of the ids.
        at: (B,) where the rows stand.
        bar_seconds: the time in seconds at which their current bar begins.
    """

    def __init__(self, vocabulary: Vocabulary, at: Cursors, bar_seconds: float = 0.0) -> None:
        self.vocabulary = vocabulary
        self._last = Kind.VELOCITY if len(vocabulary.velocities) > 1 else Kind.DURATION
        self._step_seconds = 60 / np.array(vocabulary.tempos) / vocabulary.grid.steps_per_beat
        self._bar_start = at["bar_start"].copy()
        self._bar_seconds = np.full(len(at), bar_seconds)

    def read(self, at: Cursors, ids: Ids) -> list[tuple[int, StreamedNote]]:
        """Return the notes that the latest ids complete, each with the number of its row.

        Args:
            at: (B,) where the rows stand after these ids.
            ids: (B,) the latest id of each row.
        """
        kind = at["kind"].tolist()
        for row in (row for row in range(len(at)) if kind[row] == Kind.BAR):
            steps = at[row].bar_start - self._bar_start[row]
            self._bar_seconds[row] += steps * self._step_seconds[at[row].tempo]  # of the past bar
            self._bar_start[row] = at[row].bar_start
        whole = [row for row in range(len(at)) if kind[row] == self._last]
        return [(row, self._note(at[row], ids[row], row)) for row in whole]

    def _note(self, here: Cursor, token: int, row: int) -> StreamedNote:
        vocabulary, step_seconds = self.vocabulary, self._step_seconds[here.tempo]
        velocity = vocabulary.velocities[0]
        if self._last == Kind.VELOCITY:
            velocity = vocabulary.velocities[token - vocabulary.first(Kind.VELOCITY)]
        number, pitch = divmod(int(here.note), vocabulary.pitch_count)
        now, end = int(here.now), int(here.note_end)
        start = float(self._bar_seconds[row] + (now - self._bar_start[row]) * step_seconds)
        until = start + float((end - now) * step_seconds)
        note = pretty_midi.Note(velocity, pitch + vocabulary.lowest_pitch, start, until)
        return StreamedNote(vocabulary.programs[number], note, now, end - now)


def notes_of(score: Score) -> list[StreamedNote]:
    """Return the notes of a whole piece in the same form."""
    notes = score.notes
    starts = score.step_seconds(notes["onset"]).tolist()
    ends = score.step_seconds(notes["onset"].astype(np.int64) + notes["duration"]).tolist()
    return [
        StreamedNote(program, pretty_midi.Note(velocity, pitch, start, end), onset, duration)
        for (onset, duration, pitch, velocity, program), start, end in zip(
            notes.tolist(), starts, ends, strict=True
        )
    ]
