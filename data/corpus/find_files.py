# ruff: noqa: PTH116, PTH118, PTH119
"""The MIDI files in a folder.

A file name is a `str` as the operating system gives it: bytes that are not UTF-8 become lone
surrogates (os.fsdecode). Such a name opens its file, sorts, and survives `json.dumps` and
`json.loads` as they are; to print one or write it as text, use `common.text.printable`.
"""

import os
import stat
from collections import deque
from pathlib import Path

SUFFIXES = (".mid", ".midi")
EMBEDDED = ("bach", "folk")  # the paths that mean embedded corpora


def check_folder(folder: str | Path) -> None:
    """Check that a folder can be listed.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: it cannot.
    """
    try:
        os.scandir(folder).close()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no such folder") from None
    except NotADirectoryError:
        message = f"{folder}: a file, where a folder of MIDI files is needed"
        raise NotADirectoryError(message) from None


def find_midi_files(folder: str | Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Find all MIDI files in a folder and below, and what looks like one but cannot be read.

    Links are followed. Each real folder is listed once, under its own name rather than a link's
    if both are there.

    Returns:
        The names of the files, relative to the folder, with "/", sorted; and (name, reason) of
        folders that cannot be listed, links that lead nowhere, and what is no regular file.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: the folder itself cannot be listed.
    """
    check_folder(folder)
    found: list[str] = []
    left_out: list[tuple[str, str]] = []
    root = os.path.join(folder, "")

    def relative(path: str) -> str:
        return path.removeprefix(root).replace(os.sep, "/")

    def leave_out_folder(error: OSError) -> None:
        left_out.append((relative(error.filename), f"cannot be listed ({error.strerror})"))

    listed: set[tuple[int, int]] = set()
    tops = deque([root])  # then links to folders, which are followed when no real folder is left
    while tops:
        for path, folders, files in os.walk(tops.popleft(), onerror=leave_out_folder):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) in listed:
                left_out.append((relative(path), "a link to a folder that is listed already"))
                folders.clear()
                continue
            listed.add((status.st_dev, status.st_ino))
            folders.sort()
            tops += filter(os.path.islink, (os.path.join(path, name) for name in folders))
            for file in (os.path.join(path, name) for name in files):
                if reason := _fault(file):
                    left_out.append((relative(file), reason))
                elif file.lower().endswith(SUFFIXES):
                    found.append(relative(file))
    return sorted(found), sorted(left_out)


def _fault(file: str) -> str | None:
    """Say why what looks like a MIDI file, or like a link to a folder, cannot be read."""
    is_midi = file.lower().endswith(SUFFIXES)
    if not is_midi and "." in os.path.basename(file):
        return None
    try:
        is_regular = stat.S_ISREG(os.stat(file).st_mode)
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    return "not a regular file" if is_midi and not is_regular else None
