"""The form of a piece: its bars, where its final chord is, and which passages come again."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from data.repeats import Repeat, repeats_of
from data.score import Score


@dataclass(frozen=True)
class Form:
    """The form of a piece. Steps are on its grid.

    Attributes:
        meter: the time signature, numerator and denominator, of its second bar.
        first_bar_steps: the length of its first bar, which may be an upbeat.
        bars: how many it has.
        final_position: steps from the last bar line to its final chord.
        repeats: its passages that come again, in order.
    """

    meter: tuple[int, int]
    first_bar_steps: int
    bars: int
    final_position: int
    repeats: tuple[Repeat, ...] = ()

    def to_json(self) -> list[Any]:
        """Return it as lists of numbers."""
        numbers = [*self.meter, self.first_bar_steps, self.bars, self.final_position]
        return [numbers, *([*astuple(repeat)] for repeat in self.repeats)]

    @classmethod
    def from_json(cls, data: Any) -> Form:
        """Return what `to_json` gave.

        Raises:
            ValueError: it gave something else.
        """
        if not (isinstance(data, list) and data and all(map(_are_numbers, data))):
            raise ValueError("not a form")
        numbers, *repeats = data
        if len(numbers) != 5 or {*map(len, repeats)} - {4}:
            raise ValueError("not a form")
        found = tuple(Repeat(b, e, lag, bool(is_whole)) for b, e, lag, is_whole in repeats)
        if not all(repeat.lag_steps <= repeat.begin_step < repeat.end_step for repeat in found):
            raise ValueError("not a form")
        numerator, denominator, first_bar, bars, final = numbers
        return cls((numerator, denominator), first_bar, bars, final, found)


def form_of(score: Score) -> Form:
    """Return the form of a piece of a note or more."""
    second = score.bars[min(1, len(score.bars) - 1)]
    return Form(
        (int(second["numerator"]), int(second["denominator"])),
        int(score.bars["length"][0]),
        len(score.bars),
        int(score.notes["onset"].max() - score.bar_starts[-2]),
        tuple(repeats_of(score)),
    )


def _are_numbers(values: Any) -> bool:
    """Return whether a value of JSON is a list of whole numbers from 0 up, of 32 bits."""
    return isinstance(values, list) and all(
        isinstance(number, int) and 0 <= number < 2**31 for number in values
    )
