"""Serving the page on this machine, to whoever has its address."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable

from gp4c.exceptions import GP4CError, MissingExtraError

HOST = "127.0.0.1"
#: bytes of the token
_TOKEN = 24
#: seconds that open pages have to close when the server stops
_PATIENCE = 2


def serve(port: int = 0, on_ready: Callable[[str], None] = print) -> None:
    """Serve the page until the user interrupts it.

    Parameters
    ----------
    port : int
        0 for any that is free.
    on_ready : callable
        Called with the address when it can be opened.
    """
    try:
        import uvicorn

        from gp4c.app.callbacks import application
    except ImportError as error:
        raise MissingExtraError(
            f"gp4c app needs the package {error.name!r}: install gp4c[app]"
        ) from None
    from gp4c.app.gate import Gate
    from gp4c.app.worker import Bench

    with _listening(port) as listener:
        port, token = int(listener.getsockname()[1]), secrets.token_urlsafe(_TOKEN)
        bench = Bench()
        page = application(bench)
        gate = Gate(page, token, port, "" if callable(page.ui) else page.ui["html"])
        settings = uvicorn.Config(
            gate, log_level="error", access_log=False, timeout_graceful_shutdown=_PATIENCE,
            server_header=False, ws_max_size=2**26,
        )  # fmt: skip
        try:
            on_ready(f"http://{HOST}:{port}/?token={token}")
            uvicorn.Server(settings).run(sockets=[listener])
        except KeyboardInterrupt:  # the way to end it
            pass
        finally:
            bench.close()


def _listening(port: int) -> socket.socket:
    """A socket that only this machine can reach, and that already takes connections."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a tab that is still open must not keep the port of a page that ended
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise GP4CError(
            f"port {port} cannot be used ({error.strerror}); without --port a free one is taken"
        ) from None
    listener.listen()
    return listener
