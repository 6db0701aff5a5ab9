"""Writes files and folders that are never left half-written."""

import dataclasses
import errno
import json
import os
import platform
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

UNFINISHED = ".unfinished"  # part of the name of a file that is being written
_OF_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors that do not name a file


@contextmanager
def disk_errors_name(path: str | Path) -> Iterator[None]:
    """Name `path` in the error if the block finds that the disk is full or broken."""
    try:
        yield
    except OSError as error:
        if error.errno in _OF_A_DISK and not error.filename:
            error.filename = str(path)
        raise


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write a file to; it replaces `path` when the block ends.

    Whoever reads `path` finds either the old file or the whole new one, even after a power cut. If
    the block raises, what was written is deleted and `path` stays as it was. The temporary name
    ends like `path`, since many writers choose a format by the ending.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        with disk_errors_name(path):
            yield temporary
            _sync(temporary)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder to fill; it replaces the folder `path`, if any, when the block ends.

    If the block raises, what was written is deleted and `path` stays as it was. The same happens if
    another process has put a new folder there in the meantime.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    before = _identity(path)
    temporary = _temporary(path)
    replaced = temporary.with_name(f".old{temporary.name}")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process that had our number
    temporary.mkdir()
    try:
        with disk_errors_name(path):
            yield temporary
            with ThreadPoolExecutor() as threads:  # all files are synced at the same time
                list(threads.map(_sync, [*temporary.rglob("*"), temporary]))
        if _identity(path) != before:
            return
        if path.is_dir():
            path.replace(replaced)
        try:
            temporary.replace(path)
        except OSError:
            if not path.is_dir():  # else another process was faster
                if before:
                    replaced.replace(path)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes this folder from another of the same name; None: there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _temporary(path: Path) -> Path:
    """Return a hidden name beside `path`; delete what killed processes left under such names."""
    host = platform.node()
    for left in path.parent.glob(f".*{UNFINISHED}*"):
        owner, _, number = left.name.rpartition(UNFINISHED)[0].rpartition("-")
        if not (owner.endswith(f".{host}") and number.isdecimal()):
            continue
        with suppress(OSError, OverflowError):  # it stays, or the number is too large for a process
            if not psutil.pid_exists(int(number)):  # on Windows, os.kill(number, 0) would be Ctrl-C
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    name = zlib.crc32(os.fsencode(path.name))  # short: the file's own name may be of any length
    return path.with_name(f".{name:08x}.{host}-{os.getpid()}{UNFINISHED}{path.suffix}")


def _sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable(path: str | Path) -> None:
    """Check, before long work, that a file can be written at `path`; raise an OSError if not.

    Nothing is left behind, even if folders would have to be made for the file.
    """
    path = Path(path)
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"{folder} is not a folder"
    else:
        try:
            with tempfile.TemporaryFile(dir=folder):
                return
        except OSError as error:
            reason = f"in {folder}: {error.strerror}"
    raise OSError(f"{path}: cannot be written ({reason})")


def write_file(content: bytes | str, path: str | Path) -> None:
    """Write bytes, or text in UTF-8, to a file, whole or not at all."""
    with write_atomically(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(data: Any, path: str | Path) -> None:
    """Write dataclasses, dicts, lists, text and numbers as JSON; NaN and infinity become null."""
    text = json.dumps(data, default=dataclasses.asdict)
    finite = json.loads(text, parse_constant=lambda _: None)
    write_file(json.dumps(finite, indent=1) + "\n", path)
