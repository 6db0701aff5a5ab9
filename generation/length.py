"""The length that is asked for, and where it lets a piece end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from common.arrays import Ints
from common.compiled import compiled_inside
from data.tokens.cursor import Cursor
from data.tokens.vocabulary import NEVER, Kind
from generation.constraints import ConstraintError
from generation.given import GivenTokens

_TOO_LONG = NEVER >> 20  # bars, seconds or notes


@dataclass(frozen=True)
class Length:
    """The length of a piece: at most one of these; with none, the model ends the piece.

    Attributes:
        bars: the number of bars, the seed's included. New notes end by the end of the last bar.
        seconds: the piece ends with the bar that reaches this time, the seed's time included. No
            note begins after it, and the notes of earlier bars have ended by then. The tempo does
            not change. The time is rounded to the nearest grid step.
        notes: the piece ends with the last of so many new notes.
        endless: the piece never ends.

    Raises:
        ConstraintError: several lengths are given, or one that is not above 0.
    """

    bars: int | None = None  # bars; seconds, if the model has no bars
    seconds: float | None = None  # seconds, at one tempo, and on to the end of the bar
    notes: int | None = None  # notes
    endless: bool = False

    def __post_init__(self) -> None:
        given = [n for n in ("bars", "seconds", "notes") if getattr(self, n) is not None]
        if len(given) + self.endless > 1:
            raise ConstraintError(
                "a piece has one length: give bars, seconds or notes, not several"
            )
        for name in given:
            if not 0 < getattr(self, name) < _TOO_LONG:
                asked = getattr(self, name)
                raise ConstraintError(f"{name} must be above 0 and below {_TOO_LONG}, not {asked}")


class Asked:
    """The request as numbers for compiled loops. Times are in grid steps."""

    last_bar: int  # the number of the last bar, from 1; NEVER: not known
    is_timed: bool  # the length is in seconds
    notes: int  # how many new notes end the piece; 0: any number; NEVER: it never ends
    meter: int  # the number of the requested time signature; -1: any
    longest_bar: int  # steps of the longest bar that may begin
    tempo: int  # the number of the requested tempo; -1: any
    most_sounding: int  # how many notes may sound at once; NEVER: any number
    is_strict: bool  # strict counterpoint
    has_end: bool  # the final chord fills the last bar
    given_close: int  # when all fall silent with a given last note; NEVER: not before the bar ends
    closes: bool  # the final chord is a triad; false where a requested chord stands there
    has_cadence: bool  # the dominant comes before the final chord
    has_no_rests: bool  # no instrument rests by itself
    rests_together: bool  # all instruments may rest at once
    beat: int  # steps of a beat
    pitch_count: int  # K
    given_bars: int  # how many bars are given
    given_end: int  # the step at which the last given bar ends
    given_last_bar: int  # the step at which it begins
    given_whole_bar: int  # steps of a whole bar in its meter; 0 without bars
    given_meter: int  # the number of its meter; -1 without bars
    are_cut: bool  # the given bars are shorter than their meter, as the vocabulary lacks theirs
    end_step: int  # the step from which all programs may begin notes
    reach: int  # the first step from which nothing that is given matters to new notes
    last_chance: int  # the last step at which a note of the last bar can begin; -1: one is given


class Row(Cursor):
    """Where a row stands, and what the rules count in it; changed in place."""

    whole_bar: int  # steps of a whole bar of the meter in force
    upbeat: int  # steps of the first bar if it is shorter than a whole one; else 0
    is_regular: int  # whether bars have one length, and a shortened bar is made whole by the next
    owed: int  # steps still missing to make the latest shortened bar whole; 0: none
    final_position: int  # steps from the last bar line to the final chord; -1: the model decides
    limit: int  # no note begins from this step on; NEVER: no limit, or none yet
    new_notes: int  # how many notes have begun after the seed
    own_notes: int  # how many notes the model wrote
    bar_notes: int  # how many notes have begun in this bar
    past_notes: int  # how many notes have begun in the bars before it
    follow: int  # how many bars follow this one; -1: not known
    is_last: int  # whether the row is in the last bar of its piece
    expected_end: int  # the end of the piece, if the meter does not change
    latest_end: int  # the end of the piece, if only the longest bars follow
    final_onset: int  # when the final chord begins; -1: not known, NEVER: before the first bar
    rest_after: int  # the bar after which the row waits for others; NEVER
    next_given: int  # the index of the next given id
    key: int  # the key that the model is told: its tonic, plus 12 in minor; -1: none


def limit_of_given(length: Length, given: GivenTokens) -> int:
    """Return the step at which a length in seconds is over; NEVER if the tempo is not known yet."""
    score, grid = given.seed.score, given.vocabulary.grid
    if length.seconds is None:
        return NEVER
    if not given.bars:
        if grid.has_meter:
            return NEVER
        return max(1, round(length.seconds * grid.steps_per_beat))
    lines = score.bar_starts
    seconds = score.step_seconds(lines)
    left = length.seconds - seconds[-1]
    if left <= 0:
        return max(1, round(float(np.interp(length.seconds, seconds, lines))))
    return round(float(lines[-1] + left * score.tempo_bpm[-1] * grid.steps_per_beat / 60))


@compiled_inside
def count(asked: Asked, limits: Ints, here: Row) -> None:
    """Count what the latest id of a row adds to the length so far."""
    kind, length = here.kind, here.bar_length
    if kind == Kind.BAR:
        here.whole_bar = length
        here.past_notes += here.bar_notes
        here.bar_notes = 0
    elif kind == Kind.LENGTH and not (asked.are_cut and here.bar_count <= asked.given_bars):
        if here.bar_count == 1:
            here.upbeat = length
        elif here.is_regular > 0:
            owed = here.owed if here.owed > 0 else here.whole_bar
            here.owed = max(owed - length, 0)
    elif kind == Kind.NOTE:
        here.bar_notes += 1
        here.new_notes += here.now >= asked.end_step
    elif kind == Kind.TEMPO and here.limit == NEVER:
        here.limit = limits[here.tempo]
    if (kind == Kind.TEMPO or kind == Kind.POSITION) and length == here.whole_bar:
        here.owed = 0  # a whole bar has followed anyway
    here.follow = bars_to_follow(asked, here)
    look_ahead(asked, here)


@compiled_inside
def bars_to_follow(asked: Asked, here: Row) -> int:
    """Return the number of bars that follow the current one; -1: unknown.

    For a length in seconds or notes, it is an estimate from the bars or notes so far.
    """
    if asked.last_bar < NEVER:
        return max(asked.last_bar - here.bar_count, 0)
    if asked.is_timed and here.limit < NEVER and here.bar_count > 0:
        left = here.limit - here.bar_start - here.bar_length
        return max(-(-left // max(here.whole_bar, 1)), 0)
    if 0 < asked.notes < NEVER and here.past_notes > 0:
        per_bar = here.past_notes / max(here.bar_count - 1, 1)
        in_this_bar = max(per_bar - here.bar_notes, 0.0)
        left_notes = asked.notes - here.new_notes - in_this_bar
        return int(min(math.ceil(max(left_notes, 0.0) / per_bar), NEVER))
    return -1


@compiled_inside
def look_ahead(asked: Asked, here: Row) -> None:
    """Compute when the piece of a row ends, counting from the last known bar."""
    is_given = here.bar_count < asked.given_bars
    bar_end = asked.given_end if is_given else here.bar_start + here.bar_length
    bars = asked.last_bar - max(here.bar_count, asked.given_bars)  # bars that follow it
    whole = asked.given_whole_bar if is_given else here.whole_bar  # steps of each of them
    if asked.meter >= 0 and whole > 0:
        whole = asked.longest_bar
    missing = here.whole_bar - here.owed if bars > 1 and here.owed > 0 else 0  # in the next bar
    here.latest_end = bar_end + bars * asked.longest_bar
    here.expected_end, here.final_onset = NEVER, -1
    here.is_last = here.bar_count >= asked.last_bar
    if asked.is_timed:
        here.expected_end = max(bar_end, here.limit)
        here.is_last = here.bar_start + here.bar_length >= here.limit
    if asked.last_bar == NEVER:
        return
    here.expected_end = bar_end + bars * whole - missing
    if bars > 0 and here.upbeat < whole:
        here.expected_end -= here.upbeat  # the last bar is shorter by the upbeat
    here.expected_end = min(here.expected_end, asked.given_close)
    position, start, size = here.final_position, here.bar_start, here.bar_length
    if asked.given_bars == asked.last_bar:
        start, size = asked.given_last_bar, asked.given_end - asked.given_last_bar
    if bars > 0:
        start = bar_end + (bars - 1) * whole - missing
    elif position >= size:
        position = max(size - asked.beat, 0)
    if here.final_position >= 0:
        here.final_onset = start + position if whole > 0 else NEVER
