"""Writes frozen dataclasses as JSON and reads them back, if their annotations take the values."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from common.options import described, hints_of, takes

T = TypeVar("T")


def to_json(value: Any) -> str:
    """Return a dataclass as JSON."""
    return json.dumps(asdict(value))


def from_json(kind: type[T], text: str) -> T:
    """Return the dataclass that `to_json` wrote.

    Raises:
        ValueError: `to_json` did not write this; the message is one line and names what is wrong.
    """
    name = kind.__name__.lower()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not JSON") from None
    return checked(kind, value, name)  # type: ignore[no-any-return]


def checked(hint: Any, value: Any, name: str) -> Any:
    """Return a JSON value as its annotation says: objects as dataclasses, lists as tuples.

    Args:
        hint: the annotation. A dataclass may also be written as a list of its fields, in order.
        value: from JSON.
        name: what the error calls the value.

    Raises:
        ValueError: the annotation does not take the value.
    """
    origin, parts, is_record = get_origin(hint), get_args(hint), is_dataclass(hint)
    if origin in (Union, UnionType) and NoneType in parts and len(parts) == 2:
        return None if value is None else checked(parts[0], value, name)
    if is_record and isinstance(value, list) and len(value) == len(hints_of(hint)):
        value = dict(zip(hints_of(hint), value, strict=True))
    if is_record and isinstance(value, dict):
        return _dataclass(hint, value, name)
    if origin is dict and isinstance(value, dict):
        return {_key(parts[0], key, name): checked(parts[1], v, name) for key, v in value.items()}
    if origin is tuple and isinstance(value, list):
        each = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        if len(each) == len(value):
            return tuple(checked(part, v, name) for part, v in zip(each, value, strict=True))
    if hint is Any or takes(hint, value):
        return value
    raise ValueError(f"{name} must be {described(hint)}, not {str(value)[:40]!r}")


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
    """Return the key of an object; JSON writes keys as text, even numbers."""
    if kind is str:
        return key
    if not (key.isdecimal() and len(key) < 9):
        raise ValueError(f"{name} has no number {key[:40]!r}")
    return int(key)
