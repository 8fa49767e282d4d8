"""Signs of life on stderr while something takes longer; nothing if nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gp4c.plain import printable

#: seconds between lines of progress where there is no terminal
_PAUSE = 30.0


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


@contextmanager
def counting(quiet: bool, things: str) -> Iterator[Callable[[int, int, str], None]]:
    """Progress on stderr: a bar on a terminal, now and then a line elsewhere.

    Yields a function of things done, things in all, and a text.
    """
    if quiet:
        yield lambda done, total, text: None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield update
    else:
        yield _lines(things)


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (BarColumn(), MofNCompleteColumn(), Remaining(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("starting", total=None)
        yield lambda done, total, text: bar.update(
            shown, completed=done, total=total, description=text
        )


def _lines(things: str) -> Callable[[int, int, str], None]:
    """Print a line at the start, at the end and every half minute."""
    began, last, first = time.monotonic(), 0.0, -1

    def update(done: int, total: int, text: str) -> None:
        nonlocal last, first
        if first < 0:
            first = done
        now = time.monotonic()
        if text and now - last < _PAUSE and done < total:
            return
        last = now
        fresh = done - first
        left = f", {(now - began) / fresh * (total - done) / 60:.0f} min left" if fresh else ""
        print(f"{done} of {total} {things}{left}  {text}".rstrip(), file=sys.stderr)

    return update
