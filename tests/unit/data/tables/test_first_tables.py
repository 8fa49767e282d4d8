"""The tables of the README, as printed and in any order, and what is recognised in tables."""

import io
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import gp4c
from gp4c.data.tables.readers import recognise_table
from gp4c.exceptions import PanelDataError

README = Path(__file__).parents[4] / "README.md"


def readme_tables():
    block = re.search(r"```text\n(id,from.*?)```", README.read_text(encoding="utf-8"), re.S)[1]
    pairs = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
    return [[pair[k] for pair in pairs] for k in (0, 1)]


@pytest.mark.parametrize("which", [0, 1])
def test_the_tables_of_the_readme_are_read_in_any_order(which):
    header, *rows = readme_tables()[which]
    whole = gp4c.read_panel(io.StringIO("\n".join([header, *rows])))
    assert whole.n_events == 3
    assert set(whole.covariates["arm"]) == {"a", "b"}
    for order in itertools.permutations(rows):
        assert gp4c.read_panel(io.StringIO("\n".join([header, *order]))) == whole


def test_a_window_has_room_for_rounding_and_for_no_more():
    end = 60.00000000000002
    table = {"subject": [1], "start": [-1e-15], "stop": [end], "count": [2]}
    panel = gp4c.PanelCounts.from_frame(table, window=(0, 60))
    assert (panel.start[0], panel.stop[0], panel.window) == (0, 60, (0, 60))
    assert gp4c.PanelCounts.from_frame(table).with_window((0, 60)).stop[0] == 60
    with pytest.raises(PanelDataError, match="the window must contain every interval"):
        gp4c.PanelCounts.from_frame(table | {"stop": [60.000001]}, window=(0, 60))
    steps = np.cumsum(np.full(600, 0.1))
    rows = {"subject": [1], "start": [0.0], "stop": [steps[-1]], "count": [2]}
    assert steps[-1] > 60
    assert gp4c.PanelCounts.from_frame(rows, window=(0, 60)).stop[0] == 60


def test_codes_with_leading_zeros_are_text_in_every_column():
    text = "id,from,to,n,site,lot\n1,0,3,02,007,10\n2,0,04,1,012,20\n"
    panel = gp4c.read_panel(io.StringIO(text))
    assert panel.covariates["site"].tolist() == ["007", "012"]
    assert panel.covariates["lot"].tolist() == [10, 20]
    assert "column 'site' has codes with leading zeros, such as 007: a category" in panel.notes
    assert (panel.count.tolist(), panel.stop.tolist()) == ([2, 1], [3, 4])


def test_what_is_recognised_and_what_is_wrong_is_said_by_row():
    text = "Patient;Datum;n;x\n" + "".join(f"{k};2024-01-01;{k % 2 - 1};1\n" for k in range(30))
    found = recognise_table(io.StringIO(text))
    assert found.columns == ("Patient", "Datum", "n", "x")
    assert found.names == {"subject": "Patient", "count": "n"}
    assert found.undecided == {"start": [], "stop": []}
    assert "semicolons" in found.notes[0]
    assert (found.panel, found.problems[0].rows) == (None, ())
    found = recognise_table(io.StringIO(text), time="Datum")
    assert found.is_visits
    assert len(found.problems) == 15
    assert found.problems[1].rows == (2,)
    assert str(found.problems[1]) == "'n' must not be negative; found -1 (line 4)"
    assert len(found.preview) == 8
    good = recognise_table(io.StringIO("id,from,to,n\n1,0,3,2\n"))
    assert good.problems == ()
    assert good.panel.n_events == 2
    with pytest.raises(PanelDataError, match="is empty"):
        recognise_table(io.StringIO(""))


def test_times_of_a_file_with_dates_are_dates_in_messages():
    with pytest.raises(
        PanelDataError, match=r"subject 1 has \(2024-01-01, 2024-02-01\] and \(2024"
    ):
        gp4c.read_panel(
            io.StringIO("id,from,to,n\n1,01JAN2024,01FEB2024,0\n1,15JAN2024,01MAR2024,0\n")
        )
    with pytest.raises(PanelDataError, match=r"found \(2024-02-01 08:30, 2024-02-01\]"):
        gp4c.read_panel(io.StringIO("id,from,to,n\n1,01FEB2024:08:30,01FEB2024,0\n"))
