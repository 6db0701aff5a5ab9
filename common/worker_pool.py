"""Works on many items in other processes, so that no single item can stop the work."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

import psutil

MEMORY_BYTES = 2 * 2**30  # that a worker may use beyond what it began with
LOOK_AHEAD = 4  # batches for each worker that are read, in work, or waiting to be handed out
LIMIT_SECONDS = 60.0  # that an item, such as a file, may take
MOST_ITEMS = 16  # in a batch

# Forked workers start at once and need no guarded __main__. The parent's threads, such as torch's,
# do not come along, which is fine: workers read files and never call torch.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")

_STARTING = threading.Lock()  # else a forked process could hold another's pipe open

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """The result of an item on which the work failed; `reason` is one line."""

    reason: str


def guarded(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int = 1,
    limit_seconds: float = LIMIT_SECONDS,
    most_items: int = 1,
) -> Iterator[tuple[Item, Result | Failed]]:
    """Yield (item, work(item)) for every item, in order; other processes do the work.

    A batch fails if its worker dies (by a crash in native code, or an exception in `work`), takes
    more than `limit_seconds` or needs too much memory. Then its items are tried again one by one,
    so that no item is lost because of another, or because the machine slept or ran out of memory
    elsewhere. So `work` may see an item twice. Only a few batches are under way at a time, however
    many items there are. Workers end with this process, however it ends.

    Args:
        work: a function at the top level of a module. It, the items and the results can be pickled.
        items: read as they are needed.
        workers: the number of processes, which start when there is work for them.
        limit_seconds: of wall-clock time, for a batch. (Memory is limited only on Linux.)
        most_items: in a batch, which a worker takes at once; MOST_ITEMS if items take little time.

    Raises:
        RuntimeError: workers die before they begin to work.
    """
    team = [_Worker(work, limit_seconds) for _ in range(workers)]
    idle, is_over = [*team], threading.Event()

    def results_of(batch: list[Item], is_last_try: bool = False) -> Sequence[Result | Failed]:
        worker = idle.pop()  # there is one, since there is one thread for each
        try:
            if is_over.is_set():
                raise CancelledError
            results = worker.work_on(batch)
        finally:
            idle.append(worker)
        if not isinstance(results, Failed):
            return results
        if is_last_try:
            return [results]
        again = (results_of([item], is_last_try=len(batch) == 1) for item in batch)
        return [*chain.from_iterable(again)]

    source, threads = iter(items), ThreadPoolExecutor(workers)  # one thread for each worker
    window = deque[tuple[list[Item], Future[Sequence[Result | Failed]]]]()  # in order
    try:
        while True:
            while len(window) < LOOK_AHEAD * workers and (batch := [*islice(source, most_items)]):
                window.append((batch, threads.submit(results_of, batch)))
            if not window:
                return
            batch, results = window.popleft()
            yield from zip(batch, results.result(), strict=True)
    finally:
        is_over.set()
        for worker in team:
            worker.kill()
        threads.shutdown(cancel_futures=True)
        for worker in team:
            worker.stop()


class _Worker(Generic[Item, Result]):
    """A process that starts with its first batch."""

    def __init__(self, work: Callable[[Item], Result], limit_seconds: float) -> None:
        self.work, self.limit_seconds = work, limit_seconds
        self.process: Any = None

    def work_on(self, batch: list[Item]) -> list[Result] | Failed:
        """Return the results of a batch, or why the whole batch failed."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send(batch)
            if self.pipe.poll(self.limit_seconds):
                return self.pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            return self._crashed()
        self.stop()
        return Failed(f"took more than {self.limit_seconds:g} seconds")

    def _start(self) -> None:
        with _STARTING:
            self.has_begun = _CONTEXT.RawValue("b", 0)  # the process sets it
            self.pipe, other = _CONTEXT.Pipe()
            arguments = (other, self.has_begun, self.work)
            process = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            self.process = process  # set only now, since the machine may have had no room for it
            other.close()

    def _crashed(self) -> Failed:
        """Return how the process ended."""
        process = self.process
        process.join(1)
        self.stop()
        status = process.exitcode
        cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if not self.has_begun.value:
            raise RuntimeError(f"worker processes die as they start ({cause})")
        return Failed(f"the reader crashed on it ({cause})")

    def kill(self) -> None:
        """End the process, if there is one; its batch then fails."""
        with _STARTING:
            if self.process is not None:
                self.process.kill()

    def stop(self) -> None:
        """End the process, if there is one, and forget it."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _serve(pipe: Connection, has_begun: Any, work: Callable[[Item], Result]) -> None:
    """Work on one batch after the other until this process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent tidies up
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _STARTING.locked():  # as the parent forked: who works here may have workers, too
        _STARTING.release()
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
    """Allow no core dumps, and only MEMORY_BYTES more address space than is used now."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        wanted = psutil.Process().memory_info().vms + MEMORY_BYTES
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *allowed]), hard))
