"""How quickly the page answers, and how well it serves many people at once.

    python -m benchmarks.page
    python -m benchmarks.page --checkpoint pop --clients 0 --answers 0

A server is started with play.py. If chromium is installed, the time from a click to the first sound
is measured in it, and a duet is played in it. Everything else is timed over the connection that the
page uses. A count of 0 leaves a part out. To attack the page with nonsense, run
python -m benchmarks.fuzz --kinds messages requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.tables import parser_of
from tests.web import browser, duet

TUNE = "C5 C5 G5 G5 A5 A5 G5:2 F5:1 F5 E5 E5 D5 D5 C5:2"
SETTINGS = {"bars": 8, "temperature": 0.75}
WAYS = ("continue", "accompany", "harmonize")
BOUND_SECONDS = 0.1  # to the first note, per client that writes, on two idle cores


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", "-c", help="the model (default: play.py's)")
    parser.add_argument("--rounds", type=int, default=9, help="of each way to write")
    parser.add_argument("--clients", type=int, default=100, help="at once")
    parser.add_argument("--answers", type=int, default=100, help="in a duet")
    options = parser.parse_args()
    words = [sys.executable, "play.py", "--port", "0", "--no-browser"]
    words += ["--checkpoint", options.checkpoint] if options.checkpoint else []
    root = Path(__file__).parents[1]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        lines = map(re.compile(r"http://(\S+)/").search, server.stdout)  # type: ignore[arg-type]
        address = next(found[1] for found in lines if found)
        asyncio.run(measure(address, psutil.Process(server.pid), options))
        if browser.CHROMIUM and options.rounds:
            print(f"click to sound, in Chromium: {heard_after(address, options.rounds)}")
        if browser.CHROMIUM and options.answers:
            print(f"duet, in Chromium: {answers(address, options.answers)}")
    finally:
        server.terminate()
        server.wait()


async def measure(address: str, server: psutil.Process, options: argparse.Namespace) -> None:
    """Print the times that are measured over the connection."""
    async with page(address) as socket:
        model, piece = await prepare(socket, address)
        print(f"memory of the server with {model}: {mebibytes(server):.0f} MiB")
        for how in WAYS if options.rounds else ():
            times = [await write(socket, model, piece, how, n) for n in range(options.rounds)]
            first, four = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{how}: first note {first * 1000:.0f} ms, four variations {four:.2f} s")
    if options.clients:
        await many(address, model, piece, options.clients)
        await asleep(address, model, piece)
        print(f"memory of the server after that: {mebibytes(server):.0f} MiB")


def mebibytes(process: psutil.Process) -> float:
    """Return the memory that a process uses, in MiB."""
    return float(process.memory_info().rss) / 2**20


def page(address: str) -> connect:
    """Open a connection as the page does."""
    return connect(f"ws://{address}/live", origin=f"http://{address}", max_size=None)  # type: ignore[arg-type]


async def prepare(socket: ClientConnection, address: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the first model, ready to play, and a tune for it."""
    model = httpx.get(f"http://{address}/models").json()["models"][0]
    await socket.send(json.dumps({"do": "describe", "id": 0, "model": model}))
    await until(socket, "plays")
    message = {"do": "text", "id": 0, "model": model, "text": TUNE, "settings": SETTINGS}
    await socket.send(json.dumps(message))
    return model, (await until(socket, "read"))["read"]


async def until(socket: ClientConnection, name: str) -> dict[str, Any]:
    """Return the next answer that has an entry of this name."""
    while name not in (told := json.loads(await socket.recv())):
        if "error" in told:
            raise RuntimeError(told["error"])
    return dict(told)


async def write(
    socket: ClientConnection,
    model: str,
    piece: dict[str, Any],
    how: str,
    number: int,
    bars: int = 8,
) -> tuple[float, float]:
    """Write four variations; return the seconds until the first note, and until all are there."""
    message = {"do": "write", "id": number, "model": model, "how": how, "piece": piece}
    message |= {"settings": SETTINGS | {"bars": bars}, "variations": 4, "random_seed": number}
    began = time.perf_counter()
    await socket.send(json.dumps(message))
    await until(socket, "notes")
    first = time.perf_counter() - began
    await until(socket, "done")
    return first, time.perf_counter() - began


async def one_of_many(
    address: str, model: str, piece: dict[str, Any], number: int
) -> tuple[float, float]:
    """Open one of many pages that write at the same time; return the seconds as `write` does."""
    async with page(address) as socket:
        return await write(socket, model, piece, "continue", number, bars=4)


async def many(address: str, model: str, piece: dict[str, Any], count: int) -> None:
    """Print how many pages get their first note in time when all of them write at once."""
    began = time.perf_counter()
    tasks = [one_of_many(address, model, piece, n) for n in range(count)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    times = [result for result in results if isinstance(result, tuple)]
    first = sorted(first for first, _ in times)
    print(
        f"{count} clients at once: {count - len(times)} refused; first note after "
        f"{statistics.median(first):.1f} s, the last one's after {first[-1]:.1f} s (bound: "
        f"{BOUND_SECONDS * count:.0f} s); all four variations of all after "
        f"{time.perf_counter() - began:.0f} s"
    )


async def asleep(address: str, model: str, piece: dict[str, Any]) -> None:
    """Print how soon a page gets answers next to one that asks for much and reads nothing."""
    async with page(address) as socket, page(address) as sleeper:
        times = [await write(socket, model, piece, "continue", 1)]
        sleeper.transport.pause_reading()
        much = {"do": "write", "id": 1, "model": model, "how": "continue", "piece": piece}
        much |= {"settings": SETTINGS | {"bars": 32}, "variations": 4, "random_seed": 1}
        for message in (much, *({"do": "describe", "id": n, "model": model} for n in range(200))):
            await sleeper.send(json.dumps(message))
        for seconds in (0, 10):
            await asyncio.sleep(seconds)
            times.append(await write(socket, model, piece, "continue", 1))
        sleeper.transport.abort()
    shown = ", ".join(f"{first * 1000:.0f} ms" for first, _ in times)
    print(f"first note before, at once, and 10 s after a page asks that reads nothing: {shown}")


def heard_after(address: str, rounds: int) -> str:
    """Return, as text, how long after a click on "Continue" the first sound is heard."""
    times = []
    with browser.chromium() as tab:
        tab.open(f"http://{address}/")
        tab.until("globalThis.etude?.isReady")
        tab.click("#examples button")
        tab.until("etude.piece()?.notes.length")
        for _ in range(rounds):
            tab.until("etude.level() < 1e-3")
            tab.ask(
                "new Promise(done => { const began = performance.now(), look = () => {"
                " if (etude.level() < 0.003) return void setTimeout(look, 4);"
                " globalThis.heard = performance.now() - began; done(); };"
                " document.querySelector('[data-how=continue]').click(); look(); })"
            )
            times.append(tab.ask("globalThis.heard"))
            tab.until("etude.session.now.label == 'continue'")
            tab.click("#play")
            tab.click("#undo")
    return f"{statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})"


def answers(address: str, count: int) -> str:
    """Return, as text, how many answers of a duet begin on the beat after a pause of one beat.

    Phrases of four quarter notes are played on a simulated MIDI keyboard, each note up to 20 ms
    early or late: the first at 112 a minute, the others in the tempo that the page detected.
    """
    rng, beat, answered, off = random.Random(0), 60_000 / 112, 0.0, []
    with browser.chromium() as tab:
        tab.open(f"http://{address}/")
        tab.until("globalThis.etude?.isReady")
        duet.connect(tab)
        duet.begin(tab, "beat")
        for number in range(count):
            uneven = [0, *(rng.uniform(-20, 20) for _ in range(3))]
            pitches = [rng.choice((67, 69, 71, 72, 74, 76)) for _ in range(4)]
            began, answered = duet.play(tab, pitches, beat, answered + 4 * beat, uneven)
            off.append(answered - began - 5 * beat)  # four notes and the silent beat
            if number == 0:
                tempo = tab.ask("etude.piece().tempo[0][0]")
                beat = 60_000 / tempo
    away = sorted(map(abs, off))
    return (
        f"{sum(each < 50 for each in away)} of {count} answers on the beat that follows, within 50 "
        f"ms; median {statistics.median(away):.0f} ms away, {tempo} a minute for 112"
    )


if __name__ == "__main__":
    main()
