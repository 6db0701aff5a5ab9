"""The server of the page: its files, sounds, downloads and uploads, and its live connection."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from common.text import counted
from common.worker_pool import Failed, guarded
from data.canonical import canonical
from data.files.read import parse_events
from data.files.source_text import SUFFIXES
from data.harmony import chords_of, symbol
from data.instrument_names import instrument_name
from data.keys import notated_key
from data.midi.io import midi_bytes
from data.midi.quantize import MidiError
from data.score import BAR, DRUMS, NOTE, SECONDS
from data.tokens.adapt import adapt_score
from data.tokens.vocabulary import Vocabulary
from generation.seeds import score_of
from rendering.audio import mu_law_wav, stems, wav_bytes
from rendering.notation import engrave, to_musicxml
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes
from web.connection import MISTAKE, REFUSALS, SLICE_SECONDS, Connection
from web.door import WAYS, asked
from web.guard import COOKIE, HEADERS, Guard
from web.messages import (
    MOST_BARS,
    MOST_BYTES,
    MOST_NOTES,
    Json,
    MessageError,
    PagePiece,
    json_of,
    parse,
    piece_of,
)
from web.models import Models
from web.tasks import advance, write

MOST_CONNECTIONS = 128
MOST_WAITING = 64  # requests that wait for a file to be rendered or read
MOST_UPLOAD_BYTES = 4 * 2**20
READ_SECONDS = 10.0  # to read a music file
MOST_WAV_SECONDS = 600.0
MOST_STEM_SECONDS = 1200.0  # the sum over all voices
MOST_ENGRAVED = 1500  # notes in an engraved score
MUSICXML = "application/vnd.recordare.musicxml+xml"
SAMPLE_SECONDS, DRUM_SECONDS, SAMPLE_VELOCITY = 4.5, 1.0, 100
SOUND_KEPT_SECONDS = 86400  # in the browser's cache, so a page that is opened again need not ask
SAMPLES_APART = 6  # semitones; for pitches in between, the page plays a sample faster or slower

STATIC = Path(__file__).with_name("static")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

Result = TypeVar("Result")


def make_app(
    models: Models, hosts: frozenset[str] = frozenset(), token: str | None = None
) -> Starlette:
    """Return the server of the page as an ASGI application.

    Args:
        models: the models that the page may play.
        hosts: the host names, with the port, that requests may name; empty: any.
        token: the token that a visitor must bring in the address; None: no token is needed.
    """
    page = Page(models, token)
    routes = [
        Route("/", page.index),
        Route("/static/{name}", page.file),
        Route("/models", page.list_models),
        Route("/sound/{program}/{pitch}", page.sound),
        Route("/midi", partial(page.file_of, midi_of, "audio/midi"), methods=["POST"]),
        Route("/wav", partial(page.file_of, wav_of, "audio/wav"), methods=["POST"]),
        Route("/stems", partial(page.file_of, stems_of, "application/zip"), methods=["POST"]),
        Route("/png", partial(page.file_of, picture_of, "image/png"), methods=["POST"]),
        Route("/musicxml", partial(page.file_of, musicxml_of, MUSICXML), methods=["POST"]),
        Route("/chords", partial(page.file_of, chord_names, "application/json"), methods=["POST"]),
        Route("/score", partial(page.file_of, engraved, "image/svg+xml"), methods=["POST"]),
        Route("/upload", page.upload, methods=["POST"]),
        Route("/api/{how}", page.write, methods=["POST"]),
        WebSocketRoute("/live", page.live),
    ]
    handlers = dict.fromkeys((HTTPException, ClientDisconnect, *REFUSALS), _refused)
    handlers[Exception] = _mistaken
    guard = Middleware(Guard, hosts=hosts, token=token)
    return Starlette(
        routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=page.lifespan
    )


class Page:
    """The handlers of the routes.

    Args:
        models: the models that the page may play.
        token: the token that the page keeps as a cookie; None: there is none.
    """

    def __init__(self, models: Models, token: str | None = None) -> None:
        self.models, self.token = models, token
        self.files = {path.name: path.read_bytes() for path in STATIC.iterdir()}
        # one thread writes music, in turns; one renders files, so that no WAV delays a note; and
        # one waits for files to be read, so that no upload delays a sound
        self.writer: Executor = ThreadPoolExecutor(1, "writer")
        self.renderer: Executor = ThreadPoolExecutor(1, "renderer")
        self.reader: Executor = ThreadPoolExecutor(1, "reader")
        self.connections = self.waiting = 0

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Stop the threads when the server stops."""
        yield
        for executor in (self.writer, self.renderer, self.reader):
            executor.shutdown(wait=True, cancel_futures=True)

    async def index(self, request: Request) -> Response:
        """Send the page."""
        response = Response(self.files["index.html"], headers=HEADERS, media_type="text/html")
        if self.token:
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return response

    async def file(self, request: Request) -> Response:
        """Send one of the page's own files. They are held in memory; a name is never a path."""
        name = request.path_params["name"]
        if name not in self.files:
            raise HTTPException(404, "there is no such file")
        return Response(self.files[name], headers=HEADERS, media_type=TYPES[Path(name).suffix])

    async def list_models(self, request: Request) -> Response:
        """Send the names of the models, and the kinds of files that can be opened."""
        listed = {"models": list(self.models.paths()), "files": [*SUFFIXES, "audio/midi"]}
        return JSONResponse(listed, headers=HEADERS)

    async def sound(self, request: Request) -> Response:
        """Send a held note of an instrument as a WAV file."""
        numbers = [request.path_params[name] for name in ("program", "pitch")]
        program, pitch = (int(n) if n.isdecimal() and len(n) <= 3 else DRUMS + 1 for n in numbers)
        if program > DRUMS or pitch > 127:
            raise HTTPException(404, "there is no such note")
        if program != DRUMS:
            pitch -= pitch % SAMPLES_APART
        content = await self._wait(self.renderer, partial(held_note, program, pitch))
        headers = HEADERS | {"Cache-Control": f"private, max-age={SOUND_KEPT_SECONDS}"}
        return Response(content, headers=headers, media_type="audio/wav")

    async def file_of(
        self, make: Callable[[PagePiece], bytes], kind: str, request: Request
    ) -> Response:
        """Send the piece in a request as a file."""
        piece = piece_of(parse(await _body(request, MOST_BYTES)))
        content = await self._wait(self.renderer, partial(make, piece))
        return Response(content, headers=HEADERS, media_type=kind)

    async def upload(self, request: Request) -> Response:
        """Send the piece in an uploaded music file."""
        content = await _body(request, MOST_UPLOAD_BYTES)
        read = await self._read(content, request.query_params.get("model", ""))
        return JSONResponse(read, headers=HEADERS)

    async def write(self, request: Request) -> Response:
        """Answer a program: read its music file, write as its query asks, send a MIDI file."""
        how, options = request.path_params["how"], dict(request.query_params)
        if how not in WAYS:
            raise HTTPException(404, f"the address must end in one of {', '.join(WAYS)}")
        options.pop("token", None)
        message = asked(how, options)
        model = options.get("model") or next(iter(self.models.paths()))
        content = await _body(request, MOST_UPLOAD_BYTES)
        if self.connections >= MOST_CONNECTIONS:
            raise HTTPException(503, "too many pages are open: try again in a moment")
        self.connections += 1
        try:
            read = await self._read(content, model)
            message |= {"model": model, "piece": read["read"]}
            if how == "rewrite":
                upbeat = int(piece_of(message).score.has_upbeat)  # which is bar 0
                message["bars"] = [max(bar + upbeat, 0) for bar in message["bars"]]
            task = write(self.models, message)
            pieces = await self._written(task, request)
        finally:
            self.connections -= 1
        score = piece_of({"piece": pieces[0]}).score
        return Response(midi_bytes(score), headers=HEADERS, media_type="audio/midi")

    async def _written(self, task: Iterator[Json], request: Request) -> list[Json]:
        """Return the pieces that a task writes, in turns with other tasks.

        Raises:
            ClientDisconnect: the client is gone, so nobody waits for the pieces.
        """
        loop = asyncio.get_running_loop()
        while not await request.is_disconnected():
            told = await loop.run_in_executor(self.writer, advance, task, SLICE_SECONDS)
            for each in told or ():
                if "done" in each:
                    pieces: list[Json] = each["done"]
                    return pieces
        raise ClientDisconnect

    async def _read(self, content: bytes, name: str) -> Json:
        """Return the piece in a music file; a separate process reads it, with a time limit."""
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self.writer, self.models.load, name)
        item = (content, model.vocabulary, model.style.tune)
        result = await self._wait(
            self.reader, lambda: next(guarded(_read, [item], 1, READ_SECONDS))[1]
        )
        if isinstance(result, Failed):
            raise HTTPException(400, f"the file cannot be read: {result.reason}")
        if isinstance(result, str):
            raise HTTPException(400, result)
        return result

    async def live(self, socket: WebSocket) -> None:
        """Answer the messages of an open page."""
        if self.connections >= MOST_CONNECTIONS:
            return await socket.close(1013, "too many pages are open")
        self.connections += 1
        try:
            await socket.accept()
            await Connection(socket, self.models, self.writer).listen()
        finally:
            self.connections -= 1

    async def _wait(self, executor: Executor, work: Callable[[], Result]) -> Result:
        """Do some work in another thread and wait for it; refuse if too many requests wait."""
        if self.waiting >= MOST_WAITING:
            raise HTTPException(503, "too many files are being made: try again in a moment")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work)
        finally:
            self.waiting -= 1


@lru_cache(maxsize=256)
def held_note(program: int, pitch: int) -> bytes:
    """Return one held note of an instrument as a WAV file."""
    seconds = DRUM_SECONDS if program == DRUMS else SAMPLE_SECONDS
    duration = round(seconds * SECONDS.steps_per_beat)
    notes = np.array([(0, duration, pitch, SAMPLE_VELOCITY, program)], dtype=NOTE)
    return mu_law_wav(canonical(notes, np.empty(0, BAR), [], SECONDS)[0])


def midi_of(piece: PagePiece) -> bytes:
    """Return a piece as the bytes of a MIDI file."""
    return midi_bytes(piece.score)


def wav_of(piece: PagePiece) -> bytes:
    """Return the sound of a piece as a WAV file.

    Raises:
        MessageError: the piece lasts too long.
    """
    _check_seconds(piece, MOST_WAV_SECONDS)
    return wav_bytes(piece.score)


def _check_seconds(piece: PagePiece, most: float) -> None:
    """Refuse a piece that lasts too long."""
    if piece.score.step_seconds(piece.score.end_step) > most:
        raise MessageError(f"it is longer than {most:.0f} seconds: select some bars")


def stems_of(piece: PagePiece) -> bytes:
    """Return a ZIP file with a WAV file for each voice of a piece.

    Raises:
        MessageError: the piece lasts too long.
    """
    voices = len(np.unique(piece.score.notes["program"]))
    _check_seconds(piece, MOST_STEM_SECONDS / max(voices, 1))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for program, wav in stems(piece.score):
            name = instrument_name(program, piece.score.grid).replace("/", "-")  # not a subfolder
            file.writestr(f"{program} {name}.wav", wav)
    return content.getvalue()


def picture_of(piece: PagePiece) -> bytes:
    """Return the piano roll of a piece as a PNG picture; notes that a person put in are dark."""
    chords = chords_of(piece.score)
    return png_bytes(draw_piano_roll(piece.score, is_given=piece.is_own, chords=chords).svg)


def chord_names(piece: PagePiece) -> bytes:
    """Return the names of the chords that sound in each bar of a piece, as JSON."""
    score, names = piece.score, [list[str]() for _ in piece.score.bars]
    key = notated_key(score)
    for span in chords_of(score):
        first, last = (
            np.searchsorted(score.bar_starts, [span.begin, span.end - 1], side="right") - 1
        )
        for bar in names[first : last + 1]:
            bar.append(symbol(span.chord, key))
    return json.dumps([" ".join(bar) for bar in names]).encode()


def musicxml_of(piece: PagePiece) -> bytes:
    """Return a piece as MusicXML; notes that the model wrote are colored.

    Raises:
        MessageError: the piece has no notation.
    """
    chords = chords_of(piece.score)
    try:
        return to_musicxml(piece.score, is_given=piece.is_own, chords=chords).encode()
    except ValueError as error:
        raise MessageError(str(error)) from None


def engraved(piece: PagePiece) -> bytes:
    """Return a piece as an engraved score, in SVG.

    Raises:
        MessageError: the piece has no notation, or too many notes.
    """
    if len(piece.score.notes) > MOST_ENGRAVED:
        raise MessageError(f"more than {MOST_ENGRAVED} notes: select some bars")
    return engrave(musicxml_of(piece).decode()).encode()


def _read(item: tuple[bytes, Vocabulary, int | None]) -> Json | str:
    """Return the piece in the bytes of a music file, fitted to a model, or a line on why not.

    The piece is cut to what a page can hold. With it come a description of what the file holds, and
    clauses that say what was changed to fit the model.
    """
    content, vocabulary, tune = item
    try:
        events = parse_events(content, "the file")
        score, vocabulary, apart = score_of(events, vocabulary, is_whole=True)
    except MidiError as error:
        return str(error).removeprefix("the file: ")  # whoever sent it knows its name
    if not len(score.notes):
        return "there are no notes in the file"
    programs = np.unique(score.notes["program"]).tolist()
    names = ", ".join(instrument_name(program, score.grid) for program in programs)
    fitted, changes = adapt_score(score, vocabulary, tune)
    if not len(fitted.notes):
        return f"the model has no instrument for the notes of {names}"
    bars = min(len(fitted.bars), MOST_BARS)
    if len(fitted.notes) > MOST_NOTES:
        last = fitted.notes["onset"][MOST_NOTES]
        bars = min(bars, int(np.searchsorted(fitted.bar_starts, last, side="right")) - 1)
    part = fitted.excerpt(0, bars) if bars < len(fitted.bars) else fitted
    if not len(part.notes):
        return f"there are no notes in its first {counted(bars, 'bar')}"
    only = [f"cut after {counted(bars, 'bar')}"] if part is not fitted else []
    return {
        "read": json_of(part),
        "found": f"{counted(len(score.notes), 'note')} of {names}",
        "changes": [*only, *apart, *changes],
    }


async def _body(request: Request, most: int) -> bytes:
    """Return the body of a request; refuse one of more than `most` bytes."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise HTTPException(413, f"larger than {most >> 10} KiB: it was not read")
    return bytes(content)


def _refused(request: Request, error: Exception) -> Response:
    """Answer with one line that says what is wrong."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    reason = error.detail if isinstance(error, HTTPException) else str(error)
    line = " ".join(reason.split()).encode("utf-8", "backslashreplace")
    return Response(line, status, HEADERS, "text/plain")


def _mistaken(request: Request, error: Exception) -> Response:
    """Answer a request that hits an error in this program; uvicorn shows it in the terminal."""
    return PlainTextResponse(MISTAKE, 500, HEADERS)
