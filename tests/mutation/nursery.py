"""Try a mutant in a forked process: the libraries are loaded once, the package anew each time."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: loaded before forking
LIBRARIES = (
    "formulaic", "hypothesis.strategies", "joblib", "matplotlib.pyplot", "mpmath",
    "numpy.testing", "pandas", "pyarrow.parquet", "pytest", "rich.progress",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.sparse",
    "scipy.special", "scipy.stats", "sklearn.model_selection", "typer.testing",
)  # fmt: skip
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
#: what killed a mutant that no test could even load
UNREADABLE = "the module could not be imported"
#: seconds by the clock after which a process that uses no processor time is given up
HANGS = 1800.0


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Gives one module another text than its file has."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: str) -> bytes:  # compiled files of the original must not be found
        if path == str(self.path):
            return self.source.encode()
        raise OSError(path)


class FirstFailure:
    """Remembers which test failed: a plug-in of pytest."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def preload() -> None:
    """Load what the tests will need, except the package itself."""
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)


def attempt(finder: Mutated | None, tests: list[str], root: Path, limit: float) -> tuple[str, str]:
    """Outcome of the tests, and the test that failed (or why it is thought killed)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(read)
        _quietly(lambda: _run(finder, tests, root, limit), write)
    os.close(write)
    status = _wait(child, wall=HANGS)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return TIMEOUT, ""
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return SURVIVED, ""
    return KILLED, said or UNREADABLE


def _run(finder: Mutated | None, tests: list[str], root: Path, limit: float) -> tuple[int, str]:
    import pytest

    seconds = int(limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    os.chdir(root)
    sys.path[:0] = [str(root / "src")]
    if finder is not None:
        sys.meta_path.insert(0, finder)
    failure = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--tb=no"]
    # hypothesis was loaded before pytest could rewrite its assertions
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests], plugins=[failure])), failure.test


def _quietly(work: Callable[[], tuple[int, str]], write: int) -> None:
    """Run in the child with its output thrown away, and leave without clean-up."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    code, said = 70, ""
    try:
        code, said = work()
        os.write(write, said.encode())
    finally:
        os._exit(code)


def _wait(child: int, wall: float) -> int | None:
    """Status of the child; killed with all it started when it takes too long."""
    end = time.monotonic() + wall
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what it left behind
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
