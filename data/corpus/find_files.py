"""The MIDI files in a folder.

A file name is a `str` as the operating system gives it: bytes that are not UTF-8 become lone
surrogates (os.fsdecode). Such a name opens its file, sorts, and survives `json.dumps` and
`json.loads` as they are; to print one or write it as text, use `common.text.printable`.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from pathlib import Path

SUFFIXES = (".mid", ".midi")


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
    try:
        top = Path(folder).stat()
        os.scandir(folder).close()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: no such folder") from None
    except NotADirectoryError:
        raise NotADirectoryError(
            f"{folder}: a file, where a folder of MIDI files is needed"
        ) from None
    search = _Search(folder, top)
    search.run()
    return sorted(search.found), sorted(search.left_out)


class _Search:
    """A walk through a folder and all below it."""

    def __init__(self, folder: str | Path, top: os.stat_result) -> None:
        self.folder = folder
        self.found: list[str] = []
        self.left_out: list[tuple[str, str]] = []
        self.listed = {(top.st_dev, top.st_ino)}
        self.folders = [""]  # to list; names with "/" after them
        self.links = deque[tuple[str, os.stat_result]]()  # to folders; followed when none is left

    def run(self) -> None:
        while self.folders or self.links:
            if self.folders:
                self.list_folder(self.folders.pop())
                continue
            prefix, status = self.links.popleft()
            if (status.st_dev, status.st_ino) in self.listed:
                self.left_out.append((prefix[:-1], "a link to a folder that is listed already"))
                continue
            self.listed.add((status.st_dev, status.st_ino))
            self.list_folder(prefix)

    def list_folder(self, prefix: str) -> None:
        path = os.path.join(self.folder, prefix)  # noqa: PTH118  # bytes stay
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self.left_out.append((prefix[:-1], f"cannot be listed ({error.strerror})"))
            return
        for entry in entries:
            self.take(prefix + entry.name, entry)

    def take(self, name: str, entry: os.DirEntry[str]) -> None:
        is_midi = name.lower().endswith(SUFFIXES)
        if entry.is_file(follow_symlinks=False):
            self.found += [name] if is_midi else []
            return
        try:
            status = entry.stat()
        except OSError as error:
            if is_midi or "." not in entry.name:  # it may have been a folder
                self.left_out.append((name, f"cannot be opened ({error.strerror})"))
            return
        if stat.S_ISDIR(status.st_mode) and entry.is_symlink():
            self.links.append((name + "/", status))
        elif stat.S_ISDIR(status.st_mode):
            self.listed.add((status.st_dev, status.st_ino))
            self.folders.append(name + "/")
        elif is_midi and stat.S_ISREG(status.st_mode):
            self.found.append(name)
        elif is_midi:
            self.left_out.append((name, "not a regular file"))
