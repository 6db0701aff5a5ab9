"""Files that are never half-written."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def written_beside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes `path`'s place when the block ends well.

    The name keeps its ending, since many writers choose a format by it. When the block raises,
    what was written goes and `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield beside
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Finds out, before long work, whether a file can be written there; changes nothing.

    Raises:
        OSError: it cannot.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OSError(f"{path}: cannot be written ({error.strerror})") from None


def write_json(data: Any, path: str | Path) -> None:
    """Writes plain data (dicts, lists, text, numbers) as JSON; what is not finite as null."""
    text = json.dumps(_finite(data), indent=1, allow_nan=False)
    with written_beside(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
