"""Finding MIDI files, and the pool that no file can stop."""

import faulthandler
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from itertools import count, islice
from pathlib import Path

import pytest

from common.text import printable
from data.corpus import worker_pool as reading
from data.corpus.worker_pool import Failed, find_midi_files, guarded, guarded_batches

ROOT = Path(__file__).parents[3]


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_files_of_both_suffixes_are_found_at_any_depth_in_order(tmp_path):
    touch(tmp_path, "b.MID", "a/z.midi", "a/b/c.Mid", "a.mid", "notes.txt", "mid", "x.mid.bak")
    assert find_midi_files(tmp_path) == (["a.mid", "a/b/c.Mid", "a/z.midi", "b.MID"], [])
    assert find_midi_files(str(tmp_path / "a"))[0] == ["b/c.Mid", "z.midi"]


def test_links_are_followed_and_each_folder_is_listed_once(tmp_path):
    touch(tmp_path / "music", "z/1.mid", "2.mid")
    touch(tmp_path, "elsewhere/3.mid")
    music = tmp_path / "music"
    (music / "a").symlink_to("z")  # the folder's own name is preferred
    (music / "z" / "up").symlink_to("..")
    (music / "far").symlink_to(tmp_path / "elsewhere")
    (music / "far again").symlink_to(tmp_path / "elsewhere")
    (music / "4.mid").symlink_to("2.mid")
    again = "a link to a folder that is listed already"
    assert find_midi_files(music) == (
        ["2.mid", "4.mid", "far/3.mid", "z/1.mid"],
        [("a", again), ("far again", again), ("z/up", again)],
    )


def test_what_cannot_be_read_is_named_with_a_reason(tmp_path):
    touch(tmp_path, "good.mid")
    (tmp_path / "loop.mid").symlink_to("loop.mid")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone.mid").symlink_to("nowhere")
    (tmp_path / "gone.txt").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.mid")
    (tmp_path / "folder.mid").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.mid"))  # long absolute names are refused
        names, left_out = find_midi_files(tmp_path)
    assert names == ["good.mid"]
    assert [name for name, _ in left_out] == [
        *("gone.mid", "loop", "loop.mid", "pipe.mid", "socket.mid")
    ]
    assert all(reason and "\n" not in reason for _, reason in left_out)
    assert dict(left_out)["pipe.mid"] == "not a regular file"


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    touch(tmp_path, "good.mid", "secret/hidden.mid")
    scandir = os.scandir

    def refuse(path):  # the tests may run as root, whom no permission stops
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert find_midi_files(tmp_path) == (
        ["good.mid"],
        [("secret", "cannot be listed (Permission denied)")],
    )


def test_no_folder_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none: no such folder"):
        find_midi_files(tmp_path / "none")
    touch(tmp_path, "a.mid")
    with pytest.raises(NotADirectoryError, match=r"a\.mid: a file, where a folder"):
        find_midi_files(tmp_path / "a.mid")


def test_names_that_are_not_utf8_work_throughout(tmp_path):
    odd = b"caf\xe9.mid"
    try:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), odd))).write_bytes(b"here")  # noqa: PTH118
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (name,), _ = find_midi_files(tmp_path)
    assert os.fsencode(name) == odd
    assert (tmp_path / json.loads(json.dumps(name))).read_bytes() == b"here"
    assert printable(name) == r"caf\xe9.mid"
    assert printable("Größe.mid") == "Größe.mid"


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
        while True:
            pass
    if number == 60:
        return len(bytearray(2**50))
    if number == 77:
        raise KeyError(number)
    return 2 * number


def die_once(item):
    """Dies at its first try at the odd numbers."""
    folder, number = item
    try:
        (folder / str(number)).touch(exist_ok=False)
    except FileExistsError:
        return number
    if number % 2:
        crash()
    return number


def whose(_):
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_order_of_the_items(workers):
    assert list(guarded(double, range(500), workers)) == [(i, 2 * i) for i in range(500)]
    assert list(guarded(double, [], workers)) == []


def test_the_work_is_done_elsewhere():
    assert os.getpid() not in dict(guarded(whose, range(3))).values()


@pytest.mark.parametrize(
    ("method", "workers"),
    [("default", 1), ("default", 2), pytest.param("spawn", 1, marks=pytest.mark.slow)],
)
def test_a_mishap_costs_one_item(method, workers, monkeypatch):
    if method != "default":  # what other platforms do
        monkeypatch.setattr(reading, "_CONTEXT", multiprocessing.get_context(method))
    results = list(guarded(mishap, range(100), workers, limit_seconds=1.0))
    assert [item for item, _ in results] == list(range(100))
    reasons = {item: r.reason for item, r in results if isinstance(r, Failed)}
    assert reasons == {
        3: "the reader crashed on it (SIGABRT)",
        30: "the reader crashed on it (SIGKILL)",
        31: "took more than 1 seconds",
        60: "needs more than 2 GiB of memory",
        77: "the reader crashed on it (exit status 1)",
    }
    assert all(result == 2 * item for item, result in results if item not in reasons)


def test_an_item_gets_a_second_try(tmp_path):
    items = [(tmp_path, number) for number in range(20)]
    assert list(guarded(die_once, items, 2)) == [(item, item[1]) for item in items]


def mishap_with_all(items):
    """Has trouble once it has taken all its items."""
    numbers = list(items)
    if 31 in numbers:
        crash()
    if 60 in numbers:
        raise MemoryError
    return [2 * number for number in numbers]


def test_a_mishap_with_a_whole_batch_costs_the_item_that_fails_alone():
    results = list(guarded_batches(mishap_with_all, range(100)))
    assert [item for items, _ in results for item in items] == list(range(100))
    assert max(len(items) for items, _ in results) > 1
    assert {items[0]: r.reason for items, r in results if isinstance(r, Failed)} == {
        31: "the reader crashed on it (SIGABRT)",
        60: "needs more than 2 GiB of memory",
    }
    well = [(items, r) for items, r in results if not isinstance(r, Failed)]
    assert all(r == [2 * item for item in items] for items, r in well)
    assert sum(len(items) for items, _ in well) == 98


def test_items_are_read_no_further_than_a_few_batches_ahead():
    numbers = count()
    results = guarded(double, numbers, 2)
    assert list(islice(results, 10_000)) == [(i, 2 * i) for i in range(10_000)]
    results.close()
    most = (2 * reading.LOOK_AHEAD + 1) * reading.MOST_ITEMS
    assert next(numbers) <= 10_000 + most


def test_an_error_of_the_items_is_the_callers_and_leaves_no_worker():
    def items():
        yield from range(10)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        list(guarded(double, items(), 2))
    assert not multiprocessing.active_children()


def test_closing_early_leaves_no_worker():
    results = guarded(mishap, [0, 31], 2)
    assert next(results) == (0, 0)
    assert multiprocessing.active_children()
    results.close()
    assert not multiprocessing.active_children()


ORPHANS = """
import signal
from data.corpus.worker_pool import guarded
from tests.data.corpus.test_worker_pool import announce

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & would have it ignored

for _ in guarded(announce, range(2), 2, limit_seconds=600):
    pass
"""


def announce(number):
    """Says where it runs, then works for ever."""
    os.write(1, b"%d\n" % os.getpid())
    while True:
        pass


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run(how):
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
        run.send_signal(how)
        assert run.stdout.read() == b""
        assert run.wait() != 0
