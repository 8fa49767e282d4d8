"""Sources in parts without a cluster: empty parts, odd labels, and sums that are joined again."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from large_panels import irregular_frame

import gp4c
from gp4c.data.tables.batches import RowReader, label_keys
from gp4c.exceptions import MissingExtraError, PanelDataError
from gp4c.large.cluster import PartSums, add_parts, sum_on_cluster
from gp4c.large.streaming import Pass, sum_source

NAMES = {role: role for role in ("subject", "start", "stop", "count")}
NOTHING = PartSums(None, np.zeros(0, dtype=np.uint64))


def dask_source(frame: pd.DataFrame, n_parts: int, **options: object) -> object:
    dask_frame = pytest.importorskip("dask.dataframe")
    return gp4c.scan_panel(dask_frame.from_pandas(frame, npartitions=n_parts), **options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_partitions_are_one_table_wherever_they_are_summed() -> None:
    frame = irregular_frame(40)
    source = dask_source(frame, 3)
    panel = gp4c.PanelCounts.from_frame(frame)
    assert source.window == panel.window
    batches = list(source.batches())
    assert np.cumsum([0, *map(len, batches)])[:3].tolist() == [b.first_row for b in batches]
    np.testing.assert_array_equal(np.concatenate([b.stop for b in batches]), frame["stop"])

    here = sum_source(source, effect=None)
    said: list[str] = []
    there = sum_on_cluster(source, None, effect=None, say=said.append)  # Dask's own threads
    assert said == ["reading 3 partitions on the cluster"]
    assert there.intervals.n_rows == here.intervals.n_rows == len(frame)
    assert there.intervals.n_events == here.intervals.n_events == frame["count"].sum()
    assert there.intervals.exposure_time == pytest.approx(here.intervals.exposure_time, rel=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_bad_row_of_a_partition_is_named() -> None:
    frame = irregular_frame(10).assign(count=lambda f: f["count"].where(f.index != 30, -1))
    source = dask_source(frame, 2, window=(0.0, 60.0))
    with pytest.raises(PanelDataError, match=r"row 5 of partition 1"):
        list(source.batches())
    with pytest.raises(PanelDataError, match=r"row 5 of partition 1"):
        sum_on_cluster(source, None, effect=None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_of_a_subject_in_several_partitions_are_refused() -> None:
    frame = irregular_frame(400).sort_values("stop").reset_index(drop=True)
    source = dask_source(frame, 2)
    with pytest.raises(PanelDataError, match="all rows of a subject in one partition"):
        sum_on_cluster(source, None, effect="gamma")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_partitions_without_rows_add_nothing() -> None:
    frame = irregular_frame(30)
    holes = dask_source(frame, 3)
    holes.frame = holes.frame[holes.frame["start"] < 5]  # leaves some partitions with few rows
    none = dask_source(frame, 2, window=(0.0, 60.0))
    none.frame = none.frame[none.frame["count"] < 0]
    assert list(none.batches()) == []
    with pytest.raises(PanelDataError, match="the source is empty"):
        sum_on_cluster(none, None, effect=None)
    total = sum_on_cluster(holes, None, effect=None)
    assert total.intervals.n_rows == (frame["start"] < 5).sum()


def test_sums_of_nothing_are_neutral() -> None:
    frame = irregular_frame(20)
    one = PartSums(sum_source(gp4c.scan_panel([frame]), effect=None), np.arange(2, dtype=np.uint64))
    assert add_parts(one, NOTHING) is one
    assert add_parts(NOTHING, one) is one


def test_rows_that_are_here_are_summed_here() -> None:
    frame = irregular_frame(20)
    found = sum_on_cluster(gp4c.scan_panel([frame]), None, effect=None)
    assert found.intervals.n_rows == len(frame)


def test_without_dask_a_cluster_is_refused_with_the_extra_to_install(monkeypatch) -> None:
    from gp4c.large import cluster

    monkeypatch.setitem(sys.modules, "dask.delayed", None)
    with pytest.raises(MissingExtraError, match=r"\[dask\]"):
        cluster._delayed()


def test_an_empty_stream_is_refused() -> None:
    source = gp4c.scan_panel([irregular_frame(3).iloc[:0]], window=(0.0, 60.0))
    with pytest.raises(PanelDataError, match="the source is empty"):
        sum_source(source, effect=None)
    with pytest.raises(PanelDataError, match="the source is empty"):
        Pass((0.0, 1.0)).finish(None, source.locate)


def test_an_empty_frame_in_a_stream_keeps_the_numbers_of_rows() -> None:
    frame = irregular_frame(4)
    bad = frame.iloc[10:].assign(count=-1)
    source = gp4c.scan_panel([frame.iloc[:10], frame.iloc[:0], bad], window=(0.0, 60.0))
    with pytest.raises(PanelDataError, match=r"row 0 of frame 2"):
        list(source.batches())
    assert repr(source).startswith("<FrameSource: subject='subject', start='start'")


# -- labels ----------------------------------------------------------------------------------


def test_labels_in_categories_are_those_in_full() -> None:
    frame = irregular_frame(6, labels=True)
    coded = pa.Table.from_pandas(frame.assign(subject=frame["subject"].astype("category")))
    plain = pa.Table.from_pandas(frame)
    one, two = (RowReader(NAMES).read(table) for table in (coded, plain))
    np.testing.assert_array_equal(one.key, two.key)
    assert one.labels == two.labels


def test_cells_of_unlike_types_are_read_one_by_one() -> None:
    mixed = {"subject": [1, "b", 2.5], "start": [0, 0, 0], "stop": [1, 2, 3], "count": [0, 1, 2]}
    batch = RowReader(NAMES).read_frame(mixed)
    assert len(set(batch.key.tolist())) == 3
    assert set(batch.labels.values()) == {1, "b", 2.5}


def test_fractional_labels_have_keys_of_their_own() -> None:
    keys = label_keys(np.array([0.5, 1.5, 0.5]))
    assert keys[0] == keys[2] != keys[1]
    table = pa.table({"subject": [0.5, 1.5], "start": [0, 0], "stop": [1, 1], "count": [2, 3]})
    batch = RowReader(NAMES).read(table)
    assert sorted(batch.labels.values()) == [0.5, 1.5]
