"""What a format for tables must do; one joins by being defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import os

    from gp4c.data.summaries.table import Table

#: every format by its suffix
WRITERS: dict[str, TableWriter] = {}


class TableWriter:
    """One format for tables.

    Attributes
    ----------
    suffix : str
        Of files, such as ``.tex``; a class with a suffix joins `WRITERS` by being defined.
    """

    suffix: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.suffix:
            WRITERS[cls.suffix] = cls()

    def text(self, table: Table) -> str:
        """The table itself, without a document around it."""
        raise NotImplementedError

    def content(self, table: Table) -> bytes:
        """A whole file."""
        return self.text(table).encode()


def table_files(
    tables: Mapping[str, Table], formats: Sequence[str]
) -> dict[str, Callable[[Path], object]]:
    """Files of tables in some formats: ``table-NAME.tex`` -> function that writes it."""
    return {f"table-{name}.{end}": one.save for name, one in tables.items() for end in formats}


def writer_for(path: str | os.PathLike[str]) -> TableWriter:
    """The writer that a path's suffix chooses; an unknown suffix is refused with the known ones."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise PanelDataError(
            f"a table is saved to a file that ends in {known}; found {str(path)!r}"
        )
    return WRITERS[suffix]
