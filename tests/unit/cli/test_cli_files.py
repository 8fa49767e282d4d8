"""Files of every kind on the command line: sheets, tables, queries, and what is said of them."""

import sqlite3
import subprocess
import sys

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

from gp4c.cli.program import app

VISITS = pd.DataFrame(
    {"id": [1, 1, 2, 2], "date": ["2024-01-01", "2024-01-31"] * 2, "n": [0, 2, 0, 1]}
)


def run(*line):
    return CliRunner().invoke(app, list(line))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pd.ExcelWriter("book.xlsx") as book:
        VISITS.head(2).to_excel(book, sheet_name="Old", index=False)
        VISITS.to_excel(book, sheet_name="Visits", index=False)
    connection = sqlite3.connect("trial.db")
    VISITS.to_sql("visits", connection, index=False)
    VISITS.head(2).to_sql("old", connection, index=False)
    connection.close()
    VISITS.to_csv("visits.csv", sep=";", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        ("book.xlsx", "--sheet", "Visits"),
        ("trial.db", "--table", "visits"),
        ("trial.db", "--query", "SELECT * FROM visits"),
        ("visits.csv",),
    ],
)
def test_every_kind_of_file_is_described_alike(place, line):
    done = run("describe", *line, "--csv")
    assert done.exit_code == 0, done.stderr
    assert "events,3\n" in done.stdout
    assert "gp4c: note: each subject is observed from its first visit on" in done.stderr
    assert ("separated by semicolons" in done.stderr) == (line[0] == "visits.csv")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("book.xlsx",), "has 2 sheets, 'Old', 'Visits': say which with --sheet ..."),
        (("trial.db",), "has 2 tables, 'old', 'visits': say which with --table ..."),
        (("trial.db", "--query", "DROP TABLE visits"), "query must be a single SELECT statement"),
        (("trial.db", "--query", "SELECT x FROM visits"), "no such column: x"),
        (("trial.db", "--table", "old", "--query", "SELECT 1"), "not both"),
        (("visits.csv", "--sheet", "Visits"), "is a text file (CSV), which takes no --sheet ..."),
        (("bladder", "--sheet", "a"), "a data set that comes with gp4c takes no --sheet"),
    ],
)
def test_what_cannot_be_read_is_one_line_in_terms_of_options(place, line, message):
    done = run("describe", *line)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_database_leaves_nothing_but_the_answer_on_the_terminal(place):
    with duckdb.connect("trial.duckdb") as connection:
        connection.execute("CREATE TABLE visits (id INT, month INT, n INT)")
        connection.execute("INSERT INTO visits VALUES (1, 3, 2), (1, 5, 0)")
    code = "import sys; from gp4c.cli import main; sys.argv[0] = 'gp4c'; main()"
    line = [sys.executable, "-c", code, "describe", "trial.duckdb"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    assert "Panel of 1 subject" in done.stdout
