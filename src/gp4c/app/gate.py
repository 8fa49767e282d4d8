"""The gate before the page: nothing is answered without the token.

The token comes in the address that ``gp4c app`` prints, ``/?token=...``. The answer sets it as a
cookie, which the page's own requests (style sheets, downloads, the websocket) bring along. Cookies
are not bound to a port, so requests that another local page makes in the user's name are refused
by their origin; and a foreign name that somebody points at this machine (DNS rebinding) is
refused by the host.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

#: how browsers reach this machine
NAMES = ("127.0.0.1", "localhost")
_REFUSED = b"This page opens only with the whole address that gp4c app printed.\n"
#: a websocket is closed for breaking a rule
_POLICY_VIOLATION = 1008
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class Gate:
    """An ASGI application in front of another one.

    Parameters
    ----------
    application : ASGI application
        The page.
    token : str
        The secret of the address.
    port : int
        Where the page is served.
    html : str
        The page; the scripts inside it may run, too.
    """

    def __init__(self, application: Application, token: str, port: int, html: str = "") -> None:
        self._application = application
        self._token = token
        self._cookie = f"gp4c-{port}"
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._headers = security_headers(port, html)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif self._admits(scope):
            with suppress(ClientDisconnect):  # a tab that leaves during an upload is no error
                await self._application(scope, receive, self._answering(scope, send))
        elif scope["type"] == "websocket":
            await receive()  # the handshake, which is refused before it is accepted
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8"), *self._headers]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSED})

    def _admits(self, scope: Scope) -> bool:
        headers = _Headers(scope)
        if headers.one("host") not in self._hosts:
            return False
        origin = headers.one("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return False
        if self._is_token(_token_of(scope)):
            return True
        # "none": typed by the user; an older browser does not say, but it has sent the origin
        asked_by = headers.one("sec-fetch-site")
        return asked_by in (None, "same-origin", "none") and self._is_token(
            headers.cookie(self._cookie)
        )

    def _is_token(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _answering(self, scope: Scope, send: Send) -> Send:
        """Add our headers to the answer; with the token in the address, also the cookie."""
        added = list(self._headers)
        if self._is_token(_token_of(scope)):
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            added.append((b"set-cookie", cookie.encode()))

        async def answer(event: Event) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": [*event.get("headers", []), *added]}
            await send(event)

        return answer


def security_headers(port: int, html: str = "") -> list[tuple[bytes, bytes]]:
    """Only what this server serves may run, be shown or be asked; nobody may frame it.

    Scripts inside the page, of which Shiny has one, are named by their hashes. Shiny and Plotly
    set styles from their scripts and on elements, hence the inline styles.
    """
    scripts = " ".join(["'self'", *map(_hashed, _INLINE.findall(html))])
    sockets = " ".join(f"ws://{name}:{port}" for name in NAMES)
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data: blob:; font-src 'self'; connect-src 'self' {sockets}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]


def _hashed(script: str) -> str:
    """A script by its hash, as the policy names it."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class _Headers:
    """Headers of a request, by name in lower case."""

    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.lower(), value) for name, value in scope.get("headers", [])]

    def one(self, name: str) -> str | None:
        """The value of a header; None if it is absent, empty (no good value) if given twice."""
        found = [value for key, value in self._pairs if key == name.encode()]
        if len(found) > 1:
            return ""
        return found[0].decode("latin-1") if found else None

    def cookie(self, name: str) -> str | None:
        """The value of a cookie."""
        try:
            cookies = SimpleCookie(self.one("cookie") or "")
        except CookieError:
            return None
        return cookies[name].value if name in cookies else None


def _token_of(scope: Scope) -> str | None:
    """The token in the address."""
    query = scope.get("query_string", b"").decode("latin-1")
    tokens = parse_qs(query).get("token", [])
    return tokens[0] if len(tokens) == 1 else None
