"""The command line on any file: exit 0 or 2, a clear sentence, no traceback, no partial output."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer
from hypothesis import strategies as st

from gp4c.cli import app

from .files import MALFORMED, SPECIAL, SUFFIXES
from .properties import LONGEST, check, only_our_warnings

#: files that a finished command leaves, by command
WRITTEN = {"describe": {"panel.png", "summary.csv"}, "fit": {"fit.json", "curves.csv"}}
READING = st.lists(
    st.sampled_from(
        [
            ("--delimiter", ";"), ("--decimal", ","), ("--encoding", "latin-1"),
            ("--encoding", "no such"), ("--delimiter", "ab"), ("--decimal", ""), ("--time", "stop"),
            ("--time", "start", "--origin", "first"), ("--cumulative",), ("--drop-missing",),
            ("--subject", "count"), ("--count", "no such"), ("--exposure", "count"),
            ("--window", "0", "5"), ("--window", "nan", "inf"), ("--time-unit", "weeks"),
            ("--origin", "2024-01-01"),
        ]
    ),
    max_size=2,
).map(lambda options: [text for option in options for text in option])  # fmt: skip
COMMANDS = {
    "describe": [],
    "fit": ["--model", "hpp"],
    "fit, steps": ["--model", "npmle", "--bootstrap", "3", "--effect", "none"],
    "fit, groups": ["--model", "hpp", "--by", "exposure"],
    "fit, JSON": ["--model", "hpp", "--effect", "none", "--json"],
}


@dataclass(frozen=True)
class FileCase:
    """A file and what is asked of it."""

    content: bytes
    suffix: str
    command: str
    options: tuple[str, ...]
    out: bool = False


@st.composite
def file_cases(draw: st.DrawFn, out: bool = False) -> FileCase:
    """Malformed content in a file of some name, for one of the commands."""
    return FileCase(
        draw(MALFORMED),
        draw(SUFFIXES),
        draw(st.sampled_from(list(COMMANDS))),
        tuple(draw(st.one_of(st.just([]), READING))),
        out,
    )


@st.composite
def special_cases(draw: st.DrawFn) -> FileCase:
    """One of the contents that are made once."""
    return FileCase(
        SPECIAL[draw(st.sampled_from(list(SPECIAL)))],
        draw(SUFFIXES),
        draw(st.sampled_from(list(COMMANDS))),
        tuple(draw(st.one_of(st.just([]), READING))),
        draw(st.booleans()),
    )


@cache
def _program() -> Any:
    """The program as click sees it; building it anew for each case would take most of the time."""
    return typer.main.get_command(app)


def check_in_process(case: FileCase) -> bool:
    """Run a command in this process; False if it refused the file."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, only_our_warnings():
        arguments, out = _arguments(case, Path(folder))
        with redirect_stdout(stdout), redirect_stderr(stderr):
            try:
                code = _program().main(args=arguments, prog_name="gp4c", standalone_mode=True)
            except SystemExit as end:
                code = end.code
        return check_outcome(case, int(code or 0), stdout.getvalue(), stderr.getvalue(), out)


def check_as_program(case: FileCase) -> bool:
    """The same in a process of its own, with a limit of five minutes."""
    with tempfile.TemporaryDirectory() as folder:
        arguments, out = _arguments(case, Path(folder))
        done = subprocess.run(
            [sys.executable, "-c", "from gp4c.cli import main; main()", *arguments],
            capture_output=True,
            timeout=300,
            env={**os.environ, "COLUMNS": "200"},
            check=False,
        )
        texts = [stream.decode("utf-8", errors="replace") for stream in (done.stdout, done.stderr)]
        return check_outcome(case, done.returncode, *texts, out)


def _arguments(case: FileCase, folder: Path) -> tuple[list[str], Path]:
    path, out = folder / f"table{case.suffix}", folder / "out"
    path.write_bytes(case.content)
    command = case.command.split(",")[0]
    arguments = [command, str(path), *COMMANDS[case.command], *case.options]
    return [*arguments, *(["--out", str(out)] if case.out else [])], out


def check_outcome(case: FileCase, code: int, stdout: str, stderr: str, out: Path) -> bool:
    """What the user sees is a result or a sentence."""
    check(code in (0, 2), f"exit code {code}: {stderr[-2000:]}")
    check("Traceback" not in stderr + stdout, stderr[-2000:])
    foreign = re.search(r"^(?!gp4c: ).*Warning: .*$", stderr, re.MULTILINE)
    check(foreign is None, f"a foreign warning: {foreign and foreign[0]}")
    there = {path.name for path in out.iterdir()} if out.exists() else set()
    if code == 2:
        check(not out.exists(), f"exit code 2, but there are {there}")
        check_message(stderr)
        return False
    check(stdout.strip(), "no output")
    check(not re.search(r"\bnan\b", stdout.split("covariates")[0]), f"nan in {stdout}")
    if case.out:
        missing = WRITTEN[case.command.split(",")[0]] - there
        check(not missing, f"{missing} not written")
        check(not [name for name in there if name.startswith(".")], f"left behind: {there}")
    return True


def check_message(stderr: str) -> None:
    """A refusal is "gp4c: ..." in a few short lines, or a message about usage."""
    lines = stderr.strip().splitlines()
    said = [line for line in lines if not line.startswith("gp4c: warning: ")]
    check(said, "exit code 2 without a word")
    if said[0].startswith("Usage:"):
        return
    check(said[0].startswith("gp4c: ") and len(said[0]) > 12, f"message {stderr[:500]!r}")
    check(len(said) <= 8, f"{len(said)} lines: {stderr[:500]!r}")
    check(all(len(line) <= LONGEST for line in said), f"a line of {max(map(len, said))} characters")
    # controls and halves of characters; a code without a character yet does no harm
    orders = [c for line in said for c in line if unicodedata.category(c) in ("Cc", "Cs")]
    check(not orders, f"unprintable: {stderr[:500]!r}")
