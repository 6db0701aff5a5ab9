"""Measures: the notes of a Score as events in bars, with ties, beams, triplets and accidentals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from common.arrays import Ints, offsets
from data.keys import LETTERS_BY_FIFTHS, Key, key_signature, notated_key
from data.score import DRUMS, Score
from rendering.note_values import FLAGS, Bar, BarRhythm, NoteValue, Span, steps_per_quarter
from rendering.readable import held_until_next, is_played, joined_chords, rounded
from rendering.spelling import spell_notes
from rendering.staves import Staff, arrange

MAX_RINGING_BARS = 16  # bars after the last one, for notes that are still held


@dataclass
class Event:
    """A note, a chord or a rest, as it is written in a bar.

    Attributes:
        value: when it is, and how long.
        notes: the indices of its notes in the Score; () for a rest.
        tied_from, tied_to: its notes that are tied to notes before it, and after it.
        accidentals: its notes that need an accidental.
        beams: "begin", "continue", "end" and so on, from the outermost beam.
        triplet: whether a triplet begins ("start"), ends ("stop"), or both ("start stop").
        is_whole_bar: whether it is a rest for a whole bar.
        is_hidden: whether it is a rest that is not shown.
    """

    value: NoteValue
    notes: tuple[int, ...]
    tied_from: frozenset[int] = frozenset()
    tied_to: frozenset[int] = frozenset()
    accidentals: frozenset[int] = frozenset()
    beams: tuple[str, ...] = ()
    triplet: str = ""
    is_whole_bar: bool = False
    is_hidden: bool = False


class Measures:
    """The bars of a Score, and what is written in them on each staff.

    Attributes:
        quarter: notation steps in a quarter note.
        key: of the signature.
        bars: as many as the notes need.
        starts: when each bar begins, and when the last one ends.
        spelled: the letter, the sharps and the octave of each note.

    Raises:
        ValueError: the Score has no notation: its grid has seconds, or divisions that no note
            values fit.
    """

    def __init__(self, score: Score, key: Key | None = None) -> None:
        self.quarter, self.key = steps_per_quarter(score.grid), key or notated_key(score)
        self.spelled = spell_notes(score, self.key)
        scale = self.quarter // score.grid.steps_per_beat
        self._onset = score.notes["onset"].astype(np.int64) * scale
        self._end = self._onset + score.notes["duration"].astype(np.int64) * scale
        is_drum = score.notes["program"] == DRUMS
        self.bars = self._bars(score, scale, int(self._end[~is_drum].max(initial=0)))
        self.starts = offsets([bar.length for bar in self.bars])
        self._end = np.minimum(self._end, self.starts[-1])
        times = np.concatenate([self._onset, self._end[~is_drum]])
        played = is_played(times, self.quarter)
        if played:
            onset, end, has_triplets = self._onset, self._end, not self.bars[0].is_compound
            onset, end = rounded(onset, end, self.starts, self.quarter, has_triplets)
            end = joined_chords(onset, end, score.notes["program"], self.quarter)
            self._onset, self._end = onset, end
        self._end[is_drum] = self._drum_ends(self._onset[is_drum])
        self.page = arrange(score, self._onset, self._end, cuts=played)
        if played:
            for part in self.page.parts:
                for voice in (voice for staff in part.staves for voice in staff.voices):
                    begin, end = self._onset[voice], self._end[voice]
                    end = held_until_next(begin, end, self.quarter)
                    self._end[voice] = np.minimum(end, self.starts[-1])

    def _drum_ends(self, onset: Ints) -> Ints:
        """Return when the next drum note comes, or the next quarter note of the bar."""
        bar = np.searchsorted(self.starts, onset, side="right") - 1
        begin, quarter = self.starts[bar], self.quarter
        ends = np.minimum(begin + ((onset - begin) // quarter + 1) * quarter, self.starts[bar + 1])
        begins = np.append(np.unique(onset), self.starts[-1])
        return np.asarray(np.minimum(ends, begins[np.searchsorted(begins, onset, side="right")]))

    def _bars(self, score: Score, scale: int, last_end: int) -> list[Bar]:
        """Return the bars until the last note ends, but only a few more than the Score has."""
        bars = []
        rows = score.bars.tolist() or [(4, 4, score.grid.bar_steps(4, 4))]
        for numerator, denominator, length in rows:
            whole = score.grid.bar_steps(numerator, denominator) * scale
            bars.append(Bar(numerator, denominator, length * scale, whole))
        over = last_end - sum(bar.length for bar in bars)
        more = min(max(-(-over // whole), 0), MAX_RINGING_BARS)
        return bars + [bars[-1]._replace(length=whole)] * more

    def staff(self, staff: Staff) -> list[list[tuple[int, list[Event]]]]:
        """Return, for each bar, the voices that are written in it, by their number from 0."""
        spans = [self._spans(rows) for rows in staff.voices or [np.empty(0, dtype=np.int64)]]
        written = []
        for number, bar in enumerate(self.bars):
            rhythm, voices = BarRhythm(bar, self.quarter, int(self.starts[number])), []
            for voice, of_bars in enumerate(spans):
                its = of_bars[number]
                if _has_notes(its) or voice == 0 or staff.shows_all_rests:
                    hides = voice > 0 and not staff.shows_all_rests
                    voices.append((voice, self._events(its, rhythm, hides)))
            if staff.clef.sign != "percussion":
                self._mark_accidentals([events for _, events in voices])
            written.append(voices)
        return written

    def _spans(self, rows: Ints) -> list[list[Span]]:
        """Return, for each bar, when which notes of a voice sound.

        If notes of a voice overlap, the sound is cut wherever a note begins or ends.
        """
        rows = rows[np.argsort(self._onset[rows], kind="stable")]
        onset, end = self._onset[rows], self._end[rows]
        edges = np.unique(np.concatenate([onset, end, self.starts]))
        of_bars: list[list[Span]] = [[] for _ in self.bars]
        bar_of = np.searchsorted(self.starts, edges, side="right") - 1
        for bar, (begin, stop) in zip(bar_of.tolist(), pairwise(edges.tolist()), strict=False):
            notes = tuple(rows[(onset <= begin) & (end > begin)].tolist())
            of_bars[bar].append((begin, stop, notes))
        return of_bars

    def _events(self, spans: Sequence[Span], rhythm: BarRhythm, hides_rests: bool) -> list[Event]:
        """Return what a voice has in a bar in which these spans sound."""
        if not _has_notes(spans):
            ((begin, end, _),) = spans
            return [Event(NoteValue(begin, end - begin, "", 0, None), (), is_whole_bar=True)]
        events = []
        for (_, _, notes), its in zip(spans, rhythm.values(spans), strict=True):
            by_height = tuple(sorted(notes, key=lambda note: self.spelled[note][2::-2]))
            for value in its:
                end = value.start + value.duration
                tied_from = frozenset(note for note in notes if self._onset[note] < value.start)
                tied_to = frozenset(note for note in notes if self._end[note] > end)
                is_hidden = hides_rests and not notes
                events.append(Event(value, by_height, tied_from, tied_to, is_hidden=is_hidden))
        _beam(events, rhythm)
        _bracket(events)
        return events

    def _mark_accidentals(self, voices: Sequence[list[Event]]) -> None:
        """Mark, in place, which notes need an accidental among the events of one staff in a bar."""
        fifths = key_signature(self.key)
        signed = LETTERS_BY_FIFTHS[:fifths] if fifths > 0 else LETTERS_BY_FIFTHS[fifths:]
        signature = dict.fromkeys(signed if fifths else "", 1 if fifths > 0 else -1)
        valid: dict[tuple[str, int], int] = {}  # what holds in this bar, by letter and octave
        together = (event for events in voices for event in events)
        for event in sorted(together, key=lambda event: event.value.start):
            needed = set()
            for note in event.notes:
                letter, sharps, octave = self.spelled[note]
                if note in event.tied_from:
                    continue
                if valid.get((letter, octave), signature.get(letter, 0)) != sharps:
                    needed.add(note)
                valid[letter, octave] = sharps
            event.accidentals = frozenset(needed)


def _has_notes(spans: Sequence[Span]) -> bool:
    return any(notes for _, _, notes in spans)


def _beam(events: Sequence[Event], rhythm: BarRhythm) -> None:
    """Add beams, in place, to the events of each group that no rest divides."""

    def group_of(event: Event) -> tuple[bool, int]:
        has_flags = bool(event.notes) and FLAGS.get(event.value.type, 0) > 0
        return has_flags, rhythm.beam_group(event.value.start)

    for (has_flags, _), run in groupby(events, key=group_of):
        its = list(run)
        if not has_flags or len(its) < 2:
            continue
        levels = [0, *(FLAGS[event.value.type] for event in its), 0]
        for place, event in enumerate(its):
            before, own, after = levels[place : place + 3]
            beams = range(1, own + 1)
            event.beams = tuple(_state(level, before, after, place) for level in beams)


def _state(level: int, before: int, after: int, place: int) -> str:
    """Return the state of a beam, by how many beams its neighbors have."""
    if before >= level:
        return "continue" if after >= level else "end"
    if after >= level:
        return "begin"
    return "backward hook" if place else "forward hook"


def _bracket(events: Sequence[Event]) -> None:
    """Mark, in place, where triplets begin and end."""
    spans = [None, *(event.value.triplet for event in events), None]
    for place, event in enumerate(events, start=1):
        if span := spans[place]:
            starts, stops = span != spans[place - 1], span != spans[place + 1]
            event.triplet = " ".join(["start"] * starts + ["stop"] * stops)
