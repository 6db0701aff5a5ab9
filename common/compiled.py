"""Loops that Numba compiles: its flags and its cache, said once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])

# What may be rounded in another way: sums may be taken in any order, and a * b + c in one step.
# What is not finite stays as it is.
FAST_MATH = {"contract", "nsz", "reassoc"}


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep what was compiled on the disk.

    It lies in the `__pycache__` beside the source file, or in the user's cache folder, or, where
    neither can be written, nowhere. Numba looks for changes in the function's own file alone: what
    another file defines must come as an argument. With NUMBA_DISABLE_JIT=1 it stays Python.

    Args:
        function: loops over arrays and numbers; it gives up the interpreter's lock.
    """
    flags: dict[str, Any] = {"fastmath": FAST_MATH, "error_model": "numpy", "nogil": True}
    try:
        made = numba.njit(cache=True, **flags)(function)
    except RuntimeError:  # no folder can be written
        made = numba.njit(**flags)(function)
    return made  # type: ignore[no-any-return]


class _Teller(event.Listener):  # type: ignore[misc]
    """Says, once and to a terminal alone, that something is compiled: it takes some seconds."""

    has_told = False

    def on_start(self, event: Any) -> None:
        """Tell of the first."""
        if not self.has_told and sys.stderr.isatty():
            print("Compiling, for the first time on this machine ...", file=sys.stderr)
        self.has_told = True

    def on_end(self, event: Any) -> None:
        """Tell nothing."""


event.register("numba:compile", _Teller())
