"""What benchmarks share: option parsers, runs that take turns, and Markdown tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TypeVar

from common.cli import Parser

Name = TypeVar("Name")
Figure = TypeVar("Figure")


def parser_of(text: str | None) -> Parser:
    """Return a parser whose --help is a benchmark's docstring."""
    return Parser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def in_turns(
    runs: Mapping[Name, Callable[[], Figure]], rounds: int, warm_up: int = 1
) -> dict[Name, list[Figure]]:
    """Return the results of each of `runs`, round by round.

    Runs take turns, so that a drift of the machine affects all alike. Warm-up rounds come first and
    do not count.
    """
    figures: dict[Name, list[Figure]] = {name: [] for name in runs}
    for number in range(warm_up + rounds):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            figures[name].append(runs[name]())
    return {name: each[warm_up:] for name, each in figures.items()}


def row(*cells: object) -> None:
    """Print a row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*names: str) -> None:
    """Print the header of a Markdown table."""
    print()
    row(*names)
    row(*["---"] * len(names))
