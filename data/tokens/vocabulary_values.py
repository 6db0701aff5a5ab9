"""The values that a vocabulary may have: those that can occur in some corpus."""

from typing import Any

from data.score import (
    DENOMINATORS,
    DRUMS,
    MAX_BAR_BEATS,
    MOST_NUMERATOR,
    MOST_PROGRAM,
    TEMPO_LEVELS,
    VELOCITY_LEVELS,
    Grid,
)

METERS = sorted(
    (numerator, denominator)
    for denominator in DENOMINATORS
    for numerator in range(1, min(MAX_BAR_BEATS * denominator // 4, MOST_NUMERATOR) + 1)
)


def widest_values(grid: Grid) -> dict[str, Any]:
    """Return the fields of a vocabulary for every piece on a grid (see `Vocabulary`)."""
    named = (*range(len(grid.parts)), *range(DRUMS, MOST_PROGRAM + 1))
    return {
        "meters": tuple(METERS) if grid.has_meter else (grid.default_meter,),
        "tempos": tuple(TEMPO_LEVELS.tolist()) if grid.has_meter else (grid.default_tempo_bpm,),
        "programs": named if grid.parts else tuple(range(DRUMS + 1)),
        "velocities": tuple(VELOCITY_LEVELS.tolist()),
        "lowest_pitch": 0,
        "highest_pitch": 127,
        "grid": grid,
    }


def check_values(values: dict[str, Any]) -> None:
    """Refuse values for a vocabulary's fields (see `Vocabulary`) that no corpus can have.

    Raises:
        ValueError: a value is refused; the message names its field.
    """
    grid, low, high = values["grid"], values["lowest_pitch"], values["highest_pitch"]
    wide = widest_values(grid)
    one = {"meters": "meter", "tempos": "tempo", "programs": "program", "velocities": "velocity"}
    for name in one:
        if not values[name] or [*values[name]] != sorted({*values[name]}):
            raise ValueError(f"{name} must rise, and there must be one at least")
        if unknown := sorted({*values[name]} - {*wide[name]}):
            raise ValueError(f"there is no {one[name]} {unknown[0]}")
    if not 0 <= low <= high <= 127:
        raise ValueError(f"there are no pitches from {low} to {high}")
