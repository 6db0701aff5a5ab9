"""The page's server on this machine's loopback, and what is said to it byte by byte."""

import socket
import threading
from contextlib import contextmanager

from play import listen
from tests.web.browser import until
from web.sockets import server_of


@contextmanager
def served(app, port=0):
    """The server of an application, and its port; 0: any that is free."""
    server, listening = server_of(app), listen("127.0.0.1", port)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield server, listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


def opened(port, content=b""):
    """A socket to the server, on which something was sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(content)
    return connection


def heard(connection):
    """All that comes until the server closes; nothing where it does so abruptly."""
    content = b""
    try:
        while chunk := connection.recv(2**16):
            content += chunk
    except ConnectionResetError:
        pass
    connection.close()
    return content


def answer(port, path=b"/models", *headers, body=b"", method=b"GET"):
    """The whole answer to a request of the page."""
    host = b"127.0.0.1:%d" % port
    lines = [b"%s %s HTTP/1.1" % (method, path), b"Host: " + host, b"Origin: http://" + host]
    lines += [b"Connection: close", b"Content-Length: %d" % len(body), *headers]
    return heard(opened(port, b"\r\n".join([*lines, b"", body])))
