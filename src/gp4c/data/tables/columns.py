"""Columns of cells read as numbers, counts, exposures or subject labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import (
    LARGEST_EXACT,
    LARGEST_SIZE,
    SMALLEST_SIZE,
    Problems,
    plural,
    shown_number,
)
from gp4c.data.ordering import label_array, label_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]
#: a column of a table, of whatever its cells are
Column: TypeAlias = "pd.Series[Any]"

#: what to do about a missing count
_LEAVE_OUT = "; missing='drop' leaves it out"
#: numbers with marks between thousands and a decimal mark: 1,087.5 or 1.087,5
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+)")
#: texts that stand for a missing cell
MISSING_TEXT = ("", ".", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NULL", "null")


@dataclass(frozen=True)
class Numbers:
    """Cells as floats: NaN where a cell is missing or is not a number."""

    values: FloatArray
    missing: BoolArray
    unreadable: BoolArray
    too_large: BoolArray  # integers that double precision would round

    @property
    def good(self) -> BoolArray:
        """Cells that hold a finite number."""
        finite: BoolArray = np.isfinite(self.values)
        return finite


def parse_numbers(column: Column) -> Numbers:
    """Read numbers from a column of any type; numbers written as text count as numbers."""
    import pandas as pd

    kind = pd.api.types
    none = np.zeros(len(column), dtype=bool)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if kind.is_bool_dtype(column.dtype) or kind.is_complex_dtype(column.dtype):
        missing = column.isna().to_numpy()
        return Numbers(np.full(len(column), np.nan), missing, ~missing, none)
    if kind.is_numeric_dtype(column.dtype):
        return _from_numeric(column)
    return _from_objects(column)


def _from_numeric(column: Column) -> Numbers:
    import pandas as pd

    none = np.zeros(len(column), dtype=bool)
    too_large = none
    if pd.api.types.is_integer_dtype(column.dtype):
        filled = column.fillna(0) if column.hasnans else column
        raw = filled.to_numpy()
        if len(raw) and (raw.max() > LARGEST_EXACT or raw.min() < -LARGEST_EXACT):
            too_large = (raw > LARGEST_EXACT) | (raw < -LARGEST_EXACT)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    return Numbers(values, np.isnan(values), none, too_large)


def _from_objects(column: Column) -> Numbers:
    missing = missing_cells(column)
    objects = column.astype(object).where(~missing, None)
    numbers = numbers_in(objects)
    too_large: BoolArray = np.abs(numbers) > LARGEST_EXACT
    return Numbers(numbers, missing, np.isnan(numbers) & ~missing, too_large & _whole(numbers))


def numbers_in(cells: Column) -> FloatArray:
    """Numbers, and texts of numbers, correctly rounded; NaN for everything else."""
    return np.fromiter((_to_float(cell) for cell in cells), dtype=np.float64, count=len(cells))


def _to_float(cell: Any) -> float:
    """Read one cell; whole numbers beyond all floats become infinite."""
    if isinstance(cell, bool | np.bool_ | np.complexfloating):
        return float("nan")
    try:
        if isinstance(cell, str):
            return float("nan") if "_" in cell else float(cell)
        return float(cell) if isinstance(cell, Real | Decimal) else float("nan")
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def _whole(values: FloatArray) -> BoolArray:
    whole: BoolArray = np.isfinite(values) & (np.floor(values) == values)
    return whole


def missing_cells(column: Column) -> BoolArray:
    """Mask of the cells that are null, NaN, blank or a usual text for "missing"."""
    import pandas as pd

    missing = column.isna().to_numpy(dtype=bool)
    if column.dtype == object:  # cells of any kind: bytes need not be text
        texts = (isinstance(cell, str) and cell.strip() in MISSING_TEXT for cell in column)
        missing = missing | np.fromiter(texts, dtype=bool, count=len(column))
    elif pd.api.types.is_string_dtype(column.dtype):
        text = column.astype("string").str.strip().isin(MISSING_TEXT)
        missing = missing | text.fillna(False).to_numpy(dtype=bool)
    return missing


def shown_cell(column: Column, row: int) -> str:
    """Say what a cell holds, for messages."""
    value = column.iloc[row]
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "..."
        return f"found {shown!r}"
    if isinstance(value, float | int | np.integer | np.floating) and not isinstance(value, bool):
        return f"found {shown_number(value)}"
    return f"found {value}"


def comma_hint(column: Column, unreadable: BoolArray) -> str:
    """Ask about decimal commas, or thousands, if the first unreadable cell looks like them."""
    rows = np.flatnonzero(unreadable)
    value = column.iloc[rows[0]] if len(rows) else None
    if isinstance(value, str) and _THOUSANDS.fullmatch(value.strip()):
        return "; write the number without a mark between thousands"
    if not isinstance(value, str) or value.count(",") != 1:
        return ""
    digits = value.strip().lstrip("+-").replace(",", "")
    if not digits.isdigit():
        return ""
    if re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", value.strip()):
        return "; if the comma groups thousands, write the number without it"
    return "; if that is a decimal comma, read_panel takes decimal=','"


def date_hint(column: Column, unreadable: BoolArray) -> str:
    """Say how dates are written if the first unreadable cell looks like another way."""
    rows = np.flatnonzero(unreadable)
    value = str(column.iloc[rows[0]]).strip() if len(rows) else ""
    parts = re.split(r"[./\- ]", value)
    looks_so = len(parts) == 3 and sum(part.isdigit() for part in parts) >= 2
    looks_so = looks_so and len(parts[0]) < 4  # else it is a day that does not exist
    return "; dates are written year-month-day, such as 2024-01-31" if looks_so else ""


def check_cells(
    problems: Problems, name: str, column: Column, numbers: Numbers, what: str = "a number",
    remedy: str = "",
) -> None:  # fmt: skip
    """Flag cells that are missing, not a number or not finite; `remedy` helps with the first."""
    empty = f"the cell is missing{remedy}"
    problems.flag(numbers.missing, f"{name!r} must be {what}", lambda row: empty)
    hint = comma_hint(column, numbers.unreadable)
    if "date" in what:
        hint = hint or date_hint(column, numbers.unreadable)
    problems.flag(
        numbers.unreadable,
        f"{name!r} must be {what}",
        lambda row: shown_cell(column, row) + hint,
    )
    problems.flag(
        np.isinf(numbers.values), f"{name!r} must be finite", lambda row: shown_cell(column, row)
    )


def read_counts(problems: Problems, name: str, column: Column) -> IntArray:
    """Counts as integers; flags what is not a whole number from 0 to 2^53."""
    numbers = parse_numbers(column)
    check_cells(problems, name, column, numbers, remedy=_LEAVE_OUT)
    values, good = numbers.values, numbers.good

    def found(row: int) -> str:
        return shown_cell(column, row)

    problems.flag(good & (values < 0), f"{name!r} must not be negative", found)
    fractional = good & (values >= 0) & (np.floor(values) != values)
    problems.flag(fractional, f"{name!r} must be a whole number", found)
    large = good & (values > 0) & (numbers.too_large | (values > LARGEST_EXACT))
    problems.flag(large & ~fractional, f"{name!r} must be at most 2^53", found)
    return np.where(good & ~large & (values >= 0), values, 0.0).astype(np.int64)


def read_exposure(problems: Problems, name: str, column: Column, count: IntArray) -> FloatArray:
    """Exposures; flags negative ones, and zero where there are events."""
    numbers = parse_numbers(column)
    check_cells(problems, name, column, numbers)
    problems.flag(
        numbers.values < 0, f"{name!r} must not be negative", lambda row: shown_cell(column, row)
    )
    problems.flag(
        (numbers.values == 0) & (count > 0),
        f"{name!r} must be positive where there are events",
        lambda row: f"found 0 with {plural(int(count[row]), 'event')}",
    )
    extreme = (numbers.values > LARGEST_SIZE) | (numbers.values < SMALLEST_SIZE)
    problems.flag(
        extreme & (numbers.values > 0) & numbers.good,
        f"{name!r} must be 0 or between {SMALLEST_SIZE:g} and {LARGEST_SIZE:g}",
        lambda row: shown_cell(column, row),
    )
    return numbers.values


def read_labels(problems: Problems, name: str, column: Column) -> tuple[IndexArray, LabelArray]:
    """Subject of each row as a position in the sorted labels.

    Returns
    -------
    index : (n_rows,) array
        -1 where the label is missing (flagged).
    labels : (n_subjects,) array
        Integers or floats as numbers, everything else as given.
    """
    import pandas as pd

    if column.dtype == object:
        column = column.infer_objects()
    try:
        index, unique = pd.factorize(column)
    except TypeError as error:
        raise PanelDataError(f"{name!r} must hold hashable labels: {error}") from None
    problems.flag(index < 0, f"{name!r} must label the subject", lambda row: "the cell is missing")
    labels = _as_labels(unique)
    order = label_order(labels)
    rank = np.empty(len(labels) + 1, dtype=np.intp)
    rank[order] = np.arange(len(labels))
    rank[-1] = -1
    return rank[index], labels[order]


def _as_labels(values: pd.Index[Any]) -> LabelArray:
    """Labels of a pandas index: whole numbers and floats by value, the rest as given."""
    import pandas as pd

    index = pd.Index(values, tupleize_cols=False)
    if pd.api.types.is_integer_dtype(index.dtype):
        return label_array(index.to_numpy(dtype=np.int64))
    if pd.api.types.is_float_dtype(index.dtype):
        return label_array(index.to_numpy(dtype=np.float64))
    return label_array(index)
