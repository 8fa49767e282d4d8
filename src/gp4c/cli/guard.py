"""What every command does with errors and warnings: one line for the user, never a traceback."""

from __future__ import annotations

import errno
import functools
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

from gp4c.cli import INTERRUPTED, leave
from gp4c.exceptions import GP4CError, GP4CWarning
from gp4c.plain import printable

#: exit code of what the user can mend
USER_ERROR = 2
# arguments of the library that have an option of the same name, where a message advises them
_ARGUMENT = re.compile(
    r"(read_panel takes|pass|with|such as|of visits|takes no|needs|say|or|\.\.\.,) "
    r"(subject|start|stop|count|time|exposure|usage|end|delimiter|decimal|encoding|sheet|table|query)="
)
# arguments that no message means otherwise, with or without a value, and as the subject of a rule
_FACTOR = re.compile(r"\b(trend|season|beyond)=('?)([\w.]*)\2")
_RULE = re.compile(r"^(trend|season|beyond)(?= must be )")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: mistakes of the user end it with one line on stderr and exit code 2."""

    @functools.wraps(command)
    def run(*args: object, **options: object) -> None:
        try:
            with warnings.catch_warnings(), _interruptible():
                warnings.showwarning = _show_warning
                command(*args, **options)
        except KeyboardInterrupt as stop:
            print(f"gp4c: {printable(str(stop)) or 'interrupted'}", file=sys.stderr)
            sys.exit(INTERRUPTED)
        except GP4CError as error:
            fail(in_options(str(error)))
        except MemoryError:
            fail("there is not enough memory for this; a sample of the subjects needs less")
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of a pipe has seen enough
                raise
            place = f"{error.filename}: " if error.filename else ""
            fail(f"{place}{error.strerror or error}")

    return run


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C in a command is an exception, so that what it began is cleaned up."""
    if signal.getsignal(signal.SIGINT) is not leave:  # not run as a program
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, leave)


def in_options(message: str) -> str:
    """A message of the library in terms of the command line: ``count=...`` is ``--count ...``."""
    message = message.replace(" origin=None", " --origin first").replace(" origin=", " --origin ")
    message = message.replace("day_first=True or day_first=False", "--day-first or --month-first")
    message = _RULE.sub(r"--\1", message)
    message = _FACTOR.sub(lambda found: f"--{found[1]} {found[3]}".rstrip(), message)
    message = message.replace('missing="drop" (--drop-missing)', "--drop-missing")
    return _ARGUMENT.sub(
        lambda found: f"{found[1].replace('read_panel takes', 'pass')} --{found[2]} ", message
    )


def fail(message: str) -> NoReturn:
    """Say what is wrong on stderr and exit with the code for user errors."""
    first, *more = printable(message).splitlines() or [""]
    print(f"gp4c: {first}", *more, sep="\n      ", file=sys.stderr)
    sys.exit(USER_ERROR)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings as one line; leave the others to Python's format."""
    if issubclass(category, GP4CWarning):
        print(f"gp4c: warning: {printable(in_options(str(message)))}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), file=sys.stderr)
