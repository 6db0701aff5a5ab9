"""Open a page on this machine to play with a trained model: some notes in, music back, at once.

python play.py
python play.py --checkpoint runs/mine/model.safetensors --port 9000 --no-browser
"""

from __future__ import annotations

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

import argparse
import asyncio
import errno
import ipaddress
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from types import FrameType

from common.cli import Parser, fail, quick_imports
from generation.defaults import add_checkpoint, default_model

DEFAULT_PORT = 8765
LOOPBACK = "127.0.0.1"


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the options, in the order in which --help lists them."""
    parser = Parser(
        "a model is named by --checkpoint",
        description=(__doc__ or "").splitlines()[0],
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_checkpoint(parser)
    parser.add_argument(
        "--port",
        metavar="N",
        type=_port,
        default=DEFAULT_PORT,
        help="of the address; 0: any that is free (default: %(default)s)",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default=LOOPBACK,
        help="of this machine in a network, such as 0.0.0.0: others can then play, too, if they\n"
        "have the whole address with its token (default: %(default)s, this machine alone)",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 65535, not {text!r}")
    return int(text)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or say in one line why there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if not host:  # which would be every address
            raise OSError("no address")
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fail(f"port {port} is in use: stop what uses it, or choose another with --port")
        needed = "--host takes an address of this machine, --port a number from 1024 on"
        fail(f"'{host}', port {port}: {error.strerror or error}; {needed}")


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Return the names, with the port, by which a loopback server is known; none: any name."""
    if not is_loopback(host):
        return frozenset()
    names = {"localhost", LOOPBACK, "[::1]", host}
    bare = names if port == 80 else set()  # browsers leave that port out
    return frozenset({f"{name}:{port}" for name in names} | bare)


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = command_line().parse_args(argv)
    listening = listen(options.host, options.port)
    try:
        _serve(options, listening)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending already
        print("\nended", file=sys.stderr)
    finally:
        listening.close()


def _serve(options: argparse.Namespace, listening: socket.socket) -> None:
    """Answer until Ctrl-C."""
    with quick_imports():  # here: a wrong option need not wait for them
        from model.serialization import ModelFileError
        from rendering.audio import has_sound
        from web.models import Models
        from web.server import make_app
        from web.sockets import server_of

    signal.signal(signal.SIGINT, signal.default_int_handler)
    port = listening.getsockname()[1]
    try:
        path, which = (options.checkpoint, None) if options.checkpoint else default_model()
        models = Models(path)
        models.read(path)
    except (ModelFileError, FileNotFoundError) as error:
        fail(str(error))
    has_sound()  # says so where there is none
    token = None if is_loopback(options.host) else secrets.token_urlsafe(16)
    app = make_app(models, hosts_of(options.host, port), token)
    host = socket.gethostname() if options.host in ("0.0.0.0", "::") else options.host
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
    if which:
        print(which)
    print(f"Etude plays at {address} (Ctrl-C ends it)", flush=True)
    if not options.no_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    server = server_of(app)
    end = server.handle_exit

    def end_once(sig: int, frame: FrameType | None) -> None:
        """Let a second Ctrl-C wait: it would end the first one's work with a traceback."""
        if not server.should_exit:
            end(sig, frame)

    server.handle_exit = end_once  # type: ignore[method-assign]
    asyncio.run(server.serve([listening]))


if __name__ == "__main__":
    main()
