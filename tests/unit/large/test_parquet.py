"""Parquet files as one table: patterns, row groups, damage, dates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from large_panels import irregular_frame
from pyarrow import parquet

import gp4c
from gp4c.data.tables.parquet import ParquetFiles, parquet_files
from gp4c.exceptions import PanelDataError


def found_below(folder: Path, pattern: str) -> list[str]:
    files = parquet_files(f"{folder}/{pattern}")
    return [str(Path(path).relative_to(folder)) for path in files.paths]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files in and below a folder, one of them with a name that only ends alike."""
    frame = irregular_frame(6)
    for name in ("part-0", "counterpart-1", "a/part-2", "a/b/part-3", "a/b/other"):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path, index=False)
    return tmp_path


def test_two_stars_stand_for_any_folders_and_for_nothing_else(tree: Path) -> None:
    expected = ["a/b/part-3.parquet", "a/part-2.parquet", "part-0.parquet"]
    assert found_below(tree, "**/part-*.parquet") == expected
    assert found_below(tree, "a/**/part-*.parquet") == expected[:2]
    assert found_below(tree, "**/b/*.parquet") == ["a/b/other.parquet", "a/b/part-3.parquet"]
    assert len(found_below(tree, "**")) == 5


def test_one_star_stays_within_a_folder(tree: Path) -> None:
    assert found_below(tree, "*/part-*.parquet") == ["a/part-2.parquet"]
    with pytest.raises(PanelDataError, match="no file matches"):
        parquet_files(f"{tree}/*/*/*/part-*.parquet")


def test_row_groups_are_read_together_up_to_a_batch(tmp_path: Path) -> None:
    frame = irregular_frame(40)
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=30)
    source = gp4c.scan_panel(tmp_path / "t.parquet", batch_rows=70)
    batches = list(source.batches())
    assert [len(batch) for batch in batches] == [60, 60, 60, 20]
    assert [batch.first_row for batch in batches] == [0, 60, 120, 180]
    np.testing.assert_array_equal(np.concatenate([b.stop for b in batches]), frame["stop"])


def test_a_file_without_rows_adds_nothing(tmp_path: Path) -> None:
    frame = irregular_frame(5)
    frame.iloc[:0].to_parquet(tmp_path / "a.parquet", index=False)
    frame.to_parquet(tmp_path / "b.parquet", index=False)
    source = gp4c.scan_panel(tmp_path)
    assert source.window == (frame["start"].min(), frame["stop"].max())
    assert [len(batch) for batch in source.batches()] == [25]
    with pytest.raises(PanelDataError, match="the source is empty"):
        _ = gp4c.scan_panel(tmp_path / "a.parquet").window


def test_a_file_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    table = pa.Table.from_pandas(irregular_frame(3000))
    parquet.write_table(table, path, compression="gzip", use_dictionary=False)
    damaged = bytearray(path.read_bytes())
    damaged[200:2000] = bytes(1800)  # the pages; the footer, which is read first, is as it was
    path.write_bytes(damaged)
    source = gp4c.scan_panel(path, window=(0.0, 60.0))
    with pytest.raises(PanelDataError, match=r"the file 'visits\.parquet' is damaged: "):
        list(source.batches())


def test_dates_have_no_statistics_in_numbers_and_are_read(tmp_path: Path) -> None:
    frame = irregular_frame(4)
    day = pd.Timestamp("2026-01-01")
    dated = frame.assign(
        start=day + pd.to_timedelta(frame["start"].round(), unit="D"),
        stop=day + pd.to_timedelta(frame["stop"].round() + 1, unit="D"),
    )
    dated = dated.groupby("subject", as_index=False).first()
    dated.to_parquet(tmp_path / "d.parquet", index=False)
    source = gp4c.scan_panel(tmp_path / "d.parquet", origin="2026-01-01")
    panel = gp4c.PanelCounts.from_frame(dated, origin="2026-01-01")
    assert source.window == panel.window
    assert source.time_unit == panel.time_unit == "days"


def test_an_address_of_no_file_system_is_refused() -> None:
    with pytest.raises(PanelDataError, match=r"'nowhere://visits' cannot be opened"):
        parquet_files("nowhere://visits")


def test_a_file_system_that_fails_is_quoted() -> None:
    from gp4c.data.tables.parquet import _matches

    class Broken:
        def get_file_info(self, path: str) -> None:
            raise OSError("the disk is on fire")

    with pytest.raises(PanelDataError, match=r"'visits' cannot be read: the disk is on fire"):
        _matches(Broken(), "visits", "", "visits")
    assert ParquetFiles(Broken(), ("a/b.parquet",)).shown(0) == "the file 'b.parquet'"


def test_files_of_two_file_systems_are_refused(tmp_path: Path) -> None:
    irregular_frame(3).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(PanelDataError, match=r"all files must be in one place; 'mock:///b' is in"):
        parquet_files([tmp_path, "mock:///b"])
    both = parquet_files([tmp_path, (tmp_path / "a.parquet").as_uri()])
    assert len(both.paths) == 2


def test_addresses_carry_options_of_their_file_system(tmp_path: Path) -> None:
    irregular_frame(3).to_parquet(tmp_path / "a1.parquet")
    for pattern in ("/*.parquet", "/a?.parquet", "/a1.parquet", ""):
        plain, mapped = (
            parquet_files(f"{tmp_path.as_uri()}{pattern}{options}")
            for options in ("", "?use_mmap=true")
        )
        assert plain.paths == mapped.paths == (str(tmp_path / "a1.parquet"),)
    with pytest.raises(PanelDataError, match="cannot be opened"):
        parquet_files("s3://bucket/*.parquet?no_such_option=1")
