"""What other options would make of the files of a folder, tried on some of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.text import printable
from data.midi.bars import barred_anew, beat_phase, is_barred_wrongly
from data.midi.events import Events
from data.midi.parts import common_parts, tracks_of
from data.score import DRUMS, SECONDS, Grid, Part

MOST_FILES = 100  # that are tried
STEPS = (12, 24)  # a quarter note, that are tried
CHANCE = 1 / 4  # of a step: how far moments that keep to no beat are from the nearest step
CLOSE = CHANCE / 2  # what keeps to a grid is nearer
LEAST_GAIN = 0.01  # of the notes, for which it is worth to tell tracks apart


@dataclass(frozen=True)
class Trial:
    """What a file would be under other options.

    Attributes:
        name: of the file.
        tracks: who plays in it.
        notes: how many it has.
        lost: notes that would be merged or cut short: by program, and by track.
        is_barred_wrongly: whether it would be barred anew (data.midi.bars).
        beat_ms: how long a quarter note lasts, on average.
        errors: how far onsets are from the nearest of so many STEPS, in steps, on average.
        errors_anew: likewise on the beats that its notes keep to best.
    """

    name: str
    tracks: tuple[Part, ...]
    notes: int
    lost: tuple[int, int]
    is_barred_wrongly: bool
    beat_ms: float
    errors: tuple[float, ...]
    errors_anew: tuple[float, ...]

    @property
    def steps(self) -> int | None:
        """The fewest of STEPS that its own beats need; None: it keeps to none of them."""
        return next((n for n, e in zip(STEPS, self.errors, strict=True) if e < CLOSE), None)

    @property
    def steps_anew(self) -> int | None:
        """The fewest of STEPS that it needs on the beats that its notes keep to."""
        return next((n for n, e in zip(STEPS, self.errors_anew, strict=True) if e < CLOSE), None)


def try_options(name: str, events: Events, grid: Grid) -> Trial:
    """Try other options than a grid's on a file with notes."""
    meter = grid.meter or (4, 4)
    wrong = is_barred_wrongly(events, meter, grid.steps_per_beat)
    if grid.meter:
        events = barred_anew(events, meter, grid.steps_per_beat)
    tracks = tracks_of(events)
    program = events.notes[:, 4]
    track = np.repeat(np.arange(len(tracks)), [count for _, count in events.tracks])
    moments = np.unique(events.notes[:, 0]) / events.ticks_per_beat
    return Trial(
        name=name,
        tracks=tuple(tracks),
        notes=len(program),
        lost=(_lost(events, program), _lost(events, np.where(program == DRUMS, -1, track))),
        is_barred_wrongly=wrong,
        beat_ms=_beat_ms(events),
        errors=_errors(moments),
        errors_anew=_errors(moments - beat_phase(events)[1]),
    )


def parts_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say what telling tracks apart saves, and who they are; nothing where it saves nothing."""
    notes = sum(trial.notes for trial in trials)
    by_program, by_track = (sum(trial.lost[i] for trial in trials) / notes for i in (0, 1))
    named = grid.parts or common_parts(trial.tracks for trial in trials)
    known = {(part.name.casefold(), part.program) for part in named}
    others = [
        part
        for trial in trials
        for part in trial.tracks
        if part.program != DRUMS and (part.name.casefold(), part.program) not in known
    ]
    is_better = by_program - by_track > LEAST_GAIN
    if not is_better and not grid.parts:
        return []
    lines = [
        f"{by_program:.1%} of the notes are merged or cut short if programs play, "
        f"{by_track:.1%} if tracks do"
    ]
    if named:
        lines.append(f"names that many files have: {', '.join(part.name for part in named)}")
    if others:
        lines.append(f"{len(others):,} tracks have no such name: they play as their program")
    if is_better and named and not grid.parts:
        lines.append("--parts track is advised")
    elif is_better and not named:
        lines.append("few files have a name in common: --parts track would change nothing")
    return lines


def bars_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say how many files have time signatures that cannot be true; nothing where few do."""
    wrong = sum(trial.is_barred_wrongly for trial in trials)
    if grid.meter:
        n, d = grid.meter
        return [f"{wrong:,} of {len(trials):,} files barred anew in {n}/{d}, by where notes fall"]
    if 10 * wrong < len(trials):
        return []
    return [
        f"{wrong:,} of {len(trials):,} files have no time signature, one of shorter bars than 4/4 "
        "(1/4, 2/4), or beats where no notes fall",
        "if it is 4/4 in truth, --time-signature 4/4 is advised",
    ]


def grid_advice(trials: Sequence[Trial], grid: Grid) -> list[str]:
    """Say how far onsets are from grids, measured, and which grid is advised."""
    ms = np.array([trial.beat_ms for trial in trials])[:, None] / np.array(STEPS)

    def middle(errors: ArrayLike) -> str:
        values = np.median(np.asarray(errors) * ms, axis=0)
        return " and ".join(f"{value:.1f}" for value in values.tolist())

    by_chance = np.full_like(ms, CHANCE)
    tried = " and ".join(map(str, STEPS))
    lines = [
        f"on {tried} steps a beat, onsets of the middle file are off by "
        f"{middle([trial.errors for trial in trials])} ms (chance: {middle(by_chance)}); "
        f"on a grid of seconds by {CHANCE * 1000 / SECONDS.steps_per_beat:.1f}"
    ]
    fits = [trial.steps for trial in trials]
    anew = [trial.steps_anew for trial in trials]
    if not grid.meter and _share(anew, STEPS[0]) > _share(fits, STEPS[0]) + 0.1:
        errors = middle([trial.errors_anew for trial in trials])
        lines.append(f"on the beats that their notes keep to, by {errors} ms")
    return [*lines, _advised_grid(trials, fits, anew)]


def _advised_grid(
    trials: Sequence[Trial], fits: Sequence[int | None], anew: Sequence[int | None]
) -> str:
    """Return the advice: the fewest steps that most files keep to, by their own beats or others."""
    for steps in STEPS:
        for found, how in ((fits, ""), (anew, " and --time-signature 4/4")):
            if _share(found, steps) >= 0.5:
                strays = [
                    t.name for t, n in zip(trials, found, strict=True) if not _is_in(n, steps)
                ]
                advice = f"{steps} steps a beat{how} are advised"
                if steps != STEPS[0]:
                    advice = f"--steps-per-beat {steps}{how} is advised"
                return advice + (f"; to no such steps keep {_named(strays)}" if strays else "")
    return "most keep to no steps of a beat: --grid seconds is advised"


def _named(names: Sequence[str]) -> str:
    few = ", ".join(map(printable, names[:3]))
    return f"{len(names):,} of them ({few}{', ...' * (len(names) > 3)})"


def _is_in(needed: int | None, steps: int) -> bool:
    return needed is not None and needed <= steps


def _share(needed: Sequence[int | None], steps: int) -> float:
    """Return the share of files that so many steps suffice for."""
    return float(np.mean([_is_in(each, steps) for each in needed]))


def _errors(beats: NDArray[np.float64]) -> tuple[float, ...]:
    """Return how far times are from the nearest of so many STEPS, in steps, on average."""
    return tuple(float(np.abs(beats * n - np.rint(beats * n)).mean()) for n in STEPS)


def _lost(events: Events, who: NDArray[np.int64]) -> int:
    """Count the notes that another of the same player and pitch merges with or cuts short."""
    steps = events.notes[:, :2] * STEPS[0] / events.ticks_per_beat
    onset, end = np.floor(steps + 0.5).astype(np.int64).T
    voice = who * 128 + events.notes[:, 2]
    order = np.lexsort((onset, voice))
    is_same = np.diff(voice[order]) == 0
    return int(
        np.count_nonzero(is_same & (np.maximum(end, onset + 1)[order][:-1] > onset[order][1:]))
    )


def _beat_ms(events: Events) -> float:
    """Return how long a quarter note lasts on average, until the last onset."""
    last = float(events.notes[:, 0].max())
    tick = np.concatenate([[0.0], events.tempi[:, 0], [last]]).clip(max=last)
    bpm = np.concatenate([[120.0], events.tempi[:, 1]])
    return float((np.diff(tick) * 60_000 / bpm).sum() / last) if last else 60_000 / float(bpm[-1])
