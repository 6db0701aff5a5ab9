"""play.py as a person starts and ends it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from websockets.sync.client import connect

import play
from common.text import printable
from tests.models import QUARTET, untrained
from tests.runs import refusal

ROOT = Path(__file__).parents[1]
EMPTY = {"notes": [], "bars": [[4, 4, 48]], "tempo": [[80]], "grid": "beats", "steps": 12}
WRITE = {"do": "write", "id": 1, "how": "continue", "piece": EMPTY, "settings": {"bars": 32}}
WRITE |= {"variations": 4, "random_seed": 1}


def refused(capsys, *arguments):
    """The one line with which the command refuses its options."""
    return refusal(capsys, *arguments, "--no-browser", command=play)


def test_a_used_port_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use" in refused(capsys, "--port", port)


def test_what_cannot_be_served_is_one_line(capsys, tmp_path):
    assert "must be a number from 0 to 65535" in refused(capsys, "--port", "65536")
    assert "no such file" in refused(capsys, "--port", "0", "--checkpoint", str(tmp_path / "none"))
    for host in ("203.0.113.1", "nowhere.invalid", ""):
        line = refused(capsys, "--port", "0", "--host", host)
        assert f"'{host}', port 0: " in line
        assert "--host takes an address of this machine" in line
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe", "red\x1b[31m\nline", "../../etc/passwd", ""):
        line = refused(capsys, "--port", "0", "--checkpoint", str(tmp_path / name))
        assert "use a model.safetensors" in line
        assert line == printable(line)


def test_only_this_machine_is_known_by_name():
    assert play.hosts_of("127.0.0.1", 8765) >= {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}
    assert "localhost" in play.hosts_of("localhost", 80)
    assert "localhost" not in play.hosts_of("localhost", 8765)
    assert not play.hosts_of("0.0.0.0", 8765)
    assert [*map(play.is_loopback, ("127.0.0.2", "::1", "0.0.0.0", "example.org"))] == [
        *(True, True, False, False)
    ]


@pytest.mark.slow
def test_it_serves_until_ctrl_c(tmp_path):
    model = untrained(tmp_path / "model.safetensors", QUARTET)
    words = [sys.executable, str(ROOT / "play.py"), "-c", str(model), "--port", "0", "--no-browser"]
    name = f"{tmp_path.name}/model.safetensors"
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        with urllib.request.urlopen(address) as page:
            assert b"<title>Etude</title>" in page.read()
        host = address[7:].strip("/")
        with connect(f"ws://{host}/live", origin=f"http://{host}") as open_page:
            open_page.send(json.dumps(WRITE | {"model": name}))
            while "notes" not in open_page.recv():
                pass
            process.send_signal(signal.SIGINT)  # in the middle of a piece
            assert process.wait(60) == 0
        assert process.stderr.read().split() == ["ended"]
    finally:
        process.kill()
        process.communicate()
