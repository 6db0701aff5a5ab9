"""Attacks on the page's server: messages and requests that no page would send, over loopback.

Each attacking process has its own server, set up as by `play.py --host`. Whatever comes, the server
must answer in one line, reveal no path, log no error, use no more memory, and still let a player
with the token play.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect
from websockets.typing import Origin

from benchmarks.mutations import LIES, damaged, mutant, originals, with_a_lie
from model.serialization import load_model_file, save_model_file
from tests.models import BAND, PIANIST, QUARTET, untrained
from tests.web.network import answer, heard, opened, served
from web.connection import MISTAKE
from web.door import OPTIONS
from web.guard import COOKIE
from web.models import Models
from web.server import make_app
from web.tasks import TASKS

TOKEN = "token-of-the-players"
HELD, BROKEN = "held", "broken: "
VOCABULARIES = {"models/quartet": QUARTET, "models/band": BAND, "runs/piano/model": PIANIST}
NAMES = ("quartet", "band", "runs/piano", "runs/ids")
WAYS = ("continue", "accompany", "harmonize", "rewrite", "instead")
HUGE = (*(10**401, -(10**401), 10**18, 2**63, -(2**31), 1e308), *(10**4299, "9" * 5000, "\ud800"))
SETTINGS = {"bars": 1, "temperature": 1.0}
ASKED = ("bars", "temperature", "key", "range", "meter", "programs", "polyphony", "tempo")
VALUES = ("1", "1-2", "3/4", "48-72", "40,41", "0.5", "-1", "9" * 5000, "%00", "%F0", "C", "strict")
FILES = (b"midi", b"musicxml", b"score", b"wav")
WAIT_SECONDS = 60
SETTLED, MOST_GROWTH = 500, 100  # answers until memory settles; MiB that it may grow after that

Json = dict[str, Any]


@dataclass
class Page:
    """A server under attack, the errors that it logged, and pieces for all its models."""

    port: int
    folder: Path
    server: ExitStack  # never closed, because the next attack needs the server
    mistakes: list[str] = field(default_factory=list)
    pieces: list[Json] = field(default_factory=list)
    answers: int = 0
    mebibytes: float = 0.0  # the memory of the process after SETTLED answers


def prepare_page(folder: Path) -> None:
    """Put models into a folder: on beats, on seconds, with named parts, and not of music."""
    for name, vocabulary in VOCABULARIES.items():
        path = folder / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        untrained(path, vocabulary)
    content = load_model_file(folder / "models" / "quartet.safetensors")
    ids = folder / "runs" / "ids" / "model.safetensors"
    ids.parent.mkdir()
    of_ids = content.vocabulary_json.replace("{", '{"ids": 9, ', 1)
    save_model_file(ids, replace(content, vocabulary_json=of_ids))


@cache
def attacked(folder: Path) -> Page:
    """Return the page of this process; its server ends with the process."""
    models = Models(folder / "models" / "quartet.safetensors", folder)
    multiprocessing.current_process().daemon = False  # uploads need a child process as reader
    server = ExitStack()
    _, port = server.enter_context(served(make_app(models, token=TOKEN)))
    page = Page(port, folder, server)

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            page.mistakes.append(self.format(record)[-600:])

    logging.getLogger().addHandler(Told(logging.ERROR))
    logging.getLogger("uvicorn").handlers = [Told(logging.ERROR)]
    for name, text in (("quartet", "C4 E4 G4 C5"), ("runs/piano", "C4 E4"), ("band", "C4:2 D4")):
        message = {"do": "text", "id": 1, "model": name, "text": text, "settings": SETTINGS}
        page.pieces.append(told(page, json.dumps(message).encode())["read"])
    for name, piece in zip(NAMES, [*page.pieces], strict=False):
        message = right(np.random.default_rng(0), page)
        message |= {"do": "write", "model": name, "piece": piece, "how": "continue"}
        page.pieces.append(told(page, json.dumps(message).encode(), to_its_end=True)["done"][0])
    return page


def right(rng: np.random.Generator, page: Page) -> Json:
    """Return a valid message with the fields of every task, each drawn independently."""
    piece = page.pieces[int(rng.integers(len(page.pieces)))] if page.pieces else None
    notes = len(piece["notes"]) if piece else 1
    note = int(rng.integers(notes + 1))
    request = {
        **{"model": NAMES[int(rng.integers(len(NAMES)))], "how": WAYS[int(rng.integers(5))]},
        **{"piece": piece, "settings": SETTINGS, "variations": 1, "random_seed": note},
        **{"bars": [0, 1], "note": note},
        "instead": [[60, 40], [12, 12, 62, 80, 40], [0, 1, 60, 80, 0]][int(rng.integers(3))],
    }
    return {"do": [*TASKS][int(rng.integers(len(TASKS)))], "id": 1, "text": "C4 Am", **request}


def with_huge_numbers(message: Json, rng: np.random.Generator, page: Page) -> Json:
    """Return a message with a huge or senseless value in a setting or elsewhere."""
    value = (*HUGE, *LIES)[int(rng.integers(len(HUGE) + len(LIES)))]
    if rng.random() < 0.7:
        name = ASKED[int(rng.integers(len(ASKED)))]
        values = [value] * int(rng.integers(3)) if rng.random() < 0.3 else value
        return message | {"settings": message["settings"] | {name: values}}
    return message | {[*message][int(rng.integers(1, len(message)))]: value}


def with_foreign_grid(message: Json, rng: np.random.Generator, page: Page) -> Json:
    """Return a message whose piece has a foreign grid or foreign parts."""
    piece = dict(message["piece"])
    match int(rng.integers(4)):
        case 0:
            piece["steps"] = int(rng.choice([1, 7, 24, 96, 480, 1000]))
            piece["bars"] = [[4, 4, 4 * min(piece["steps"], 96)]] * len(piece.get("bars", ()))
        case 1:
            piece["grid"] = str(rng.choice(["beats", "seconds"]))
        case 2:
            count = int(rng.integers(4))
            piece["parts"] = [[f"PART {n}", int(rng.integers(130))] for n in range(count)]
        case _:
            given = piece.get("notes", [])  # a huge or senseless piece has none
            notes = zip(given, rng.integers(260, size=len(given)).tolist(), strict=True)
            piece["notes"] = [[*note[:4], program, note[5]] for note, program in notes]
    return message | {"piece": piece}


def with_other_origin(message: Json, rng: np.random.Generator, page: Page) -> Json:
    """Return a message that claims that its piece was written in another way."""
    return message | {"do": "explain", "written": right(rng, page)}


def with_any_lie(message: Json, rng: np.random.Generator, page: Page) -> Json:
    """Return a message with any one value replaced."""
    lied = with_a_lie(message, rng)
    return lied if isinstance(lied, dict) else {"do": lied}


MUTATIONS = (with_huge_numbers, with_foreign_grid, with_other_origin, with_any_lie)


def attack_message(number: int, seed: int, folder: Path) -> str:
    """Send a page's message with one or two mutations, or with damaged bytes, even as text."""
    rng, page = np.random.default_rng((seed, number)), attacked(folder / "page")
    message = right(rng, page)
    for at in sorted(
        rng.integers(len(MUTATIONS), size=int(rng.integers(1, 3)))
    ):  # a replaced value comes last
        if isinstance(message.get("piece"), dict) and isinstance(message.get("settings"), dict):
            message = MUTATIONS[at](message, rng, page)
    content = json.dumps(message).encode()
    if rng.random() < 0.15:
        content = damaged(content, rng)
    answered = told(page, content, to_its_end=bool(rng.random() < 0.1))
    reason = answered.get("error")
    return fate(page, HELD if reason is None else str(reason))


def attack_request(number: int, seed: int, folder: Path) -> str:
    """Send a request: a page's for a file, a program's with a file, or any bytes."""
    rng, page = np.random.default_rng((seed, number)), attacked(folder / "page")
    ours = b"Cookie: %s=%s" % (COOKIE.encode(), TOKEN.encode())
    kind = int(rng.integers(3))
    if kind == 0:
        body = json.dumps(MUTATIONS[int(rng.integers(4))](right(rng, page), rng, page)).encode()
        body = damaged(body, rng) if rng.random() < 0.2 else body
        path = FILES[int(rng.integers(len(FILES)))]
        content = answer(page.port, b"/" + path, ours, body=body, method=b"POST")
    elif kind == 1 and number % 5 == 0:  # rarer, because a process reads each, which takes long
        body = mutant(number, seed) if rng.random() < 0.7 else originals()[0]
        model = NAMES[int(rng.integers(len(NAMES)))].encode()
        way = b"/upload" if rng.random() < 0.5 else b"/api/" + str(rng.choice(WAYS)).encode()
        path = way + b"?model=" + model
        for option in rng.choice([*OPTIONS], size=int(rng.integers(3))).tolist():
            path += f"&{option}={rng.choice(VALUES)}".encode()
        content = answer(page.port, path, ours, body=body, method=b"POST")
    else:
        whole = b"GET /models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + ours + b"\r\n\r\n"
        connection = opened(page.port, damaged(whole, rng) + b"\r\n\r\n")
        connection.shutdown(1)
        content = heard(connection)
    head, _, line = content.partition(b"\r\n\r\n")
    line = line.partition(b"HTTP/1.1 ")[0]  # the first answer, if the bytes make two requests
    is_refused = head[9:10] in (b"4", b"5") and b"chunked" not in head
    return fate(page, line.decode("utf-8", "replace") if is_refused else HELD)


def told(page: Page, content: bytes, to_its_end: bool = False) -> Json:
    """Send a text over a page's connection; return the first answer, or the last one."""
    host = f"127.0.0.1:{page.port}"
    with connect(f"ws://{host}/live?token={TOKEN}", origin=Origin(f"http://{host}")) as player:
        player.socket.sendall(Frame(Opcode.TEXT, content).serialize(mask=True))
        while True:
            answered: Json = json.loads(player.recv(WAIT_SECONDS))
            if not to_its_end or not {"begun", "notes"} & {*answered}:
                return answered


def fate(page: Page, said: str) -> str:
    """Return the answer, or BROKEN if the server logged an error or revealed too much."""
    page.answers += 1
    mebibytes = psutil.Process().memory_info().rss / 2**20
    if page.answers <= SETTLED:
        page.mebibytes = mebibytes
    elif mebibytes > page.mebibytes + MOST_GROWTH:
        return f"{BROKEN}it takes {mebibytes:.0f} MiB, and took {page.mebibytes:.0f}"
    if page.mistakes:
        mistakes, page.mistakes = page.mistakes, []
        return f"{BROKEN}its log has {mistakes}"
    if MISTAKE in said or str(page.folder) in said or len(said.strip().splitlines()) != 1:
        return f"{BROKEN}it says {said!r}"
    return said.strip()
