"""Any dataframe, or a dict of arrays, as named pandas columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from gp4c.data.checks import unknown_name
from gp4c.data.ordering import natural_key
from gp4c.data.subjects import IndexArray
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame
    from numpy.typing import ArrayLike

    from gp4c.data.tables.columns import Column

#: what users give as a table: a data frame of any library, or named arrays
IntoTable: TypeAlias = "IntoFrame | Mapping[str, ArrayLike] | Table"


def frame_rows(rows: Sequence[int]) -> str:
    """Name rows of a dataframe by their position from 0."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    return f"rows {' and '.join(str(row) for row in rows)}"


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name, and how to name a row to the user.

    Attributes
    ----------
    columns : dict of Series
    n_rows : int
    locate : callable
        Names rows by their positions.
    source : str
        What the table is, in a sentence.
    notes : tuple of str
        What was decided while it was read.
    titles : dict
        What columns are called at length, in files that say so.
    value_labels : dict
        By column: what its values stand for.
    """

    columns: dict[str, Column]
    n_rows: int
    locate: Callable[[Sequence[int]], str] = frame_rows
    source: str = "the table"
    notes: tuple[str, ...] = field(default=())
    titles: Mapping[str, str] = field(default_factory=dict)
    value_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)

    def take(self, rows: IndexArray) -> Table:
        """Return the table of some rows, which keep their names."""

        def locate(positions: Sequence[int]) -> str:
            return self.locate([int(rows[position]) for position in positions])

        columns = {name: values.iloc[rows] for name, values in self.columns.items()}
        columns = {name: values.reset_index(drop=True) for name, values in columns.items()}
        return replace(self, columns=columns, n_rows=len(rows), locate=locate)

    def with_notes(self, *notes: str) -> Table:
        """Return the table with further notes before its own."""
        return replace(self, notes=(*notes, *self.notes))

    def labelled(self, name: str) -> Column:
        """A column with the labels of its values, in the order of the values, if all have one."""
        import pandas as pd

        values, labels = self.columns[name], self.value_labels.get(name)
        if not labels:
            return values
        present = values.dropna()
        named = present.map(dict(labels))
        if bool(named.isna().any()):
            return values
        levels = dict.fromkeys(
            labels[value] for value in sorted(present.unique().tolist(), key=natural_key)
        )
        return named.astype(pd.CategoricalDtype(list(levels), ordered=True)).reindex(values.index)

    def column(self, name: str, role: str | None = None) -> Column:
        """Return one column, or an error that says what there is."""
        if name not in self.columns:
            purpose = f" (for {role})" if role and role != name else ""
            raise PanelDataError(
                f"{self.source} has no column {name!r}{purpose}; "
                f"{unknown_name(name, list(self.columns))}"
            )
        return self.columns[name]


def is_frame(data: object) -> TypeGuard[IntoTable]:
    """Whether :func:`table_of` can read it: a data frame of any library, or named arrays."""
    import narwhals as nw

    if isinstance(data, Table | Mapping):
        return True
    return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)


def table_of(data: IntoTable) -> Table:
    """Read a pandas, polars, pyarrow or other dataframe, or a dict of arrays."""
    if isinstance(data, Table):
        return data
    columns = _from_mapping(data) if isinstance(data, Mapping) else _from_dataframe(data)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name!r}: {size}" for name, size in lengths.items())
        raise PanelDataError(f"columns must have the same length; found {said}")
    n_rows = next(iter(lengths.values()), 0)
    if not columns or n_rows == 0:
        raise PanelDataError("the table is empty; it needs at least one row")
    return Table(columns, n_rows)


def _from_mapping(data: Mapping[str, ArrayLike]) -> dict[str, Column]:
    return {str(name): _series(str(name), values) for name, values in data.items()}


def _series(name: str, values: Any) -> Column:
    """One column of a dict: any one-dimensional array or list; tuples stay whole."""
    import pandas as pd

    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if hasattr(values, "to_pandas"):
        return pd.Series(values.to_pandas()).reset_index(drop=True)
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise PanelDataError(f"column {name!r} must be an array or a list; found {values!r}")
    if isinstance(values, list | tuple) and any(isinstance(v, tuple) for v in values):
        return pd.Series(np.fromiter(values, dtype=object, count=len(values)))
    try:
        return pd.Series(values)
    except OverflowError:  # pandas before 3, of a whole number beyond floats
        return pd.Series(list(values), dtype=object)
    except ValueError as error:
        raise PanelDataError(f"column {name!r} is not one-dimensional: {error}") from None


def _from_dataframe(data: Any) -> dict[str, Column]:
    import narwhals as nw

    try:
        frame = nw.from_native(data)
    except TypeError:
        raise PanelDataError(
            f"data must be a dataframe or a dict of arrays; found {type(data).__name__}"
        ) from None
    except nw.exceptions.DuplicateError:
        twice = next(name for name in data.columns if list(data.columns).count(name) > 1)
        raise PanelDataError(f"column names must differ; {twice!r} occurs twice") from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return {str(name): _to_pandas(frame.get_column(name)) for name in frame.columns}


def _to_pandas(series: Any) -> Column:
    """Convert a narwhals column, dates to timestamps and decimals to floats."""
    import narwhals as nw

    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("ms"))
    elif series.dtype == nw.Decimal:
        series = series.cast(nw.Float64)
    values: Column = series.to_pandas()
    return values.reset_index(drop=True)
