"""One small table of intervals in a file of every format that is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pandas as pd

INTERVALS = pd.DataFrame(
    {
        "subject": ["a", "a", "b", "c"],
        "start": [0.0, 2.0, 0.0, 1.0],
        "stop": [2.0, 5.5, 3.0, 4.0],
        "count": [1, 0, 2, 3],
    }
)


def _sqlite(path: Path, table: pd.DataFrame) -> None:
    connection = sqlite3.connect(path)
    table.to_sql("visits", connection, index=False)
    connection.commit()
    connection.close()


def _duckdb(path: Path, table: pd.DataFrame) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")


def _statistical(name: str, **options: object) -> Callable[[Path, pd.DataFrame], None]:
    def write(path: Path, table: pd.DataFrame) -> None:
        import pyreadstat

        getattr(pyreadstat, f"write_{name}")(table, str(path), **options)

    return write


#: how a table becomes a file, by its extension
FORMS: dict[str, Callable[[Path, pd.DataFrame], object]] = {
    "csv": lambda path, table: table.to_csv(path, index=False),
    "parquet": lambda path, table: table.to_parquet(path, index=False),
    "feather": lambda path, table: table.to_feather(path),
    "jsonl": lambda path, table: table.to_json(path, orient="records", lines=True),
    "json": lambda path, table: table.to_json(path, orient="records"),
    "xlsx": lambda path, table: table.to_excel(path, index=False),
    "db": _sqlite,
    "duckdb": _duckdb,
    "dta": lambda path, table: table.to_stata(path, write_index=False, version=118),
    "sav": _statistical("sav"),
    "zsav": _statistical("sav", compress=True),
    "por": _statistical("por"),
    "xpt": _statistical("xport", file_format_version=8),
}
WRITERS: dict[str, Callable[[Path], object]] = {
    suffix: lambda path, write=write: write(path, INTERVALS) for suffix, write in FORMS.items()
}
