"""Tables for other programs: rows of JSON; CSV that a spreadsheet cannot mistake for formulas."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from gp4c.data.tables.formats.spreadsheet_guard import guarded

if TYPE_CHECKING:
    import os

    import pandas as pd

    from gp4c.estimators.base import PanelEstimator


def json_rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Rows of a table as JSON has them; what is not defined is null."""
    import json

    rows: list[dict[str, object]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows


def to_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV; texts that a spreadsheet would run get an apostrophe in front.

    :func:`gp4c.read_panel` takes it away again, so that labels are what they were.
    """
    safe = frame.rename(columns=guarded)
    for name in safe.columns:
        if safe[name].dtype.kind not in "biufM":
            safe[name] = safe[name].map(guarded)
    text = str(safe.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # ends a line for spreadsheets, but Python's csv quotes "\n" alone
        text = str(safe.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text


def write_csv(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write :func:`to_csv` to a file, whole or not at all."""
    from gp4c.atomic import write_text

    write_text(path, to_csv(frame))


def with_dates(frame: pd.DataFrame, model: PanelEstimator) -> pd.DataFrame:
    """A table of curves with dates beside its times, where the data had dates."""
    from gp4c.data.timeaxis import TimeAxis

    axis = TimeAxis.of(model)
    if axis.origin is not None:
        frame.insert(1, "date", [axis.date(time) for time in frame["time"]])
    return frame
