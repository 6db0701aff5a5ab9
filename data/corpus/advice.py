"""What the times and tracks of some files in a folder say about how it should be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.midi.bars import barred_anew, beat_phase
from data.midi.events import Events
from data.midi.parts import tracks_of
from data.score import Grid, Part

STEPS = (12, 24)  # steps in a quarter note that are tried
CHANCE = 1 / 4  # of a step: the mean distance to the nearest step of notes without a beat
CLOSE = CHANCE / 2  # notes that keep to a grid are nearer than this
LEAST_BEAT = 0.25  # how well players keep to a click, from 0 to 1 (`beat_phase`)


@dataclass(frozen=True)
class Trial:
    """What a file would be under other options.

    Attributes:
        tracks: who plays in the file.
        errors: for each of STEPS, how far onsets are from the nearest step, in steps, on average.
            First as the file is, then barred anew in 4/4, if that changes something.
        beat: how well onsets keep to beats of the file's tempo, from 0 to 1.
    """

    tracks: tuple[Part, ...]
    errors: tuple[tuple[float, ...], tuple[float, ...]]
    beat: float

    def fits(self, steps: int, is_anew: bool = False) -> bool:
        """Return whether the file keeps to this many steps, or to fewer of STEPS."""
        errors = zip(STEPS, self.errors[is_anew], strict=True)
        return any(n <= steps and error < CLOSE for n, error in errors)


def try_options(events: Events, grid: Grid) -> Trial:
    """Try options other than a grid's on a file with notes."""
    of_beats = grid if grid.has_meter else Grid()
    anew = barred_anew(events, of_beats.meter or (4, 4), of_beats.steps_per_beat)
    plain = anew if grid.meter else events
    return Trial(tuple(tracks_of(events)), (_errors(plain), _errors(anew)), beat_phase(events)[0])


def advised_grid(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the options of the grid that fits: the fewest steps in a beat, or else seconds.

    At least half of the files keep to these steps, barred anew if need be. Players who follow a
    click stray from all of them, but have beats and bars; the most steps keep how they stray.
    """
    for steps in STEPS:
        for is_anew in (False, True):
            if 2 * sum(trial.fits(steps, is_anew) for trial in trials) >= len(trials):
                bars = {"time_signature": "4/4"} if is_anew else {}
                return {"grid": "beats", "steps_per_beat": steps} | bars
    if 2 * sum(trial.beat >= LEAST_BEAT for trial in trials) >= len(trials):
        return {"grid": "beats", "steps_per_beat": STEPS[-1]}
    return {"grid": "seconds", "time_signature": None}


def _errors(events: Events) -> tuple[float, ...]:
    """Return, for each of STEPS, how far onsets are from the nearest step, on average, in steps."""
    beats = np.unique(events.notes[:, 0]) / events.ticks_per_beat
    return tuple(float(np.abs(beats * n - np.rint(beats * n)).mean()) for n in STEPS)
