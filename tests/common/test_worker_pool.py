"""The pool that no item can stop."""

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path

import pytest

from common import worker_pool
from common.worker_pool import MOST_ITEMS, Failed, guarded

ROOT = Path(__file__).parents[2]


def double(number):
    return 2 * number


def crash():
    faulthandler.disable()  # pytest's: its stack would be all over the terminal
    os.abort()


def mishap(number):
    """Doubles, but for five numbers that end badly each in its own way."""
    if number == 3:
        crash()
    if number == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 31:
        time.sleep(600)
    if number == 60:
        return len(bytearray(2**50))
    if number == 77:
        raise KeyError(number)
    return 2 * number


@pytest.mark.parametrize(
    ("method", "workers", "most_items", "items"),
    [
        ("default", 1, 1, range(100)),
        ("default", 1, MOST_ITEMS, range(100)),
        ("default", 2, MOST_ITEMS, range(100)),
        pytest.param("spawn", 1, 1, [*range(5), *range(76, 79)], marks=pytest.mark.slow),
    ],
)
def test_a_mishap_costs_one_item(method, workers, most_items, items, monkeypatch):
    if method != "default":  # what other platforms do
        monkeypatch.setattr(worker_pool, "_CONTEXT", multiprocessing.get_context(method))
    results = list(guarded(mishap, items, workers, 3.0, most_items))
    assert [item for item, _ in results] == list(items)
    reasons = {item: r.reason for item, r in results if isinstance(r, Failed)}
    expected = {
        3: "the reader crashed on it (SIGABRT)",
        30: "the reader crashed on it (SIGKILL)",
        31: "took more than 3 seconds",
        60: "needs more than 2 GiB of memory",
        77: "the reader crashed on it (exit status 1)",
    }
    assert reasons == {item: expected[item] for item in items if item in expected}
    assert all(result == 2 * item for item, result in results if item not in reasons)


def quadruple(number):
    multiprocessing.current_process().daemon = False  # such may have no children
    ((_, found),) = guarded(double, [2 * number])
    return found


def test_who_works_may_have_workers():
    assert list(guarded(quadruple, [1, 2], limit_seconds=30)) == [(1, 4), (2, 8)]


def test_items_are_read_no_further_than_a_few_batches_ahead():
    numbers = count()
    results = guarded(double, numbers, 2, most_items=MOST_ITEMS)
    assert list(islice(results, 10_000)) == [(i, 2 * i) for i in range(10_000)]
    results.close()
    most = (2 * worker_pool.LOOK_AHEAD + 1) * MOST_ITEMS
    assert next(numbers) <= 10_000 + most


def test_an_error_of_the_items_is_the_callers_and_leaves_no_worker():
    def items():
        yield from range(10)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        list(guarded(double, items(), 2))
    assert not multiprocessing.active_children()


ORPHANS = """
import signal
from common.worker_pool import guarded
from tests.common.test_worker_pool import announce

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & would have it ignored

for _ in guarded(announce, range(32), 2, limit_seconds=600):
    pass
"""


def announce(number):
    """Says where it runs, then works for ever."""
    os.write(1, b"%d\n" % os.getpid())
    while True:
        pass


@pytest.mark.parametrize(
    ("send", "how"),
    [
        *((os.kill, how) for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)),
        (os.killpg, signal.SIGINT),  # to all, as a terminal does
    ],
)
def test_workers_end_with_the_run(send, how):
    """The workers hold the pipe's other end: it is at its end when the last of them is gone."""
    run = subprocess.Popen(
        [sys.executable, "-c", ORPHANS],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with run:
        assert all(int(run.stdout.readline()) != run.pid for _ in range(2))
        send(run.pid, how)
        assert run.stdout.read() == b""
        assert run.wait() != 0
