"""What all command lines share: errors as one line with exit code 2, Ctrl-C, and number types."""

import argparse
import difflib
import gc
import math
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

from common.text import printable

LARGEST = 10**9  # the largest count
MOST_DIGITS = 30  # in the text of a number; Python reads no more than 4,300


class Parser(argparse.ArgumentParser):
    """An argparse parser that reports errors as one line, and takes no shortened options.

    Args:
        advice: for people whose words no option takes.
        arguments: those of argparse.
    """

    def __init__(self, advice: str = "", **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)  # else --count would be --counterpoint
        self.advice = advice

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and exit with code 2."""
        parsers: list[argparse.ArgumentParser] = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
        options = [option for parser in parsers for option in parser._option_string_actions]
        fail(f"{explained(message, options, self.advice)} (--help lists the options)")


def explained(message: str, options: Iterable[str], advice: str) -> str:
    """Add, to a parser's message about unknown arguments, what may have been meant."""
    stray = message.removeprefix("unrecognized arguments: ")
    if stray == message or not stray.strip():
        return message
    word = stray.split()[0].partition("=")[0]
    is_option = word.startswith("-")
    kind = [it for it in options if it.startswith("-") == is_option and it != word]
    names = {option.lstrip("-").rpartition(".")[2]: option for option in kind}
    name = word.lstrip("-").rpartition(".")[2]
    like = difflib.get_close_matches(name, names, n=1, cutoff=0.66)
    hint = f"is {names[like[0]]} meant?" if like else "" if is_option else advice
    return f"{message}; {hint}" if hint else message


def with_command_first(words: Sequence[str], commands: Iterable[str]) -> list[str]:
    """Return the words with the command first, even if options stood before it."""
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        is_value = before.startswith("-") and "=" not in before
        if word in commands and not is_value:
            return [word, *words[:at], *words[at + 1 :]]
    return list(words)


def fail(message: str) -> NoReturn:
    """Print an error as one line, and exit with code 2."""
    print_error(message)
    sys.exit(2)


def check_file(path: str) -> None:
    """Check that a file or folder exists, or fail with one line."""
    if not os.path.exists(path):  # noqa: PTH110  # a Path would raise if the name is too long
        fail(f"{printable(path)}: no such file")


def print_error(message: str, program: str | None = None) -> None:
    """Print an error to stderr as one line that begins with the program's name."""
    path = Path(sys.argv[0])
    program = program or (path.parent.name if path.name == "__main__.py" else path.name)
    say(f"{program}: {' '.join(message.split())}", sys.stderr)


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line, with everything escaped that a terminal cannot show or would obey.

    If nobody reads the output any more, as after `| head`, the work goes on in silence.
    """
    try:
        print(printable(line), file=file, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (file or sys.stdout).fileno())


@contextmanager
def quick_imports() -> Iterator[None]:
    """Pause garbage collection while a block imports torch, and later skip what was imported.

    That saves a tenth of the time, and 0.4 s when a command ends. If a library cannot be loaded,
    for example because memory is limited, the error is one line. If torch is there already, nothing
    changes.
    """
    if "torch" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    except (ImportError, MemoryError, OSError) as error:
        why = str(error) or "no memory"
        fail(f"a library cannot be loaded ({why}): run `make install`, or free some memory")
    gc.freeze()
    gc.enable()


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end a block with one line and exit code 130, after its files are tidied up."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print_error("ended by Ctrl-C")
        sys.exit(128 + signal.SIGINT)


def file_name(text: str) -> str:
    """Parse the name of a file or folder; ~ is the home folder, even if no shell expands it."""
    return os.path.expanduser(text)  # noqa: PTH111  # a Path would drop a slash at the end


def number(text: str) -> float:
    """Parse a number given as an option."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"must be a number such as 0.8, not {text!r}")
    return value


def positive_integer(text: str) -> int:
    """Parse a whole number given as an option, from 1 to `LARGEST`."""
    return _whole_number(text, 1, LARGEST, f"from 1 up, not {{}}; the largest is {LARGEST}")


def random_seed(text: str) -> int:
    """Parse a whole number that seeds a random generator, from 0 to 2^63 - 1."""
    return _whole_number(text, 0, 2**63 - 1, "from 0 to 2^63 - 1, not {}")


def _whole_number(text: str, least: int, most: int, range_told: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS or not least <= int(text) <= most:
        shown = repr(text) if len(text) <= 40 else f"{len(text)} characters"
        raise argparse.ArgumentTypeError(f"must be a whole number {range_told.format(shown)}")
    return int(text)
