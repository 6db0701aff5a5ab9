"""Events of a MIDI file to a Score: notes, bar lines and tempi brought to the grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ints, Reals, Records, offsets, reduce_segments, segment_ids
from data.canonical import GridChanges, ScoreBatch, canonical_batch
from data.midi.bars import barred_anew, with_long_bars_split
from data.midi.events import Events
from data.midi.parts import with_parts
from data.score import BAR, DRUMS, NOTE, Grid, Score, can_be_said

MAX_BEATS = 100_000  # thirteen hours at 120 beats a minute
MAX_BARS = 1_000_000  # counted as if all were as short as the shortest
MIN_TEMPO_BPM = 60e6 / 2**24  # a MIDI file has 24 bits for microseconds a quarter note
MAX_SECONDS = 24 * 3600  # on a grid of seconds, whose bars are counted out one by one
_NOISE = 1e-6  # steps, or beats a minute: what arithmetic on tempi may be off by
_TICK_BITS = 40  # that a tick takes of a sorting key


class MidiError(ValueError):
    """A file or object that holds no music that can be read; the message is one line."""


def score_from_events(events: Events, grid: Grid, blame: str = "") -> tuple[Score, GridChanges]:
    """Bring events to the grid; `blame` begins messages.

    Onsets, ends and bar lines go to the nearest step, half way up; bar lines are rounded from
    their exact places, so that rounding does not add up. A bar's tempo is the one that gives it
    its length in seconds. On a grid of seconds the tempi say when things happen, and meters say
    nothing.

    Raises:
        MidiError: times or values that no music has.
    """
    for reason in refusals([events], grid).values():
        raise MidiError(blame + reason)
    batch, changes = batch_from_events([events], grid)
    return batch[0], changes[0]


def refusals(pieces: Sequence[Events], grid: Grid) -> dict[int, str]:
    """Find the pieces whose times or values no music has, and say what is wrong with each.

    After one value that cannot be true, none can be trusted.
    """
    reasons: dict[int, str] = {}
    for numbers, reason in _faults(_Joined.of(pieces), grid):
        for number in numbers.tolist():
            reasons.setdefault(number, reason)
    if not grid.has_meter:
        sound = [number for number in range(len(pieces)) if number not in reasons]
        joined = _Joined.of([pieces[number] for number in sound])
        is_late = _seconds(joined, joined.notes[:, 1], joined.note_piece) > MAX_SECONDS
        for at in np.unique(joined.note_piece[is_late]).tolist():
            reasons[sound[at]] = f"longer than {MAX_SECONDS // 3600} hours"
    return reasons


def batch_from_events(pieces: Sequence[Events], grid: Grid) -> tuple[ScoreBatch, list[GridChanges]]:
    """Bring the events of many pieces to the grid at once, each as `score_from_events` does.

    There are fewer than 2^16 pieces, and none that `refusals` names.
    """
    if grid.parts:
        pieces = [with_parts(events, grid) for events in pieces]
    if grid.meter:
        pieces = [barred_anew(events, grid.meter, grid.steps_per_beat) for events in pieces]
    split_bars = [0] * len(pieces)
    if grid.has_meter:
        found = [with_long_bars_split(events) for events in pieces]
        pieces, split_bars = [events for events, _ in found], [count for _, count in found]
    joined = _Joined.of(pieces)
    piece, times = joined.note_piece, joined.notes[:, :2]
    if grid.has_meter:
        exact = times * grid.steps_per_beat / joined.ticks_per_beat[piece, None]
        bars, tempi, bar_offsets = _bars(joined, grid)
    else:
        exact = _seconds(joined, times, piece[:, None]) * grid.steps_per_beat
        bars, tempi = np.empty(0, dtype=BAR), np.empty(0)
        bar_offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
    steps = np.floor(exact + (0.5 + _NOISE)).astype(np.int64)
    notes = np.empty(len(steps), dtype=NOTE)
    notes["onset"], notes["duration"] = steps[:, 0], steps[:, 1] - steps[:, 0]
    for column, name in enumerate(("pitch", "velocity", "program"), start=2):
        notes[name] = joined.notes[:, column]
    batch, changes = canonical_batch(notes, bars, tempi, joined.note_offsets, bar_offsets, grid)

    error = np.abs(steps[:, 0] - exact[:, 0])
    moved = np.bincount(piece[error > _NOISE], minlength=len(pieces))
    worst = reduce_segments(np.maximum, error, joined.note_offsets, empty=0)
    for number, (begin, end) in enumerate(pairwise(joined.note_offsets.tolist())):
        changes[number].moved = int(moved[number])
        changes[number].error_steps = float(error[begin:end].sum())
        changes[number].worst_error_steps = float(worst[number])
        changes[number].split_bars = split_bars[number]
        changes[number].clipped_bytes = pieces[number].clipped_bytes
    return batch, changes


def onset_seconds(pieces: Sequence[Events]) -> Reals:
    """Return when each note of some pieces begins by their tempi, in seconds, end to end."""
    joined = _Joined.of(pieces)
    return _seconds(joined, joined.notes[:, 0], joined.note_piece)


@dataclass(frozen=True)
class _Joined:
    """The events of P pieces end to end, and which piece each row is of.

    Meters and tempi of pieces without notes are left out: nothing rests on them.
    """

    ticks_per_beat: Ints  # (P,)
    notes: Ints
    note_offsets: Ints
    meters: Ints
    meter_piece: Ints
    tempi: Reals
    tempo_piece: Ints
    note_piece: Ints

    @classmethod
    def of(cls, pieces: Sequence[Events]) -> Self:
        note_offsets = offsets([len(events.notes) for events in pieces])
        heard = [events if len(events.notes) else _SILENCE for events in pieces]
        return cls(
            np.array([events.ticks_per_beat for events in pieces], dtype=np.int64),
            np.concatenate([_SILENCE.notes, *(events.notes for events in pieces)]),
            note_offsets,
            np.concatenate([_SILENCE.meters, *(events.meters for events in heard)]),
            segment_ids(offsets([len(events.meters) for events in heard])),
            np.concatenate([_SILENCE.tempi, *(events.tempi for events in heard)]),
            segment_ids(offsets([len(events.tempi) for events in heard])),
            segment_ids(note_offsets),
        )

    @property
    def last_onset(self) -> Ints:
        """(P,) ticks; 0 where there are no notes."""
        return reduce_segments(np.maximum, self.notes[:, 0], self.note_offsets, empty=0)


_SILENCE = Events(1, np.empty((0, 5), np.int64), np.empty((0, 3), np.int64), np.empty((0, 2)))


def _faults(joined: _Joined, grid: Grid) -> Iterator[tuple[Ints, str]]:
    """Yield what is wrong, the gravest first, and the numbers of the pieces with it."""
    ticks_per_beat = joined.ticks_per_beat
    yield (
        np.flatnonzero(ticks_per_beat <= 0),
        "its time division is not in ticks a quarter note, so it has no beats",
    )
    piece = joined.note_piece
    start, end, pitch, velocity, program = joined.notes.T
    yield (
        piece[(start < 0) | (end < start)],
        "a note begins before the piece does, or after it has ended",
    )
    is_far = end > MAX_BEATS * ticks_per_beat[piece]
    yield piece[is_far], f"a note lies beyond beat {MAX_BEATS:,}"
    is_wrong = (pitch < 0) | (pitch > 127) | (velocity < 1) | (velocity > 127)
    yield piece[is_wrong], "a pitch lies outside 0..127, or a velocity outside 1..127"
    yield piece[(program < 0) | (program > DRUMS)], "a program lies outside 0..127"
    tick, bpm = joined.tempi.T
    is_wrong = (tick < 0) | ~np.isfinite(bpm) | ~(bpm > MIN_TEMPO_BPM)
    reason = "a tempo of zero or infinity, or before the piece begins"
    yield joined.tempo_piece[is_wrong], reason

    piece = joined.meter_piece
    meter_tick, numerator, denominator = joined.meters.T
    is_none = ~can_be_said(numerator, denominator)
    yield piece[is_none], "a time signature that no MIDI file can say"
    yield piece[meter_tick < 0], "a time signature before the piece begins"
    if not grid.has_meter:  # its bars are seconds
        return
    shortest_bar = np.full(len(ticks_per_beat), 4.0)
    np.minimum.at(shortest_bar, piece[~is_none], (numerator * 4)[~is_none] / denominator[~is_none])
    meter_counts = np.bincount(piece, minlength=len(ticks_per_beat))
    bars = joined.last_onset / np.maximum(ticks_per_beat, 1) / shortest_bar
    yield np.flatnonzero(meter_counts + bars > MAX_BARS), f"more than {MAX_BARS:,} bars"


def _meters(joined: _Joined, is_heard: Bools) -> tuple[Ints, Ints, Bools]:
    """Return the meters in force: rows, each one's piece, and whether it is the piece's last."""
    count = len(joined.ticks_per_beat)
    default = np.tile([0, 4, 4], (count, 1))
    meters = np.concatenate([default, joined.meters[is_heard]])
    piece = np.append(np.arange(count), joined.meter_piece[is_heard])
    order = np.lexsort((meters[:, 0], piece))
    meters, piece = meters[order], piece[order]
    is_last = np.diff(piece, append=count) > 0  # of its piece
    is_last_here = is_last | (np.diff(meters[:, 0], append=0) > 0)
    meters, piece = meters[is_last_here], piece[is_last_here]  # of several at one tick the last
    return meters, piece, is_last[is_last_here]


def _bars(joined: _Joined, grid: Grid) -> tuple[Records, Reals, Ints]:
    """Return each piece's bars up to that of its last onset, end to end.

    (M,) of BAR; (M,) quarter notes a minute, by the tempo map; (P + 1,) where each piece begins.
    """
    last_onset = joined.last_onset
    is_heard = joined.meters[:, 0] <= last_onset[joined.meter_piece]
    meters, piece, is_last = _meters(joined, is_heard)

    def in_steps(ticks: Reals, piece: Ints) -> Reals:
        return np.floor(ticks * grid.steps_per_beat / joined.ticks_per_beat[piece] + 0.5)

    tick, numerator, denominator = meters.T
    bar_ticks = numerator * 4 * joined.ticks_per_beat[piece] / denominator
    most_steps = grid.bar_steps(numerator, denominator)
    # A signature after the last onset may still say that the last bar is short.
    final = np.flatnonzero(is_last)
    last_line = tick[final] + bar_ticks[final] * ((last_onset - tick[final]) // bar_ticks[final])
    end = last_line + bar_ticks[final]
    after = np.full(len(final), np.inf)
    np.minimum.at(after, joined.meter_piece[~is_heard], joined.meters[~is_heard, 0])
    last_steps = in_steps(after, piece[final]) - in_steps(last_line, piece[final])
    end = np.where(last_steps <= most_steps[final], after, end)
    until = np.roll(tick, -1).astype(np.float64)
    until[final] = end
    count = np.ceil((until - tick) / bar_ticks).astype(np.int64)
    # Bars may end between steps: what is left then, before the next signature, is none.
    before = tick + bar_ticks * (count - 2)
    count -= (count > 1) & (in_steps(until, piece) - in_steps(before, piece) <= most_steps)
    count += is_last  # with a line at the end
    meter = np.repeat(np.arange(len(meters)), count)  # of each line
    number = np.arange(len(meter)) - (np.cumsum(count) - count)[meter]  # of each, in its meter
    exact = tick[meter] + bar_ticks[meter] * number
    closing = np.cumsum(count)[final] - 1
    exact[closing] = end
    piece = piece[meter]
    ticks_per_beat = joined.ticks_per_beat[piece]
    steps = in_steps(exact, piece).astype(np.int64)
    length = np.diff(steps, append=0)
    is_bar = length > 0  # never so of a line that closes a piece, after which another begins at 0
    is_line = is_bar.copy()
    is_line[closing] = True

    # of lines that round to one step a bar is made: the meter of the last, the time of the first
    is_first = (np.diff(steps, prepend=-1) != 0) | (np.diff(piece, prepend=-1) != 0)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(exact)), 0))
    begins = exact[first][is_line]
    seconds = _seconds(joined, begins, piece[is_line])
    with np.errstate(divide="ignore", invalid="ignore"):  # between pieces; not kept
        beats = np.diff(begins, append=0) / ticks_per_beat[is_line]
        tempi = 60 * beats / np.diff(seconds, append=0) + _NOISE
    meter = meter[is_bar]
    bars = np.empty(len(meter), dtype=BAR)
    bars["numerator"], bars["denominator"] = numerator[meter], denominator[meter]
    bars["length"] = length[is_bar]
    bar_offsets = offsets(np.bincount(piece[is_bar], minlength=len(last_onset)))
    return bars, tempi[is_bar[is_line]], bar_offsets


def _seconds(joined: _Joined, ticks: NDArray[np.number], piece: Ints) -> Reals:
    """Return the seconds from its piece's beginning at which each tick falls, by the tempo map."""
    count = len(joined.ticks_per_beat)
    tempi = np.concatenate([np.tile([0.0, 120.0], (count, 1)), joined.tempi])
    tempo_piece = np.append(np.arange(count), joined.tempo_piece)
    order = np.lexsort((tempi[:, 0], tempo_piece))
    (tick, bpm), tempo_piece = tempi[order].T, tempo_piece[order]
    seconds_per_tick = 60 / (bpm * joined.ticks_per_beat[tempo_piece])
    tempo_offsets = offsets(np.bincount(tempo_piece, minlength=count))
    seconds = np.append(0.0, np.diff(tick) * seconds_per_tick[:-1])
    for begin, end in pairwise(tempo_offsets.tolist()):  # each by itself, to be rounded alike
        seconds[begin] = 0.0
        np.cumsum(seconds[begin:end], out=seconds[begin:end])
    # tempi begin on whole ticks
    at = np.searchsorted(_key(tempo_piece, tick), _key(piece, np.floor(ticks)), side="right") - 1
    return np.asarray(seconds[at] + (ticks - tick[at]) * seconds_per_tick[at])


def _key(piece: Ints, tick: NDArray[np.number]) -> Ints:
    """Return numbers that rise with piece and then tick."""
    return (piece << _TICK_BITS) + tick.astype(np.int64)
