"""What holds for every panel: order of rows, labels, subsets and round trips."""

from __future__ import annotations

import gzip
import io
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import gp4c

#: at least 1e-12 of the widest window apart
TIMES = st.floats(-1e9, 1e9).map(lambda time: round(time, 2))
WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x00"), max_size=6
).map(lambda text: f"s{text}")
LABELS = st.one_of(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=6, unique=True),
    st.lists(WORDS, min_size=1, max_size=6, unique=True),
)


@st.composite
def tables(draw) -> pd.DataFrame:
    """Intervals of some subjects, with gaps, ties, exposures and covariates, rows shuffled."""
    rows = []
    for label in draw(LABELS):
        times = sorted(draw(st.lists(TIMES, min_size=2, max_size=7, unique=True)))
        arm = draw(st.sampled_from(["x", "y", 'quote"s, comma']))
        for start, stop in pairwise(times):
            rows.append((label, start, stop, draw(st.integers(0, 2**47)), arm))
    kept = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    rows = [row for row, keep in zip(rows, kept, strict=True) if keep] or rows
    rows = draw(st.permutations(rows))
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count", "arm"])
    table["exposure"] = draw(
        st.lists(st.floats(1e-3, 1e3), min_size=len(table), max_size=len(table))
    )
    return table


def panel_of(table) -> gp4c.PanelCounts:
    return gp4c.PanelCounts.from_frame(table, exposure="exposure")


def same_distinct(one: gp4c.PanelCounts, two: gp4c.PanelCounts) -> bool:
    names = ("start", "stop", "count", "exposure")
    found, other = one.distinct(), two.distinct()
    return all(np.array_equal(getattr(found, n), getattr(other, n)) for n in names)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, random):
    order = list(range(len(table)))
    random.shuffle(order)
    one, two = panel_of(table), panel_of(table.iloc[order])
    assert one == two
    assert same_distinct(one, two)
    assert np.array_equal(one.content_order(), two.content_order())


@given(tables(), st.randoms(use_true_random=False))
def test_relabelling_changes_labels_only(table, random):
    labels = list(pd.unique(table["subject"]))
    fresh = list(range(len(labels)))
    random.shuffle(fresh)
    names = dict(zip(labels, fresh, strict=True))
    one, two = panel_of(table), panel_of(table.assign(subject=table["subject"].map(names)))
    assert same_distinct(one, two)
    in_order = [panel[panel.content_order()[k]] for panel in (one, two) for k in range(len(one))]
    for first, second in zip(in_order[: len(one)], in_order[len(one) :], strict=True):
        assert np.array_equal(first.start, second.start)
        assert np.array_equal(first.stop, second.stop)
        assert np.array_equal(first.count, second.count)
        assert np.array_equal(first.exposure, second.exposure)


@given(tables(), st.integers(0, 2**32 - 1))
def test_splitting_and_joining_give_the_panel_back(table, seed):
    panel = panel_of(table)
    assert gp4c.PanelCounts.concat(list(panel)) == panel
    if len(panel) > 1:
        train, test = panel.split(random_state=seed)
        assert not set(train.subjects.tolist()) & set(test.subjects.tolist())
        assert gp4c.PanelCounts.concat([test, train]) == panel


@given(tables(), st.data())
def test_subsets_hold_the_rows_of_their_subjects(table, data):
    panel = panel_of(table)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(panel), max_size=len(panel))))
    if not mask.any():
        mask[0] = True
    chosen = panel[mask]
    kept = set(panel.subjects[mask].tolist())
    assert chosen == panel_of(table[table["subject"].isin(kept)]).with_window(panel.window)
    assert chosen.n_events == table.loc[table["subject"].isin(kept), "count"].sum()


@given(tables())
def test_round_trips_through_dataframes(table):
    panel = panel_of(table)
    frame = panel.to_frame().assign(exposure=panel.exposure)
    kinds = [
        frame,
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame),
        {name: frame[name].to_numpy() for name in frame},
        {name: frame[name].tolist() for name in frame},
        # numbers written as text
        frame.assign(start=frame["start"].map(repr), stop=frame["stop"].map(repr)),
    ]
    for data in kinds:
        assert panel_of(data) == panel
    assert pickle.loads(pickle.dumps(panel)) == panel


@given(tables())
def test_round_trips_through_files(table):
    panel = panel_of(table)
    frame = panel.to_frame().assign(exposure=panel.exposure)
    text = frame.to_csv(index=False)
    stored = io.BytesIO()
    parquet.write_table(pa.Table.from_pandas(frame), stored)
    for data in (text.encode(), gzip.compress(text.encode(), mtime=0), stored.getvalue()):
        assert gp4c.read_panel(io.BytesIO(data)) == panel


@given(tables())
def test_visits_and_intervals_say_the_same(table):
    panel = panel_of(table)
    frame = panel.to_frame().assign(exposure=panel.exposure)
    joined = [
        rows for _, rows in frame.groupby("subject")
        if np.array_equal(rows["stop"].to_numpy()[:-1], rows["start"].to_numpy()[1:])
    ]  # fmt: skip
    if not joined:
        return
    whole = pd.concat(joined)
    entry = whole.groupby("subject")["start"].transform("first")
    visits = whole.rename(columns={"stop": "time"}).assign(entry=entry).drop(columns="start")
    got = gp4c.PanelCounts.from_visits(visits, origin="entry", exposure="exposure")
    assert got == panel_of(whole)
