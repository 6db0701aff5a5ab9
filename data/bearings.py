"""Bearings: what the ids so far say about where each id stands, spelt out beside it.

A decoder could work all of this out from the ids: when it is, what sounds, what has just ended,
when each voice will be free. Told, a small one learns from few pieces what it would need many
for. Nothing here looks ahead, so the likelihood stays exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.spans import NEVER, NO_PITCH, Ints, Sounds, first_reaching, latest, spread, take
from data.vocabulary import Kind, Vocabulary

BARS_TOLD = 16  # bars that follow; more are told as so many
LATEST = 2**15 - 1  # as time; there is room for whole windows, if not of empty bars alone
OCTAVE = 12  # semitones
FEW = 16  # programs; a note of more has no column of its own
SHARED = 3  # references that are no program's


@dataclass
class Walk:
    """Where a row stands in what it has read. Times count from the first bar read.

    Attributes:
        bar_start, bar_length: of the bar that the row is in.
        now: the time of the latest Position or Bar.
        onset: the time of the latest Position, -1 before the first.
        note: number of the latest Note at this time, -1 before the first.
        extends: Extends since the latest Note.
        ends: when each note ends that sounds, or did at the onset before this time.
        over: the notes that ended after that onset, at this time or before.
        kind: of the latest id.
    """

    bar_start: int = 0
    bar_length: int = 0
    now: int = 0
    onset: int = -1
    note: int = -1
    extends: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    kind: int = Kind.PAD


class Bearings:
    """Columns beside ids: S of them, block by block, zeros and ones but for the last two blocks.

    After an id, that is with the knowledge of it and of all ids before it in the same window:

        follow      so many bars follow the id's own; all 0 where that is not known
        position    steps from the bar line
        program     of the latest note that begins here
        pitch       of the id itself, if it is a note; and its pitch class
        sounding    the notes that sound, or of more than FEW programs, these programs and the
                    drums; their pitches; their pitch classes
        over        the notes that sounded at the onset before, and no more; the same three
        left        by program, or of them all, the steps for which notes go on: not told, 1, 2 ..

    and, the same in every key, by semitones within the octave:

        chord       what sounds, above the lowest of it
        against     what sounds, above the latest note that begins here
        against_over  what is over, above that note
        before      what is over, above the lowest of it
        motion      what is over, above the lowest that sounds
        step        to that note from those of its program that are over, up to an octave or more

    and last, as numbers

        references  pitches to count from, from 1 up, 0 for none: by program the lowest that is
                    over, then the latest note that begins here, the lowest that sounds, the lowest
                    that is over; there are none of more than FEW programs
        time        steps from the first bar of the window, up to LATEST

    Drums have no pitch.

    Args:
        vocabulary: of the ids.

    Attributes:
        blocks: the columns of each block, by name.
        size: S.
        shape: what a decoder must know of it, by the names in its config.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        pitches, programs = vocabulary.pitch_count, len(vocabulary.programs)
        notes, is_few = vocabulary.counts[Kind.NOTE], programs <= FEW
        own = notes if is_few else programs + pitches
        self._most_left = vocabulary.longest_duration + 1  # so much or more
        widths = {
            "follow": BARS_TOLD + 1,
            "position": vocabulary.longest_bar,
            "program": programs,
            "pitch": pitches + 12,
            "sounding": own + pitches + 12,
            "over": own + pitches + 12,
            "left": (programs if is_few else 1) * (self._most_left + 1),
            **dict.fromkeys(("chord", "against", "against_over", "before", "motion"), 12),
            "step": 2 * OCTAVE + 1,
            "references": programs + SHARED if is_few else 0,
            "time": 1,
        }
        ends = itertools.accumulate(widths.values())
        self.blocks = {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }
        self.size, self._references = sum(widths.values()), widths["references"]
        *bits, _, _ = widths.values()
        self.shape: dict[str, Any] = {"n_beside": self.size, "beside_blocks": tuple(bits)}
        if is_few:
            first = vocabulary.first(Kind.NOTE)
            self.shape |= {"n_programs": programs, "n_pitches": pitches, "first_note": first}
        at = {name: block.start for name, block in self.blocks.items()}
        self._steps_at = self.blocks["step"].start + OCTAVE  # of no step
        self._first = np.array(vocabulary.firsts)

        # The columns of each note, (N, 1) or (N, 3). Drums, which have no pitch, have the first of
        # them three times.
        number = np.arange(notes)[:, None]
        program, pitch = np.divmod(number, pitches)
        pitch_class = (pitch + vocabulary.lowest_pitch) % 12
        pitched = np.hstack([pitch, pitches + pitch_class])  # (N, 2)
        is_drum = vocabulary.is_drum_note[vocabulary.ids(Kind.NOTE), None]
        self._program, self._pitch = program[:, 0], np.where(is_drum, NO_PITCH, pitch)[:, 0]  # (N,)
        if not is_few:
            number = np.where(is_drum, programs + pitch, program)

        def columns(own: Ints, pitches_at: int) -> Ints:
            return np.hstack([own, np.where(is_drum, own, pitches_at + pitched)])

        self._columns = {
            "program": at["program"] + program,
            "itself": columns(at["program"] + program, at["pitch"]),
            "sounding": columns(at["sounding"] + number, at["sounding"] + own),
            "over": columns(at["over"] + number, at["over"] + own),
            "left": at["left"] + program * is_few * (self._most_left + 1),
        }
        self._lists = {name: table.tolist() for name, table in self._columns.items()}
        self._lists["pitch"] = self._pitch.tolist()

    def of(self, ids: ArrayLike) -> NDArray[np.int16]:
        """(B, T, S) beside windows that begin at Start or at a Bar, Pad at either end.

        Nothing is known of `follow`.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kind = self.vocabulary.kind_of[ids]
        value = ids - self._first[kind]
        length = ids.shape[1]
        out = np.zeros((*ids.shape, self.size), dtype=np.int16)
        flat = out.reshape(-1)
        if not out.size:
            return out

        def put(rows: Ints, places: Ints, columns: Ints) -> None:
            """Sets columns (N, C) beside N ids."""
            cells = rows * length + places
            flat[cells[:, None] * self.size + columns] = 1

        is_token = kind != Kind.PAD
        now, onset_before, position, note_at = self._times(kind, value)
        out[..., -1] = np.minimum(now, LATEST) * is_token
        rows, places = np.nonzero(is_token)
        put(rows, places, self.blocks["position"].start + position[rows, places, None])
        rows, places = np.nonzero((note_at >= 0) & is_token)
        put(rows, places, self._columns["program"][value[rows, note_at[rows, places]]])
        rows, begin = np.nonzero(kind == Kind.NOTE)
        number = value[rows, begin]
        put(rows, begin, self._columns["itself"][number])

        # A note sounds from its own place to that of the first id at its end or later; from there
        # it is over, until the first id that has an onset between.
        told, end = (of_all[rows, begin] for of_all in self._ends(kind, value, now))
        last = length - is_token[:, ::-1].argmax(axis=1)[rows]  # Pad at the right end
        silent = np.minimum(first_reaching(now, rows, end), last)
        gone = np.minimum(first_reaching(onset_before, rows, end), last)
        sounding = spread(begin, silent)
        which, place = sounding
        put(rows[which], place, self._columns["sounding"][number[which]])
        is_told = place >= told[which]
        steps = np.minimum(end[which] - now[rows[which], place], self._most_left)
        left = self._columns["left"][number[which]] + (steps * is_told)[:, None]
        put(rows[which], place, left)
        over = spread(silent, gone)
        which, place = over
        put(rows[which], place, self._columns["over"][number[which]])

        newest = np.where(note_at >= 0, take(value, note_at), -1)
        sounds, is_over = (
            Sounds(rows[which], place, number[which], self._pitch, ids.shape)
            for which, place in (sounding, over)
        )
        root = np.where(newest >= 0, self._pitch[newest], NO_PITCH)
        for name, notes, roots in (
            ("chord", sounds, sounds.lowest),
            ("against", sounds, root),
            ("against_over", is_over, root),
            ("before", is_over, is_over.lowest),
            ("motion", is_over, sounds.lowest),
        ):
            rows, places, above = notes.above(roots)
            put(rows, places, self.blocks[name].start + above[:, None] % OCTAVE)
        rows, places, above = is_over.above(root, self._program, newest)
        put(rows, places, self._steps_at + np.clip(-above, -OCTAVE, OCTAVE)[:, None])
        if self._references:
            lowest = (root, sounds.lowest, is_over.lowest)  # (B, T) each
            own = is_over.lowest_by(self._program, self._references - SHARED)
            pitches = np.concatenate([own, np.stack(lowest, axis=-1)], axis=-1)  # (B, T, R)
            out[..., self.blocks["references"]] = (pitches + 1) * is_token[..., None]
        return out

    def _times(self, kind: Ints, value: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Of each id (B, T): its time, that of the onset before this time (-1: none), the steps
        from the bar line to it, and the place of the latest Note that begins at it (-1: none).
        """
        is_bar, is_position = kind == Kind.BAR, kind == Kind.POSITION
        length = np.where(is_bar, self.vocabulary.whole_bars[np.where(is_bar, value, 0)], 0)
        bar, event = latest(is_bar), latest(is_bar | is_position)
        rows, places = np.nonzero((kind == Kind.LENGTH) & (bar >= 0))
        length[rows, bar[rows, places]] = value[rows, places] + 1
        bar_end = length.cumsum(axis=1)
        at_bar = np.where(bar >= 0, take(length, bar), 0)
        position = np.where(take(is_position, event) & (event >= 0), take(value, event), 0)
        now = bar_end - at_bar + position
        onset = latest(is_position)
        earlier = np.concatenate([np.full((len(kind), 1), -1), onset[:, :-1]], axis=1)
        earlier = np.where(event >= 0, take(earlier, event), -1)
        onset_before = np.where(earlier >= 0, take(now, earlier), -1)
        note = latest(kind == Kind.NOTE)
        return now, onset_before, position, np.where(note > event, note, -1)

    def _ends(self, kind: Ints, value: Ints, now: Ints) -> tuple[Ints, Ints]:
        """(B, T), at the Notes: the place of the note's Duration (T: beyond), and when it ends."""
        told, end = np.full(kind.shape, kind.shape[1]), np.full(kind.shape, NEVER)
        note, extends = latest(kind == Kind.NOTE), (kind == Kind.EXTEND).cumsum(axis=1)
        rows, places = np.nonzero((kind == Kind.DURATION) & (note >= 0))
        notes = note[rows, places]
        more = extends[rows, places] - extends[rows, notes]
        steps = value[rows, places] + 1 + more * self.vocabulary.longest_duration
        told[rows, notes] = places
        end[rows, notes] = now[rows, notes] + steps
        return told, end

    # The same an id at a time, for sampling: row by row, since few notes sound at once.

    def start(self, batch: int) -> list[Walk]:
        """Where `batch` rows stand before the first id."""
        return [Walk() for _ in range(batch)]

    def advance(self, walks: list[Walk], ids: ArrayLike) -> None:
        """Takes each row's next id, (B,), into its walk, which changes in place."""
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        values = (ids - self._first[kinds]).tolist()
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
                case Kind.EXTEND:
                    walk.extends += 1
                case Kind.DURATION if walk.note >= 0:
                    steps = value + 1 + walk.extends * self.vocabulary.longest_duration
                    walk.ends[walk.note] = walk.now + steps

    def _move(self, walk: Walk, time: int) -> None:
        """Goes on to a time."""
        walk.now, walk.note = time, -1
        walk.ends = {note: end for note, end in walk.ends.items() if end > walk.onset}
        walk.over = [note for note, end in walk.ends.items() if end <= time]

    def at(self, walks: list[Walk]) -> NDArray[np.int16]:
        """(B, 1, S) beside the ids that the walks took in last.

        Nothing is known of `follow`.
        """
        out = np.zeros((len(walks), 1, self.size), dtype=np.int16)
        for row, walk in zip(out[:, 0], walks, strict=True):
            if walk.kind == Kind.PAD:
                continue
            columns = [self.blocks["position"].start + walk.now - walk.bar_start]
            if walk.kind == Kind.NOTE:
                columns += self._lists["itself"][walk.note]
            elif walk.note >= 0:
                columns += self._lists["program"][walk.note]
            for note, end in walk.ends.items():
                if end > walk.now:
                    steps = 0 if end == NEVER else min(end - walk.now, self._most_left)
                    columns += self._lists["sounding"][note]
                    columns.append(self._lists["left"][note][0] + steps)
            for note in walk.over:
                columns += self._lists["over"][note]
            row[columns + self._intervals(walk, row[self.blocks["references"]])] = 1
            row[-1] = min(walk.now, LATEST)
        return out

    def _intervals(self, walk: Walk, references: NDArray[np.int16]) -> list[int]:
        """The columns that are the same in every key; sets the references, (R,)."""
        pitch, program = self._lists["pitch"], self._lists["program"]
        heard = [note for note, end in walk.ends.items() if end > walk.now]
        sounding = [pitch[note] for note in heard if pitch[note] != NO_PITCH]
        own = [(program[note][0], pitch[note]) for note in walk.over if pitch[note] != NO_PITCH]
        over = [its for _, its in own]
        latest = pitch[walk.note] if walk.note >= 0 else NO_PITCH
        lowest, lowest_before = min(sounding, default=NO_PITCH), min(over, default=NO_PITCH)
        columns = []
        for name, notes, root in (
            ("chord", sounding, lowest),
            ("against", sounding, latest),
            ("against_over", over, latest),
            ("before", over, lowest_before),
            ("motion", over, lowest),
        ):
            if root != NO_PITCH:
                at = self.blocks[name].start
                columns += [at + (note - root) % OCTAVE for note in notes]
        if latest != NO_PITCH:
            steps = [latest - its for voice, its in own if voice == program[walk.note][0]]
            columns += [self._steps_at + max(-OCTAVE, min(OCTAVE, step)) for step in steps]
        if self._references:
            for voice, its in sorted(own, reverse=True):  # of each program the lowest is last
                references[voice - self.blocks["program"].start] = its + 1
            references[-SHARED:] = latest + 1, lowest + 1, lowest_before + 1
        return columns

    def tell(self, beside: NDArray[np.int16], follow: Ints) -> None:
        """Sets, in (B, T, S), how many bars follow the id's own: (B, T), -1 where unknown."""
        rows, places = np.nonzero(follow >= 0)
        columns = self.blocks["follow"].start + np.minimum(follow[rows, places], BARS_TOLD)
        beside[rows, places, columns] = 1
