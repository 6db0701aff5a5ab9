"""Files are whole or not there."""

import errno
import json
import os
import subprocess

import pytest

from common.files import (
    UNFINISHED,
    check_writable,
    replace_folder,
    write_atomically,
    write_file,
    write_json,
)


def test_json_holds_plain_data_and_null_for_what_is_not_a_number(tmp_path):
    path = tmp_path / "new" / "a.json"
    write_json({"a": [1.5, float("nan"), (float("inf"), "é")], "b": None, "c": 2}, path)
    assert json.loads(path.read_text()) == {"a": [1.5, None, [None, "é"]], "b": None, "c": 2}
    with pytest.raises(TypeError):
        write_json({"a": object()}, path)
    assert json.loads(path.read_text())["c"] == 2
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_bytes_and_text_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.svg"
    for content, written in ((b"\x89PNG", b"\x89PNG"), ("é\n", b"\xc3\xa9\n")):
        write_file(content, path)
        assert path.read_bytes() == written
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_file(b"", tmp_path / "taken")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new", "taken"]


def test_whether_a_file_can_be_written_is_known_before(tmp_path):
    there = tmp_path / "new" / "a.html"
    check_writable(there)
    assert not there.parent.exists()
    there.parent.mkdir()
    there.write_text("before")
    check_writable(there)
    assert there.read_text() == "before"
    with pytest.raises(OSError, match=r"b\.html: cannot be written \("):
        check_writable(there / "b.html")  # below a file
    with pytest.raises(OSError, match=r"new: cannot be written \(it is a folder\)"):
        check_writable(there.parent)
    assert list(there.parent.iterdir()) == [there]


def left_by_a_killed_process(path):
    """What a process that is no more was writing to `path`."""
    child = subprocess.Popen(["true"])
    child.wait()
    name = f".0.{os.uname().nodename}-{child.pid}{UNFINISHED}{path.suffix}"
    path.with_name(name).write_bytes(b"half")


def fail_half_way(path):
    path.write_text("half")
    raise KeyError


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.wav"
    path.write_text("old")
    left_by_a_killed_process(path)
    with pytest.raises(KeyError), write_atomically(path) as temporary:
        fail_half_way(temporary)
    assert path.read_text() == "old"
    with write_atomically(path) as temporary:
        assert temporary.suffix == ".wav"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a"
    left_by_a_killed_process(path)
    for content in ("first", "second"):
        with pytest.raises(KeyError), replace_folder(path) as temporary:
            fail_half_way(temporary / "b")
        with replace_folder(path) as temporary:
            (temporary / content).write_text(content)
        assert [file.name for file in path.iterdir()] == [content]
    with replace_folder(path) as slower:
        (slower / "slower").touch()
        path.rename(tmp_path / "moved")
        path.mkdir()
        (path / "quicker").touch()
    assert [file.name for file in path.iterdir()] == ["quicker"]
    assert {file.name for file in tmp_path.iterdir()} == {"a", "moved"}


@pytest.mark.parametrize("write", [write_atomically, replace_folder])
def test_a_full_disk_is_told_with_what_was_written(tmp_path, write):
    path = tmp_path / "a.mid"
    with pytest.raises(OSError, match=r"No space left on device: '.*a\.mid'$"), write(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match=r": 'b'$"), write(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "b")
    assert not list(tmp_path.iterdir())
