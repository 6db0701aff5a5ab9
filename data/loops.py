"""Loops: bars in which an instrument plays, note for note, what it played some bars before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import eq

import numpy as np

from common.arrays import Ints
from data.score import DRUMS, Score

LAGS = (1, 2, 4, 8)  # bars; if several lags fit, the least counts
LOOP_BARS = 32  # how many bars of a piece are kept
RARE = 0.15  # if a smaller share of all bars loops, pieces have no loops


@dataclass(frozen=True)
class Loops:
    """How many bars before each program played the same: one digit for each bar, 0 for never.

    Raises:
        ValueError: there are other digits.
    """

    of: dict[int, str]

    def __post_init__(self) -> None:
        if {*"".join(self.of.values())} - {"0", *map(str, LAGS)}:
            raise ValueError("loops must be digits that say how many bars before")


def loops_of(score: Score) -> Loops:
    """Return the loops of a piece with a meter, from its first whole bar on."""
    notes, lengths, first = score.notes, score.bars["length"], int(score.has_upbeat)
    bar, at = score.bar_positions

    def digits(program: int) -> str:
        played: dict[int, set[tuple[int, int]]] = {}
        own = notes["program"] == program
        columns = (column[own].tolist() for column in (bar, at, notes["pitch"]))
        for number, step, pitch in zip(*columns, strict=True):
            played.setdefault(number, set()).add((step, pitch))
        bars = range(first, min(len(lengths), first + LOOP_BARS))
        return "".join(
            str(next((lag for lag in LAGS if _is_again(played, lengths, each, lag)), 0))
            for each in bars
        )

    return Loops({program: digits(program) for program in np.unique(notes["program"]).tolist()})


def _is_again(played: dict[int, set[tuple[int, int]]], lengths: Ints, bar: int, lag: int) -> bool:
    """Return whether a bar has notes, the same as those of an equal bar `lag` bars before."""
    is_alike = bar >= lag and lengths[bar] == lengths[bar - lag]
    return is_alike and bar in played and played[bar] == played.get(bar - lag)


def known_loops(scores: Sequence[Score]) -> tuple[Loops, ...]:
    """Return the loops of pieces; () if loops are rare."""
    found = [loops_of(score) for score in scores if score.grid.has_meter and len(score.notes)]
    digits = "".join("".join(each.of.values()) for each in found)
    is_rare = len(digits) - digits.count("0") < RARE * max(len(digits), 1)
    return () if is_rare else tuple(found)


def going_on(begun: Loops, known: Sequence[Loops], programs: Iterable[int]) -> Loops:
    """Return loops with which a piece can go on, each program as one that began alike.

    Args:
        begun: of its first bars, which repeat nothing more.
        known: of other pieces. The first counts among those that are as much alike.
        programs: of the piece; those that have not begun repeat nothing.
    """

    def digits(program: int, own: str) -> str:
        others = [loops for each in known for loops in _of_its_kind(each, program).values()]
        soon = slice(len(own), len(own) + LAGS[-1])  # what loops nowhere there is mostly silent
        looping = [loops for loops in others if loops[soon].strip("0")]
        alike = max(looping or others, key=lambda loops: sum(map(eq, own, loops)), default="")
        return alike[len(own) :].rjust(len(alike), "0")

    return Loops({n: digits(n, begun.of[n]) if n in begun.of else "0" for n in programs})


def lags(loops: Loops, programs: Sequence[int]) -> Ints:
    """Return (LOOP_BARS, P): how many bars before each program of a new piece played the same.

    Drums take the loops of drums, and others take those of the nearest program. The loops of a
    shorter piece begin again.
    """

    def digits(program: int) -> str:
        alike = _of_its_kind(loops, program)
        nearest = min(alike, key=lambda each: abs(each - program), default=None)
        return "0" if nearest is None else alike[nearest]

    columns = [np.resize([*map(int, digits(program) or "0")], LOOP_BARS) for program in programs]
    return np.stack(columns, axis=1)


def _of_its_kind(loops: Loops, program: int) -> dict[int, str]:
    """Return the loops of drums if the program is drums, else those of all others."""
    return {each: own for each, own in loops.of.items() if (each == DRUMS) == (program == DRUMS)}
