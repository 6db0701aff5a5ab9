"""verovio, which reads and engraves notation, made ready."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def load_notation(notation: str, options: Mapping[str, Any]) -> Any:
    """Return a toolkit of verovio that holds the music of a text.

    Damaged notation may end the process: what is not our own is read in another one.

    Raises:
        ValueError: verovio finds no music in it.
    """
    import verovio  # not needed to import this, and 0.1 s

    # it knows where its fonts are only in the thread that has imported it
    verovio.setDefaultResourcePath(str(Path(verovio.__file__).parent / "data"))
    verovio.enableLog(verovio.LOG_OFF)  # or it warns of what it would rather see
    toolkit = verovio.toolkit()
    toolkit.setOptions({"xmlIdSeed": 1, **options})
    if not toolkit.loadData(notation):
        raise ValueError("verovio, which reads notation, finds none")
    return toolkit
