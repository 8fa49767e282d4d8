"""A process that works for one page: it can be stopped at any moment, and nobody waits for it.

Processes are started before they are needed, since loading the numerical libraries takes longer
than most tables do.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Protocol

from gp4c.app.messages import Failed, Message, Send, Stopped
from gp4c.app.page_words import on_the_page
from gp4c.exceptions import GP4CError, GP4CWarning

#: seconds that a stopped process has to go
_PATIENCE = 10.0


class Job(Protocol):
    """Something to do that tells the page about it; it travels to the process by pickle."""

    def run(self, send: Send) -> None:
        """Do it."""


class _Finished:
    """The job is done; never shown."""


class Worker:
    """A process that does one job after another."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._stopped = False

    def run(self, job: Job) -> Iterator[Message]:
        """Do a job; gives its messages as they come, the last one when it is over."""
        try:
            self._pipe.send(job)
            while not isinstance(message := self._pipe.recv(), _Finished):
                yield message
        except (EOFError, OSError):
            yield Stopped() if self._stopped else Failed((_ENDED,))

    @property
    def is_alive(self) -> bool:
        """Whether it can take another job."""
        return not self._stopped and self._process.is_alive()

    def stop(self) -> None:
        """End the process, whatever it is doing; whoever waits for it is told."""
        self._stopped = True
        self._process.kill()
        self._process.join(_PATIENCE)


class Bench:
    """Workers to hire: one that is ready waits for the next page."""

    def __init__(self, build: Callable[[], Worker] = Worker) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._spare: Worker | None = build()
        self._hired: list[Worker] = []

    def hire(self) -> Worker:
        """A worker for one page; another one is made ready."""
        with self._lock:
            self._hired = [worker for worker in self._hired if worker.is_alive]
            ready = self._spare if self._spare is not None and self._spare.is_alive else None
            worker = ready or self._build()
            self._hired.append(worker)
            self._spare = self._build()
        return worker

    def close(self) -> None:
        """Send everybody home."""
        with self._lock:
            for worker in (*self._hired, *([self._spare] if self._spare else [])):
                worker.stop()
            self._hired, self._spare = [], None


_ENDED = (
    "The process that computes ended before its time, most likely because memory ran out; "
    "a sample of the subjects needs less."
)
_BUG = "This is a mistake of gp4c, not of yours ({name}). The terminal has the details."


def _work(pipe: Connection) -> None:
    """The life of the process; it ends with the page that it works for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    warnings.filterwarnings("ignore", category=GP4CWarning)  # the report has them as remarks
    _load()
    try:
        while True:
            job: Job = pipe.recv()
            _do(job, pipe.send)
            pipe.send(_Finished())
    except (EOFError, OSError):
        return


def _load() -> None:
    """Load what every job needs."""
    import matplotlib.figure  # noqa: F401

    import gp4c.analysis.compare_groups
    import gp4c.data.tables.readers
    import gp4c.estimators.gp4c
    import gp4c.reporting.page.html_report  # noqa: F401


def _do(job: Job, send: Send) -> None:
    """Run a job; what goes wrong is a sentence."""
    try:
        job.run(send)
    except GP4CError as error:
        send(Failed(tuple(on_the_page(str(error)).splitlines())))
    except MemoryError:
        send(Failed(("There is not enough memory for this; a sample of the subjects needs less.",)))
    except (EOFError, OSError):
        raise
    except Exception as error:  # whatever it is, the page says so in a sentence
        traceback.print_exc(file=sys.stderr)
        send(Failed((_BUG.format(name=type(error).__name__),)))
