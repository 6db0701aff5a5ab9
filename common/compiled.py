"""Loops that Numba compiles: its flags and its cache, said once."""

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

# Of optimizing: at 3 everything takes a fifth longer to compile, and runs as fast.
numba.config.OPT = numba.core.config._OptLevel(1)

Function = TypeVar("Function", bound=Callable[..., Any])

# What may be rounded in another way: sums may be taken in any order, and a * b + c in one step.
# What is not finite stays as it is.
FAST_MATH = {"contract", "nsz", "reassoc"}
_FLAGS: dict[str, Any] = {
    "fastmath": FAST_MATH,
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,  # nothing in C calls them
}

_HOUSE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)


@cache
def _stamp(path: str) -> str:
    """Return what changes when a source file does, or one of this project that it imports."""
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
    """Numba's own stamp is that of one file; what another defines is compiled into it, too."""

    _py_file: str

    def get_source_stamp(self) -> str:
        """Return what must be equal for a compiled function to be used again."""
        return _stamp(self._py_file)


class WhereTold(_Stamped, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Keeps what is compiled in $NUMBA_CACHE_DIR."""


class BesideTheSource(_Stamped, caching.InTreeCacheLocator):  # type: ignore[misc]
    """Keeps what is compiled in `__pycache__`."""


class InTheUsersCache(_Stamped, caching.UserWideCacheLocator):  # type: ignore[misc]
    """Keeps what is compiled in the user's cache folder."""


_LOCATORS = (WhereTold, BesideTheSource, InTheUsersCache)
numba.config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{kind.__name__}" for kind in _LOCATORS)


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep what was compiled on the disk.

    It lies in the `__pycache__` beside the source file, or in the user's cache folder, or, where
    neither can be written, nowhere. It is compiled anew when its file changes, or a file of ours
    that this imports. With NUMBA_DISABLE_JIT=1 it stays Python.

    Args:
        function: loops over arrays and numbers; it gives up the interpreter's lock.
    """
    try:
        made = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError:  # no folder can be written
        made = numba.njit(**_FLAGS)(function)
    return made  # type: ignore[no-any-return]


def compiled_inside(function: Function) -> Function:
    """Compile a function that compiled ones alone call, as a part of each of them.

    It takes a third of the time: half of what Numba compiles is the way in from Python. It makes no
    arrays, so that no references are counted.
    """
    return numba.njit(no_cpython_wrapper=True, _nrt=False, **_FLAGS)(function)  # type: ignore[no-any-return]


def compiled_inside_with_arrays(function: Function) -> Function:
    """Compile a function as `compiled_inside` does, that makes arrays."""
    return numba.njit(no_cpython_wrapper=True, **_FLAGS)(function)  # type: ignore[no-any-return]


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
