"""Tables of DuckDB and SQLite files, and of any database through a connection.

A query is one SELECT statement. A file is opened read-only; DuckDB refuses all other files, SQLite
allows a query nothing but to read.
"""

from __future__ import annotations

import atexit
import gc
import re
import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

from gp4c.data.tables.formats.content import PER_CELL, PER_ROW, TableFile, check_room
from gp4c.data.tables.formats.file_format import (
    Choice,
    FileFormat,
    LabelColumn,
    chosen_part,
    missing_package,
)
from gp4c.data.tables.formats.grid import column_of
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

#: rows fetched at once
_BATCH = 10_000
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
#: what DuckDB and SQLite say of a table that is not there
_UNKNOWN_TABLE = re.compile(r"Table with name|no such table")
#: how a statement that only reads begins
_READS = ("select", "with", "values", "from", "table")


@runtime_checkable
class Connection(Protocol):
    """A connection to a database, as Python's database interface (PEP 249) has it."""

    def cursor(self) -> object:
        """Something that executes a query and fetches its rows."""


def read_connection(connection: Connection, choice: Choice) -> Table:
    """The rows of a query through a connection of the user's own."""
    if choice.query is None:
        raise PanelDataError("a connection needs query=..., a SELECT statement")
    source = "the result of the query"
    query = single_select(choice.query)
    cursor: Any = connection.cursor()  # each driver has types of its own
    try:
        found = cursor.execute(query)
        # a cursor of PEP 249 may return nothing; those of DuckDB and SQLite return themselves
        return _fetched(cursor if found is None else found, source)
    except PanelDataError:
        raise
    except Exception as error:  # each driver has errors of its own
        raise _refused(source, error) from None


class Database(FileFormat):
    """A database in one file; subclasses say which."""

    takes = ("table", "query")

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read a table, or what a query selects."""
        if choice.table is not None and choice.query is not None:
            raise PanelDataError("say table=... or query=..., not both")
        with file.on_disk() as path, self._opened(path, file) as cursor:
            if choice.query is not None:
                query = single_select(choice.query)
                source = f"the result of the query on {file.shown}"
            else:
                name = chosen_part(file, "table", choice.table, self._tables(cursor))
                query = 'SELECT * FROM "{}"'.format(name.replace('"', '""'))
                source = f"table {name!r} of {file.shown}"
            try:
                self._check(cursor, query)
                return _fetched(cursor.execute(query), source)
            except self._errors() as error:
                known = self._tables(cursor) if _UNKNOWN_TABLE.search(str(error)) else ()
                raise _refused(source, error, known) from None

    @contextmanager
    def _opened(self, path: Path, file: TableFile) -> Iterator[Any]:
        errors = self._errors()
        try:
            connection = self._connected(path)
        except errors as error:
            raise PanelDataError(
                f"{file.shown} is not readable as {self.title}: {str(error).splitlines()[0]}"
            ) from None
        with closing(connection):
            try:
                yield connection
            except errors as error:
                raise _refused(file.shown, error) from None

    @abstractmethod
    def _connected(self, path: Path) -> Any:
        """A connection that can only read."""

    @abstractmethod
    def _tables(self, cursor: Any) -> list[str]:
        """Names of tables and views."""

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """What the library raises."""

    def _check(self, cursor: Any, query: str) -> None:
        """Ask the library itself whether a statement only reads."""


class SqliteFile(Database):
    """A database of SQLite."""

    title = "an SQLite database"
    extensions = (".sqlite", ".sqlite3", ".db", ".db3")
    magic = (b"SQLite format 3\0",)

    def _connected(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        connection.text_factory = lambda data: data.decode(errors="replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.set_authorizer(_only_reading)
        return connection

    def _tables(self, cursor: sqlite3.Connection) -> list[str]:
        found = cursor.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return [name for (name,) in found]

    def _errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error, sqlite3.Warning)


class DuckdbFile(Database):
    """A database of DuckDB."""

    title = "a DuckDB database"
    extensions = (".duckdb", ".ddb")

    def recognises(self, file: TableFile) -> bool:
        """By the mark after a checksum."""
        return file.head[8:12] == b"DUCK"

    def _connected(self, path: Path) -> Any:
        return self._library().connect(
            str(path),
            read_only=True,
            config={
                "enable_external_access": "false",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "lock_configuration": "true",
            },
        )

    def _tables(self, cursor: Any) -> list[str]:
        found = cursor.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = 'main' ORDER BY table_name"
        )
        return [name for (name,) in found.fetchall()]

    def _errors(self) -> tuple[type[Exception], ...]:
        return (self._library().Error,)

    def _library(self) -> ModuleType:
        try:
            import duckdb
        except ImportError:
            raise missing_package(self.title, "duckdb") from None
        # DuckDB lists what is left of it at the end, which a program that freezes garbage has
        atexit.unregister(gc.freeze)
        return duckdb

    def _check(self, cursor: Any, query: str) -> None:
        duckdb = self._library()
        statements = duckdb.extract_statements(query)
        if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
            raise _not_a_select(query)


def single_select(query: str) -> str:
    """A query without its last semicolon, if it is one statement that only reads."""
    plain = _QUOTED.sub("''", _COMMENT.sub(" ", query)).strip().rstrip(";").strip()
    word = re.match(r"\(*\s*([a-z]*)", plain.lower())
    if ";" in plain or word is None or word[1] not in _READS:
        raise _not_a_select(query)
    return query.strip().rstrip(";")


def _not_a_select(query: str) -> PanelDataError:
    shown = " ".join(query.split())
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return PanelDataError(f"query must be a single SELECT statement; found {shown!r}")


def _only_reading(action: int, first: str | None, second: str | None, *place: object) -> int:
    """What SQLite may do for a query: read columns, call functions, but load no code."""
    allowed = (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )  # fmt: skip
    if action not in allowed or (second or "").lower() == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _fetched(cursor: Any, source: str) -> Table:
    """All rows of a result, as long as there is room for them."""
    names = [str(about[0]) for about in cursor.description or ()]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise PanelDataError(f"column names must differ; {twice[0]!r} occurs twice in {source}")
    cells: list[list[Any]] = [[] for _ in names]
    n_rows = 0
    while rows := cursor.fetchmany(_BATCH):
        n_rows += len(rows)
        for column, more in zip(cells, zip(*rows, strict=True), strict=True):
            column.extend(more)
        check_room(source, (PER_ROW + 4 * PER_CELL * len(names)) * n_rows)
    if not n_rows:
        raise PanelDataError(f"{source} is empty; it needs at least one row")

    def locate(rows: Sequence[int]) -> str:
        numbers = " and ".join(str(row + 1) for row in rows)
        return f"row{'s' * (len(rows) > 1)} {numbers} of the result"

    columns = {name: column_of(column) for name, column in zip(names, cells, strict=True)}
    return Table(columns, n_rows, locate, source)


def _refused(source: str, error: Exception, known: Sequence[str] = ()) -> PanelDataError:
    """What a database says about a query, in one line, and which tables there are."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    tables = f"; there are {', '.join(repr(name) for name in known[:20])}" if known else ""
    return PanelDataError(f"{source} cannot be read: {reason}{tables}")
