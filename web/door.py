"""The door for programs: the options of a query, said as the page would say them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.messages import Json, MessageError

WAYS = ("continue", "accompany", "harmonize", "rewrite")
TEXTS = ("key", "counterpoint", "rests", "chords", "cadence")
NUMBERS, LISTS = ("tempo", "busy", "polyphony", "boldness", "seed"), ("meter", "range", "programs")
OPTIONS = ("model", "bars", *TEXTS, *NUMBERS, *LISTS)
NEW_BARS = 8


def asked(how: str, options: Mapping[str, str]) -> Json:
    """Return the message of a page that asks to write one piece, without the model and the notes.

    Args:
        how: one of WAYS.
        options: texts by their names; `bars` are how many to write, such as 8, or to rewrite, such
            as 5-8.

    Raises:
        MessageError: there is no such option, or it is no number where it must be one.
    """
    for name in options:
        if name not in OPTIONS:
            raise MessageError(f"no option {name[:40]!r}: there are {', '.join(OPTIONS)}")
    settings: Json = {name: options.get(name) for name in TEXTS}
    settings |= {name: _numbers(name, options[name]) for name in LISTS if name in options}
    settings |= {name: _number(name, options[name]) for name in NUMBERS if name in options}
    message = {"how": how, "variations": 1, "random_seed": settings.pop("seed", 0)}
    settings["temperature"] = settings.pop("boldness", None)
    if how == "rewrite":
        bars = _numbers("bars", options.get("bars", ""))
        message["bars"], settings["bars"] = [max(0, bars[0] - 1), bars[-1]], NEW_BARS
    elif "bars" in options:
        settings["bars"] = _number("bars", options["bars"])
    elif "chords" not in options:
        settings["bars"] = NEW_BARS
    return message | {"settings": settings}


def _numbers(name: str, text: str) -> list[float]:
    """Return the numbers in a text."""
    parts = re.split("[/,-]", text)
    if not all(re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", part) for part in parts):
        lists = "or several, such as 3/4, 5-8 or 40,41"
        raise MessageError(f"{name} must be a number, {lists}, not {text[:40]!r}")
    return [float(part) if "." in part else int(part) for part in parts]


def _number(name: str, text: str) -> float | list[float]:
    """Return the number in a text; of several a list, which no setting takes."""
    numbers = _numbers(name, text)
    return numbers[0] if len(numbers) == 1 else numbers
