"""Work on many items, in other processes, that no single item can stop."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast

import psutil

MEMORY_BYTES = 2 * 2**30  # what one item may make a worker ask for, beyond what it began with
LOOK_AHEAD = 4  # batches a worker that are read, being worked on or waiting to be handed out
MOST_ITEMS = 64  # a batch
BATCH_SECONDS = 0.05  # batches grow until they take this long

# Forked workers start at once and need no guarded __main__. Threads of the parent (torch's, say)
# do not come along, and are not missed: workers read files and never call torch.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """The result of an item on which work did not end well; `reason` is one line."""

    reason: str


_OUT_OF_MEMORY = Failed(f"needs more than {MEMORY_BYTES >> 30} GiB of memory")


def guarded(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 1,
    limit_seconds: float = 60.0,
) -> Iterator[tuple[Item, Result | Failed]]:
    """Yield (item, work(item)) of every item, in order; otherwise as `guarded_batches`."""
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
    """Yield (batch, work(batch)) of batches of items, in order, worked on in other processes.

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
    pool = _Pool(work, iter(items), workers, limit_seconds)
    try:
        while pool.has_more():
            pool.wait()
            if pool.window[0].is_done:
                batch = pool.window.pop(0)
                yield batch.items, cast(Result | Failed, batch.result)
    finally:
        for worker in pool.workers:
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

    def replacements(
        self, batch: _Batch[Item, Result], limit_seconds: float
    ) -> list[_Batch[Item, Result]]:
        """Return the batches that replace the one on which the worker died."""
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


class _Pool(Generic[Item, Result]):
    """Workers, and the batches that are not yet handed out."""

    def __init__(
        self,
        work: Callable[[Iterable[Item]], Result],
        source: Iterator[Item],
        most_workers: int,
        limit_seconds: float,
    ) -> None:
        self.work, self.source = work, source
        self.most_workers, self.limit_seconds = most_workers, limit_seconds
        self.window: list[_Batch[Item, Result]] = []  # in order
        self.workers: list[_Worker[Item, Result]] = []
        self.batch_items = 1  # of the next batch

    def has_more(self) -> bool:
        """Give batches to idle workers; return whether a batch is left to hand out."""
        while True:
            idle = next((worker for worker in self.workers if worker.batch is None), None)
            if idle is None and len(self.workers) == self.most_workers:
                break
            if (batch := self._next_batch()) is None:
                break
            if idle is None:
                idle = _Worker(self.work, self.limit_seconds)
                self.workers.append(idle)
            idle.give(batch)
        return bool(self.window)

    def _next_batch(self) -> _Batch[Item, Result] | None:
        """Return the first batch that no worker has, if need be of new items."""
        for batch in self.window:
            if not batch.is_given:
                return batch
        has_room = len(self.window) < LOOK_AHEAD * self.most_workers
        items = list(islice(self.source, self.batch_items)) if has_room else []
        if not items:
            return None
        self.window.append(_Batch(items))
        return self.window[-1]

    def wait(self) -> None:
        """Take results; wait for one unless the first batch is done."""
        busy = {worker.pipe: worker for worker in self.workers if worker.batch is not None}
        for pipe in wait(list(busy), timeout=0 if self.window[0].is_done else None):
            worker = busy[pipe]
            batch = worker.take()
            at = self.window.index(batch)
            try:
                seconds, batch.result = worker.pipe.recv()
            except (EOFError, OSError):
                self.workers.remove(worker)
                self.window[at : at + 1] = worker.replacements(batch, self.limit_seconds)
                continue
            is_quick, size = seconds < BATCH_SECONDS, self.batch_items
            self.batch_items = min(MOST_ITEMS, 2 * size) if is_quick else -(-size // 2)
            batch.is_done = True
            if isinstance(batch.result, Failed) and len(batch.items) > 1:
                self.window[at : at + 1] = [_Batch([item]) for item in batch.items]


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
    """Serve as a worker: batches in, results out, until the pipe or the parent is gone."""
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
    """Allow no core dumps, and MEMORY_BYTES more address space than there is now."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        wanted = psutil.Process().memory_info().vms + MEMORY_BYTES
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *allowed]), hard))
