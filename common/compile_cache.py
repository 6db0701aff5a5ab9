"""Keeps what Numba compiles on the disk, and shares it among processes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from numba.core import caching

PATIENCE = 300  # seconds to wait for a process that compiles; then, it must have been stopped

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


class SharedCache(caching.FunctionCache):  # type: ignore[misc]
    """Lets one process compile a function while others wait, and then load it.

    Args:
        function: the Python function.

    Raises:
        RuntimeError: no folder can be written to.
    """

    _lock: FileLock | None = None  # held while this process compiles the function

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on the disk that was compiled from these sources."""
        return not self._cache_file._load_index()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled function; None: there is none, and this process shall compile it."""
        found = super().load_overload(signature, target)
        if found is None:
            self._lock = FileLock(Path(self.cache_path, f"{self._impl.filename_base}.lock"))
            with suppress(OSError, NotImplementedError):  # it took too long; locks do not work here
                self._lock.acquire(timeout=PATIENCE)
            found = super().load_overload(signature, target)
            if found is not None:
                self._let_go()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save the compiled function for this process and others."""
        super().save_overload(signature, compiled)
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self._lock = None


_begun: dict[Any, subprocess.Popen[bytes]] = {}  # by function


def compile_beside(function: Any, program: str, *arguments: str) -> None:
    """Run a program in another process, which compiles a function and others, unless that is done.

    This process goes on, and waits where it calls what the other one is compiling.

    Args:
        function: from `compiled`; if it is on the disk, the others are, too.
        program: in Python.
        arguments: `sys.argv[1:]` of the program.
    """
    kept = getattr(function, "_cache", None)
    if not isinstance(kept, SharedCache) or function.signatures or function in _begun:
        return  # it is plain Python or cannot be kept, has been called, or is being compiled
    if kept.is_empty:
        search = {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program, *arguments]
        quiet = subprocess.DEVNULL
        _begun[function] = subprocess.Popen(command, stderr=quiet, env=os.environ | search)
