"""The command line on any file: exit 0 or 2, a clear sentence, no traceback, no partial output."""

from __future__ import annotations

import io
import json
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

from .files import MALFORMED, SPECIAL, SUFFIXES, any_format, as_csv
from .properties import LONGEST, check, only_our_warnings
from .studies import study_tables, with_types

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


#: queries that find a table, that find none, and that may not be asked
QUERIES = [
    "SELECT * FROM visits",
    "SELECT subject, start, stop, count FROM visits WHERE count >= 0",
    "SELECT * FROM visits WHERE 1 = 0",
    "SELECT * FROM nowhere",
    "DROP TABLE visits",
    "SELECT 1; DELETE FROM visits",
    "ATTACH 'x.db' AS x",
    "SELEC",
    "",
]
#: commands on a study: every option that decides what is computed
STUDIES = [
    ["describe"],
    ["trend", "--permutations", "19"],
    ["trend", "--permutations", "19", "--json"],
    ["compare", "--by", "arm", "--permutations", "19", "--effect", "none", "--bursts", "no"],
    ["compare", "--by", "centre", "--test", "any", "--permutations", "19", "--effect", "none",
     "--bursts", "no", "--json"],
    ["compare", "--by", "arm", "--strata", "centre", "--test", "curve", "--permutations", "19",
     "--effect", "none", "--bursts", "no"],
    ["compare", "--by", "arm", "--formula", "dose", "--permutations", "19", "--effect", "none",
     "--bursts", "no"],
    ["compare", "--by", "arm", "--cluster", "centre", "--formula", "dose", "--permutations", "19"],
    ["compare", "--by", "centre", "--test", "trend", "--scores", "north=1,south=2,east=4",
     "--permutations", "19", "--effect", "none", "--bursts", "no"],
    ["compare", "--by", "dose", "--permutations", "19"],
    ["backtest", "--model", "hpp", "--horizon", "0.2", "--origins", "2"],
    ["backtest", "--model", "power-law", "--model", "hpp", "--horizon", "1e9", "--json"],
    ["power", "--ratio", "2", "--n-per-arm", "4", "--trials", "3", "--permutations", "19",
     "--visits", "2", "--pilot"],
    ["fit", "--model", "hpp"], ["fit", "--model", "hpp", "--by", "arm"],
    ["fit", "--model", "power-law", "--formula", "arm"],
    ["fit", "--model", "log-linear", "--effect", "gamma"],
    ["fit", "--model", "npmle", "--bootstrap", "3"],
    ["fit", "--model", "gp4c", "--effect", "none", "--bursts", "no"],
    ["fit", "--model", "gp4c", "--effect", "none", "--bursts", "no", "--trend", "loglinear"],
    ["fit", "--model", "gp4c", "--effect", "none", "--bursts", "no", "--formula", "arm"],
    ["report", "--model", "hpp"],
]  # fmt: skip
#: what is asked of a saved fit; E is the end of the data
FOLLOWING = [
    (), ("forecast", "--to", "1e30"), ("forecast", "--to", "E", "--subjects", "all"),
    ("forecast", "--to", "E", "--every", "1e-3", "--subjects", "new", "--service", "0.9"),
    ("units", "--worst", "0.2"), ("units", "--csv"), ("predict", "--at", "0"),
    ("forecast", "--to", "-1e30"), ("forecast", "--to", "tomorrow"),
]  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """A study, a command on it, and a command on the fit that it saved."""

    content: bytes
    first: tuple[str, ...]
    then: tuple[str, ...] = ()


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


@st.composite
def format_cases(draw: st.DrawFn) -> FileCase:
    """A file of any format, for one of the commands; databases now and then with a query."""
    content, suffix = draw(any_format())
    options: tuple[str, ...] = ()
    if suffix in (".db", ".duckdb"):
        query = draw(st.sampled_from([None, *QUERIES]))
        options = () if query is None else ("--query", query)
    return FileCase(content, suffix, draw(st.sampled_from(list(COMMANDS))), options)


@st.composite
def study_cases(draw: st.DrawFn) -> Chain:
    """A table with groups and covariates, through a command or through a fit and what follows."""
    table = draw(study_tables(24))
    if draw(st.integers(0, 3)) == 0:
        table = with_types(table, draw(st.integers(0, 9)))
    first = draw(st.sampled_from(STUDIES))
    then = draw(st.sampled_from(FOLLOWING)) if first[0] == "fit" else ()
    return Chain(as_csv(table).encode(), tuple(first), tuple(then))


@cache
def _program() -> Any:
    """The program as click sees it; building it anew for each case would take most of the time."""
    return typer.main.get_command(app)


def check_in_process(case: FileCase) -> bool:
    """Run a command in this process; False if it refused the file."""
    with tempfile.TemporaryDirectory() as folder, only_our_warnings():
        arguments, out = _arguments(case, Path(folder))
        return check_outcome(case, *_said(arguments), out)


def check_study(case: Chain) -> bool:
    """Run a command on a study, then one on the fit; False if either was refused."""
    with tempfile.TemporaryDirectory() as folder, only_our_warnings():
        table, out = Path(folder) / "study.csv", Path(folder) / "out"
        table.write_bytes(case.content)
        first = list(case.first)
        first = [*first, str(table)] if first[-1] == "--pilot" else [first[0], str(table),
                                                                     *first[1:]]  # fmt: skip
        if case.then or first[0] == "report":
            first += ["--out", str(out)]
        accepted = check_words(*_said(first))
        saved = sorted(out.glob("fit*.json")) if out.exists() else []
        if not (accepted and case.then and saved):
            return accepted
        window = json.loads(saved[0].read_text(encoding="utf-8"))
        end = str(2.0 * _last(window) + 1.0)
        then = [end if text == "E" else text for text in case.then]
        return check_words(*_said([then[0], str(saved[0]), *then[1:]]))


def _last(saved: dict[str, Any]) -> float:
    """The end of the window of a saved fit."""
    state = dict(saved["state"]["dict"])
    return abs(float(state["window_"]["tuple"][1]))


def _said(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, output and messages of a command."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            code = _program().main(args=arguments, prog_name="gp4c", standalone_mode=True)
        except SystemExit as end:
            code = end.code
    return int(code or 0), stdout.getvalue(), stderr.getvalue()


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
    """What the user sees is a result or a sentence, and all files of it or none."""
    accepted = check_words(code, stdout, stderr)
    there = {path.name for path in out.iterdir()} if out.exists() else set()
    if not accepted:
        check(not out.exists(), f"exit code 2, but there are {there}")
        return False
    check(not re.search(r"\bnan\b", stdout.split("covariates")[0]), f"nan in {stdout}")
    if case.out:
        missing = WRITTEN[case.command.split(",")[0]] - there
        check(not missing, f"{missing} not written")
        check(not [name for name in there if name.startswith(".")], f"left behind: {there}")
    return True


def check_words(code: int, stdout: str, stderr: str) -> bool:
    """A result with exit code 0, or a sentence with exit code 2; whether it was a result."""
    check(code in (0, 2), f"exit code {code}: {stderr[-2000:]}")
    check("Traceback" not in stderr + stdout, stderr[-2000:])
    foreign = re.search(r"^(?!gp4c: ).*Warning: .*$", stderr, re.MULTILINE)
    check(foreign is None, f"a foreign warning: {foreign and foreign[0]}")
    if code == 2:
        check_message(stderr)
        return False
    check(stdout.strip() or "wrote " in stderr, "no output")
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
