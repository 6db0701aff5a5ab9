"""The server's sockets: limits on their number, on their time, and on unread messages."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MOST_MESSAGE = 2**20  # bytes; above our own limit, so that a message just over it gets an answer
MOST_SOCKETS = 600
MOST_OF_ADDRESS = 200  # per address; a browser opens at most seven, and many may share an address
GOODBYE_SECONDS = 2
# Time limits for the parts of a request: its headers, and then its body.
REQUEST_SECONDS: dict[Any, float] = {h11.IDLE: 10.0, h11.SEND_BODY: 60.0}


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return the server of an application, with limits on what strangers may do to it."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=HttpSocket,
        ws=PageSocket,
        ws_max_size=MOST_MESSAGE,
        ws_per_message_deflate=False,  # a few KB could expand to many messages of 1 MiB
        limit_concurrency=MOST_SOCKETS,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )
    return uvicorn.Server(config)


class HttpSocket(H11Protocol):
    """uvicorn's HTTP, with a time limit for requests and a limit on the sockets of an address."""

    _awaited: Any = None  # the part of a request that is expected next
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, unless its address has too many sockets."""
        super().connection_made(transport)
        sockets = (it for it in self.connections if isinstance(it, HttpSocket | PageSocket))
        addresses = [socket.client[0] for socket in sockets if socket.client]
        if self.client and addresses.count(self.client[0]) > MOST_OF_ADDRESS:
            self._refuse("too many connections from this address\n")
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Receive bytes of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit, too."""
        super().connection_lost(exc)
        self._watch()

    def _watch(self) -> None:
        """Start the time limit of the part that is expected now, unless it is running already."""
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
        """Answer 503 before any request has come, and close."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        head = h11.Response(status_code=503, headers=headers)
        for event in (head, h11.Data(data=reason.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class PageSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket without two of its faults.

    uvicorn answers pings even if the client does not read the answers, and it logs a text that is
    not UTF-8 as an error of the server.
    """

    def handle_ping(self) -> None:
        """Answer a ping if the client reads answers; otherwise skip it, as RFC 6455 allows."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Close a socket whose page does not answer, even if the page reads nothing."""
        super().keepalive_timeout()
        self.transport.abort()

    def send_receive_event_to_app(self) -> None:
        """Pass a message on; pass a text that is not UTF-8 as bytes, so that it gets an answer."""
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()
