"""The same data told differently give the same answer: order, columns, types, tables, labels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from relations import (
    CASES,
    TIMES,
    WINDOW,
    answers,
    assert_same,
    baseline,
    names,
    panel_of,
    study,
    tolerance,
)

import gp4c
from gp4c.data.panel import PanelCounts
from tolerances import BIT_FOR_BIT


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    """Rows and columns in another order, under a meaningless index."""
    mixed = table.sample(frac=1.0, random_state=7)[list(table.columns[::-1])]
    return mixed.set_index(pd.Index(np.full(len(mixed), 3)))


def parquet_file(table: pd.DataFrame) -> io.BytesIO:
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table(table), buffer)
    buffer.seek(0)
    return buffer


KINDS: dict[str, Any] = {
    "rows in another order": lambda t: panel_of(t.sample(frac=1.0, random_state=1)),
    "rows backwards": lambda t: panel_of(t[::-1]),
    "columns in another order": lambda t: panel_of(
        t[["count", "group", "stop", "subject", "start"]]
    ),
    "dict": lambda t: panel_of({c: t[c].tolist() for c in t}),
    "polars": lambda t: panel_of(pl.from_pandas(t)),
    "pyarrow": lambda t: panel_of(pa.table(t)),
    "counts as floats": lambda t: panel_of(t.astype({"count": float})),
    "counts in one byte": lambda t: panel_of(t.astype({"count": np.int8})),
    "times in single precision": lambda t: panel_of(t.astype({"start": "f4", "stop": "f4"})),
    "unit exposure": lambda t: panel_of(t.assign(units=1), exposure="units"),
    "CSV": lambda t: gp4c.read_panel(io.StringIO(t.to_csv(index=False)), window=WINDOW),
    "CSV, shuffled": lambda t: gp4c.read_panel(
        io.StringIO(shuffled(t).to_csv(index=False)), window=WINDOW
    ),
    "Parquet": lambda t: gp4c.read_panel(parquet_file(t), window=WINDOW),
    "visits": lambda t: PanelCounts.from_visits(
        t.rename(columns={"stop": "time"}).drop(columns="start"), time="time", window=WINDOW
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_tell_the_study_gives_the_same_panel(kind: str) -> None:
    told, expected = KINDS[kind](study()), panel_of(study())
    for name in ("subjects", "subject_index", "start", "stop", "count", "exposure"):
        np.testing.assert_array_equal(getattr(told, name), getattr(expected, name))
    assert told.window == expected.window
    assert told.covariates["group"].tolist() == expected.covariates["group"].tolist()


def test_integer_times_are_float_times() -> None:
    table = study()
    table[["start", "stop"]] *= 8.0
    whole = table.astype({"start": int, "stop": int})
    window = (0.0, 8.0 * WINDOW[1])
    assert panel_of(whole, window) == panel_of(table, window)
    assert panel_of(whole.astype({"start": np.int16}), (0, 128)) == panel_of(table, window)


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_and_columns_changes_no_bit(name: str) -> None:
    case = CASES[name]
    again = answers(case.fit(shuffled(case.table())), TIMES)
    assert_same(again, answers(baseline(name), TIMES), BIT_FOR_BIT)


@pytest.mark.parametrize("name", names("labels"))
def test_the_names_of_subjects_do_not_matter(name: str) -> None:
    case = CASES[name]
    table = case.table()
    labels = sorted(set(table["subject"]))
    other = {label: f"Patient {(7 * k + 3) % len(labels)} é" for k, label in enumerate(labels)}
    model = case.fit(table.assign(subject=table["subject"].map(other)))
    again = answers(model, TIMES)
    if "subject effects" in again:  # reported in the order of the labels
        order = np.argsort(np.argsort([other[label] for label in labels]))
        again["subject effects"] = again["subject effects"][order]
    assert_same(again, answers(baseline(name), TIMES), tolerance(name))


def test_subjects_keep_their_own_effects() -> None:
    # the busiest subject is the busiest under any name
    for name in ("GP4CW", "GP4C gamma", "NPMLE gamma", "NPMPLGF", "HomogeneousPoisson gamma"):
        model = CASES[name].fit(study().replace({"subject": {"s07": "a first", "s00": "z last"}}))
        assert model.subjects_[np.argmax(model.subject_effects_)] == "a first", name
