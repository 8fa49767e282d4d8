"""The same table in every dataframe library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gp4c
from gp4c.exceptions import PanelDataError

COLUMNS = {
    "subject": ["b", "a", "a"],
    "start": [0.5, 0.0, 1.0],
    "stop": [2.0, 1.0, 4.0],
    "count": [3, 0, 1],
    "age": [50, 60, 60],
    "dose": [1.0, None, 2.0],
}


@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda c: {k: np.array(v, dtype=object if None in v else None) for k, v in c.items()},
        lambda c: {k: tuple(v) for k, v in c.items()},
        lambda c: {k: pl.Series(v) for k, v in c.items()},
        pd.DataFrame,
        lambda c: pd.DataFrame(c).convert_dtypes(),
        lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
        lambda c: pd.DataFrame(c).set_index(pd.Index([7, 7, 7])),
        lambda c: pd.DataFrame(c).astype({"subject": "category", "age": "category"}),
        pl.DataFrame,
        lambda c: pl.DataFrame(c).lazy(),
        lambda c: pl.DataFrame(c).with_columns(pl.col("subject").cast(pl.Categorical)),
        pa.table,
        lambda c: pa.concat_tables([pa.table(c)[:1], pa.table(c)[1:]]),
    ],
)
def test_every_kind_of_table_gives_the_same_panel(make):
    panel = gp4c.PanelCounts.from_frame(make(COLUMNS))
    assert panel.subjects.tolist() == ["a", "b"]
    assert panel.start.tolist() == [0.0, 1.0, 0.5]
    assert panel.count.tolist() == [0, 1, 3]
    assert panel.covariates["age"].tolist() == [60, 50]
    assert panel.interval_covariates["dose"].isna().tolist() == [True, False, False]
    assert panel == gp4c.PanelCounts.from_frame(pd.DataFrame(COLUMNS))


def test_a_query_of_duckdb_gives_the_same_panel():
    import duckdb

    table = pa.table(COLUMNS)
    with duckdb.connect() as connection:
        query = connection.register("visits", table).sql("select * from visits")
        panel = gp4c.PanelCounts.from_frame(query)
    assert panel == gp4c.PanelCounts.from_frame(table)


def test_nulls_and_nans_of_polars_and_arrow_are_missing():
    columns = {**COLUMNS, "count": [3.0, None, float("nan")]}
    for data in (pl.DataFrame(columns, strict=False), pa.table(columns)):
        with pytest.raises(PanelDataError) as caught:
            gp4c.PanelCounts.from_frame(data)
        assert str(caught.value).splitlines() == [
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 1)",
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 2)",
        ]


def test_decimals_are_numbers():
    data = pl.DataFrame(COLUMNS).with_columns(pl.col("start", "stop").cast(pl.Decimal(20, 3)))
    assert gp4c.PanelCounts.from_frame(data).stop.tolist() == [1.0, 4.0, 2.0]


def test_columns_named_by_numbers():
    data = pd.DataFrame([[1, 0.0, 1.0, 2]])
    panel = gp4c.PanelCounts.from_frame(data, subject="0", start="1", stop="2", count="3")
    assert panel.n_events == 2


def test_covariates_that_cannot_be_hashed_are_kept():
    panel = gp4c.PanelCounts.from_frame({**COLUMNS, "tags": [["x"], ["y"], ["y"]]})
    assert panel.covariates["tags"].tolist() == [["y"], ["x"]]
    assert len(panel.content_order()) == 2
