"""The side input an id at a time, for sampling: row by row, since few notes sound at once.

It is what `SideFeatures.compute` gives of the whole window.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.interface import OCTAVE, SHARED_REFERENCES
from data.tokens.cursor import Cursor
from data.tokens.echo import ECHO_WIDTH, Echo, EchoLine
from data.tokens.features import INTERVALS, SideFeatures
from data.tokens.spans import NEVER, NO_PITCH, SideArrays
from data.tokens.vocabulary import Kind


@dataclass
class HeardNotes:
    """The notes of a row that side input is made of. Times are in steps from the first bar read.

    Attributes:
        onset: the time of the latest Position, -1 before the first.
        counts: notes of each pitch class so far.
        key: tonic and mode of the key that they follow.
        ends: when each note ends that sounds, or did at the onset before this time.
        over: the notes that ended after that onset, at this time or before.
        begun: the notes that began at this time.
        lines: of each program, by number, its notes so far.
        echoes: of each program how it goes on if it does as before.
    """

    onset: int = -1
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(OCTAVE, dtype=np.int64))
    key: tuple[int, int] = (NO_PITCH, 0)
    ends: dict[int, int] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    lines: dict[int, EchoLine] = field(default_factory=lambda: defaultdict(EchoLine))
    echoes: dict[int, Echo | None] = field(default_factory=dict)


@dataclass
class StepState:
    """Where B rows stand in what the decoder has read, and the notes that they have heard."""

    cursor: Cursor
    rows: list[HeardNotes]


class FeatureStepper:
    """The side input of the ids that rows read one by one.

    Args:
        features: which side input.
    """

    def __init__(self, features: SideFeatures) -> None:
        self.features, self.vocabulary = features, features.vocabulary
        self._columns = {name: table.tolist() for name, table in features.columns.items()}
        self._pitch_of: list[int] = features.pitch_of.tolist()
        self._program_of: list[int] = features.program_of.tolist()
        self._at = {name: block.start for name, block in features.blocks.items()}

    def start(self, batch: int) -> StepState:
        """Return the state of `batch` rows before the first id."""
        rows = [HeardNotes() for _ in range(batch)]
        return StepState(Cursor.at_start(self.vocabulary, batch), rows)

    def read(self, ids: ArrayLike) -> StepState:
        """Return the state of rows that have read ids (B, T)."""
        ids = np.asarray(ids, dtype=np.int64)
        state = self.start(len(ids))
        for column in ids.T:
            self.advance(state, column)
        return state

    def advance(self, state: StepState, ids: ArrayLike) -> None:
        """Take each row's next id, (B,), into the state, which changes in place."""
        cursor = state.cursor
        cursor.advance(np.asarray(ids, dtype=np.int64))
        kinds, notes, times = cursor.kind.tolist(), cursor.note.tolist(), cursor.now.tolist()
        for number, (kind, note, now) in enumerate(zip(kinds, notes, times, strict=True)):
            heard = state.rows[number]
            if kind in (Kind.BAR, Kind.POSITION):
                heard.ends = {note: end for note, end in heard.ends.items() if end > heard.onset}
                heard.over = [note for note, end in heard.ends.items() if end <= now]
                heard.begun = []
                if kind == Kind.POSITION:
                    heard.onset = now
            elif kind == Kind.NOTE:
                heard.ends[note] = NEVER
                heard.begun.append(note)
                if (pitch := self._pitch_of[note]) != NO_PITCH:
                    heard.counts[(pitch + self.vocabulary.lowest_pitch) % OCTAVE] += 1
                    tonic, mode = self.features.key_of(heard.counts)
                    heard.key = int(tonic), int(mode)
                if self.features.reference_programs:
                    program, pitch = divmod(note, self.vocabulary.pitch_count)
                    heard.echoes[program] = heard.lines[program].add(pitch, now)
            elif kind == Kind.DURATION and note >= 0:
                heard.ends[note] = int(cursor.note_end[number])

    def compute(self, state: StepState) -> SideArrays:
        """Return the side input beside the ids (B, 1) that were read last.

        What only the caller can know is left 0, as by `SideFeatures.compute`.
        """
        cursor = state.cursor
        side = self.features.empty(len(state.rows), 1)
        bar_starts = cursor.bar_start.tolist()
        places = zip(cursor.kind.tolist(), cursor.note.tolist(), cursor.now.tolist(), strict=True)
        for row, (kind, note, now) in enumerate(places):
            if kind == Kind.PAD:
                continue
            heard = state.rows[row]
            columns = [self._at["position"] + now - bar_starts[row]]
            if kind == Kind.NOTE:
                columns += self._columns["itself"][note]
            elif note >= 0:
                columns += self._columns["program"][note]
            sounding = [number for number, end in heard.ends.items() if end > now]
            for number in sounding:
                end = heard.ends[number]
                steps = 0 if end == NEVER else min(end - now, self.features.longest_left)
                columns += self._columns["sounding"][number]
                columns.append(self._columns["left"][number][0] + steps)
            for number in heard.over:
                columns += self._columns["over"][number]
            columns += self._intervals(
                heard, sounding, note, side.references[row, 0], side.moves[row, 0]
            )
            columns += self._echoes(heard, now, side.references[row, 0])
            side.bits[row, 0][columns] = 1  # of one dimension, which is quicker
            side.time[row, 0] = now
        return side

    def _intervals(
        self,
        heard: HeardNotes,
        sounding: list[int],
        latest_note: int,
        references: NDArray[np.integer],
        moves: NDArray[np.integer],
    ) -> list[int]:
        """Return the columns that are the same in every key; set references (R,), moves (P,)."""
        pitch, program = self._pitch_of, self._program_of
        own = [(program[note], pitch[note]) for note in heard.over if pitch[note] != NO_PITCH]
        pitches = {
            "sounding": [pitch[note] for note in sounding if pitch[note] != NO_PITCH],
            "over": [its for _, its in own],
        }
        latest = pitch[latest_note] if latest_note >= 0 else NO_PITCH
        tonic, mode = heard.key
        roots = {
            "latest": latest,
            "lowest": min(pitches["sounding"], default=NO_PITCH),
            "lowest before": min(pitches["over"], default=NO_PITCH),
            "tonic": tonic,
        }
        columns = [] if tonic == NO_PITCH else [self._at["mode"] + mode]
        for name, (which, root) in INTERVALS.items():
            at, low = self._at[name], roots[root]
            if low != NO_PITCH:
                columns += [at + (its - low) % OCTAVE for its in pitches[which]]
        programs = self.features.reference_programs
        if latest != NO_PITCH:
            mine = [its for voice, its in own if voice == program[latest_note]]
            steps = [max(-OCTAVE, min(OCTAVE, latest - its)) for its in mine]
            columns += [self.features.no_step + step for step in steps]
            if mine and programs:
                at, low = self._at["between"], min(mine)
                columns += [at + OCTAVE * voice + (its - low) % OCTAVE for voice, its in own]
        if programs:
            for voice, its in sorted(own, reverse=True):  # of each program the lowest is last
                references[voice] = its + 1
            references[-SHARED_REFERENCES:] = [root + 1 for root in roots.values()]
            new = [(program[note], pitch[note]) for note in heard.begun if pitch[note] != NO_PITCH]
            for voice, its in sorted(new, reverse=True):
                move = its + 1 - references[voice] if references[voice] else 0
                moves[voice] = move + self.vocabulary.pitch_count if move else 0
        return columns

    def _echoes(self, heard: HeardNotes, now: int, references: NDArray[np.integer]) -> list[int]:
        """Return the columns of the echoes that are still due; set their references."""
        columns = []
        for program, echo in heard.echoes.items():
            if echo is not None and now <= echo.due:
                at = self._at["echo"] + ECHO_WIDTH * program
                columns += [at + column for column in echo.columns(now)]
                if 0 <= echo.pitch < self.vocabulary.pitch_count:
                    place = self.features.reference_programs + program
                    references[place] = echo.pitch + 1
        return columns
