"""Text that can be printed anywhere."""

import os


def printable(name: str) -> str:
    r"""Escape what a terminal or a text file cannot hold in a file name.

    Bytes that are not UTF-8, which Python keeps as lone surrogates, become `\xe9`. Characters that
    would move a terminal's cursor become `\n`, `\x1b` and so on.
    """
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 note, 2 notes."""
    return f"{number:,} {noun}" + "s" * (number != 1)
