"""The connection to an open page: messages come in, and the answers of their tasks go out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from data.midi.quantize import MidiError
from data.tokens.vocabulary import VocabularyError
from generation.constraints import ConstraintError
from generation.note_text import SeedError
from model.serialization import ModelFileError
from web.messages import MOST_BYTES, Json, MessageError, parse
from web.models import Models
from web.tasks import TASKS, advance, blame

LOG = logging.getLogger(__name__)
MISTAKE = "an error in the program prevented an answer: its terminal shows the details"
SLICE_SECONDS = 0.02  # how long a task runs before the next one takes its turn
# Errors that a person's request may raise; the message of each is one line for that person.
REFUSALS = (MessageError, ConstraintError, SeedError, MidiError, ModelFileError, VocabularyError)


class Connection:
    """One open page. It has one task of each kind at a time; a new task ends the old one.

    Tasks take turns in the writer's thread. A task goes on only after the page has received what
    the task had to tell, so a slow page delays nobody but itself.

    Args:
        socket: the accepted socket of the page.
        models: the models that the page may play.
        writer: an executor of one thread, which all connections share.
    """

    def __init__(self, socket: WebSocket, models: Models, writer: Executor) -> None:
        self.socket, self.models, self.writer = socket, models, writer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sending, self._is_gone = asyncio.Lock(), False

    async def listen(self) -> None:
        """Do what the page's messages ask, until the page is gone."""
        try:
            while True:
                received = await self.socket.receive()
                if received["type"] == "websocket.disconnect":
                    return
                await self._hear(received.get("text") or received.get("bytes") or b"")
        except WebSocketDisconnect:
            return
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def _hear(self, text: str | bytes) -> None:
        """Begin the task that a message asks for."""
        try:
            if len(text) > MOST_BYTES:
                raise MessageError(f"a message of more than {MOST_BYTES >> 10} KiB")
            message = parse(text)
            kind, number = message.get("do"), message.get("id")
            if type(number) is not int or kind not in [*TASKS, "stop"]:
                raise MessageError("a message without a number, or that asks for nothing known")
        except MessageError as error:
            return await self._tell({"error": str(error)})
        kind = "write" if kind == "stop" else str(kind)
        for other in (kind, "suggest") if kind == "write" else (kind,):  # writing has priority
            if other in self._tasks:
                self._tasks.pop(other).cancel()
        if message["do"] != "stop":
            self._tasks[kind] = asyncio.create_task(self._run(kind, number, message))

    async def _run(self, kind: str, number: int, message: Json) -> None:
        """Run a task to its end; whatever it raises, the page gets an answer."""
        with suppress(WebSocketDisconnect):  # `listen` notices it, too
            try:
                try:
                    await self._tell_all(number, TASKS[kind](self.models, message))
                except (ConstraintError, MessageError) as error:
                    await self._tell_all(number, blame(self.models, message, error))
            except REFUSALS as error:
                await self._tell({"id": number, "error": str(error)})
            except WebSocketDisconnect:
                raise
            except Exception:
                LOG.exception("a mistake, in what a page asked: %s", kind)
                await self._tell({"id": number, "error": MISTAKE})

    async def _tell_all(self, number: int, task: Iterator[Json]) -> None:
        """Send the page everything that a task tells; the task takes turns with all that wait."""
        run, writer = asyncio.get_running_loop().run_in_executor, self.writer
        while (told := await run(writer, advance, task, SLICE_SECONDS)) is not None:
            for each in told:
                await self._tell({"id": number} | each)

    async def _tell(self, message: Json) -> None:
        async with self._sending:
            if self._is_gone:
                raise WebSocketDisconnect
            try:  # in ASCII: JSON may hold half a surrogate pair, which a socket cannot send
                await self.socket.send_text(json.dumps(message, separators=(",", ":")))
            except WebSocketDisconnect:
                self._is_gone = True
                raise
