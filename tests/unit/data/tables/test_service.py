"""When subjects went out of service."""

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.exceptions import PanelDataError

NAMES = {"subject": "id", "start": "from", "stop": "to", "count": "n"}
TABLE = pd.DataFrame(
    {"id": ["b", "b", "a", "c"], "from": [0, 4, 0, 1], "to": [4, 6, 7, 5], "n": [1, 0, 2, 0]}
)


@pytest.mark.parametrize("cells", [[6, 6, None, 9], [None, 6, None, 9]])
def test_one_row_or_all_rows_say_when(cells):
    panel = gp4c.PanelCounts.from_frame(TABLE.assign(gone=cells), end="gone", **NAMES)
    assert panel.subjects.tolist() == ["a", "b", "c"]
    assert np.array_equal(panel.end, [np.nan, 6, 9], equal_nan=True)
    again = gp4c.PanelCounts.from_frame(panel.to_frame(), end="end")
    assert again == panel
    assert np.array_equal(panel[[0, 2]].end, [np.nan, 9], equal_nan=True)
    assert panel.summary()["out of service"] == 2


def test_yes_means_at_the_last_visit():
    panel = gp4c.PanelCounts.from_frame(
        TABLE.assign(gone=["no", "yes", "No", None]), end="gone", **NAMES
    )
    assert np.array_equal(panel.end, [np.nan, 6, np.nan], equal_nan=True)


def test_dates_are_on_the_axis_of_the_visits():
    dates = pd.DataFrame(
        {
            "id": [1, 1, 2], "day": ["2024-01-01", "2024-01-31", "2024-01-11"], "n": [0, 3, 0],
            "out": [None, "2024-02-10", None],
        }
    )  # fmt: skip
    options = {"subject": "id", "time": "day", "count": "n", "end": "out", "origin": None}
    dates.loc[len(dates)] = [2, "2024-01-21", 1, None]
    panel = gp4c.PanelCounts.from_visits(dates, **options)
    assert np.array_equal(panel.end, [40, np.nan], equal_nan=True)
    since = gp4c.PanelCounts.from_visits(
        dates.assign(out=[None, None, None, "2024-01-25"]), since_entry=True, **options
    )
    assert np.array_equal(since.end, [np.nan, 14], equal_nan=True)  # since its first visit


def test_messages_have_dates_where_times_are_dates():
    dates = pd.DataFrame({"id": [1, 1], "day": ["2024-01-01", "2024-02-10"], "n": [0, 2]})
    options = {"subject": "id", "time": "day", "count": "n", "end": "out", "origin": "first"}
    said = "subject 1 was out of service from 2024-01-20 on and was seen until 2024-02-10"
    with pytest.raises(PanelDataError, match=said):
        gp4c.PanelCounts.from_visits(dates.assign(out="2024-01-20"), **options)


def test_without_the_column_everybody_is_in_service():
    panel = gp4c.PanelCounts.from_frame(TABLE, **NAMES)
    assert panel.service is None
    assert np.isnan(panel.end).all()
    assert "end" not in panel.to_frame()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [5, 5, None, None],
            r"'gone' must not be before the subject's last visit; subject b was out of service "
            r"from 5 on and was seen until 6 \(row 1\)",
        ),
        ([6, 8, None, None], r"'gone' must be the same in all rows of a subject; subject b has 6"),
        (["x", "y", None, None], "'gone' must be a number or a date; found 'x'"),
        (["2024-01-01", None, None, None], "times must be all numbers, all dates"),
    ],
)
def test_what_cannot_be_is_one_sentence(cells, message):
    with pytest.raises(PanelDataError, match=message):
        gp4c.PanelCounts.from_frame(TABLE.assign(gone=cells), end="gone", **NAMES)


def test_a_saved_model_knows_who_is_out_of_service(tmp_path):
    panel = gp4c.PanelCounts.from_frame(TABLE.assign(gone=[6, 6, None, None]), end="gone", **NAMES)
    for model in (gp4c.HomogeneousPoisson(), gp4c.NPMLE()):
        model.fit(panel).save(tmp_path / "fit.json")
        known = gp4c.load_model(tmp_path / "fit.json").histories_
        assert np.array_equal(known.end, panel.end, equal_nan=True)
