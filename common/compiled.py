"""Compiles loops with Numba: its flags and its cache, in one place."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching, event

# The level of optimization: at 3, everything takes a fifth longer to compile, and runs as fast.
numba.config.OPT = numba.core.config._OptLevel(1)

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in any order, and a * b + c in one step, which may change the rounding. What is
# not finite stays as it is.
FAST_MATH = {"contract", "nsz", "reassoc"}
_FLAGS: dict[str, Any] = {
    "fastmath": FAST_MATH,
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,  # nothing in C calls the loops
}

_HOUSE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)


@cache
def _stamp(path: str) -> str:
    """Return a hash that changes with a source file, or with one of ours that it imports."""
    sources: set[Path] = set()
    unread = [Path(path).resolve()]
    while unread:
        file = unread.pop()
        if file not in sources and file.is_file():
            sources.add(file)
            names = _IMPORT.findall(file.read_text(encoding="utf-8"))
            unread += [_HOUSE.joinpath(*name.split(".")).with_suffix(".py") for name in names]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(sources))).hexdigest()


class _Stamped:
    """Extends Numba's stamp of a file to those it imports, which are compiled into it, too."""

    _py_file: str

    def get_source_stamp(self) -> str:
        """Return what must be unchanged for a compiled function to be used again."""
        return _stamp(self._py_file)


class WhereTold(_Stamped, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in $NUMBA_CACHE_DIR."""


class BesideTheSource(_Stamped, caching.InTreeCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in `__pycache__`."""


class InTheUsersCache(_Stamped, caching.UserWideCacheLocator):  # type: ignore[misc]
    """Keeps compiled functions in the user's cache folder."""


_LOCATORS = (WhereTold, BesideTheSource, InTheUsersCache)
numba.config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{kind.__name__}" for kind in _LOCATORS)


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep the result on the disk.

    The result is kept in the `__pycache__` beside the source file, or in the user's cache folder,
    or nowhere if neither can be written. It is compiled again when its file changes, or a file of
    this project that the file imports. With NUMBA_DISABLE_JIT=1 the function stays Python.

    Args:
        function: loops over arrays and numbers; while it runs, it releases the interpreter's lock.
    """
    try:
        made = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError:  # no folder can be written to
        made = numba.njit(**_FLAGS)(function)
    return made  # type: ignore[no-any-return]


def compiled_inside(function: Function) -> Function:
    """Compile a function that only compiled functions call, as a part of each of them.

    This takes a third of the time, since half of what Numba compiles is the way in from Python. The
    function may not make arrays, so that no references need to be counted.
    """
    return numba.njit(no_cpython_wrapper=True, _nrt=False, **_FLAGS)(function)  # type: ignore[no-any-return]


def compiled_inside_with_arrays(function: Function) -> Function:
    """Compile a function like `compiled_inside`, but let it make arrays."""
    return numba.njit(no_cpython_wrapper=True, **_FLAGS)(function)  # type: ignore[no-any-return]


class _Teller(event.Listener):  # type: ignore[misc]
    """Tells a person at a terminal, once, that something is being compiled: it takes seconds."""

    has_told = False

    def on_start(self, event: Any) -> None:
        """Report the first compilation."""
        if not self.has_told and sys.stderr.isatty():
            print("Compiling, for the first time on this machine ...", file=sys.stderr)
        self.has_told = True

    def on_end(self, event: Any) -> None:
        """Report nothing."""


event.register("numba:compile", _Teller())
