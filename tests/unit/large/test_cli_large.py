"""``gp4c fit`` on folders and patterns of files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from large_panels import irregular_frame
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.cli.options import large_tables as large

pytestmark = pytest.mark.usefixtures("many")


def run(line: str) -> Any:
    return CliRunner().invoke(program, shlex.split(line))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame = irregular_frame(80)
    frame.iloc[:203].to_parquet(tmp_path / "one.parquet")
    frame.iloc[203:].to_parquet(tmp_path / "two.parquet")
    return tmp_path


def test_a_pattern_of_files_is_one_table(folder: Path) -> None:
    done = run(f"fit '{folder}/*.parquet' --effect none --out {folder}/results --json")
    assert done.exit_code == 0, done.output
    model = gp4c.GP4C(effect=None, random_state=0).fit(gp4c.scan_panel(folder))
    saved = gp4c.load_model(folder / "results" / "fit.json")
    assert saved.objective_ == pytest.approx(model.objective_, rel=1e-9)
    assert saved.compression_["n_rows"] == 400
    assert json.loads(done.stdout)["fits"][0]["summary"]
    said = (folder / "results" / "summary.txt").read_text()
    assert "400 rows as" in said
    assert max(len(line) for line in said.splitlines()) <= 80


def test_a_pattern_that_the_shell_has_expanded_is_one_table(folder: Path) -> None:
    one, two = folder / "one.parquet", folder / "two.parquet"
    done = run(f"fit {one} {two} --effect none --out {folder}/results --quiet")
    assert done.exit_code == 0, done.output
    assert gp4c.load_model(folder / "results" / "fit.json").compression_["n_rows"] == 400


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("nowhere://visits/*.parquet", "'nowhere://visits/*.parquet' cannot be opened: "),
        ("mock:///visits/*.parquet", "there is no file or folder 'mock:///visits/*.parquet'"),
        ("{uri}/no*.parquet", "no file matches "),
        ("{folder}/one.parquet {folder}/visits.csv", "'visits.csv' is not a readable Parquet file"),
        ("{folder}/one.parquet mock:///visits", "all files must be in one place"),
        ("{folder} --subject nobody", "has no column 'nobody' (for subject)"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_one_sentence(folder: Path, files: str, said: str) -> None:
    (folder / "visits.csv").write_text("subject,start,stop,count\na,0,1,2\n")
    done = run(f"fit {files.format(folder=folder, uri=folder.as_uri())}")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.startswith("gp4c: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--by subject", "--by needs one file"),
        ("--time stop", "--time needs one file"),
        ("--model npmle", "need --model gp4c"),
        ("--scheduler tcp://127.0.0.1:9", "no Dask scheduler answers"),
    ],
)
def test_what_cannot_be_done_in_parts_is_a_usage_error(
    folder: Path, options: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "PATIENCE", 1)
    done = run(f"fit {folder} {options}")
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_bad_rows_are_one_line(folder: Path) -> None:
    bad = irregular_frame(5)
    bad.loc[3, "count"] = -1
    bad.to_parquet(folder / "two.parquet")
    done = run(f"fit {folder}")
    assert done.exit_code == 2
    assert "row 3 of the file 'two.parquet'" in " ".join(done.output.split())
    assert "Traceback" not in done.output
