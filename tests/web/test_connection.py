"""Connections share one thread, and none of them waits for another's page."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.web.conftest import SETTINGS
from web.connection import Connection


class Socket:
    """A page that asks for something, and then takes what it is told, or does not."""

    def __init__(self, messages, takes=True):
        self.messages, self.takes, self.told = [json.dumps(m) for m in messages], takes, []
        self.is_over = asyncio.Event()

    async def receive(self):
        if self.messages:
            return {"type": "websocket.receive", "text": self.messages.pop(0)}
        await self.is_over.wait()
        return {"type": "websocket.disconnect"}

    async def send_text(self, text):
        message = json.loads(text)
        self.told.append(message)
        if not self.takes:
            await asyncio.Event().wait()
        if "done" in message:
            self.is_over.set()


def asked(tune, bars=2):
    return {
        **{"do": "write", "id": 1, "model": "quartet", "how": "continue", "piece": tune},
        **{"settings": SETTINGS | {"bars": bars}, "variations": 4, "random_seed": 1},
    }


@pytest.fixture
def writer():
    with ThreadPoolExecutor(1) as writer:
        yield writer


def test_a_page_that_takes_nothing_holds_up_nobody_and_is_written_no_more(models, tune, writer):
    async def both():
        slow, quick = Socket([asked(tune, 32)], takes=False), Socket([asked(tune)])
        stuck = asyncio.create_task(Connection(slow, models, writer).listen())
        await asyncio.wait_for(Connection(quick, models, writer).listen(), 60)
        slow.is_over.set()
        await asyncio.wait_for(stuck, 60)
        return slow, quick

    slow, quick = asyncio.run(both())
    assert len(slow.told) == 1
    assert len(quick.told[-1]["done"]) == 4


def test_a_message_has_at_most_512_kib(models, writer):
    bare = {"do": "stop", "id": 1, "pad": ""}
    left = 512 * 2**10 - len(json.dumps(bare))
    socket = Socket([bare | {"pad": "x" * (left + more)} for more in (0, 1)])
    socket.is_over.set()
    asyncio.run(Connection(socket, models, writer).listen())
    assert socket.told == [{"error": "a message of more than 512 KiB"}]


def test_many_pages_are_served_in_turns(models, tune, writer):
    first_notes = []

    class Watched(Socket):
        async def send_text(self, text):
            if '"notes":' in text and '"id":1,"notes"' in text and self not in first_notes:
                first_notes.append(self)
            if '"done"' in text:
                first_notes.append("done")
            await super().send_text(text)

    async def all_of_them():
        pages = [Watched([asked(tune)]) for _ in range(8)]
        await asyncio.gather(*(Connection(page, models, writer).listen() for page in pages))

    asyncio.run(all_of_them())
    assert "done" not in first_notes[:8]  # all have notes before one has all of its own
    assert len(first_notes) == 16


def test_what_is_suggested_makes_room_for_what_is_written(models, tune, writer):
    page = Socket([asked(tune, 32) | {"do": "suggest", "id": 2, "bar": 31}, asked(tune)])
    asyncio.run(Connection(page, models, writer).listen())
    assert {told["id"] for told in page.told} == {1}
