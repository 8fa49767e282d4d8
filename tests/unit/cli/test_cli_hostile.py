"""Odd files and options end the program with one sentence; each case was found by fuzzing."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from gp4c.cli import app

VISITS = "id,from,to,n\n1,0,3,2\n1,3,9,0\n2,1,7,1\n"


def refused(folder, line: str, content: str | bytes = VISITS) -> str:
    """The message of a command that exits with 2."""
    path = folder / "visits.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    first, *options = shlex.split(line)
    done = CliRunner().invoke(app, [first, str(path), *options])
    assert done.exit_code == 2, done.exception
    assert done.stderr.startswith("gp4c: ")
    return done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--decimal ''", "decimal must be a single character; found ''"),
        ("--delimiter ab", "delimiter must be a single character; found 'ab'"),
        ("--delimiter . --decimal .", "delimiter and decimal must differ"),
    ],
)
def test_marks_that_are_none(tmp_path, options, message):
    assert message in refused(tmp_path, f"describe {options}")
