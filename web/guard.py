"""Which requests are let in: the page's and programs', to a known host, with the token if any."""

from __future__ import annotations

import secrets

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "etude-token"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets in only requests of the page, and of programs.

    A request from another page names that page as its origin. A foreign name that resolves to this
    address (DNS rebinding) is not a known host.

    Args:
        app: the application that is guarded.
        hosts: the hosts that a request may name; empty: any, and the token decides.
        token: the token that a visitor brings in the address, and afterwards in a cookie; None: no
            token is needed.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        reason = None if scope["type"] == "lifespan" else self._refusal(scope)
        if reason is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
        else:
            await PlainTextResponse(f"{reason}\n", 403, HEADERS)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused; None: it is let in."""
        asked = HTTPConnection(scope)
        headers = asked.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        # a program names no origin; a browser always does, unless it only reads
        is_door = scope["path"].startswith("/api/")
        is_look = scope["type"] == "http" and (is_door or scope["method"] in ("GET", "HEAD"))
        is_elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if self.hosts and host not in self.hosts:
            return "this server is not known by that name"
        if (origin is not None or not is_look) and origin not in (
            f"http://{host}",
            f"https://{host}",
        ):
            return "only the page itself may ask"
        if is_elsewhere and scope["path"] != "/":  # any other page may link to this one
            return "only the page itself may use its parts"
        if self.token and not self._is_brought(asked):
            return "the address needs the token that play.py printed"
        return None

    def _is_brought(self, asked: HTTPConnection) -> bool:
        """Return whether the address or the page's cookie contains the token."""
        brought = [*asked.query_params.getlist("token"), asked.cookies.get(COOKIE, "")]
        token = str(self.token).encode()
        return any(secrets.compare_digest(each.encode(), token) for each in brought)
