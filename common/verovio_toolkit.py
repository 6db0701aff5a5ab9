"""Makes verovio ready, which reads and engraves notation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def load_notation(notation: str, options: Mapping[str, Any]) -> Any:
    """Return a verovio toolkit that has loaded the music in a text.

    Damaged notation may end the whole process, so files from others are read in a separate one.

    Raises:
        ValueError: verovio finds no music in the text.
    """
    import verovio  # imported here, since it takes 0.1 s and is seldom needed

    # verovio finds its fonts only in the thread that has imported it
    verovio.setDefaultResourcePath(str(Path(verovio.__file__).parent / "data"))
    verovio.enableLog(verovio.LOG_OFF)  # else it warns of harmless things
    toolkit = verovio.toolkit()
    toolkit.setOptions({"xmlIdSeed": 1, **options})
    if not toolkit.loadData(notation):
        raise ValueError("verovio, which reads notation, finds none")
    return toolkit
