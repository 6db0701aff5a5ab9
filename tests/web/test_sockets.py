"""The server's sockets, over the loopback: what strangers cannot take from players."""

import json
import threading

import h11
import pytest
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from tests.web.browser import until
from tests.web.network import answer, heard, opened, served
from web import sockets
from web.server import make_app

HALF_HEADERS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
OURS = b"Host: etude\r\nOrigin: http://etude\r\nCookie: etude-token=secret\r\n"
HALF_BODY = b"POST /midi HTTP/1.1\r\n" + OURS + b"Content-Length: 9\r\n\r\n{"
UPGRADE = b"GET /live HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + OURS
UPGRADE += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"


@pytest.fixture
def network(models):
    """A server that is open to a network, its port, and the header that lets a player in."""
    with served(make_app(models, token="secret")) as (server, port):
        yield server, port, b"Cookie: etude-token=secret"


def page(port):
    """A player's page."""
    address = f"127.0.0.1:{port}"
    return connect(f"ws://{address}/live?token=secret", origin=f"http://{address}")


def socket_of(server):
    """The server's end of the page that is open."""
    (it,) = (each for each in server.server_state.connections if hasattr(each, "writable"))
    return it


@pytest.mark.parametrize("half", [b"", HALF_HEADERS, HALF_BODY])
def test_who_asks_half_a_question_is_given_up_and_a_page_is_not(network, monkeypatch, half):
    _, port, _ = network
    monkeypatch.setitem(sockets.REQUEST_SECONDS, h11.SEND_BODY, 0.05)
    with page(port) as player:
        monkeypatch.setitem(sockets.REQUEST_SECONDS, h11.IDLE, 0.05)
        assert b"200 OK" not in heard(opened(port, half))
        player.send("{}")
        assert "error" in json.loads(player.recv())


def test_an_address_has_so_many_sockets_and_no_more(network, monkeypatch):
    monkeypatch.setattr(sockets, "MOST_OF_ADDRESS", 3)
    _, port, cookie = network
    *_, last = [opened(port, HALF_HEADERS) for _ in range(3)]
    assert b"503 " in (refused := answer(port, b"/models", cookie))
    assert refused.endswith(b"\r\n\r\ntoo many connections from this address\n")
    last.close()
    assert until(lambda: b"200 OK" in answer(port, b"/models", cookie))


def test_a_text_that_is_none_is_answered_and_the_page_stays(network):
    with page(network[1]) as player:
        player.socket.sendall(Frame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True))
        assert json.loads(player.recv()) == {"error": "a message that is not JSON"}
        player.send("{}")
        assert "error" in json.loads(player.recv())


def test_pings_are_not_answered_to_who_reads_nothing(network):
    server, port, _ = network
    with page(port) as player:
        ours = socket_of(server)
        ours.loop.call_soon_threadsafe(ours.pause_writing)  # as asyncio does then
        hand_on, is_heard = ours.send_receive_event_to_app, threading.Event()
        ours.send_receive_event_to_app = lambda: (hand_on(), is_heard.set())
        unread = player.ping()
        player.send("{}")
        assert is_heard.wait(60)
        ours.loop.call_soon_threadsafe(ours.resume_writing)
        assert "error" in json.loads(player.recv())
        assert not unread.is_set()
        assert player.ping().wait(60)


def test_who_takes_nothing_and_answers_no_ping_is_given_up(network):
    server, port, _ = network
    player = opened(port, UPGRADE)
    assert b" 101 " in player.recv(99)
    ours = socket_of(server)
    ours.loop.call_soon_threadsafe(ours.transport.write, b"x" * 2**26)  # more than is buffered
    ours.loop.call_soon_threadsafe(ours.keepalive_timeout)
    until(lambda: ours not in server.server_state.connections)
    player.close()
