"""Signs of life on stderr while something takes longer; nothing if nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gp4c.plain import printable


@contextmanager
def working(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a spinner with `text` on a terminal; yields a function that changes the text."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(printable(text))) as status:
        yield lambda text: status.update(escape(printable(text)))
