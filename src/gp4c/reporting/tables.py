"""Tables for other programs: CSV that a spreadsheet cannot mistake for formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    import pandas as pd

#: a cell that begins with one of these is a formula to a spreadsheet
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV; texts that a spreadsheet would run get an apostrophe in front."""
    safe = frame.rename(columns=safe_cell)
    for name in safe.columns:
        if safe[name].dtype.kind not in "biufM":
            safe[name] = safe[name].map(safe_cell)
    return str(safe.to_csv(index=False, lineterminator="\n"))


def write_csv(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write :func:`to_csv` to a file, whole or not at all."""
    from gp4c.atomic import write_text

    write_text(path, to_csv(frame))


def safe_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS) and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
