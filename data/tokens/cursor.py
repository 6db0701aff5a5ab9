"""What ids say as they are read: where in the piece each stands, and from when to when its note.

`Cursor` reads id by id, `read_windows` whole arrays at once; the two are held equal by tests.
Nothing else decodes the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from data.tokens.spans import NEVER, Ints, latest, take
from data.tokens.vocabulary import Kind, Vocabulary


@dataclass
class Cursor:
    """Where each of B rows stands after the ids that it has read. Times are in grid steps.

    Attributes:
        vocabulary: of the ids.
        kind: (B,) the Kind of the latest id.
        bar_count: (B,) bars begun.
        bar_start, bar_length: (B,) of the bar that the row is in.
        tempo: (B,) number of the tempo in force, -1 where it is still to be given.
        position: (B,) the latest Position in the bar, -1 before the first.
        now: (B,) time of the latest Position or Bar.
        note: (B,) number of the latest Note since then, -1 before the first.
        note_bar: (B,) number of the bar, from 1, that the latest Note began in; 0 before the first.
        extends: (B,) Extends since the latest Note.
        note_end: (B,) when the note of the latest Duration ends.
    """

    vocabulary: Vocabulary
    kind: Ints
    bar_count: Ints
    bar_start: Ints
    bar_length: Ints
    tempo: Ints
    position: Ints
    now: Ints
    note: Ints
    note_bar: Ints
    extends: Ints
    note_end: Ints

    @classmethod
    def at_start(cls, vocabulary: Vocabulary, batch: int) -> Cursor:
        """Return a cursor of `batch` rows that have read nothing, or Start alone."""
        zero, before = np.zeros((8, batch), dtype=np.int64), np.full((2, batch), -1)
        kind, bar_count, bar_start, bar_length, now, note_bar, extends, note_end = zero
        position, note = before
        return cls(
            vocabulary=vocabulary,
            kind=kind + Kind.START,
            bar_count=bar_count,
            bar_start=bar_start,
            bar_length=bar_length,
            tempo=np.full(batch, -1 if vocabulary.grid.has_meter else 0),
            position=position,
            now=now,
            note=note,
            note_bar=note_bar,
            extends=extends,
            note_end=note_end,
        )

    def advance(self, ids: Ints) -> None:
        """Read each row's next id, (B,)."""
        vocabulary = self.vocabulary
        self.kind = vocabulary.kind_of[ids]
        values = ids - vocabulary.first_of[ids]
        kinds = self.kind.tolist()
        distinct = set(kinds)  # few, in a batch of few rows
        rows: slice | Ints = slice(None)  # quicker than numbers where all rows are of one kind
        for kind in distinct:
            if len(distinct) > 1:
                rows = np.array([row for row, its in enumerate(kinds) if its == kind])
            value = values[rows]
            match kind:
                case Kind.BAR:
                    self.bar_count[rows] += 1
                    self.bar_start[rows] += self.bar_length[rows]
                    self.bar_length[rows] = vocabulary.whole_bars[value]
                    self.now[rows] = self.bar_start[rows]
                    self.position[rows] = self.note[rows] = -1
                case Kind.LENGTH:
                    self.bar_length[rows] = value + 1
                case Kind.TEMPO:
                    self.tempo[rows] = value
                case Kind.POSITION:
                    self.position[rows] = value
                    self.now[rows] = self.bar_start[rows] + value
                    self.note[rows] = -1
                case Kind.NOTE:
                    self.note[rows] = value
                    self.note_bar[rows] = self.bar_count[rows]
                    self.extends[rows] = 0
                case Kind.EXTEND:
                    self.extends[rows] += 1
                case Kind.DURATION:
                    duration = value + 1 + self.extends[rows] * vocabulary.longest_duration
                    self.note_end[rows] = self.now[rows] + duration


@dataclass(frozen=True)
class Windows:
    """What B windows of T ids say. Times are in grid steps from the first bar of each.

    Attributes:
        kind: (B, T) the Kind of each id.
        value: (B, T) its number within its kind.
        bar_length: (B, T) at each Bar the steps of that bar; elsewhere 0.
        position: (B, T) steps from the bar line to the latest Bar or Position.
        now: (B, T) time of the latest Bar or Position.
        onset_before: (B, T) time of the latest Position before that; -1: there is none.
        note_at: (B, T) place of the latest Note since then; -1: there is none.
        duration_at: (B, T) at each Note the place of its Duration; T: it is not in the window.
        note_end: (B, T) at each Note when it ends; NEVER without its Duration.
    """

    kind: Ints
    value: Ints
    bar_length: Ints
    position: Ints
    now: Ints
    onset_before: Ints
    note_at: Ints
    duration_at: Ints
    note_end: Ints


def read_windows(ids: ArrayLike, vocabulary: Vocabulary) -> Windows:
    """Read windows of ids (B, T) that begin at Start or at a Bar, Pad at either end."""
    ids = np.asarray(ids, dtype=np.int64)
    kind = vocabulary.kind_of[ids]
    value = ids - vocabulary.first_of[ids]
    is_bar, is_position = kind == Kind.BAR, kind == Kind.POSITION
    bar_length = np.where(is_bar, vocabulary.whole_bars[np.where(is_bar, value, 0)], 0)
    bar, moment = latest(is_bar), latest(is_bar | is_position)
    rows, places = np.nonzero((kind == Kind.LENGTH) & (bar >= 0))
    bar_length[rows, bar[rows, places]] = value[rows, places] + 1
    this_bar = np.where(bar >= 0, take(bar_length, bar), 0)
    position = np.where(take(is_position, moment) & (moment >= 0), take(value, moment), 0)
    now = bar_length.cumsum(axis=1) - this_bar + position

    onset = latest(is_position)
    earlier = np.concatenate([np.full((len(kind), 1), -1), onset[:, :-1]], axis=1)
    earlier = np.where(moment >= 0, take(earlier, moment), -1)
    onset_before = np.where(earlier >= 0, take(now, earlier), -1)

    note = latest(kind == Kind.NOTE)
    duration_at, note_end = np.full(kind.shape, kind.shape[1]), np.full(kind.shape, NEVER)
    extends = (kind == Kind.EXTEND).cumsum(axis=1)
    rows, places = np.nonzero((kind == Kind.DURATION) & (note >= 0))
    notes = note[rows, places]
    more = (extends[rows, places] - extends[rows, notes]) * vocabulary.longest_duration
    duration_at[rows, notes] = places
    note_end[rows, notes] = now[rows, notes] + value[rows, places] + 1 + more
    note_at = np.where(note > moment, note, -1)
    return Windows(
        kind, value, bar_length, position, now, onset_before, note_at, duration_at, note_end
    )


def latest_notes(ids: ArrayLike, vocabulary: Vocabulary) -> Ints:
    """Return (B, T), the number of the latest Note since the latest Bar or Position; -1: none."""
    windows = read_windows(ids, vocabulary)
    number = take(windows.value, windows.note_at)
    return np.where(windows.note_at >= 0, number, -1)
