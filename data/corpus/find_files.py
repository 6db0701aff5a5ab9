# ruff: noqa: PTH116, PTH118, PTH119, PTH122
"""Finds the music files in a folder: MIDI and notation.

A file name is a `str` as the operating system gives it: bytes that are not UTF-8 become lone
surrogates (os.fsdecode). Such a name opens its file, sorts, and survives `json.dumps` and
`json.loads`. To print it or write it as text, use `common.text.printable`.
"""

import os
import stat
from collections import deque
from pathlib import Path

from data.files.source_text import MIDI_SUFFIXES, SUFFIXES

EMBEDDED = ("bach", "folk")  # the paths that mean embedded corpora


def check_folder(folder: str | Path) -> None:
    """Check that a folder can be listed.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: it cannot be listed.
    """
    try:
        os.scandir(folder).close()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no such folder") from None
    except NotADirectoryError:
        message = f"{folder}: a file, where a folder of music files is needed"
        raise NotADirectoryError(message) from None


def find_music_files(folder: str | Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Find all music files in a folder and below it, and those that cannot be read.

    If a MIDI file and a file of notation have the same name, apart from the ending, they are the
    same music, and only the MIDI file is found.

    Links are followed. Each real folder is listed once, under its own name rather than a link's if
    both are there.

    Returns:
        The names of the files, relative to the folder, with "/", sorted; and (name, reason) for
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
    tops = deque([root])  # links to folders come after it, and are followed last
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
    played = {os.path.splitext(name)[0] for name in found if is_midi(name)}
    found = [name for name in found if is_midi(name) or os.path.splitext(name)[0] not in played]
    return sorted(found), sorted(left_out)


def is_midi(name: str) -> bool:
    """Return whether a file with this name holds MIDI."""
    return name.lower().endswith(MIDI_SUFFIXES)


def _fault(file: str) -> str | None:
    """Say why a file that looks like music, or like a link to a folder, cannot be read."""
    is_music = file.lower().endswith(SUFFIXES)
    if not is_music and "." in os.path.basename(file):
        return None
    try:
        is_regular = stat.S_ISREG(os.stat(file).st_mode)
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    return "not a regular file" if is_music and not is_regular else None
