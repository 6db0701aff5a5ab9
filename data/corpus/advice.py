"""What the times, bars and tracks of some files of a folder say about the options for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from common.text import printable
from data.midi.bars import barred_anew, is_barred_wrongly
from data.midi.events import Events
from data.midi.parts import tracks_of
from data.score import DRUMS, SECONDS, Grid, Part

STEPS = (12, 24)  # a quarter note, that are tried
CHANCE = 1 / 4  # of a step: notes that follow no beat lie so far from the nearest step, on average
CLOSE = CHANCE / 2  # what keeps to a grid is nearer


@dataclass(frozen=True)
class Trial:
    """What a file would be under other options.

    Attributes:
        name: of the file.
        tracks: who plays in it.
        is_barred_wrongly: whether it would be barred anew (data.midi.bars).
        beat_ms: how long a quarter note lasts, on average.
        errors: how far onsets are from the nearest of so many STEPS, in steps, on average;
            and likewise if it is barred anew in 4/4, where that changes something.
    """

    name: str
    tracks: tuple[Part, ...]
    is_barred_wrongly: bool
    beat_ms: float
    errors: tuple[tuple[float, ...], tuple[float, ...]]

    def fits(self, steps: int, is_anew: bool = False) -> bool:
        """Return whether it keeps to so many steps, or to fewer of STEPS."""
        errors = zip(STEPS, self.errors[is_anew], strict=True)
        return any(n <= steps and error < CLOSE for n, error in errors)


def try_options(name: str, events: Events, grid: Grid) -> Trial:
    """Try other options than a grid's on a file with notes."""
    of_beats = grid if grid.has_meter else Grid()
    how = of_beats.meter or (4, 4), of_beats.steps_per_beat
    wrong, anew = is_barred_wrongly(events, *how), barred_anew(events, *how)
    if grid.meter:
        events = anew
    return Trial(
        name=name,
        tracks=tuple(tracks_of(events)),
        is_barred_wrongly=wrong,
        beat_ms=_beat_ms(events),
        errors=(_errors(events), _errors(anew)),
    )


def parts_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say who the parts are; nothing where there are none."""
    if not grid.parts:
        return []
    known = {(part.name.casefold(), part.program) for part in grid.parts}
    others = [
        part
        for trial in trials
        for part in trial.tracks
        if part.program != DRUMS and (part.name.casefold(), part.program) not in known
    ]
    lines = [f"names that many files have: {', '.join(part.name for part in grid.parts)}"]
    if others:
        lines.append(f"{len(others):,} tracks have no such name: they play as their program")
    return lines


def bars_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say how many files have time signatures that cannot be true; nothing where few do."""
    wrong = sum(trial.is_barred_wrongly for trial in trials)
    if grid.meter:
        n, d = grid.meter
        return [f"{wrong:,} of {len(trials):,} files barred anew in {n}/{d}, by where notes fall"]
    if 10 * wrong <= len(trials):
        return []
    return [
        f"{wrong:,} of {len(trials):,} files have no time signature, one of shorter bars than 4/4 "
        "(1/4, 2/4), or beats where no notes fall",
        "if it is 4/4 in truth, --time-signature 4/4 is advised",
    ]


def grid_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say how far onsets are from grids, measured, and which grid is advised."""
    if not trials:
        return []
    ms = np.array([trial.beat_ms for trial in trials])[:, None] / np.array(STEPS)

    def middle(errors: ArrayLike) -> str:
        values = np.median(np.asarray(errors) * ms, axis=0)
        return " and ".join(f"{value:.1f}" for value in values.tolist())

    off, by_chance = middle([trial.errors[0] for trial in trials]), np.full_like(ms, CHANCE)
    tried = " and ".join(map(str, STEPS))
    lines = [
        f"on {tried} steps a beat, onsets of the middle file are off by "
        f"{off} ms (notes at random: {middle(by_chance)}); "
        f"on a grid of seconds by {CHANCE * 1000 / SECONDS.steps_per_beat:.1f}"
    ]
    steps, is_anew = _fewest_steps(trials)
    if steps is None:
        return [*lines, "most keep to no steps of a beat: --grid seconds is advised"]
    if is_anew:
        errors = middle([trial.errors[1] for trial in trials])
        lines.append(f"with --time-signature 4/4, which finds beats again, by {errors} ms")
    strays = [trial.name for trial in trials if not trial.fits(steps, is_anew)]
    how = " and --time-signature 4/4" if is_anew else ""
    advice = f"{steps} steps a beat{how} are advised"
    if steps != STEPS[0]:
        advice = f"--steps-per-beat {steps}{how} is advised"
    return [*lines, advice + (f"; off these steps are {_named(strays)}" if strays else "")]


def advised_grid(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the options of the grid that is advised: seconds, or the fewest steps of a beat."""
    steps, is_anew = _fewest_steps(trials)
    if steps is None:
        return {"grid": "seconds", "time_signature": None}
    bars = {"time_signature": "4/4"} if is_anew else {}
    return {"grid": "beats", "steps_per_beat": steps} | bars


def _fewest_steps(trials: Sequence[Trial]) -> tuple[int | None, bool]:
    """Return the fewest steps that half of the files keep to, and whether if barred anew."""
    for steps in STEPS:
        for is_anew in (False, True):
            if 2 * sum(trial.fits(steps, is_anew) for trial in trials) >= len(trials):
                return steps, is_anew
    return None, False


def _named(names: Sequence[str]) -> str:
    few = ", ".join(map(printable, names[:3]))
    return f"{len(names):,} of them ({few}{', ...' * (len(names) > 3)})"


def _errors(events: Events) -> tuple[float, ...]:
    """Return how far onsets are from the nearest of so many STEPS, in steps, on average."""
    beats = np.unique(events.notes[:, 0]) / events.ticks_per_beat
    return tuple(float(np.abs(beats * n - np.rint(beats * n)).mean()) for n in STEPS)


def _beat_ms(events: Events) -> float:
    """Return how long a quarter note lasts on average, until the last onset."""
    last = float(events.notes[:, 0].max())
    tick = np.concatenate([[0.0], events.tempi[:, 0], [last]]).clip(max=last)
    bpm = np.concatenate([[120.0], events.tempi[:, 1]])
    return float((np.diff(tick) * 60_000 / bpm).sum() / last) if last else 60_000 / float(bpm[-1])
