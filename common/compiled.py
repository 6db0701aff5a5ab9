"""Compiles loops with Numba."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core import codegen, compiler, event, typed_passes
from numba.core.compiler_machinery import register_pass

from common.compile_cache import SharedCache

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


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep the result on the disk.

    The result is kept in the `__pycache__` beside the source file, or in the user's cache folder,
    or nowhere if neither can be written. It is compiled again when its file changes, or a file of
    this project that the file imports. With NUMBA_DISABLE_JIT=1 the function stays Python.

    Args:
        function: loops over arrays and numbers; while it runs, it releases the interpreter's lock.
    """
    made = numba.njit(**_FLAGS)(function)
    if made is not function:
        with suppress(RuntimeError):  # no folder can be written to
            made._cache = SharedCache(function)
    return made  # type: ignore[no-any-return]


class _PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Holds the code of a function that is only linked into others, which are optimized whole."""

    def finalize(self) -> None:
        """Link what the function calls, and make no machine code."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """Lowers a function that is only linked into others."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower the function, and tell Numba how others call it."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        entry = bytearray().append  # never called, but Numba wants a function of C, and a new one
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class _PartCompiler(compiler.CompilerBase):  # type: ignore[misc]
    """Compiles a function that is only linked into others."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's pipeline with another lowering."""
        whole = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        part = compiler.PassManager("part")
        for kind, description in whole.passes:
            lowering = _PartLowering if kind is typed_passes.NativeLowering else kind
            part.add_pass(lowering, description)
        part.finalize()
        return [part]


_INSIDE = _FLAGS | {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


def compiled_inside(function: Function) -> Function:
    """Compile a function that only compiled functions call, as a part of each of them.

    This takes less than a third of the time: half of what Numba compiles is the way in from Python,
    and machine code is made once, for the whole. The function may not make arrays, so that no
    references need to be counted.
    """
    return numba.njit(_nrt=False, **_INSIDE)(function)  # type: ignore[no-any-return]


def compiled_inside_with_arrays(function: Function) -> Function:
    """Compile a function like `compiled_inside`, but let it make arrays."""
    return numba.njit(**_INSIDE)(function)  # type: ignore[no-any-return]


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
