"""Numbers beyond what double precision bears are refused at the door, with value and row.

Found by the fuzz campaign: such tables were accepted, and estimators answered with NaN.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.checks import SHORTEST_SHARE
from gp4c.data.tables.batches import RowReader
from gp4c.exceptions import PanelDataError

NAMES = {"subject": "subject", "start": "start", "stop": "stop", "count": "count"}


def table(*rows: tuple[float, ...]) -> pd.DataFrame:
    names = ["subject", "start", "stop", "count", "exposure"]
    return pd.DataFrame(rows, columns=names[: len(rows[0])])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(1, -1.7e308, 1.0, 2)],
            "'start' must be at most 1e+100 in size; found -1.7e+308 (row 0)",
        ),
        ([(1, 0.0, 1.0, 2), (2, 0.0, 1e101, 2)], "'stop' must be at most 1e+100 in size"),
        ([(1, 0.0, 1e-200, 2)], "be at least 1e-100 long; found (0, 1e-200)"),
        (
            [(1, 0.0, 10.0, 0), (2, 0.0, 1e-306, 1)],
            "an interval must be at least 1e-12 of the window (0, 10) long; "
            "found (0, 1e-306] (row 1)",
        ),
        ([(k, 0.0, 1.0, 2**53) for k in range(600)], "all counts together must be at most 2^62"),
    ],
)
def test_numbers_beyond_reason_are_refused(rows, message):
    with pytest.raises(PanelDataError) as caught:
        gp4c.PanelCounts.from_frame(table(*rows))
    assert message in str(caught.value)


@pytest.mark.parametrize("exposure", [5e-324, 1e-101, 1e101, 1.7e308])
def test_exposures_beyond_reason_are_refused(exposure):
    with pytest.raises(PanelDataError, match=r"'exposure' must be 0 or between 1e-100 and 1e\+100"):
        gp4c.PanelCounts.from_frame(table((1, 0.0, 1.0, 1, exposure)), exposure="exposure")


def test_rows_read_in_parts_obey_the_same_limits():
    reader = RowReader(NAMES)
    assert len(reader.read_frame(table((1, -1e100, 1e100, 2))).start) == 1
    for bad in ((1, -1.7e308, 1.0, 2), (1, 0.0, 1e101, 2), (1, 0.0, np.inf, 2)):
        with pytest.raises(PanelDataError):
            reader.read_frame(table(bad))


def test_a_window_must_not_dwarf_the_intervals():
    panel = gp4c.PanelCounts.from_frame(table((1, 0.0, 1.0, 1), (1, 1.0, 2.0, 1)))
    assert panel.with_window((0.0, 0.9 / SHORTEST_SHARE)).window[1] == 0.9 / SHORTEST_SHARE
    with pytest.raises(PanelDataError, match="at least 1e-12 of the window"):
        panel.with_window((0.0, 1.1 / SHORTEST_SHARE))
    with pytest.raises(PanelDataError, match="the window must lie within ±1e"):
        panel.with_window((0.0, 1e300))


def test_the_largest_and_smallest_legal_numbers_pass():
    wide = gp4c.PanelCounts.from_frame(table((1, -1e100, 0.0, 1), (1, 0.0, 1e100, 2**53)))
    assert wide.window == (-1e100, 1e100)
    narrow = gp4c.PanelCounts.from_frame(table((1, 0.0, 1e-99, 3)))
    assert gp4c.HomogeneousPoisson().fit(narrow).rate_ == pytest.approx(3e99)
