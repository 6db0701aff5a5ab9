"""MIDI files found in a folder, and work on them that no single file can stop.

A file name is a `str` as the operating system gives it: bytes that are not UTF-8 become lone
surrogates (os.fsdecode). Such a name opens its file, sorts, and survives `json.dumps` and
`json.loads` as they are; to print one or write it as text, use `common.text.printable`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

SUFFIXES = (".mid", ".midi")
MEMORY_BYTES = 2 * 2**30  # what one item may make a worker ask for, beyond what it began with
LOOK_AHEAD = 4  # batches a worker that are read, being worked on or waiting to be handed out
MOST_ITEMS = 64  # a batch
BATCH_SECONDS = 0.05  # batches grow until they take this long

# Forked workers start at once and need no guarded __main__. Threads of the parent (torch's, say)
# do not come along, and are not missed: workers read files and never call torch.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")

Item = TypeVar("Item")
Result = TypeVar("Result")


def find_midi_files(folder: str | Path) -> tuple[list[str], list[tuple[str, str]]]:
    """All MIDI files in a folder and below, and what looks like one but cannot be read.

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
    found: list[str] = []
    left_out: list[tuple[str, str]] = []
    seen = {(top.st_dev, top.st_ino)}
    real, linked = [""], deque[tuple[str, os.stat_result]]()  # names with "/" after them
    while real or linked:
        if real:
            prefix = real.pop()
        else:
            prefix, status = linked.popleft()
            if (status.st_dev, status.st_ino) in seen:
                left_out.append((prefix[:-1], "a link to a folder that is listed already"))
                continue
            seen.add((status.st_dev, status.st_ino))
        try:
            with os.scandir(os.path.join(folder, prefix)) as listing:  # noqa: PTH118  # bytes stay
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            left_out.append((prefix[:-1], f"cannot be listed ({error.strerror})"))
            continue
        for entry in entries:
            name = prefix + entry.name
            is_midi = entry.name.lower().endswith(SUFFIXES)
            if entry.is_file(follow_symlinks=False):
                found += [name] if is_midi else []
                continue
            try:
                status = entry.stat()
            except OSError as error:
                if is_midi or "." not in entry.name:  # it may have been a folder
                    left_out.append((name, f"cannot be opened ({error.strerror})"))
                continue
            if stat.S_ISDIR(status.st_mode) and entry.is_symlink():
                linked.append((name + "/", status))
            elif stat.S_ISDIR(status.st_mode):
                seen.add((status.st_dev, status.st_ino))
                real.append(name + "/")
            elif is_midi and stat.S_ISREG(status.st_mode):
                found.append(name)
            elif is_midi:
                left_out.append((name, "not a regular file"))
    return sorted(found), sorted(left_out)


@dataclass(frozen=True)
class Failed:
    """Stands where a result would be: work on this item did not end well; `reason` is one line."""

    reason: str


_OUT_OF_MEMORY = Failed(f"needs more than {MEMORY_BYTES >> 30} GiB of memory")


def guarded(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 1,
    limit_seconds: float = 60.0,
) -> Iterator[tuple[Item, Result | Failed]]:
    """(item, work(item)) of every item, in order; otherwise as `guarded_batches`."""
    each: partial[list[Result | Failed]] = partial(_each, work)
    for batch, results in guarded_batches(each, items, workers, limit_seconds):
        if isinstance(results, Failed):
            results = [results]
        yield from zip(batch, results, strict=True)


def _each(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result | Failed]:
    results: list[Result | Failed] = []
    for item in items:
        try:
            results.append(work(item))
        except MemoryError:
            results.append(_OUT_OF_MEMORY)
    return results


def guarded_batches(
    work: Callable[[Iterable[Item]], Result],
    items: Iterable[Item],
    workers: int = 1,
    limit_seconds: float = 60.0,
) -> Iterator[tuple[list[Item], Result | Failed]]:
    """(batch, work(batch)) of batches of items, in order, the work done in other processes.

    Work takes the items of its batch one by one and then may go on with all of them. An item on
    which a worker dies (a native crash, an exception that `work` lets out), takes more than
    `limit_seconds` or asks for too much memory costs that item alone: what fails between one item
    and the next is laid to that item, and what fails after the last to all, which are then tried
    one by one. Before an item is given up it gets a second try, by itself: the machine may have
    slept, or run out of memory elsewhere. So `work` may see an item more than once. A few batches
    are under way at a time, however many items there are. Workers end with this process, however
    it ends.

    Time and memory are limited by the operating system: time not on Windows, memory on Linux only.

    Args:
        work: a function at the top level of a module; it, items and results can be pickled.
        items: read as they are needed.
        workers: processes; they start when there is work for them.
        limit_seconds: of wall clock, for one item, and for what follows the last.

    Returns:
        `Failed` stands for the result of a batch of one item only.

    Raises:
        RuntimeError: workers die before they begin to work.
    """
    source = iter(items)
    window: list[_Batch[Item, Result]] = []  # in order; all that is not yet handed out
    pool: list[_Worker[Item, Result]] = []
    size = 1
    try:
        while True:
            while True:
                idle = next((worker for worker in pool if worker.batch is None), None)
                if idle is None and len(pool) == workers:
                    break
                given = next((batch for batch in window if not batch.is_given), None)
                if given is None and len(window) < LOOK_AHEAD * workers:
                    given = _Batch(list(islice(source, size)))
                    window += [given] if given.items else []
                if given is None or not given.items:
                    break
                if idle is None:
                    idle = _Worker(work, limit_seconds)
                    pool.append(idle)
                idle.give(given)
            is_ready = bool(window) and window[0].is_done
            busy = {worker.pipe: worker for worker in pool if worker.batch is not None}
            if not is_ready and not busy:
                return
            for pipe in wait(list(busy), timeout=0 if is_ready else None):
                worker = busy[pipe]
                batch = worker.take()
                at = window.index(batch)
                try:
                    seconds, batch.result = worker.pipe.recv()
                except (EOFError, OSError):
                    pool.remove(worker)
                    window[at : at + 1] = worker.post_mortem(batch, limit_seconds)
                else:
                    size = min(MOST_ITEMS, 2 * size) if seconds < BATCH_SECONDS else -(-size // 2)
                    batch.is_done = True
                    if isinstance(batch.result, Failed) and len(batch.items) > 1:
                        window[at : at + 1] = [_Batch([item]) for item in batch.items]
            if is_ready:
                batch = window.pop(0)
                yield batch.items, cast(Result | Failed, batch.result)
    finally:
        for worker in pool:
            worker.stop()


@dataclass(eq=False)
class _Batch(Generic[Item, Result]):
    """Items that are worked on together, and what came out."""

    items: list[Item]
    is_second_try: bool = False
    is_given: bool = False
    result: Result | Failed | None = None
    is_done: bool = False


class _Worker(Generic[Item, Result]):
    """A process and the batch it works on."""

    def __init__(self, work: Callable[[Iterable[Item]], Result], limit_seconds: float) -> None:
        self.batch: _Batch[Item, Result] | None = None
        self.item_number = _CONTEXT.RawValue("q", -1)  # in the batch; shared with the process
        self.pipe, other = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(
            target=_serve,
            args=(other, self.pipe, self.item_number, work, limit_seconds),
            daemon=True,
        )
        self.process.start()
        other.close()

    def give(self, batch: _Batch[Item, Result]) -> None:
        self.batch, batch.is_given, self.item_number.value = batch, True, -1
        with suppress(BrokenPipeError, ConnectionResetError):  # dead: reading will say so
            self.pipe.send(batch.items)

    def take(self) -> _Batch[Item, Result]:
        assert self.batch is not None
        batch, self.batch = self.batch, None
        return batch

    def post_mortem(
        self, batch: _Batch[Item, Result], limit_seconds: float
    ) -> list[_Batch[Item, Result]]:
        """What takes the place of the batch on which the worker died."""
        self.process.join(1)
        self.stop()
        status, at, items = self.process.exitcode, self.item_number.value, batch.items
        if at < 0:
            if batch.is_second_try:
                raise RuntimeError(f"worker processes die as they start (exit status {status})")
            return [_Batch(items, is_second_try=True)]
        if batch.is_second_try and len(items) == 1:
            batch.result, batch.is_done = Failed(_cause_of_death(status, limit_seconds)), True
            return [batch]
        if at == len(items):  # with all of them in hand
            return [_Batch([item], is_second_try=len(items) == 1) for item in items]
        parts: list[_Batch[Item, Result]] = [
            _Batch(items[:at]),
            _Batch([items[at]], is_second_try=True),
            _Batch(items[at + 1 :]),
        ]
        return [part for part in parts if part.items]

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _cause_of_death(status: int, limit_seconds: float) -> str:
    if status >= 0:
        return f"the reader crashed on it (exit status {status})"
    name = signal.Signals(-status).name
    if name == "SIGALRM":
        return f"took more than {limit_seconds:g} seconds"
    return f"the reader crashed on it ({name})"


def _serve(
    pipe: Connection,
    parents_end: Connection,
    item_number: Any,
    work: Callable[[Iterable[Item]], Result],
    limit_seconds: float,
) -> None:
    """What a worker does: batches in, results out, until the pipe or the parent is gone."""
    parents_end.close()  # or the pipe would never end
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent tidies up
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _limit_memory()
    set_alarm = getattr(signal, "setitimer", None)
    if set_alarm:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it kills, even in the midst of native code

    def watched(items: list[Item]) -> Iterator[Item]:
        for number, item in enumerate(items):
            begins(number)
            yield item
        begins(len(items))  # what is done with all of them

    def begins(number: int) -> None:
        item_number.value = number
        if set_alarm:
            set_alarm(signal.ITIMER_REAL, limit_seconds)

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            items = pipe.recv()
            began = time.perf_counter()
            result: Result | Failed
            try:
                result = work(watched(items))
            except MemoryError:
                result = _OUT_OF_MEMORY
            if set_alarm:
                set_alarm(signal.ITIMER_REAL, 0)
            pipe.send((time.perf_counter() - began, result))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _limit_memory() -> None:
    """No core dumps, and no more address space than there is now and MEMORY_BYTES."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        wanted = pages * resource.getpagesize() + MEMORY_BYTES
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *allowed]), hard))
