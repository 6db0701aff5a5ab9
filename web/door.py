"""The HTTP interface for programs: turn the options of a query into a message of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from web.messages import Json, MessageError

WAYS = ("continue", "accompany", "harmonize", "rewrite")
NEW_BARS = 8


def _numbers(text: str) -> list[int]:
    """Return the whole numbers in a text."""
    return [int(each) for each in re.findall("[0-9]+", text)]


_WHOLE = "[0-9]{1,15}"
_TEXT, _DECIMAL = ("(?s:.*)", str, "a text"), (r"[0-9]{1,4}(\.[0-9]{1,6})?", float, "a number")
# For each option: a pattern that its text must match, a function that reads it, a description.
OPTIONS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "model": _TEXT,
    "bars": (f"{_WHOLE}(-{_WHOLE})?", _numbers, "a number such as 8, or 5-8 to rewrite those bars"),
    "key": _TEXT,
    "meter": (f"{_WHOLE}/{_WHOLE}", _numbers, "a meter such as 3/4"),
    "tempo": _DECIMAL,
    "range": (f"{_WHOLE}-{_WHOLE}", _numbers, "two MIDI notes, such as 48-84"),
    "polyphony": (_WHOLE, int, "a whole number"),
    "programs": (f"{_WHOLE}(,{_WHOLE})*", _numbers, "numbers, such as 40,41"),
    "counterpoint": _TEXT,
    "rests": _TEXT,
    "boldness": (r"[0-2](\.[0-9]{1,6})?|3", float, "a number from 0 to 3"),
    "seed": (_WHOLE, int, "a whole number"),
    "chords": _TEXT,
    "cadence": _TEXT,
    "busy": _DECIMAL,
}


def asked(how: str, options: Mapping[str, str]) -> Json:
    """Return a message that asks for one piece as the page would, without the model and the notes.

    In the message, the bars to rewrite count from 0 at the bar with number 1.

    Args:
        how: one of WAYS.
        options: the texts of options, by name. `bars` says how many bars to write, such as 8, or
            which ones to rewrite, such as 5-8.

    Raises:
        MessageError: there is no such option, or its text is not of the right form.
    """
    said = {name: _read(name, text) for name, text in options.items()}
    bars, is_rewritten = said.pop("bars", []), how == "rewrite"
    if is_rewritten and not bars:
        raise MessageError("bars must say which bars to rewrite, such as bars=5-8")
    if len(bars) > 1 and not is_rewritten:
        raise MessageError(f"bars must be {OPTIONS['bars'][2]}, not {options['bars']!r}")
    new = None if "chords" in said else NEW_BARS
    return {
        "how": how,
        "settings": {
            **said,
            "bars": bars[0] if bars and not is_rewritten else new,
            "temperature": said.get("boldness"),
        },
        "variations": 1,
        "random_seed": said.get("seed", 0),
        "bars": [bars[0] - 1, bars[-1]] if is_rewritten else None,
    }


def _read(name: str, text: str) -> Any:
    """Return the value of an option from its text.

    Raises:
        MessageError: there is no such option, or its text is not of the right form.
    """
    if name not in OPTIONS:
        raise MessageError(f"there is no option {name[:40]!r}: choose from {', '.join(OPTIONS)}")
    form, read, words = OPTIONS[name]
    if not re.fullmatch(form, text):
        raise MessageError(f"{name} must be {words}, not {text[:40]!r}")
    return read(text)
