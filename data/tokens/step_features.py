"""SideFeatures an id at a time, for sampling: row by row, since few notes sound at once.

What it tells is what data/tokens/features.py tells of the whole window.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.interface import OCTAVE, SHARED_REFERENCES
from data.tokens.features import SideArrays, SideFeatures
from data.tokens.spans import NEVER, NO_PITCH
from data.tokens.vocabulary import Kind


@dataclass
class StepState:
    """Where a row stands in what it has read. Times count from the first bar read.

    Attributes:
        bar_start, bar_length: of the bar that the row is in.
        now: the time of the latest Position or Bar.
        onset: the time of the latest Position, -1 before the first.
        note: number of the latest Note at this time, -1 before the first.
        extends: Extends since the latest Note.
        heard: notes of each pitch class so far.
        key: tonic and mode of the key that they follow.
        ends: when each note ends that sounds, or did at the onset before this time.
        over: the notes that ended after that onset, at this time or before.
        begun: the notes that began at this time.
        kind: of the latest id.
    """

    bar_start: int = 0
    bar_length: int = 0
    now: int = 0
    onset: int = -1
    note: int = -1
    extends: int = 0
    heard: NDArray[np.int64] = field(default_factory=lambda: np.zeros(12, dtype=np.int64))
    key: tuple[int, int] = (NO_PITCH, 0)
    ends: dict[int, int] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    kind: int = Kind.PAD


class FeatureStepper:
    """Takes rows through their ids and tells the bearings beside each.

    Args:
        bearings: what is told, and where it stands.
    """

    def __init__(self, features: SideFeatures) -> None:
        self.features, self.vocabulary = features, features.vocabulary
        self._lists = {name: table.tolist() for name, table in features.columns.items()}
        self._pitch_of: list[int] = features.pitch_of.tolist()
        self._program_of: list[int] = features.program_of.tolist()
        self._at = {name: block.start for name, block in features.blocks.items()}

    def start(self, batch: int) -> list[StepState]:
        """Where `batch` rows stand before the first id."""
        return [StepState() for _ in range(batch)]

    def after(self, ids: ArrayLike) -> list[StepState]:
        """Where rows stand that have read ids (B, T)."""
        walks = self.start(len(np.asarray(ids)))
        for column in np.asarray(ids).T:
            self.advance(walks, column)
        return walks

    def advance(self, walks: list[StepState], ids: ArrayLike) -> None:
        """Takes each row's next id, (B,), into its walk, which changes in place."""
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        values = (ids - self.features.firsts[kinds]).tolist()
        for walk, kind, value in zip(walks, kinds.tolist(), values, strict=True):
            walk.kind = kind
            match kind:
                case Kind.BAR:
                    walk.bar_start += walk.bar_length
                    walk.bar_length = int(self.vocabulary.whole_bars[value])
                    self._move(walk, walk.bar_start)
                case Kind.LENGTH:
                    walk.bar_length = value + 1
                case Kind.POSITION:
                    self._move(walk, walk.bar_start + value)
                    walk.onset = walk.now
                case Kind.NOTE:
                    walk.note, walk.extends = value, 0
                    walk.ends[value] = NEVER
                    walk.begun.append(value)
                    if (pitch := self._pitch_of[value]) != NO_PITCH:
                        walk.heard[(pitch + self.vocabulary.lowest_pitch) % 12] += 1
                        tonic, mode = self.features.key_of(walk.heard)
                        walk.key = int(tonic), int(mode)
                case Kind.EXTEND:
                    walk.extends += 1
                case Kind.DURATION if walk.note >= 0:
                    steps = value + 1 + walk.extends * self.vocabulary.longest_duration
                    walk.ends[walk.note] = walk.now + steps

    def _move(self, walk: StepState, time: int) -> None:
        """Goes on to a time."""
        walk.now, walk.note, walk.begun = time, -1, []
        walk.ends = {note: end for note, end in walk.ends.items() if end > walk.onset}
        walk.over = [note for note, end in walk.ends.items() if end <= time]

    def at(self, walks: list[StepState]) -> SideArrays:
        """(B, 1, ...) beside the ids that the walks took in last.

        Nothing is told from outside.
        """
        out = self.features.empty(len(walks), 1)
        for row, walk in enumerate(walks):
            if walk.kind == Kind.PAD:
                continue
            columns = [self._at["position"] + walk.now - walk.bar_start]
            if walk.kind == Kind.NOTE:
                columns += self._lists["itself"][walk.note]
            elif walk.note >= 0:
                columns += self._lists["program"][walk.note]
            for note, end in walk.ends.items():
                if end > walk.now:
                    steps = 0 if end == NEVER else min(end - walk.now, self.features.most_left)
                    columns += self._lists["sounding"][note]
                    columns.append(self._lists["left"][note][0] + steps)
            for note in walk.over:
                columns += self._lists["over"][note]
            columns += self._intervals(walk, out.references[row, 0], out.moves[row, 0])
            out.bits[row, 0, columns] = 1
            out.time[row, 0] = walk.now
        return out

    def _intervals(
        self, walk: StepState, references: NDArray[np.integer], moves: NDArray[np.integer]
    ) -> list[int]:
        """The columns that are the same in every key; sets references, (R,), and moves, (P,)."""
        pitch, program = self._pitch_of, self._program_of
        heard = [note for note, end in walk.ends.items() if end > walk.now]
        sounding = [pitch[note] for note in heard if pitch[note] != NO_PITCH]
        own = [(program[note], pitch[note]) for note in walk.over if pitch[note] != NO_PITCH]
        over = [its for _, its in own]
        latest = pitch[walk.note] if walk.note >= 0 else NO_PITCH
        lowest, lowest_before = min(sounding, default=NO_PITCH), min(over, default=NO_PITCH)
        tonic, mode = walk.key
        columns = [] if tonic == NO_PITCH else [self._at["mode"] + mode]
        for name, notes, root in (
            ("chord", sounding, lowest),
            ("against", sounding, latest),
            ("against_over", over, latest),
            ("before", over, lowest_before),
            ("motion", over, lowest),
            ("degrees", sounding, tonic),
        ):
            if root != NO_PITCH:
                at = self._at[name]
                columns += [at + (note - root) % OCTAVE for note in notes]
        if latest != NO_PITCH:
            mine = [its for voice, its in own if voice == program[walk.note]]
            steps = [max(-OCTAVE, min(OCTAVE, latest - its)) for its in mine]
            columns += [self.features.steps_at + step for step in steps]
            if mine and self.features.reference_programs:
                at, root = self._at["between"], min(mine)
                columns += [at + OCTAVE * voice + (its - root) % OCTAVE for voice, its in own]
        if self.features.reference_programs:
            for voice, its in sorted(own, reverse=True):  # of each program the lowest is last
                references[voice] = its + 1
            references[-SHARED_REFERENCES:] = latest + 1, lowest + 1, lowest_before + 1, tonic + 1
            new = [(program[note], pitch[note]) for note in walk.begun if pitch[note] != NO_PITCH]
            for voice, its in sorted(new, reverse=True):
                move = its + 1 - references[voice] if references[voice] else 0
                moves[voice] = move + self.vocabulary.pitch_count if move else 0
        return columns
