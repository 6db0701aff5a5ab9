"""What all command lines share: errors of one line with exit code 2, Ctrl-C, types of numbers."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

from common.text import printable


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with code 2."""
        fail(f"{message} (--help lists the options)")


def fail(message: str) -> NoReturn:
    """Print an error as one line and exit with code 2."""
    print_error(message)
    sys.exit(2)


def check_file(path: str) -> None:
    """Check that there is such a file or folder, or fail with one line."""
    if not Path(path).exists():
        fail(f"{printable(path)}: no such file")


def print_error(message: str, program: str | None = None) -> None:
    """Print an error to stderr as one line that begins with the program's name."""
    path = Path(sys.argv[0])
    program = program or (path.parent.name if path.name == "__main__.py" else path.name)
    say(f"{program}: {' '.join(message.split())}", sys.stderr)


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line; what a terminal cannot hold, or would obey, is escaped."""
    print(printable(line), file=file, flush=True)


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end a block in one line with exit code 130, when its files are tidied up."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print_error("ended by Ctrl-C")
        sys.exit(128 + signal.SIGINT)


def positive_integer(text: str) -> int:
    """Parse an option's whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 up, not {text!r}")
    return int(text)


def random_seed(text: str) -> int:
    """Parse an option's whole number that seeds a random generator: 0 to 2^63 - 1."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^63 - 1, not {text!r}")
    return int(text)
