"""Frozen dataclasses as JSON, and back: a value that its type hint does not promise is refused.

What is kept so are counts, measures and names; no number is negative.
"""

from __future__ import annotations

import json
import sys
import types
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from common.options import Range, hints_of, takes

T = TypeVar("T")


def to_json(value: Any) -> str:
    """Return a dataclass as JSON."""
    return json.dumps(asdict(value))


def from_json(kind: type[T], text: str) -> T:
    """Return the dataclass that `to_json` wrote.

    Raises:
        ValueError: it wrote something else; the message is one line that names what is wrong.
    """
    name = kind.__name__.lower()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not JSON") from None
    return checked(kind, value, name)  # type: ignore[no-any-return]


def checked(kind: Any, value: Any, name: str) -> Any:
    """Return a value of JSON as its type hint says.

    Args:
        kind: the hint: a dataclass, a union with None, a tuple, a dict, `int`, `float`, `bool`,
            `str`, `Any`, a Literal or an Annotated.
        value: what JSON has in its place: objects for dataclasses, lists for tuples.
        name: of the value, for the error.

    Raises:
        ValueError: it is of another type, or out of range.
    """
    origin, hints = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        (other,) = (hint for hint in hints if hint is not type(None))
        return None if value is None else checked(other, value, name)
    if is_dataclass(kind) and isinstance(value, dict):
        return _dataclass(kind, value, name)
    if origin is dict and isinstance(value, dict):
        return {_key(hints[0], key, name): checked(hints[1], v, name) for key, v in value.items()}
    if origin is tuple and isinstance(value, list):
        hints = hints[:1] * len(value) if hints[-1] is Ellipsis else hints
        if len(hints) == len(value):
            return tuple(checked(h, v, name) for h, v in zip(hints, value, strict=True))
    if takes(_AT_LEAST_0.get(kind, kind), value):
        return value
    raise ValueError(f"{name} must not be {str(value)[:40]!r}")


_AT_LEAST_0 = {int: Annotated[int, Range(0)], float: Annotated[float, Range(0, sys.float_info.max)]}


def _dataclass(kind: Any, values: dict[str, Any], name: str) -> Any:
    hints = hints_of(kind)
    if unknown := sorted(values.keys() - hints.keys()):
        raise ValueError(f"{name} has no {unknown[0][:40]!r}")
    needed = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    if missing := sorted(needed - values.keys()):
        raise ValueError(f"{name} lacks its {missing[0]!r}")
    found = {each: checked(hints[each], v, f"{name}.{each}") for each, v in values.items()}
    try:
        return kind(**found)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _key(kind: Any, key: str, name: str) -> str | int:
    """Return the key of an object, which JSON has as text."""
    if kind is str:
        return key
    if not (key.isdecimal() and len(key) < 9):
        raise ValueError(f"{name} has no number {key[:40]!r}")
    return int(key)
