"""Which passages of a piece come again later in it."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import partial

import numpy as np

from common.arrays import Ints
from common.options import Count
from data.keys import high_to_low, pitched_notes
from data.score import Score

RUN_NOTES = 8  # a passage has at least this many notes of the melody
MOST_PLACES = 16  # how many of the latest places of a run are compared
SAME = 0.9  # all voices come again if at least this share of notes has occurred before


@dataclass(frozen=True)
class Repeat:
    """A passage whose melody (that of the highest program) has occurred before.

    Attributes:
        begin_step, end_step: where it begins and ends.
        lag_steps: how long before it the passage began that it repeats.
        is_whole: whether the other voices come again, too.

    Raises:
        ValueError: the passage comes before what it repeats, or ends before it begins.
    """

    begin_step: Count
    end_step: Count
    lag_steps: Count
    is_whole: bool

    def __post_init__(self) -> None:
        if not self.lag_steps <= self.begin_step < self.end_step:
            raise ValueError("repeats must come after what they repeat")


def repeats_of(score: Score) -> list[Repeat]:
    """Find the passages of a piece that come again, from left to right, each as long as possible.

    None of them begins in the first bar.
    """
    if not len(pitched_notes(score)):
        return []
    onset, pitch = _melody(score)
    # the latest places of each run, by its notes
    seen: dict[tuple[int, ...], deque[int]] = defaultdict(partial(deque[int], maxlen=MOST_PLACES))
    steps = np.diff(onset)
    found, place, registered = [], 0, 0
    while place + RUN_NOTES <= len(onset):
        for before in range(registered, place):
            seen[_run(steps, pitch, before)].append(before)
        registered = place
        sizes = {
            before: _common(steps, pitch, before, place)
            for before in seen.get(_run(steps, pitch, place), ())
            if before + RUN_NOTES <= place
        }
        if not sizes:
            place += 1
            continue
        before = max(sizes, key=lambda key: sizes[key])
        size, lag = sizes[before], int(onset[place] - onset[before])
        begin, after = int(onset[place]), place + size
        end = int(onset[after] if after < len(onset) else score.bar_starts[-1])
        end = min(end, begin + lag)
        found.append(Repeat(begin, end, lag, _is_whole(score, begin, end, lag)))
        place = after
    return [repeat for repeat in found if repeat.begin_step >= score.bars["length"][0]]


def _melody(score: Score) -> tuple[Ints, Ints]:
    """Return the onsets and pitches of the highest notes of the highest program."""
    notes = score.notes[score.notes["program"] == high_to_low(score)[0]]
    last = np.append(np.diff(notes["onset"]) > 0, True)
    return notes["onset"][last].astype(np.int64), notes["pitch"][last].astype(np.int64)


def _run(steps: Ints, pitch: Ints, place: int) -> tuple[int, ...]:
    """Return the pitches in a run of notes, and the steps between the notes."""
    end = place + RUN_NOTES
    return (*pitch[place:end].tolist(), *steps[place : end - 1].tolist())


def _common(steps: Ints, pitch: Ints, before: int, place: int) -> int:
    """Count the notes that are the same from two places on, up to the second place."""
    most = min(place - before, len(pitch) - place)
    is_same = pitch[before : before + most] == pitch[place : place + most]
    is_same[1:] &= steps[before : before + most - 1] == steps[place : place + most - 1]
    return most if is_same.all() else int(is_same.argmin())


def _is_whole(score: Score, begin: int, end: int, lag: int) -> bool:
    """Return whether all voices come again."""
    notes = score.notes
    there = {*zip(notes["onset"].tolist(), notes["program"], notes["pitch"], strict=True)}
    here = notes[(notes["onset"] >= begin) & (notes["onset"] < end)]
    earlier = zip((here["onset"] - lag).tolist(), here["program"], here["pitch"], strict=True)
    return float(np.mean([note in there for note in earlier])) >= SAME
