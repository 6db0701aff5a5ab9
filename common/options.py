"""Options as frozen dataclasses, whose annotations say which values each field takes.

The comment beside a field is its text in --help. Neither this module nor those of options import
anything large, so that mistakes are reported at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from inspect import getsource
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

LARGEST = 2**31 - 1  # the largest count

_KINDS: dict[Any, str] = {
    **{int: "a whole number", float: "a number", str: "text"},
    **{bool: "true or false", NoneType: "null"},
}


@dataclass(frozen=True)
class Range:
    """The least and the most that a number may be; it stands inside an `Annotated` type."""

    least: float
    most: float = LARGEST

    def __repr__(self) -> str:
        return f"from {self.least:,} " + ("up" if self.most == LARGEST else f"to {self.most:,}")


Share = Annotated[float, Range(0, 1)]
Measure = Annotated[float, Range(0)]
Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]


@dataclass(frozen=True)
class Options:
    """A base class of frozen dataclasses, which checks their fields by the annotations.

    Raises:
        ValueError: a field does not take its value; the message is one line.
    """

    def __post_init__(self) -> None:
        for name, hint in hints_of(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, list):  # JSON and YAML have no tuples
                value = tuple(value)
                object.__setattr__(self, name, value)
            if not takes(hint, value):
                raise ValueError(f"{name} must be {described(hint)}, not {value!r}")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the options that are among the settings, which may also have others.

        Raises:
            ValueError: a field does not take its value.
        """
        names = {field.name for field in fields(cls)} & settings.keys()
        return cls(**{name: settings[name] for name in names})


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the annotation of each field of a dataclass, by the field's name."""
    return _hints(kind)


_hints = cache(partial(get_type_hints, include_extras=True))  # mypy would not hash a dataclass


def comments_of(kind: type) -> dict[str, str]:
    """Return the comment beside each field in the source, and in lines below it, by field."""
    sources = "".join(map(getsource, reversed(kind.mro()[:-1])))
    found = re.findall(r"^    (\w+): .*?  # (.+(?:\n    # .+)*)$", sources, re.MULTILINE)
    return {name: comment.replace("\n    #", "") for name, comment in found}


def described(hint: Any) -> str:
    """Return in words which values an annotation takes."""
    parts = get_args(hint)
    if get_origin(hint) is Annotated:
        return f"{described(parts[0])} {parts[1]}"
    if get_origin(hint) is Literal:
        return f"one of {', '.join(dict.fromkeys(map(str, parts)))}"
    if get_origin(hint) is dict or is_dataclass(hint):
        return "an object"
    if get_origin(hint) is tuple:
        return f"a list, each {described(parts[0])}"
    return _KINDS.get(hint) or " or ".join(map(described, parts))


def takes(hint: Any, value: Any) -> bool:
    """Return whether an annotation takes a value; bools are not numbers, but ints are floats."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return takes(parts[0], value) and parts[1].least <= value <= parts[1].most
    if origin in (Union, UnionType):
        return any(takes(part, value) for part in parts)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(takes(parts[0], each) for each in value)
    return type(value) is hint or (hint is float and type(value) is int)
