"""Signs of life on a terminal, and what the guard around every command lets through."""

import errno
import io
import re
import sys
import warnings

import pytest

from gp4c.cli.guard import guarded
from gp4c.cli.progress import counting, working


class Terminal(io.StringIO):
    """A stderr that somebody watches."""

    def isatty(self):
        return True


def watched(monkeypatch):
    """Let stderr be a terminal; called within a test, as pytest sets its own before each."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_the_spinner_shows_names_of_files_as_they_are(monkeypatch):
    terminal = watched(monkeypatch)
    with working("reading [bold]visits[/bold].csv"):
        pass
    assert "reading [bold]visits[/bold].csv" in terminal.getvalue()
    with working("reading") as say:
        say("fitting [bold]a[/bold].csv")
    assert "fitting [bold]a[/bold].csv" in terminal.getvalue()


def test_nothing_is_shown_to_those_who_want_quiet(monkeypatch):
    terminal = watched(monkeypatch)
    with working("reading", quiet=True) as say:
        say("fitting")
    with counting(True, "trials") as update:
        update(1, 2, "half")
    assert terminal.getvalue() == ""


def test_the_bar_counts(monkeypatch):
    terminal = watched(monkeypatch)
    with counting(False, "trials") as update:
        update(3, 7, "Table 1")
    assert "3/7" in terminal.getvalue()
    assert "Table 1" in terminal.getvalue()


def test_a_reader_who_leaves_a_pipe_is_no_mistake_of_the_user():
    def command():
        raise OSError(errno.EPIPE, "broken pipe")

    with pytest.raises(BrokenPipeError):
        guarded(command)()


def test_errors_of_the_system_are_one_line(capsys):
    def command():
        raise OSError(errno.ENOSPC, "No space left on device", "fit.json")

    with pytest.raises(SystemExit, match="2"):
        guarded(command)()
    assert capsys.readouterr().err == "gp4c: fit.json: No space left on device\n"


def test_warnings_of_other_libraries_keep_their_form(capsys):
    def command():
        warnings.simplefilter("always")
        warnings.warn("old", FutureWarning, stacklevel=1)

    guarded(command)()
    said = capsys.readouterr().err
    assert re.search(r"FutureWarning:\s+old", said)  # some versions of Plotly set it in lines
    assert "gp4c: warning" not in said
