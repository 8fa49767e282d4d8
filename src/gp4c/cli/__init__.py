"""The command line: parse, call, print. One module per command; no statistics here.

Nothing is imported before :func:`main` can answer Ctrl-C.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from gp4c.cli.program import app as app

__all__ = ["app", "main"]

#: exit code of a program that Ctrl-C ended
INTERRUPTED = 130


def main() -> None:
    """Run the program; Ctrl-C ends it with one line and code 130, wherever it comes.

    Commands clean up after themselves (see :func:`gp4c.cli.guard.guarded`); before they begin and
    after they end there is nothing to clean.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    _collect_garbage_seldom()
    try:
        from gp4c.cli.program import app

        app()
    except KeyboardInterrupt:  # raised by somebody else's handler
        print("gp4c: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _collect_garbage_seldom() -> None:
    """Nearly all that imports make stays to the end: looking through it again and again is idle."""
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)  # nor need it be taken apart when the process goes


def leave(number: int, frame: FrameType | None) -> None:
    """End the process at once."""
    sys.stdout.flush()
    os.write(2, b"gp4c: interrupted\n")
    os._exit(INTERRUPTED)


def __getattr__(name: str) -> object:
    if name == "app":
        from gp4c.cli.program import app

        return app
    raise AttributeError(f"module 'gp4c.cli' has no attribute {name!r}")
