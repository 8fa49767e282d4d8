"""Sources of rows: what they take, what they find, and what they say about bad rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from large_panels import irregular_frame
from pyarrow import parquet

import gp4c
from gp4c.data.tables.sources import PanelSource
from gp4c.exceptions import PanelDataError
from gp4c.large.streaming import sum_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three Parquet files; the second subject of each boundary is cut in two."""
    frame = irregular_frame(60, labels=True)
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part-{number}.parquet", index=False)
    return tmp_path


def totals(source: PanelSource) -> tuple[float, ...]:
    sums = sum_source(source, effect="gamma")
    i, s = sums.intervals, sums.subjects
    return i.n_rows, i.n_events, i.exposure_time, s.n_subjects, float(s.times @ s.totals)


def test_all_forms_of_one_table_are_the_same_panel(folder: Path) -> None:
    frame = irregular_frame(60, labels=True)
    panel = gp4c.PanelCounts.from_frame(frame)
    parts = [frame.iloc[:100], frame.iloc[100:101], frame.iloc[101:]]
    window = panel.window
    sources = {
        "folder": gp4c.scan_panel(folder),
        "pattern": gp4c.scan_panel(f"{folder}/part-*.parquet"),
        "list": gp4c.scan_panel(sorted(folder.glob("*.parquet"))),
        "address": gp4c.scan_panel(folder.as_uri()),
        "small batches": gp4c.scan_panel(folder, batch_rows=7),
        "frames": gp4c.scan_panel(parts),
        "polars": gp4c.scan_panel([polars.from_pandas(part) for part in parts]),
        "arrow": gp4c.scan_panel([pa.Table.from_pandas(frame)]),
        "function": gp4c.scan_panel(lambda: iter(parts)),
        "iterator": gp4c.scan_panel(iter(parts), window=window),
    }
    expected = (300, panel.n_events, None, 60, panel.n_events)
    for name, source in sources.items():
        assert source.window == window, name
        found = totals(source)
        assert found[2] == pytest.approx(
            float((panel.stop - panel.start).sum()) / (window[1] - window[0]), rel=1e-12
        )
        assert (*found[:2], None, *found[3:]) == expected, name


def test_subjects_cut_by_batches_are_joined_again(folder: Path) -> None:
    frame = irregular_frame(60, labels=True)
    sums = sum_source(gp4c.scan_panel(folder, batch_rows=7), effect="gamma")
    assert sums.n_subjects == 60
    assert sums.spans is not None
    assert len(sums.spans) == 60  # each seen without a gap
    assert len(sums.subjects.others) == 0
    counts = frame.groupby("subject")["count"].sum()
    np.testing.assert_array_equal(
        [counts[sums.labels[key]] for key in sums.spans.key.tolist()], sums.spans.count
    )


@pytest.mark.usefixtures("many")
def test_batches_that_threads_take_in_turn_add_up(folder: Path) -> None:
    whole = sum_source(gp4c.scan_panel(folder), effect="gamma")
    parts = [sum_source(gp4c.scan_panel(folder, batch_rows=n), effect="gamma") for n in (7, 7, 50)]
    for part in parts:
        for one, two in (
            (part.intervals.nodes.pairs, whole.intervals.nodes.pairs),
            (part.intervals.nodes.points, whole.intervals.nodes.points),
            (part.subjects.number, whole.subjects.number),
            (part.subjects.events, whole.subjects.events),
        ):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-12 * np.abs(two).sum())
        assert part.labels == whole.labels
    np.testing.assert_array_equal(  # bit for bit, whichever thread is faster
        parts[0].intervals.nodes.pairs, parts[1].intervals.nodes.pairs
    )


def test_reading_is_shown_with_rows_and_speed(folder: Path) -> None:
    told: list[str] = []
    sum_source(gp4c.scan_panel(folder, batch_rows=50), effect=None, say=told.append)
    assert [text.split(": ")[0] for text in told[::3]] == [
        "reading ━━━┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ 17%",
        "reading ━━━━━━━━━━━━━┄┄┄┄┄┄┄ 67%",
    ]
    assert told[-1].startswith(f"reading {'━' * 20} 100%: 300 rows, ")
    assert told[-1].endswith(" per second")
    told.clear()
    sum_source(gp4c.scan_panel([irregular_frame(4)]), effect=None, say=told.append)
    assert told[0].startswith("reading: 20 rows, ")  # of frames nobody knows how many come


def test_rows_in_any_order_are_the_same_spans() -> None:
    frame = irregular_frame(60, gaps=True)
    mixed = frame.sample(frac=1, random_state=1)
    one, two = (
        sum_source(gp4c.scan_panel([f], window=(0, 60)), effect="gamma").spans
        for f in (frame, mixed)
    )
    for name in ("key", "start", "stop", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_the_window_comes_from_the_files_statistics(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = irregular_frame(60, labels=True)
    source = gp4c.scan_panel(folder)

    def read(*arguments: object) -> Iterator[object]:
        raise AssertionError("no row needs to be read")

    monkeypatch.setattr(source, "batches", read)
    assert source.window == (frame["start"].min(), frame["stop"].max())


def test_files_without_statistics_are_read_for_the_window(tmp_path: Path) -> None:
    frame = irregular_frame(20)
    path = tmp_path / "plain.parquet"
    parquet.write_table(pa.Table.from_pandas(frame), path, write_statistics=False)
    assert gp4c.scan_panel(path).window == (frame["start"].min(), frame["stop"].max())


def bad_folder(folder: Path, column: str, value: object, row: int = 5) -> Path:
    frame = pd.read_parquet(folder / "part-1.parquet")
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    frame.to_parquet(folder / "part-1.parquet", index=False)
    return folder


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("count", -1, "'count' must not be negative; found -1 "),
        ("count", 1.5, "'count' must be a whole number; found 1.5 "),
        (
            "count",
            None,
            "'count' must be a number; the cell is missing; missing='drop' leaves it out ",
        ),
        ("start", float("inf"), "'start' must be finite; found inf "),
        ("stop", -4.0, "'stop' must be greater than 'start'; found ("),
        ("subject", None, "'subject' must label the subject; the cell is missing "),
    ],
)
def test_a_bad_row_is_named_by_file_and_position(
    folder: Path, column: str, value: object, said: str
) -> None:
    source = gp4c.scan_panel(bad_folder(folder, column, value), batch_rows=3, window=(0, 60))
    with pytest.raises(PanelDataError) as caught:
        totals(source)
    assert said in str(caught.value)
    assert "(row 5 of the file 'part-1.parquet')" in str(caught.value)


def test_intervals_of_a_subject_that_overlap_across_files_are_found(folder: Path) -> None:
    frame = irregular_frame(60, labels=True)
    frame.iloc[[2]].to_parquet(folder / "part-3.parquet", index=False)
    with pytest.raises(PanelDataError, match="must not overlap or occur twice") as caught:
        totals(gp4c.scan_panel(folder))
    assert "row 0 of the file 'part-0.parquet'" in str(caught.value)
    assert "row 0 of the file 'part-3.parquet'" in str(caught.value)


def test_files_that_are_none_are_named(folder: Path) -> None:
    (folder / "part-1.parquet").write_bytes(b"PAR1 but no more than that PAR1")
    with pytest.raises(PanelDataError, match=r"'part-1.parquet' is not a readable Parquet file"):
        totals(gp4c.scan_panel(folder, window=(0, 60)))


def test_a_file_with_other_columns_is_named(folder: Path) -> None:
    other = irregular_frame(3).rename(columns={"count": "number"})
    other.to_parquet(folder / "part-1.parquet")
    with pytest.raises(PanelDataError, match=r"'part-1.parquet' has no column 'count' \(for count"):
        totals(gp4c.scan_panel(folder, window=(0, 60)))


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("no/such/folder", {}, "there is no file or folder 'no/such/folder'"),
        ("tests/*.parquet", {}, "no file matches 'tests/*.parquet'"),
        (iter([{}]), {}, "an iterator of frames can be read only once"),
        ([], {}, "there is no frame"),
        (3, {}, "scan_panel takes a path, a dask.dataframe or several frames; found int"),
        ([{"id": [1], "from": [0], "to": [1]}], {}, "no column that looks like the count"),
    ],
)
def test_what_is_no_source_is_refused(
    source: object, options: dict[str, object], said: str
) -> None:
    with pytest.raises(PanelDataError, match=said.replace("*", r"\*")):
        gp4c.scan_panel(source, **options)


def test_an_iterator_is_read_once_and_says_so() -> None:
    source = gp4c.scan_panel(iter([irregular_frame(4)]), window=(0, 60))
    totals(source)
    with pytest.raises(PanelDataError, match="has been read already"):
        totals(source)


def test_rows_outside_the_window_are_refused() -> None:
    source = gp4c.scan_panel([irregular_frame(4)], window=(5, 60))
    with pytest.raises(PanelDataError, match="the window must contain every interval"):
        totals(source)


def test_dates_are_read_with_their_origin() -> None:
    frame = pd.DataFrame(
        {
            "subject": [1, 1, 2],
            "start": pd.to_datetime(["2024-01-01", "2024-01-11", "2024-01-01"]),
            "stop": pd.to_datetime(["2024-01-11", "2024-01-31", "2024-01-21"]),
            "count": [1, 0, 2],
        }
    )
    source = gp4c.scan_panel([frame], origin="2024-01-01", time_unit="days")
    assert source.window == (0.0, 30.0)
    assert totals(source)[2] == pytest.approx(50 / 30)
    with pytest.raises(PanelDataError, match="need origin="):
        _ = gp4c.scan_panel([frame]).window
