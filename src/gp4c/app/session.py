"""One tab of the browser: what was read, how it is understood, what was fitted."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gp4c.app.bundles import Bundle, bundle, kinds_in
from gp4c.app.choices import Analysis, Choices, Reading, Source
from gp4c.app.fit_job import FitJob
from gp4c.app.look_job import LookJob
from gp4c.app.messages import Failed, Look, Message, Stopped, Written
from gp4c.app.worker import Bench, Job


class Session:
    """The state behind one page; every tab has its own, and its own process.

    Methods that take time give messages as they come, to be read on another thread than the one
    that may call :meth:`cancel`. What is newest wins: it stops what is still running.

    Attributes
    ----------
    source : Source or None
        The table that is open.
    asked : Reading or None
        How its columns were last said to be understood; None for a data set.
    look : Look or None
        What it holds; None if it is no table.
    fitted : Analysis or None
        What was fitted last, when its files are written.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._worker = bench.hire()
        self._room = tempfile.TemporaryDirectory(prefix="gp4c-app-", ignore_cleanup_errors=True)
        self._folder = Path(self._room.name)
        self._files: tuple[str, ...] = ()
        self._is_busy = False
        self.source: Source | None = None
        self.asked: Reading | None = None
        self.look: Look | None = None
        self.fitted: Analysis | None = None

    def open(self, source: Source) -> Iterator[Message]:
        """Look at a new table; nothing is left of the one before.

        An upload gets its own name back, which messages and the code speak of.
        """
        if source.path is not None:
            source = Source(source.name, str(self._named(Path(source.path), source.name)))
        self.source, self.look, self.fitted = source, None, None
        self.asked = None if source.path is None else Reading()
        return self._looking(LookJob(source))

    def understand(self, reading: Reading) -> Iterator[Message]:
        """Look at the table again, as the user says that it is to be understood."""
        assert self.source is not None
        self.asked, self.look = reading, None
        return self._looking(LookJob(self.source, reading))

    def fit(self, choices: Choices) -> Iterator[Message]:
        """Fit the table that is open and write the files of the result."""
        analysis = self.analysis(choices)
        if analysis is None:
            yield Failed(("There is no table to fit yet.",))
            return
        self.fitted = None
        folder = Path(tempfile.mkdtemp(dir=self._room.name))
        for message in self._run(FitJob(analysis, str(folder))):
            if isinstance(message, Written):
                self._folder, self._files, self.fitted = folder, message.files, analysis
            yield message

    def analysis(self, choices: Choices) -> Analysis | None:
        """What would be fitted; None without a table that can be."""
        if self.source is None or self.look is None or self.look.problems:
            return None
        return Analysis(self.source, self.look.reading, choices)

    def kinds(self) -> dict[str, str]:
        """What can be downloaded of the last result, with words for the links."""
        return kinds_in(self._files)

    def bundle(self, kind: str) -> Bundle:
        """A download of the last result."""
        return bundle(kind, self._folder, self._files)

    def cancel(self) -> None:
        """Stop whatever runs, at once."""
        if self._is_busy:
            self._worker.stop()

    def close(self) -> None:
        """The tab is gone: so are its process and its files."""
        self._worker.stop()
        self._room.cleanup()

    def _named(self, upload: Path, name: str) -> Path:
        """The upload under its own name, in a folder of its own."""
        plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name)
        target = Path(tempfile.mkdtemp(dir=self._room.name)) / (plain.lstrip(".")[-100:] or "table")
        with suppress(FileNotFoundError):  # reading it says so
            shutil.move(upload, target)
        return target

    def _looking(self, job: LookJob) -> Iterator[Message]:
        for message in self._run(job):
            if isinstance(message, Look):
                self.look = message
            yield message

    def _run(self, job: Job) -> Iterator[Message]:
        """Do a job, instead of the one that may be running."""
        self.cancel()
        if not self._worker.is_alive:
            self._worker = self._bench.hire()
        worker, self._is_busy = self._worker, True
        for message in worker.run(job):
            yield message
            if isinstance(message, Stopped):
                return  # somebody else may be at work by now
        self._is_busy = False
