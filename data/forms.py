"""The form of a piece: its bars, the place of its final chord, and the passages that come again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.options import Count, Positive
from data.repeats import Repeat, repeats_of
from data.score import Score


@dataclass(frozen=True)
class Form:
    """The form of a piece. Steps are those of its grid.

    Attributes:
        meter: the numerator and denominator of its second bar.
        first_bar_steps: the length of its first bar, which may be an upbeat.
        bars: how many bars it has.
        final_position: the steps from the last bar line to the final chord.
        repeats: the passages that come again, in order.
    """

    meter: tuple[Positive, Positive]
    first_bar_steps: Positive
    bars: Positive
    final_position: Count
    repeats: tuple[Repeat, ...] = ()

    def opening(self, bars: int, last_bar: int, final_position: int) -> Form:
        """Return the form of a piece that is only the first `bars` bars of this one.

        Its repeats are those that end at or before the step `last_bar`.
        """
        repeats = tuple(each for each in self.repeats if each.end_step <= last_bar)
        return replace(self, bars=bars, final_position=final_position, repeats=repeats)


def form_of(score: Score, repeat_bars: float = 0) -> Form:
    """Return the form of a piece that has notes, with repeats of at least `repeat_bars` bars."""
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
