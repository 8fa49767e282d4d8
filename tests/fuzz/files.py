"""Files that are almost tables, and files that are none, as hypothesis strategies."""

from __future__ import annotations

import codecs
import gzip
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet

from table_files import FORMS

from .panels import small_tables
from .studies import study_tables

#: what spreadsheets, people and attackers write where a number is expected
ODD_CELLS = st.sampled_from(
    [
        "", " ", "NA", "nan", "NaN", "inf", "-inf", "1e400", "-1", "2.5", "1,5", "1.234,5", "1 000",
        "'3", '"4"', "=cmd()", "=1+1", "@SUM(A1)", "+3", "0x10", "1_000", "１２", "٣", "½", "∞",
        "2024-01-31", "31.01.2024", "2024-13-45", "2024-01-31T12:00:00Z", "12:30", "true", "None",
        "9007199254740993", "1" * 400, "-0", "1e-320", "\t3", "3 ", "3\u00a0", "\ufeff3", "\x00",
        "<script>alert(1)</script>", "%s%n", "../../etc/passwd", "🙂",
    ]
)  # fmt: skip
ODD_NUMBERS = st.sampled_from([-1.0, 0.5, float("nan"), float("inf"), 1e300, 2.0**60])
ODD_NAMES = st.sampled_from(
    ["", "subject", "start", "stop", "count", "exposure", "time", "id", "n", "=cmd()", "a b", "é"]
)


def as_csv(table: pd.DataFrame, **options: Any) -> str:
    """The text of a table."""
    return table.to_csv(index=False, **options)


@st.composite
def cells_replaced(draw: st.DrawFn) -> bytes:
    """A good table in which a few cells are odd."""
    table = draw(small_tables(4, 3)).astype(object)
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(table) - 1))
        column = draw(st.integers(0, table.shape[1] - 1))
        table.iat[row, column] = draw(ODD_CELLS)
    return as_csv(table).encode()


@st.composite
def columns_changed(draw: st.DrawFn) -> bytes:
    """Columns dropped, renamed, doubled or added."""
    table = draw(small_tables(3, 3))
    what = draw(st.sampled_from(["drop", "rename", "double", "add", "swap"]))
    name = draw(st.sampled_from(list(table.columns)))
    if what == "drop":
        table = table.drop(columns=name)
    elif what == "rename":
        table = table.rename(columns={name: draw(ODD_NAMES)})
    elif what == "double":
        table = pd.concat([table, table[[name]]], axis=1)
    elif what == "add":
        table[draw(ODD_NAMES)] = draw(ODD_CELLS)
    else:
        table = table.rename(columns={"start": "stop", "stop": "start"})
    return as_csv(table).encode()


@st.composite
def written_otherwise(draw: st.DrawFn) -> bytes:
    """The same table with other delimiters, decimal marks, line ends, quotes and encodings."""
    table = draw(small_tables(3, 3))
    text = as_csv(
        table,
        sep=draw(st.sampled_from([",", ";", "\t", "|", " ", ":"])),
        decimal=draw(st.sampled_from([".", ","])),
        quoting=draw(st.sampled_from([0, 1, 2])),
        lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])),
    )
    encoding = draw(
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp500"])
    )
    data = text.encode(encoding, errors="replace")
    if draw(st.integers(0, 4)) == 0:
        data = (
            draw(st.sampled_from([codecs.BOM_UTF16_BE, codecs.BOM_UTF8, b"\n\n", b"#x\n"])) + data
        )
    return data


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes cut, repeated, inserted or overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        size = draw(st.integers(0, 40))
        junk = draw(st.binary(max_size=8) | st.sampled_from([b"\0", b'"', b",", b"\n", b"\xff"]))
        data = draw(
            st.sampled_from(
                [
                    data[:at],
                    data[at:],
                    data[:at] + data[at + size :],
                    data[:at] + junk + data[at:],
                    data[:at] + junk + data[at + len(junk) :],
                    data[: at + size] + data[at:],
                ]
            )
        )
    return data


def bytes_damaged() -> st.SearchStrategy[bytes]:
    """A good file that is damaged."""
    whole = st.one_of(small_tables(3, 3).map(lambda t: as_csv(t).encode()), binary_tables())
    return whole.flatmap(damage)


def _stored(table: pa.Table | pd.DataFrame) -> bytes:
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table)
    target = io.BytesIO()
    parquet.write_table(table, target)
    return target.getvalue()


#: columns that no panel has, but that a Parquet file may hold
ODD_COLUMNS: dict[str, Callable[[int], pa.Array]] = {
    "lists": lambda n: pa.array([[1, 2]] * n),
    "records": lambda n: pa.array([{"a": 1}] * n),
    "bytes": lambda n: pa.array([b"\xff\x00"] * n),
    "nulls": lambda n: pa.nulls(n),
    "truths": lambda n: pa.array([True] * n),
    "decimals": lambda n: pa.array([1] * n).cast(pa.decimal128(30, 3)),
    "dates": lambda n: pa.array([0] * n).cast(pa.int32()).cast(pa.date32()),
    "moments": lambda n: pa.array([0] * n).cast(pa.timestamp("ns", "UTC")),
    "spans": lambda n: pa.array([1] * n).cast(pa.duration("s")),
    "clock": lambda n: pa.array([1] * n).cast(pa.int32()).cast(pa.time32("s")),
    "words": lambda n: pa.array(["x"] * n).dictionary_encode(),
    "wide": lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    "nan": lambda n: pa.array([float("nan")] * n),
}


@st.composite
def binary_tables(draw: st.DrawFn) -> bytes:
    """Parquet and gzip: good ones, and ones whose columns hold odd types."""
    table = draw(small_tables(3, 3))
    kind = draw(st.sampled_from(["parquet", "odd parquet", "gzip", "empty parquet"]))
    if kind == "gzip":
        return gzip.compress(as_csv(table).encode(), mtime=0)
    try:
        arrow = pa.Table.from_pandas(table)
    except pa.ArrowException:
        return b"PAR1"
    if kind == "odd parquet":
        column = draw(st.integers(0, arrow.num_columns - 1))
        odd = ODD_COLUMNS[draw(st.sampled_from(list(ODD_COLUMNS)))](arrow.num_rows)
        arrow = arrow.set_column(column, arrow.column_names[column], odd)
    elif kind == "empty parquet":
        arrow = arrow.slice(0, 0)
    return _stored(arrow)


@st.composite
def any_format(draw: st.DrawFn) -> tuple[bytes, str]:
    """A table in a file of one of the formats, whole or damaged, and the end of its name."""
    table = draw(st.one_of(small_tables(3, 3), study_tables(12)))
    if draw(st.booleans()):
        table = table.astype({"count": float})
        table.iat[draw(st.integers(0, len(table) - 1)), 3] = draw(ODD_NUMBERS)
    suffix = draw(st.sampled_from(list(FORMS)))
    data = in_format(table, suffix)
    if draw(st.booleans()):
        data = draw(damage(data))
    return data, f".{suffix}"


def in_format(table: pd.DataFrame, suffix: str) -> bytes:
    """The bytes of a file; a table that a format cannot hold goes as CSV."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{suffix}"
        try:
            FORMS[suffix](path, table)
        except Exception:  # a label or a number that the writer, not ours, cannot take
            return as_csv(table).encode(errors="replace")
        return path.read_bytes()


@st.composite
def good_files(draw: st.DrawFn) -> bytes:
    """Tables without a fault."""
    table = draw(small_tables(4, 3))
    return _stored(table) if draw(st.booleans()) else as_csv(table).encode()


GOOD_LINES = b"subject,start,stop,count\na,0,1,2\nb,0,2,1\n"
#: made once: sizes that would be slow to draw
SPECIAL = {
    "empty": b"",
    "one line end": b"\n",
    "blanks": b" \n\t\n\r\n",
    "header only": b"subject,start,stop,count\n",
    "header without line end": b"subject,start,stop,count",
    "no header": b"1,0,2,3\n1,2,4,0\n",
    "10 MB in one line": b"subject,start,stop,count\n" + b"a" * 10_000_000 + b",0,1,2\n",
    "10 MB without a delimiter": b"7" * 10_000_000,
    "10 MB header": b"c" + b",c" * 2_000_000 + b"\n1\n",
    "an open quote": b'subject,start,stop,count\n"a,0,1,2\nb,0,2,1\n',
    "an open quote, 1 MB": b'subject,start,stop,count\n"' + b"a,0,1,2\n" * 120_000,
    "nul bytes": b"subject,start,stop,count\na\0,0,1,2\n",
    "nul bytes only": b"\0" * 1000,
    "overlap": b"subject,start,stop,count\na,0,2,1\na,1,3,1\n",
    "twice": GOOD_LINES + b"a,0,1,2\n",
    "total line": GOOD_LINES + b"Total,,,3\n",
    "trailing delimiters": GOOD_LINES.replace(b"\n", b",,\n"),
    "ragged": GOOD_LINES + b"c,1\n",
    "zip": b"PK\x03\x04" + b"\0" * 60,
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "gzip of 2 MB of blank lines": gzip.compress(b"\n" * 2_000_000, mtime=0),
    "gzip of gzip": gzip.compress(gzip.compress(GOOD_LINES, mtime=0), mtime=0),
    "gzip cut": gzip.compress(GOOD_LINES * 50, mtime=0)[:-9],
    "parquet magic only": b"PAR1PAR1",
    "good": GOOD_LINES,
    "good with mark and CRLF": codecs.BOM_UTF8 + GOOD_LINES.replace(b"\n", b"\r\n"),
}

MALFORMED = st.one_of(
    cells_replaced(),
    cells_replaced(),
    columns_changed(),
    written_otherwise(),
    bytes_damaged(),
    binary_tables(),
    good_files(),
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", errors="surrogatepass")),
)
SUFFIXES = st.sampled_from([".csv", ".csv", ".csv", ".parquet", ".csv.gz", ".tsv", ".txt", ""])
