"""What the values of a vocabulary may be: those that some corpus could have."""

from collections.abc import Sequence
from typing import Any

from data.score import DRUMS, MOST_PROGRAM, TEMPO_LEVELS, VELOCITY_LEVELS, Grid, can_be_said

MOST_STEPS_PER_BEAT = 960
_MOST_BAR_BEATS = 16


def check_values(
    meters: Sequence[tuple[int, int]],
    tempos: Sequence[int],
    programs: Sequence[int],
    lowest_pitch: int,
    highest_pitch: int,
    velocities: Sequence[int],
    grid: Grid,
) -> None:
    """Refuse values of a vocabulary's fields (see `Vocabulary`) that no corpus has.

    Raises:
        ValueError: the message names the field.
    """
    named: dict[str, Sequence[Any]] = {"meters": meters, "tempos": tempos}
    named |= {"programs": programs, "velocities": velocities}
    for name, rising in named.items():
        if not rising or list(rising) != sorted(set(rising)):
            raise ValueError(f"{name} must rise, and there must be one at least")
    for numerator, denominator in meters:
        is_long = 4 * numerator > _MOST_BAR_BEATS * denominator
        if is_long or not can_be_said(numerator, denominator):
            raise ValueError(f"there is no meter {numerator}/{denominator}")
    named_programs = {*range(len(grid.parts)), *range(DRUMS, MOST_PROGRAM + 1)}
    for name, values, levels in (
        ("tempo", tempos, set(TEMPO_LEVELS.tolist())),
        ("velocity", velocities, set(VELOCITY_LEVELS.tolist())),
        ("program", programs, named_programs if grid.parts else set(range(DRUMS + 1))),
    ):
        if unknown := sorted(set(values) - levels):
            raise ValueError(f"there is no {name} {unknown[0]}")
    if not 0 <= lowest_pitch <= highest_pitch <= 127:
        raise ValueError(f"there are no pitches from {lowest_pitch} to {highest_pitch}")
    if grid.steps_per_beat > MOST_STEPS_PER_BEAT:
        raise ValueError(f"there are no {grid.steps_per_beat} steps a beat")
    one = (grid.default_meter,), (grid.default_tempo_bpm,)
    if not grid.has_meter and (tuple(meters), tuple(tempos)) != one:
        raise ValueError("a grid of seconds has one meter and one tempo")
