"""Bearings: what the ids so far say about where each id stands, spelt out beside it.

A decoder could work all of this out from the ids: when it is, what sounds, what has just ended,
when each voice will be free. Told, a small one learns from few pieces what it would need many
for. Nothing here looks ahead, so the likelihood stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.vocabulary import Kind, Vocabulary

BARS_TOLD = 16  # bars that follow; more are told as so many
NEVER = 2**40  # ends a note whose duration is still to be told


@dataclass
class Walk:
    """Where each of B rows stands in what it has read. Times count from the first bar read.

    Attributes:
        bar_start, bar_length: (B,) of the bar that the row is in.
        now: (B,) the time of the latest Position or Bar.
        onset: (B,) the time of the latest Position, -1 before the first.
        note: (B,) number of the latest Note at this time, -1 before the first.
        extends: (B,) Extends since the latest Note.
        ends: (B, N) when each note last begun ends.
        is_over: (B, N) which notes ended after the onset before this time, at this time or before.
    """

    bar_start: NDArray[np.int64]
    bar_length: NDArray[np.int64]
    now: NDArray[np.int64]
    onset: NDArray[np.int64]
    note: NDArray[np.int64]
    extends: NDArray[np.int64]
    ends: NDArray[np.int64]
    is_over: NDArray[np.bool_]


class Bearings:
    """Columns of zeros and ones beside ids: S of them, block by block.

    After an id, that is with the knowledge of it and of all ids before it in the same window:

        follow      so many bars follow the id's own; all 0 where that is not known
        position    steps from the bar line
        program     of the latest note that begins here
        pitch       of the id itself, if it is a note; and its pitch class
        sounding    the notes that sound; their pitches; their pitch classes
        over        the notes that sounded at the onset before, and no more; the same three
        left        by program, the steps for which its notes go on: not told yet, 1, 2 ..

    Drums have no pitch.

    Args:
        vocabulary: of the ids.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        pitches, programs = vocabulary.pitch_count, len(vocabulary.programs)
        notes = vocabulary.counts[Kind.NOTE]
        self._most_left = vocabulary.longest_duration + 1  # so much or more
        blocks = {
            "follow": BARS_TOLD + 1,
            "position": vocabulary.longest_bar,
            "program": programs,
            "pitch": pitches + 12,
            "sounding": notes + pitches + 12,
            "over": notes + pitches + 12,
            "left": programs * (self._most_left + 1),
        }
        ends = np.cumsum([*blocks.values()])
        self.size = int(ends[-1])
        self._at = dict(zip(blocks, (ends - [*blocks.values()]).tolist(), strict=True))
        number = np.arange(notes)
        self._program = number // pitches  # (N,) of each note
        pitch = number % pitches
        pitch_class = (pitch + vocabulary.lowest_pitch) % 12
        self._pitches = np.stack((pitch, pitches + pitch_class), axis=1)  # (N, 2) columns
        self._has_pitch = ~vocabulary.is_drum_note[vocabulary.ids(Kind.NOTE)]
        self._notes = notes
        self._first = np.array(vocabulary.firsts)

    def of(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """(B, T, S) beside windows that begin at Start or at a Bar, Pad at either end.

        Nothing is known of `follow`.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kind = self.vocabulary.kind_of[ids]
        value = ids - self._first[kind]
        length = ids.shape[1]
        out = np.zeros((*ids.shape, self.size), dtype=bool)
        if not length:
            return out
        now, onset_before, position, note_at = self._times(kind, value)
        rows, places = np.nonzero(kind != Kind.PAD)
        out[rows, places, self._at["position"] + position[rows, places]] = True
        rows, places = np.nonzero((note_at >= 0) & (kind != Kind.PAD))
        number = value[rows, note_at[rows, places]]
        out[rows, places, self._at["program"] + self._program[number]] = True
        rows, begin = np.nonzero(kind == Kind.NOTE)
        number = value[rows, begin]
        self._set_pitches(out, rows, begin, number, self._at["pitch"])

        # A note sounds from its own place to that of the first id at its end or later; from there
        # it is over, until the first id that has an onset between.
        told, end = self._ends(kind, value, now)
        told, end = told[rows, begin], end[rows, begin]
        last = length - (kind[:, ::-1] != Kind.PAD).argmax(axis=1)[rows]  # Pad at the right end
        silent = np.minimum(_first_reaching(now, rows, end), last)
        gone = np.minimum(_first_reaching(onset_before, rows, end), last)
        for block, first, stop in (("sounding", begin, silent), ("over", silent, gone)):
            which, place = _spread(first, stop)
            at = self._at[block]
            out[rows[which], place, at + number[which]] = True
            self._set_pitches(out, rows[which], place, number[which], at + self._notes)
        left = self._at["left"] + self._program[number] * (self._most_left + 1)
        which, place = _spread(begin, np.minimum(told, silent))
        out[rows[which], place, left[which]] = True
        which, place = _spread(told, silent)
        steps = np.minimum(end[which] - now[rows[which], place], self._most_left)
        out[rows[which], place, left[which] + steps] = True
        return out

    def _set_pitches(
        self,
        out: NDArray[np.bool_],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        number: NDArray[np.int64],
        at: int,
    ) -> None:
        """Sets the columns of pitch and pitch class, from `at` on, of notes in their places."""
        pitched = self._has_pitch[number]
        columns = at + self._pitches[number[pitched]]
        out[rows[pitched, None], places[pitched, None], columns] = True

    def _times(
        self, kind: NDArray[np.int64], value: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of each id (B, T): its time, that of the onset before this time (-1: none), the steps
        from the bar line to it, and the place of the latest Note that begins at it (-1: none).
        """
        is_bar, is_position = kind == Kind.BAR, kind == Kind.POSITION
        length = np.where(is_bar, self.vocabulary.whole_bars[np.where(is_bar, value, 0)], 0)
        is_short = is_bar[:, :-1] & (kind[:, 1:] == Kind.LENGTH)
        length[:, :-1][is_short] = value[:, 1:][is_short] + 1
        bar_end = length.cumsum(axis=1)
        bar, event = _latest(is_bar), _latest(is_bar | is_position)
        at_bar = np.where(bar >= 0, _take(length, bar), 0)
        position = np.where(_take(is_position, event) & (event >= 0), _take(value, event), 0)
        now = bar_end - at_bar + position
        onset = _latest(is_position)
        earlier = np.concatenate([np.full((len(kind), 1), -1), onset[:, :-1]], axis=1)
        earlier = np.where(event >= 0, _take(earlier, event), -1)
        onset_before = np.where(earlier >= 0, _take(now, earlier), -1)
        note = _latest(kind == Kind.NOTE)
        return now, onset_before, position, np.where(note > event, note, -1)

    def _ends(
        self, kind: NDArray[np.int64], value: NDArray[np.int64], now: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(B, T), at the Notes: the place of the note's Duration (T: beyond), and when it ends."""
        told, end = np.full(kind.shape, kind.shape[1]), np.full(kind.shape, NEVER)
        note, extends = _latest(kind == Kind.NOTE), (kind == Kind.EXTEND).cumsum(axis=1)
        rows, places = np.nonzero((kind == Kind.DURATION) & (note >= 0))
        notes = note[rows, places]
        more = extends[rows, places] - extends[rows, notes]
        steps = value[rows, places] + 1 + more * self.vocabulary.longest_duration
        told[rows, notes] = places
        end[rows, notes] = now[rows, notes] + steps
        return told, end

    # The same an id at a time, for sampling.

    def start(self, batch: int) -> Walk:
        """Where `batch` rows stand before the first id."""
        zeros = np.zeros(batch, dtype=np.int64)
        return Walk(
            bar_start=zeros.copy(),
            bar_length=zeros.copy(),
            now=zeros.copy(),
            onset=zeros - 1,
            note=zeros - 1,
            extends=zeros.copy(),
            ends=np.full((batch, self._notes), -1),
            is_over=np.zeros((batch, self._notes), dtype=bool),
        )

    def advance(self, walk: Walk, ids: ArrayLike) -> None:
        """Takes each row's next id, (B,), into the walk, which changes in place."""
        ids = np.asarray(ids, dtype=np.int64)
        kind = self.vocabulary.kind_of[ids]
        value = ids - self._first[kind]
        latest = set(kind.tolist())
        if Kind.BAR in latest:
            is_bar = kind == Kind.BAR
            walk.bar_start[is_bar] += walk.bar_length[is_bar]
            walk.bar_length[is_bar] = self.vocabulary.whole_bars[value[is_bar]]
        if Kind.LENGTH in latest:
            is_length = kind == Kind.LENGTH
            walk.bar_length[is_length] = value[is_length] + 1
        if latest & {Kind.BAR, Kind.POSITION}:
            is_position = kind == Kind.POSITION
            is_event = is_position | (kind == Kind.BAR)
            time = walk.bar_start + np.where(is_position, value, 0)
            walk.now = np.where(is_event, time, walk.now)
            is_over = (walk.ends <= walk.now[:, None]) & (walk.ends > walk.onset[:, None])
            walk.is_over = np.where(is_event[:, None], is_over, walk.is_over)
            walk.note[is_event] = -1
            walk.onset = np.where(is_position, walk.now, walk.onset)
        if Kind.NOTE in latest:
            rows = np.flatnonzero(kind == Kind.NOTE)
            walk.note[rows] = value[rows]
            walk.extends[rows] = 0
            walk.ends[rows, value[rows]] = NEVER
        if Kind.EXTEND in latest:
            walk.extends += kind == Kind.EXTEND
        if Kind.DURATION in latest:
            rows = np.flatnonzero((kind == Kind.DURATION) & (walk.note >= 0))
            steps = value[rows] + 1 + walk.extends[rows] * self.vocabulary.longest_duration
            walk.ends[rows, walk.note[rows]] = walk.now[rows] + steps

    def at(self, walk: Walk, ids: ArrayLike) -> NDArray[np.bool_]:
        """(B, 1, S) beside the latest ids, (B,), which the walk has taken in.

        Nothing is known of `follow`.
        """
        ids = np.asarray(ids, dtype=np.int64)
        out = np.zeros((len(ids), 1, self.size), dtype=bool)
        flat = out[:, 0]
        is_note = self.vocabulary.kind_of[ids] == Kind.NOTE
        everyone = np.arange(len(ids))
        flat[everyone, self._at["position"] + walk.now - walk.bar_start] = True
        begun = np.flatnonzero(walk.note >= 0)
        flat[begun, self._at["program"] + self._program[walk.note[begun]]] = True
        rows = np.flatnonzero(is_note)
        number = walk.note[rows]
        self._set_pitches(out, rows, np.zeros_like(rows), number, self._at["pitch"])
        for block, is_in in (("sounding", walk.ends > walk.now[:, None]), ("over", walk.is_over)):
            rows, number = np.nonzero(is_in)
            at = self._at[block]
            flat[rows, at + number] = True
            self._set_pitches(out, rows, np.zeros_like(rows), number, at + self._notes)
            if block == "sounding":
                end = walk.ends[rows, number]
                steps = np.where(end == NEVER, 0, np.minimum(end - walk.now[rows], self._most_left))
                left = self._program[number] * (self._most_left + 1) + steps
                flat[rows, self._at["left"] + left] = True
        flat[ids == self._first[Kind.PAD]] = False
        return out

    def tell(self, beside: NDArray[np.bool_], follow: NDArray[np.int64]) -> None:
        """Sets, in (B, T, S), how many bars follow the id's own: (B, T), -1 where unknown."""
        rows, places = np.nonzero(follow >= 0)
        columns = self._at["follow"] + np.minimum(follow[rows, places], BARS_TOLD)
        beside[rows, places, columns] = True


def _latest(is_one: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(B, T) the place of the latest True so far, -1 before the first."""
    places = np.where(is_one, np.arange(is_one.shape[1]), -1)
    return np.asarray(np.maximum.accumulate(places, axis=1))


def _take(values: NDArray[np.generic], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(B, T) what stands in these places of each row; anything where the place is -1."""
    return np.take_along_axis(np.asarray(values), np.maximum(places, 0), axis=1)


def _first_reaching(
    times: NDArray[np.int64], rows: NDArray[np.int64], least: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(N,) the first place in its row, where times (B, T) never fall, with a time of `least`."""
    apart = int(times.max(initial=0)) + 3
    row_starts = apart * np.arange(len(times))[:, None]
    wanted = np.minimum(least, apart - 2) + apart * rows
    places = np.searchsorted((times + row_starts).ravel(), wanted)
    return np.asarray(places - times.shape[1] * rows)


def _spread(
    first: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places of N ranges, first to stop - 1: whose each is, and the place."""
    count = np.maximum(stop - first, 0)
    which = np.repeat(np.arange(len(first)), count)
    before = np.cumsum(count) - count
    return which, np.arange(len(which)) - before[which] + first[which]
