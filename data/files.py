"""Files that are never half-written."""

from __future__ import annotations

import json
import math
import os
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


def write_json(result: Any, path: str | Path) -> None:
    """Writes dicts, lists and primitives as JSON, which has no NaN and no infinity: they are null.

    Raises:
        OSError: it cannot be written; then `path` stays as it was.
    """
    text = json.dumps(_finite(result), indent=1, allow_nan=False)
    with written_beside(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
