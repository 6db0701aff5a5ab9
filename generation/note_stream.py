"""Notes while they are sampled: ids in, pretty_midi notes out, each as soon as it is complete."""

from __future__ import annotations

from typing import NamedTuple

import pretty_midi

from data.tokens.vocabulary import Kind, Vocabulary


class StreamedNote(NamedTuple):
    """A note and the program that plays it."""

    program: int  # of General MIDI, from 0; 128 is drums
    note: pretty_midi.Note  # its times in seconds from the beginning of the piece


class NoteStream:
    """The notes of a piece whose ids come one by one.

    A note's end is computed from the tempo where it begins: no later one is known yet.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.bar_seconds = 0.0  # when the bar began
        self.bar_steps = 0  # its length
        self.step_seconds = self._step_seconds(vocabulary.tempos[0])
        self.position = self.extends = self.program = self.pitch = self.duration_steps = 0

    def add(self, token: int) -> StreamedNote | None:
        """Take the next id and return the note that it completes, if it completes one."""
        vocabulary = self.vocabulary
        kind = Kind(int(vocabulary.kind_of[token]))
        value = token - vocabulary.first(kind)
        match kind:
            case Kind.BAR:
                self.bar_seconds += self.bar_steps * self.step_seconds
                self.bar_steps = int(vocabulary.whole_bars[value])
            case Kind.LENGTH:
                self.bar_steps = value + 1
            case Kind.TEMPO:
                self.step_seconds = self._step_seconds(vocabulary.tempos[value])
            case Kind.POSITION:
                self.position = value
            case Kind.NOTE:
                number, pitch = divmod(value, vocabulary.pitch_count)
                self.program = vocabulary.programs[number]
                self.pitch = pitch + vocabulary.lowest_pitch
                self.extends = 0
            case Kind.EXTEND:
                self.extends += 1
            case Kind.DURATION:
                self.duration_steps = value + 1 + self.extends * vocabulary.longest_duration
                if len(vocabulary.velocities) == 1:
                    return self._note(vocabulary.velocities[0])
            case Kind.VELOCITY:
                return self._note(vocabulary.velocities[value])
        return None

    def _note(self, velocity: int) -> StreamedNote:
        start = self.bar_seconds + self.position * self.step_seconds
        end = start + self.duration_steps * self.step_seconds
        return StreamedNote(self.program, pretty_midi.Note(velocity, self.pitch, start, end))

    def _step_seconds(self, tempo_bpm: int) -> float:
        return 60 / tempo_bpm / self.vocabulary.grid.steps_per_beat
