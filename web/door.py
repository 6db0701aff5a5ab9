"""The door for programs: the options of a query, said as the page would say them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.messages import Json, MessageError

WAYS = ("continue", "accompany", "harmonize", "rewrite")
OPTIONS = (
    *("model", "bars", "key", "meter", "tempo", "range", "polyphony", "programs", "counterpoint"),
    *("rests", "boldness", "seed", "chords", "cadence", "busy"),
)
NEW_BARS = 8
_EXAMPLES = {
    "bars": "such as 8, or 5-8 to rewrite those",
    "meter": "such as 3/4",
    "range": "two MIDI notes, such as 48-84",
    "polyphony": "a whole number",
    "programs": "numbers, such as 40,41",
    "seed": "a whole number",
}


def asked(how: str, options: Mapping[str, str]) -> Json:
    """Return the message of a page that asks to write one piece, without the model and the notes.

    Its bars to rewrite count from the bar that has number 1.

    Args:
        how: one of WAYS.
        options: texts by their names; `bars` are how many to write, such as 8, or to rewrite, such
            as 5-8.

    Raises:
        MessageError: there is no such option, or it is no number where it must be one.
    """
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        there = ", ".join(OPTIONS)
        raise MessageError(f"there is no option {unknown[0][:40]!r}: there are {there}")
    numbers = {
        name: _numbers(name, options[name], separator, count)
        for name, separator, count in (
            *(("bars", "-", 2 if how == "rewrite" else 1), ("meter", "/", 2), ("range", "-", 2)),
            *(("polyphony", None, 1), ("programs", ",", 0), ("seed", None, 1)),
        )
        if name in options
    }
    bars = numbers.pop("bars", [])
    if how == "rewrite" and not bars:
        raise MessageError("bars must say which bars to rewrite, such as bars=5-8")
    without = None if "chords" in options else NEW_BARS
    settings = {
        "bars": without if how == "rewrite" or not bars else bars[0],
        "temperature": _decimal("boldness", options),
        "tempo": _decimal("tempo", options),
        "busy": _decimal("busy", options),
        **{
            name: options.get(name)
            for name in ("key", "counterpoint", "rests", "chords", "cadence")
        },
        **{name: numbers.get(name) for name in ("meter", "range", "programs")},
        "polyphony": numbers.get("polyphony", [None])[0],
    }
    return {
        "how": how,
        "settings": settings,
        "variations": 1,
        "random_seed": numbers.get("seed", [0])[0],
        "bars": [bars[0] - 1, bars[-1]] if how == "rewrite" else None,
    }


def _numbers(name: str, text: str, separator: str | None, count: int) -> list[int]:
    """Return whole numbers in a text: so many, or for 0 any; one bar will do for two."""
    parts = text.split(separator) if separator else [text]
    is_count = not count or len(parts) == count or (name == "bars" and len(parts) == 1)
    if not is_count or not all(re.fullmatch("[0-9]{1,15}", part) for part in parts):
        raise MessageError(f"{name} must be {_EXAMPLES[name]}, not {text[:40]!r}")
    return [int(part) for part in parts]


def _decimal(name: str, options: Mapping[str, str]) -> float | None:
    """Return the number that an option is; None: it is not there."""
    if name not in options:
        return None
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?", options[name]):
        raise MessageError(f"{name} must be a number, not {options[name][:40]!r}")
    return float(options[name])
