"""The form of a piece: its bars, where its final chord is, and which passages come again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.options import Count, Positive
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

    meter: tuple[Positive, Positive]
    first_bar_steps: Positive
    bars: Positive
    final_position: Count
    repeats: tuple[Repeat, ...] = ()

    def opening(self, bars: int, last_bar: int, final_position: int) -> Form:
        """Return that of a piece of its first bars: what comes again before the last one's step."""
        repeats = tuple(each for each in self.repeats if each.end_step <= last_bar)
        return replace(self, bars=bars, final_position=final_position, repeats=repeats)


def form_of(score: Score, repeat_bars: float = 0) -> Form:
    """Return the form of a piece of a note or more, with the repeats of so many bars or more."""
    second = score.bars[min(1, len(score.bars) - 1)]
    meter = int(second["numerator"]), int(second["denominator"])
    least = repeat_bars * score.grid.bar_steps(*meter)
    repeats = repeats_of(score) if score.grid.has_meter else ()
    return Form(
        meter,
        int(score.bars["length"][0]),
        len(score.bars),
        int(score.notes["onset"].max() - score.bar_starts[-2]),
        tuple(each for each in repeats if each.end_step - each.begin_step >= least),
    )
