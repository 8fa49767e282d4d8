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
    r"(subject|start|stop|count|event|time|exposure|usage|end|delimiter|decimal|encoding|sheet|table|query)="
)
# arguments that no message means otherwise, with or without a value, and as the subject of a rule
_ALWAYS = "trend|season|beyond|new_units|at|every|subjects|test|cluster"
_FACTOR = re.compile(rf"\b({_ALWAYS})=(['\"]?)([\w.-]*)\2")
_RULE = re.compile(rf"^({_ALWAYS}|weights|scores)(?= must be | go with )")
_AMOUNT = re.compile(r"\b(usage|exposure)=(?= )")
# a panel of one type, which the command line makes by its columns
_ONE_TYPE = re.compile(
    r"take one type with panel\.of_type\(.*\), or all events together with panel\.total\(\)"
)
# advice that is another one on the command line
_ADVICE = {
    "day_first=True or day_first=False": "--day-first or --month-first",
    'missing="drop" (--drop-missing)': "--drop-missing",
    "missing='drop'": "--drop-missing",
    "each=True": "--each",
    "cumulative=True": "--cumulative",
    "since_entry=True": "--since-entry",
    "scores={'low': 1, 'high': 2} (--scores \"low=1,high=2\")": '--scores "low=1,high=2"',
    "fit GP4C with over_time() instead, and see effect_over_time": "over_time() goes with gp4c fit",
}


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
    for text, advice in _ADVICE.items():
        message = message.replace(text, advice)
    message = _ONE_TYPE.sub(
        "give one --count column, or a table with one type of events or with their sum", message
    )
    message = _RULE.sub(lambda found: f"--{_dashed(found[1])}", message)
    message = _FACTOR.sub(lambda found: f"--{_dashed(found[1])} {found[3]}".rstrip(), message)
    message = _AMOUNT.sub(r"--\1", message)
    return _ARGUMENT.sub(
        lambda found: f"{found[1].replace('read_panel takes', 'pass')} --{found[2]} ", message
    )


def _dashed(name: str) -> str:
    return name.replace("_", "-")


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
