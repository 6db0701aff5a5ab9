"""Finding MIDI files."""

import os
import socket
from pathlib import Path

from data.corpus.find_files import find_music_files


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_files_of_both_suffixes_are_found_at_any_depth_in_order(tmp_path):
    touch(tmp_path, "b.MID", "a/z.midi", "a/b/c.Mid", "a.mid", "notes.txt", "mid", "x.mid.bak")
    assert find_music_files(tmp_path) == (["a.mid", "a/b/c.Mid", "a/z.midi", "b.MID"], [])
    assert find_music_files(str(tmp_path / "a"))[0] == ["b/c.Mid", "z.midi"]


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
    assert find_music_files(music) == (
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
        names, left_out = find_music_files(tmp_path)
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
    assert find_music_files(tmp_path) == (
        ["good.mid"],
        [("secret", "cannot be listed (Permission denied)")],
    )
