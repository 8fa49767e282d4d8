"""Damaged and lying tables of every format are read or refused; hostile queries touch nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gp4c
from table_files import WRITERS

HERE = Path(__file__).parent


def test_hostile_tables_are_read_whole_or_refused_in_bounded_time_and_memory(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    command = [sys.executable, "-W", "ignore", HERE / "hostile_tables.py", tmp_path, "1", "39"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["crafted: refused"] >= 25
    assert found["queries, db: refused"] == found["queries, duckdb: refused"] >= 30


def test_every_format_that_can_be_written_is_read_alike(tmp_path: Path) -> None:
    for suffix, write in WRITERS.items():
        write(tmp_path / f"table.{suffix}")
        panel = gp4c.read_panel(tmp_path / f"table.{suffix}")
        assert panel.subjects.tolist() == ["a", "b", "c"], suffix
        assert panel.start.tolist() == [0.0, 2.0, 0.0, 1.0], suffix
        assert panel.count.tolist() == [1, 0, 2, 3], suffix


def test_every_format_has_a_writer_or_a_reason() -> None:
    from gp4c.data.tables.formats import file_format

    file_format._define_all()
    unwritten = {"a SAS data set"}  # nothing here writes one: crafted headers stand for them
    for one in file_format.FORMATS:
        if one.holds_table and one.title not in unwritten:
            assert any(end.lstrip(".") in WRITERS for end in one.extensions), one.title
