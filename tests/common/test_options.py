"""Options: what each annotation takes, and in which words the rest is refused."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from common.options import Options, Positive, Range, Share


@dataclass(frozen=True)
class Size(Options):
    layers: Positive = 4
    share: Share = 0.5


@dataclass(frozen=True)
class All(Size):
    kind: Literal[1, 2, "any"] = "any"
    is_on: bool | None = None
    names: tuple[int | str, ...] = ()
    small: Annotated[int, Range(-1, 1000)] = 0


def test_values_that_fields_take_stay_as_they_are():
    assert All(2, 1, 1, True, ("a", 3), -1) == All(2, 1.0, 1, True, ("a", 3), -1)
    assert All(names=["a", 3]).names == ("a", 3)  # JSON and YAML have no tuples


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("layers", 0, "a whole number from 1 up, not 0"),
        ("layers", 2**31, "a whole number from 1 up"),
        ("layers", True, "a whole number from 1 up, not True"),
        ("layers", 2.0, "a whole number"),
        ("share", 1.01, "a number from 0 to 1, not 1.01"),
        ("share", float("nan"), "a number from 0 to 1, not nan"),
        ("share", "x", "a number from 0 to 1, not 'x'"),
        ("kind", True, "one of 1, 2, any, not True"),
        ("kind", [1], "one of 1, 2, any"),
        ("is_on", 1, "true or false or null, not 1"),
        ("names", ["a", 1.5], "a list, each a whole number or text"),
        ("names", "a", "a list"),
        ("small", 1001, "a whole number from -1 to 1,000, not 1001"),
    ],
)
def test_any_other_value_is_refused_by_the_name_of_its_field(field, value, words):
    with pytest.raises(ValueError, match=f"^{field} must be .*{words}"):
        All(**{field: value})


def test_options_are_found_among_other_settings():
    assert Size.from_settings(vars(All(layers=3)) | {"else": 1}) == Size(layers=3)
