"""The server's sockets: how many there are, how long they may take, and what waits unread."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MOST_MESSAGE = 2**20  # bytes; more than any message may have, so that it gets an answer
MOST_SOCKETS = 600
MOST_OF_ADDRESS = 200  # of those; a browser has seven at most, and many may share an address
GOODBYE_SECONDS = 2
# For what is awaited of a request: its headers, and then its body.
REQUEST_SECONDS: dict[Any, float] = {h11.IDLE: 10.0, h11.SEND_BODY: 60.0}


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return the server of an application, with bounds on what strangers may ask of it."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=HttpSocket,
        ws=PageSocket,
        ws_max_size=MOST_MESSAGE,
        ws_per_message_deflate=False,  # a few KB would unfold to many messages of 1 MiB
        limit_concurrency=MOST_SOCKETS,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )
    return uvicorn.Server(config)


class HttpSocket(H11Protocol):
    """uvicorn's HTTP, which has no deadline for a request, nor a bound on an address's sockets."""

    _awaited: Any = None  # which part of a request
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless the address has too many sockets."""
        super().connection_made(transport)
        sockets = (it for it in self.connections if isinstance(it, HttpSocket | PageSocket))
        addresses = [socket.client[0] for socket in sockets if socket.client]
        if self.client and addresses.count(self.client[0]) > MOST_OF_ADDRESS:
            self._refuse("too many connections from this address\n")
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Await the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the deadline, too."""
        super().connection_lost(exc)
        self._watch()

    def _watch(self) -> None:
        """Begin the deadline of what is awaited now, if it was not before."""
        is_over = self.transport.is_closing() or self.transport.get_protocol() is not self
        awaited = None if is_over else self.conn.their_state
        if awaited is self._awaited:
            return
        if self._deadline:
            self._deadline.cancel()
        self._awaited, self._deadline = awaited, None
        if awaited in REQUEST_SECONDS:
            self._deadline = self.loop.call_later(REQUEST_SECONDS[awaited], self.transport.close)

    def _refuse(self, reason: str) -> None:
        """Answer 503 before anything is asked, and close."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        head = h11.Response(status_code=503, headers=headers)
        for event in (head, h11.Data(data=reason.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class PageSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket without two faults.

    It answers pings though nobody reads the answers, and logs a text that is not UTF-8 as an error
    of its own.
    """

    def handle_ping(self) -> None:
        """Answer a ping where answers are read; who asks on may be answered later (RFC 6455)."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Close a socket whose page does not answer, also where it takes nothing."""
        super().keepalive_timeout()
        self.transport.abort()

    def send_receive_event_to_app(self) -> None:
        """Hand a message on; a text that is none as bytes, which get an answer."""
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()
