"""Work on many items, in other processes, that no single item can stop."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast

import psutil

MEMORY_BYTES = 2 * 2**30  # that a worker may ask for beyond what it began with
LOOK_AHEAD = 4  # batches a worker that are read, being worked on or waiting to be handed out
LIMIT_SECONDS = 60.0  # that an item, such as a file to be read, may take
MOST_ITEMS = 16  # a batch

# Forked workers start at once and need no guarded __main__. Threads of the parent (torch's, say)
# do not come along, and are not missed: workers read files and never call torch.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """The result of an item on which work did not end well; `reason` is one line."""

    reason: str


def guarded(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 1,
    limit_seconds: float = LIMIT_SECONDS,
    most_items: int = 1,
) -> Iterator[tuple[Item, Result | Failed]]:
    """Yield (item, work(item)) of every item, in order, worked on in other processes.

    Where a worker dies (a native crash, an exception that `work` lets out), takes more than
    `limit_seconds` or asks for too much memory, the items of its batch are tried again one by
    one: none is given up for another's sake, or because the machine slept or ran out of memory
    elsewhere. So `work` may see an item twice. A few batches are under way at a time, however
    many items there are. Workers end with this process, however it ends.

    Args:
        work: a function at the top level of a module; it, items and results can be pickled.
        items: read as they are needed.
        workers: processes; they start when there is work for them.
        limit_seconds: of wall clock, for a batch. (Memory is limited on Linux only.)
        most_items: of a batch, which a worker takes at once; MOST_ITEMS where each takes little.

    Raises:
        RuntimeError: workers die before they begin to work.
    """
    team: list[_Worker[Item, Result]] = [_Worker(work, limit_seconds) for _ in range(workers)]
    window: list[_Batch[Item, Result]] = []  # in order
    source = iter(items)
    try:
        while True:
            for worker in team:
                if worker.batch is None:
                    has_room = len(window) < LOOK_AHEAD * workers
                    worker.take_one(window, islice(source, most_items * has_room))
            if not window:
                return
            for worker in _done_or_overdue(team, is_awaited=not window[0].is_done):
                batch = worker.give_back()
                if batch.has_failed and not batch.is_last_try:
                    at = window.index(batch)
                    is_alone = len(batch.items) == 1
                    window[at : at + 1] = [_Batch([item], is_alone) for item in batch.items]
            if window[0].is_done:
                batch = window.pop(0)
                yield from zip(batch.items, batch.results, strict=True)
    finally:
        for worker in team:
            worker.stop()


@dataclass(eq=False)
class _Batch(Generic[Item, Result]):
    """Items that are worked on together, and what came out."""

    items: list[Item]
    is_last_try: bool = False
    is_taken: bool = False  # by a worker
    is_done: bool = False
    has_failed: bool = False  # as a whole
    results: list[Result | Failed] = field(default_factory=list)


class _Worker(Generic[Item, Result]):
    """A process, which starts with the first batch, and the batch it works on."""

    def __init__(self, work: Callable[[Item], Result], limit_seconds: float) -> None:
        self.work, self.limit_seconds = work, limit_seconds
        self.batch: _Batch[Item, Result] | None = None
        self.deadline = 0.0
        self.process: Any = None

    def take_one(self, window: list[_Batch[Item, Result]], new: Iterable[Item]) -> None:
        """Take the first batch that no worker has, if need be one of new items."""
        batch = next((batch for batch in window if not batch.is_taken), None)
        if batch is None:
            if not (items := list(new)):
                return
            batch = _Batch(items)
            window.append(batch)
        if self.process is None:
            self._start()
        self.batch, batch.is_taken = batch, True
        self.deadline = time.monotonic() + self.limit_seconds
        with suppress(BrokenPipeError, ConnectionResetError):  # dead: reading will say so
            self.pipe.send(batch.items)

    def _start(self) -> None:
        self.has_begun = _CONTEXT.RawValue("b", 0)  # shared with the process
        self.pipe, other = _CONTEXT.Pipe()
        arguments = (other, self.has_begun, self.work)
        process = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        self.process = process  # which there is not where the machine has no room for one more
        other.close()

    def give_back(self) -> _Batch[Item, Result]:
        """Return the batch with its results."""
        batch, self.batch = cast(_Batch[Item, Result], self.batch), None
        batch.is_done = True
        results: list[Result | Failed] | Failed
        results = Failed(f"took more than {self.limit_seconds:g} seconds")
        process = self.process
        try:
            if self.pipe.poll():
                results = self.pipe.recv()
            else:
                self.stop()
        except (EOFError, OSError):
            process.join(1)
            self.stop()
            status = process.exitcode
            cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            if not self.has_begun.value:
                raise RuntimeError(f"worker processes die as they start ({cause})") from None
            results = Failed(f"the reader crashed on it ({cause})")
        batch.has_failed = isinstance(results, Failed)
        batch.results = [results] if isinstance(results, Failed) else results
        return batch

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _done_or_overdue(
    team: list[_Worker[Item, Result]], is_awaited: bool
) -> list[_Worker[Item, Result]]:
    """Return the workers whose batch is done, or should be; wait for one where it is awaited."""
    busy = [worker for worker in team if worker.batch is not None]
    patience = min(worker.deadline for worker in busy) - time.monotonic() if is_awaited else 0
    ready = wait([worker.pipe for worker in busy], max(0, patience))
    now = time.monotonic()
    return [worker for worker in busy if worker.pipe in ready or now >= worker.deadline]


def _serve(pipe: Connection, has_begun: Any, work: Callable[[Item], Result]) -> None:
    """Serve as a worker: batches in, results out, until this process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent tidies up
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _limit_memory()
    while True:
        items = pipe.recv()
        has_begun.value = 1
        try:
            pipe.send([work(item) for item in items])
        except MemoryError:
            pipe.send(Failed(f"needs more than {MEMORY_BYTES >> 30} GiB of memory"))


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
