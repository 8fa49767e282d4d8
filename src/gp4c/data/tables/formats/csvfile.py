"""Comma-separated text as a table, with exact line numbers whenever something is wrong."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.checks import SHOWN, Problems
from gp4c.data.tables.columns import MISSING_TEXT, numbers_in
from gp4c.data.tables.formats.spreadsheet_guard import restored, restored_names
from gp4c.data.tables.formats.text_layout import Layout
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import InvalidRow

    from gp4c.data.tables.columns import Column

_NAMES = {";": "';'", "\t": "a tab ('\\t')", "|": "'|'", " ": "a space"}
_NUMBER = re.compile(r"[-+]?\d+([.,]\d*)?")
_POINTS_IN_THOUSANDS = r"\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?\s*"


def read_csv_table(
    data: bytes,
    source: str,
    layout: Layout,
    *,
    label_column: Callable[[list[str]], str | None],
) -> Table:
    """Parse the bytes of a CSV file.

    Parameters
    ----------
    data : bytes
        UTF-8.
    source : str
        Name of the file for messages.
    layout : Layout
    label_column : callable
        Given the header, says which column holds the subject labels; these are kept as written
        unless all are whole numbers in usual form.

    Returns
    -------
    Table
        Rows are named by line number, the first line of the file being line 1.
    """
    import pyarrow as pa

    lines = _Lines(data, layout)
    try:
        line, header = _header(lines, source, layout.delimiter)
        body = _from_line(data, line)
        problems = Problems(lines.locate)
        unequal, columns = _parse(body, header, label_column(header), layout, problems)
        if unequal:
            _raise_unequal(lines, len(header), layout.decimal)
        problems.raise_any()
    except (csv.Error, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise PanelDataError(f"{source} is not a table: {reason}") from None
    frame = {name: values for name, values in columns.items() if name}
    notes = ("a column without a name was left out",) if "" in columns else ()
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows == 0:
        raise PanelDataError(f"{source} is empty; it needs a header and at least one row")
    return _without_blank_rows(Table(frame, n_rows, lines.locate, source, notes))


def _from_line(data: bytes, line: int) -> bytes:
    """Text from a line on."""
    ends = itertools.islice(re.finditer(rb"\r\n|\r|\n", data), max(line - 2, 0), None)
    return data if line == 1 else data[next(ends).end() :]


def as_utf8(data: bytes, source: str, encoding: str | None) -> bytes:
    """Text as UTF-8 without byte order mark; anything else is an error that says where."""
    encoding = encoding or "utf-8"
    try:
        if codecs.lookup(encoding).name != "utf-8":
            data = data.decode(encoding).encode()
        elif not data.isascii():
            data.decode()
    except LookupError:
        raise PanelDataError(f"there is no encoding {encoding!r}") from None
    except UnicodeError as error:
        position = getattr(error, "start", 0)
        line = data.count(b"\n", 0, position) + 1
        raise PanelDataError(
            f"{source} is not {encoding.upper()} text; byte {data[position]:#04x} is not "
            f"allowed (line {line}); if it is text, pass its encoding, such as encoding='latin-1'"
        ) from None
    return data.removeprefix(codecs.BOM_UTF8)


class _Lines:
    """Where the rows of a CSV text start; scanned only as far as a message needs it."""

    def __init__(self, data: bytes, layout: Layout) -> None:
        self._data = data
        self._layout = layout
        self._starts: list[int] = []
        self._scan = self.rows()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of each row from the header on that is not blank."""
        text = io.TextIOWrapper(io.BytesIO(self._data), encoding="utf-8", newline="")
        reader = csv.reader(text, delimiter=self._layout.delimiter)
        line, width, above = 1, 0, self._layout.above
        for cells in reader:
            if any(cell.strip() for cell in cells) or (width > 1 and len(cells) == width):
                above -= 1
                if above < 0:
                    width = width or len(cells)
                    yield line, cells
            line = reader.line_num + 1

    def locate(self, positions: Sequence[int]) -> str:
        """Name rows by line number."""
        needed = max(positions) + 2 - len(self._starts)
        self._starts += [line for line, _ in itertools.islice(self._scan, max(needed, 0))]
        numbers = [str(self._starts[position + 1]) for position in positions]
        return f"line{'s' * (len(numbers) > 1)} {' and '.join(numbers)}"


def _header(lines: _Lines, source: str, delimiter: str) -> tuple[int, list[str]]:
    """Line and column names; complains about a wrong delimiter and names that occur twice."""
    first = next(lines.rows(), None)
    if first is None:
        raise PanelDataError(f"{source} is empty; it needs a header and at least one row")
    names = restored_names([name.strip() for name in first[1]])
    if len(names) == 1:
        other = max((mark for mark in ",;\t| " if mark != delimiter), key=names[0].count)
        if names[0].count(other):
            shown = _NAMES.get(other, repr(other))
            raise PanelDataError(
                f"{source} has a single column {names[0][:60]!r}; the delimiter seems to be "
                f"{shown}: pass delimiter={other!r}"
            )
        raise PanelDataError(f"{source} has a single column {names[0][:60]!r}; is it a table?")
    if all(_NUMBER.fullmatch(name) for name in names):
        listed = ", ".join(names[:8])
        raise PanelDataError(
            f"the first line must hold column names; found numbers {listed} (line {first[0]})"
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if any(twice):
        raise PanelDataError(
            f"column names must differ; {twice[0]!r} occurs twice (line {first[0]})"
        )
    return first[0], names


def _parse(
    data: bytes, header: list[str], label: str | None, layout: Layout, problems: Problems
) -> tuple[bool, dict[str, Column]]:
    """Columns by name, and whether some row has another number of cells than the header."""
    import pyarrow as pa

    unequal: list[bool] = []
    delimiter, decimal = layout.delimiter, layout.decimal

    def note_and_skip(row: InvalidRow) -> str:
        if row.text.replace(delimiter, "").strip():
            unequal.append(True)
        return "skip"

    read = partial(_read_arrow, data, header, layout, note_and_skip)
    text = pa.string()
    try:
        columns = read({} if label is None else {label: text})
        guessed = not _has_codes(data, delimiter)
    except pa.ArrowInvalid:  # types guessed from the first rows do not fit later ones
        guessed = False
    if not guessed:
        unequal.clear()
        columns = read(dict.fromkeys(header, text), block_size=min(len(data) + 1, 2**31 - 1))
    for name, column in columns.items():
        column = columns[name] = restored(column)
        if name == label:
            columns[name] = _as_written(column)
        elif not guessed or decimal != ".":
            if decimal == ",":
                _flag_thousands(problems, name, column)
            columns[name] = _as_numbers(column, decimal)
    return bool(unequal), columns


def _read_arrow(
    data: bytes,
    header: list[str],
    layout: Layout,
    unequal_row: Callable[[InvalidRow], str],
    types: Mapping[str, pa.DataType],
    **options: int,
) -> dict[str, Column]:
    """Columns as Arrow reads them; those without a type get the one that it guesses."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    delimiter, decimal = layout.delimiter, layout.decimal
    names = arrow.ReadOptions(column_names=header, skip_rows_after_names=1, **options)
    cells = arrow.ConvertOptions(
        column_types=types,
        null_values=list(MISSING_TEXT),
        strings_can_be_null=True,
        decimal_point="." if decimal == delimiter else decimal,
    )
    rows = arrow.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, invalid_row_handler=unequal_row
    )
    return _columns(arrow.read_csv(pa.BufferReader(data), names, rows, cells))


def _has_codes(data: bytes, delimiter: str) -> bool:
    """Whether some cell is a whole number with leading zeros, such as 007."""
    mark = re.escape(delimiter.encode())
    return re.search(rb'[\n\r"' + mark + rb'] *0\d+ *(?:[\n\r"' + mark + rb"]|$)", data) is not None


def _columns(table: pa.Table) -> dict[str, Column]:
    """Columns of an Arrow table; at most the last of several without a name."""
    if not table.num_rows:
        return {}
    kept = {name: k for k, name in enumerate(table.column_names)}
    # straight to pandas: the way through narwhals would load it for nothing
    return {
        name: table.column(k).to_pandas(date_as_object=False).rename(None)
        for name, k in kept.items()
    }


def _as_written(labels: Column) -> Column:
    """Labels as integers if all are written as such (not 007), else as text."""
    import pandas as pd

    codes, unique = pd.factorize(labels)
    texts = pd.Series(list(unique), dtype="string")
    if not len(texts) or not bool(texts.str.fullmatch(r"0|-?[1-9][0-9]{0,17}").all()):
        return labels
    numbers = pd.Series(texts.astype("Int64").array[codes])
    return numbers.mask(codes < 0)


def _as_numbers(column: Column, decimal: str) -> Column:
    """Text cells as numbers if all are; else those that are numbers with a decimal point.

    A column with leading zeros, such as 007, holds codes and stays text.
    """
    import pandas as pd

    if not pd.api.types.is_string_dtype(column.dtype):
        return column
    if bool(column.str.fullmatch(r"\s*0\d+\s*").any()):
        return column
    text = column.str.replace(decimal, ".", regex=False)
    numbers = pd.Series(numbers_in(text))
    if bool((numbers.isna() & column.notna()).any()):
        return text.where(numbers.notna(), column)
    written_whole = bool(column.str.fullmatch(r"\s*[-+]?\d{1,15}\s*").all())
    return numbers.astype("int64") if written_whole else numbers


def _flag_thousands(problems: Problems, name: str, column: Column) -> None:
    """Flag points between thousands, which would be read as decimal points: 1.087 is not 1,087."""
    import pandas as pd

    if not pd.api.types.is_string_dtype(column.dtype):
        return
    grouped = column.str.fullmatch(_POINTS_IN_THOUSANDS).fillna(False).to_numpy(dtype=bool)
    others = column[~grouped].dropna()
    if not grouped.any() or bool(others.str.contains(".", regex=False).any()):
        return  # no such cell, or the points of this column are decimal points, or dates
    if np.isnan(numbers_in(others.str.replace(",", ".", regex=False))).any():
        return  # a column of text
    problems.flag(
        grouped,
        f"{name!r} has a point between thousands where decimals are marked by commas",
        lambda row: f"found {column.iloc[row]!r}; write the number without the point",
    )


def _raise_unequal(lines: _Lines, expected: int, decimal: str) -> None:
    """Report rows with another number of cells than the header."""
    found = [(line, len(cells)) for line, cells in lines.rows() if len(cells) != expected]
    problems = Problems(lambda rows: f"line {rows[0]}")
    problems.hide(max(len(found) - SHOWN, 0))
    more = all(size > expected for _, size in found)
    hint = "; decimal commas need another delimiter or quotes" if more and decimal == "." else ""
    for line, size in found[:SHOWN]:
        problems.add([line], f"every row must have {expected} cells; found {size}{hint}")
    problems.raise_any()


def _without_blank_rows(table: Table) -> Table:
    """Leave out rows in which every cell is empty, as spreadsheets write them."""
    blank = np.ones(table.n_rows, dtype=bool)
    for column in table.columns.values():
        blank &= column.isna().to_numpy(dtype=bool)
        if not blank.any():
            return table
    if blank.all():
        raise PanelDataError(f"{table.source} is empty; every cell is missing")
    return table.take(np.flatnonzero(~blank))
