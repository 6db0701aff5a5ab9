"""The server: who is let in, what is handed out, and what many or malformed requests do."""

import asyncio
import io
import re
import shlex
import shutil
import subprocess
import threading
import wave
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from data.canonical import canonical
from data.files.source_text import SUFFIXES
from data.midi.io import midi_bytes, parse_events
from data.midi.quantize import score_from_events
from rendering.notation import to_musicxml
from tests.folders import tune as a_tune
from tests.models import four_parts, of_one_program
from tests.music import GRID
from tests.web import network
from tests.web.conftest import ASKED, SETTINGS
from web import server
from web.connection import MISTAKE
from web.messages import piece_of
from web.server import make_app
from web.tasks import TASKS

HOST = "127.0.0.1:8765"
OURS = {"host": HOST, "origin": f"http://{HOST}"}


@pytest.fixture
def client(models):
    with TestClient(make_app(models, frozenset({HOST})), headers=OURS) as client:
        yield client


def ask(socket, kind, number=1, **message):
    """Sends a question, and gives what is told up to its end."""
    socket.send_json(ASKED | message | {"do": kind, "id": number})


def until(socket, *names):
    """The next that is told and has one of these."""
    while not {*names} & {*(told := socket.receive_json())}:
        pass
    return told


def test_the_page_and_its_files_are_handed_out_and_nothing_else(client):
    page = client.get("/")
    assert "<title>Etude</title>" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")
    for path in (
        "/static/server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/tasks.py",
        "/etc/passwd",
    ):
        assert client.get(path).status_code == 404
    listed = client.get("/models").json()
    assert listed == {"models": ["quartet", "runs/piano"], "files": [*SUFFIXES, "audio/midi"]}


def test_nothing_is_fetched_from_elsewhere():
    for path in server.STATIC.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "://" not in line.replace("http://www.w3.org/2000/svg", "").replace(
                "}://$", ""
            ), line


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8765"},
        {"host": "127.0.0.1:9000"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8765"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_other_pages_are_not_let_in(client, headers):
    assert client.get("/models", headers=OURS | headers).status_code == 403
    assert client.post("/midi", headers=OURS | headers).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect) as refused,
        client.websocket_connect("/live", headers=OURS | headers),
    ):
        pass
    assert refused.value.code == 1008


def test_a_page_without_an_origin_may_look_but_not_ask(models):
    with TestClient(make_app(models, frozenset({HOST})), headers={"host": HOST}) as client:
        assert client.get("/").status_code == 200
        assert client.post("/midi").status_code == 403


def test_in_a_network_the_token_decides(models):
    with TestClient(make_app(models, token="secret"), headers=OURS) as client:
        assert client.get("/").status_code == 403
        assert client.get("/?token=secre").status_code == 403
        assert client.get("/models").status_code == 403
        assert client.get("/?token=secret").status_code == 200  # and now there is a cookie
        assert client.get("/models").status_code == 200
        ours = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        client.cookies.clear()
        for stranger in ("a[b]=c", "expires", 'a="open', "token=other", "=", "caf\xe9=\xe9"):
            for cookie in (f"{stranger}; {ours}", f"{ours}; {stranger}"):
                headers = {"cookie": cookie.encode("latin-1")}
                assert client.get("/models", headers=headers).status_code == 200
        assert client.get("/models", headers={"cookie": "a=secret"}).status_code == 403


def test_sounds_are_wav_files(client):
    for path in ("/sound/40/60", "/sound/40/62", "/sound/128/36"):
        assert client.get(path).content[:4] == b"RIFF"
    assert client.get("/sound/40/60").content == client.get("/sound/40/62").content
    long = "9" * 5000
    for path in ("129/60", "40/128", "-1/60", "a/b", f"{long}/1", f"1/{long}"):
        assert client.get(f"/sound/{path}").status_code == 404


def test_what_is_taken_away_holds_the_notes(client, tune):
    midi = client.post("/midi", json={"piece": tune}).content
    score = score_from_events(parse_events(midi, "it"), GRID)[0]
    assert score == piece_of({"piece": tune}).score
    with wave.open(io.BytesIO(client.post("/wav", json={"piece": tune}).content)) as sound:
        assert sound.getnframes() > 3 * 44_100
        assert (sound.getnchannels(), sound.getsampwidth()) == (2, 2)
    parts = zipfile.ZipFile(io.BytesIO(client.post("/stems", json={"piece": tune}).content))
    assert parts.namelist() == ["40 Violin.wav"]
    assert client.post("/png", json={"piece": tune}).content[:4] == b"\x89PNG"
    notes = [*tune["notes"], [900_000, 12, 60, 80, 40, 1]]
    long = tune | {"notes": notes, "bars": [[64, 1, 3072]] * 500, "tempo": [[60]] * 500}
    for path in ("/wav", "/stems"):
        refused = client.post(path, json={"piece": long})
        assert "select some bars" in refused.text
    assert b"<score-partwise" in client.post("/musicxml", json={"piece": tune}).content
    assert client.post("/score", json={"piece": tune}).content.lstrip().startswith(b"<svg")
    for path in ("/musicxml", "/score"):
        seconds = {"grid": "seconds", "steps": 100, "bars": [[1, 4, 100]], "tempo": [[60]]}
        refused = client.post(path, json={"piece": tune | seconds})
        assert "has no meter, so it cannot be engraved" in refused.text
    assert client.post("/midi", json={"piece": 3}).status_code == 400
    assert client.post("/midi", content=b"x" * 600_000).status_code == 413


def door(client, how, score=None, headers=None, **query):
    """What the door answers to a MIDI file."""
    content = midi_bytes(four_parts(3) if score is None else score)
    return client.post(f"/api/{how}", params=query, content=content, headers=headers)


def test_a_program_gets_music_back_for_its_music(models):
    with TestClient(make_app(models, frozenset({HOST})), headers={"host": HOST}) as client:
        given = four_parts(3)
        kept = {*map(tuple, given.notes[["onset", "program", "pitch"]].tolist())}
        for how, query in (
            ("continue", {"bars": "2", "meter": "4/4", "seed": "3", "boldness": "0.9"}),
            ("rewrite", {"bars": "2-3"}),
            ("rewrite", {"bars": "2"}),
            ("continue", {"chords": "C | F | G7 | C"}),
        ):
            answer = door(client, how, given, **query)
            assert answer.status_code == 200, answer.text
            score = score_from_events(parse_events(answer.content, "it"), GRID)[0]
            notes = {*map(tuple, score.notes[["onset", "program", "pitch"]].tolist())}
            first, end = (48, 144 if query.get("bars") == "2-3" else 96)
            if how == "continue":
                first = end = given.end_step
            assert {note for note in kept if note[0] < first or note[0] >= end} <= notes
            assert notes != kept
            assert door(client, how, given, **query).content == answer.content
        quicker = replace(given, tempo_bpm=given.tempo_bpm + 20)  # the model has one tempo, for any
        answer = door(client, "continue", quicker, bars="1")
        score = score_from_events(parse_events(answer.content, "it"), GRID)[0]
        assert {*score.tempo_bpm.tolist()} == {*quicker.tempo_bpm.tolist()}
        assert client.post("/api/continue", content=b"MThd").status_code == 400


def test_the_line_of_the_docs_gets_music(models, tmp_path):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl")
    text = (Path(__file__).parents[2] / "docs/playing.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("    curl ")]
    (tmp_path / "tune.mid").write_bytes(midi_bytes(four_parts(1)))
    with network.served(make_app(models)) as (_, port):
        command = shlex.split(line.replace("8765", str(port)))
        subprocess.run([curl, *command[1:]], cwd=tmp_path, check=True, capture_output=True)
    assert len(parse_events((tmp_path / "more.mid").read_bytes(), "it").notes) > 16


def test_an_upbeat_is_bar_0_to_a_program_as_everywhere(client):
    given = four_parts(3)
    bars = given.bars.copy()
    bars["length"][0] = 12
    given = canonical(given.notes, bars, given.tempo_bpm, GRID)[0]  # bars begin at 0, 12 and 60
    for asked, first, end in (("0", 0, 12), ("1", 12, 60), ("0-1", 0, 60)):
        answer = door(client, "rewrite", given, headers=OURS, bars=asked)
        score = score_from_events(parse_events(answer.content, "it"), GRID)[0]
        kept, there = (
            {*map(tuple, its.notes[["onset", "pitch"]].tolist())} for its in (given, score)
        )
        assert {note for note in kept if note[0] < first or note[0] >= end} <= there
        assert kept != there
    assert "bars" in door(client, "rewrite", four_parts(3), headers=OURS, bars="0").text


@pytest.mark.parametrize(
    ("how", "query", "said"),
    [
        ("play", {}, "continue, accompany, harmonize, rewrite"),
        ("continue", {"colour": "red"}, "no option 'colour'"),
        ("continue", {"bars": "many"}, "bars must be a number such as 8"),
        ("continue", {"bars": "2-4"}, "bars must be a number such as 8"),
        ("continue", {"bars": "99"}, "bars must be a whole number from 1 to 32"),
        ("continue", {"boldness": "4"}, "boldness must be a number from 0 to 3"),
        ("continue", {"tempo": "fast"}, "tempo must be a number"),
        ("continue", {"chords": "Am | H"}, "no chord 'H'"),
        ("continue", {"model": "none"}, "no model 'none': choose from quartet, runs/piano"),
        ("rewrite", {}, "bars=5-8"),
        ("rewrite", {"bars": "9"}, "the piece has no such bars"),
        ("rewrite", {"bars": "0"}, "the piece has no such bars"),
        ("rewrite", {"bars": "1-999"}, "bars must be a whole number from 0 to 512"),
    ],
)
def test_the_door_says_in_a_line_what_cannot_be(client, how, query, said):
    answer = door(client, how, **query)
    assert answer.status_code in (400, 404)
    assert said in answer.text
    assert not {"\n", "settings", "message"} & {*answer.text, *re.findall("[a-z]+", answer.text)}


def test_the_door_is_guarded_like_the_page(client, models, monkeypatch):
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil:1"}):
        assert door(client, "continue", headers=OURS | headers).status_code == 403
    with TestClient(make_app(models, token="secret"), headers={"host": HOST}) as stranger:
        assert door(stranger, "continue").status_code == 403
        assert door(stranger, "continue", bars="1", token="secret").status_code == 200
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 0)
    assert door(client, "continue").status_code == 503


def test_an_uploaded_file_is_read_under_guard(client, monkeypatch):
    told = client.post("/upload?model=quartet", content=midi_bytes(four_parts(3))).json()
    assert piece_of({"piece": told["read"]}).score == four_parts(3)
    score = client.post("/upload?model=quartet", content=to_musicxml(four_parts(3))).json()
    assert score["read"]["notes"] == told["read"]["notes"]
    pianos = io.BytesIO()
    of_one_program(four_parts(3), 0).write(pianos)
    apart = client.post("/upload?model=quartet", content=pianos.getvalue()).json()
    assert apart["read"]["notes"] == told["read"]["notes"]
    assert apart["changes"][0].startswith("4 tracks of Acoustic Grand Piano became Violin")
    for content in (b"", b"no MIDI", midi_bytes(a_tune(0))[:40]):
        refused = client.post("/upload?model=quartet", content=content)
        assert refused.status_code == 400
        assert len(refused.text.splitlines()) == 1
        assert not refused.text.startswith("the file")
    assert client.post("/upload?model=none", content=b"MThd").status_code == 400
    monkeypatch.setattr(server, "MOST_NOTES", 20)
    told = client.post("/upload?model=quartet", content=midi_bytes(four_parts(3))).json()
    assert len(told["read"]["notes"]) == 16
    assert told["changes"] == ["cut after 1 bar"]
    monkeypatch.setattr(server, "READ_SECONDS", 0.0)
    late = client.post("/upload?model=quartet", content=midi_bytes(four_parts(3)))
    assert "took more than 0 seconds" in late.text


def test_a_file_that_takes_long_to_read_holds_up_no_sound(client, monkeypatch):
    is_begun, is_heard = threading.Event(), threading.Event()

    def read_slowly(*_):
        is_begun.set()
        yield 0, "late" if is_heard.wait(60) else "nothing was heard"

    monkeypatch.setattr(server, "guarded", read_slowly)
    with ThreadPoolExecutor(1) as other:
        late = other.submit(client.post, "/upload?model=quartet", content=b"MThd")
        assert is_begun.wait(60)
        assert client.get("/sound/41/54").content[:4] == b"RIFF"
        is_heard.set()
        assert late.result().text == "late"


def test_a_new_question_ends_the_one_before(client, tune):
    with client.websocket_connect("/live") as socket:
        ask(socket, "write", number=1, how="continue", piece=tune, settings=SETTINGS | {"bars": 32})
        assert until(socket, "notes")["id"] == 1
        ask(socket, "write", number=2, how="harmonize", piece=tune)
        assert until(socket, "done")["id"] == 2
        ask(socket, "write", number=3, how="continue", piece=tune, settings=SETTINGS | {"bars": 32})
        assert until(socket, "notes")["id"] == 3
        socket.send_json({"do": "stop", "id": 4})
        ask(socket, "text", number=5, text="C4")
        assert until(socket, "done", "read")["id"] == 5


def test_refusals_are_told_with_their_number(client, tune):
    with client.websocket_connect("/live") as socket:
        ask(socket, "text", number=7, text="what?")
        told = until(socket, "error")
        assert told["id"] == 7
        assert "cannot read" in told["error"]
        ask(socket, "write", number=8, how="continue", piece=tune, settings=SETTINGS | {"tempo": 9})
        assert until(socket, "error")["control"] == "tempo"


def test_malformed_messages_are_answered_and_change_nothing(client, tune):
    with client.websocket_connect("/live") as socket:
        for text in (
            "",
            "{",
            "[]",
            "{}",
            '{"do": "write"}',
            '{"do": "fly", "id": 1}',
            '{"do": [], "id": 1}',
            "x" * 600_000,
            "[" * 100_000,
            "1" * 5000,
        ):
            socket.send_text(text)
            assert socket.receive_json().keys() == {"error"}
        socket.send_bytes(b"\xff\xfe")
        assert socket.receive_json().keys() == {"error"}
        socket.send_json({"do": "write", "id": 1})
        assert until(socket, "error")["id"] == 1
        ask(socket, "text", text="C4", settings=SETTINGS | {"key": "half a character: \ud800"})
        assert "ud800" in until(socket, "error")["error"]
        ask(socket, "text", text="C4")
        assert until(socket, "read")


def test_a_mistake_of_ours_is_answered_too_and_shown_in_the_terminal(
    client, tune, monkeypatch, caplog
):
    def mistaken(*_):
        raise ZeroDivisionError("at home in /srv")

    monkeypatch.setitem(TASKS, "text", mistaken)
    monkeypatch.setattr("web.server.piece_of", mistaken)
    with client.websocket_connect("/live") as socket:
        ask(socket, "text", number=5, text="C4")
        assert socket.receive_json() == {"id": 5, "error": MISTAKE}
        ask(socket, "check", how="continue", piece=tune)
        assert until(socket, "possible")
    assert "ZeroDivisionError: at home" in caplog.text
    with TestClient(client.app, headers=OURS, raise_server_exceptions=False) as other:
        refused = other.post("/midi", json={"piece": tune})
    assert (refused.status_code, refused.text) == (500, MISTAKE)


def test_who_goes_away_in_the_middle_of_a_request_is_no_mistake(models):
    async def ask():
        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            pass

        scope = {"type": "http", "method": "POST", "path": "/midi", "query_string": b""}
        headers = [(name.encode(), value.encode()) for name, value in OURS.items()]
        await make_app(models)(scope | {"headers": headers}, receive, send)

    asyncio.run(ask())


def test_too_much_to_render_is_told_so(client, tune, monkeypatch):
    monkeypatch.setattr(server, "MOST_WAITING", 0)
    refused = client.post("/wav", json={"piece": tune})
    assert (refused.status_code, len(refused.text.splitlines())) == (503, 1)


def test_too_many_pages_are_told_so(client, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    with client.websocket_connect("/live"):
        with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/live"):
            pass
        assert refused.value.code == 1013
    with client.websocket_connect("/live"):
        pass
