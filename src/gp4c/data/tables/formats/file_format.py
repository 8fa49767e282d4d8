"""What a kind of file is: how it is known, what can be asked of it, how it becomes a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar

from gp4c.data.checks import alternatives, unknown_name
from gp4c.data.tables.formats.content import TableFile
from gp4c.data.tables.frames import Table
from gp4c.exceptions import MissingExtraError, PanelDataError

#: every kind of file, in the order of definition
FORMATS: list[FileFormat] = []


@dataclass(frozen=True)
class Choice:
    """What a user says about a file; None where the file itself is to decide.

    Attributes
    ----------
    sheet, table : str, optional
        Name of the sheet of a workbook, of the table of a database.
    query : str, optional
        A single SELECT statement for a database.
    delimiter, decimal, encoding : str, optional
        Of a file of text.
    """

    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def given(self) -> list[str]:
        """Names of what was said."""
        return [one.name for one in fields(self) if getattr(self, one.name) is not None]


#: given the names of the columns, which of them holds the subject labels
LabelColumn = Callable[[list[str]], str | None]


class FileFormat(ABC):
    """A kind of file. A subclass with a title joins :data:`FORMATS` by being defined.

    Attributes
    ----------
    title : str
        What the file is, with its article: "an Excel workbook".
    extensions : tuple of str
        Ends of names, in lower case.
    magic : tuple of bytes
        First bytes, any of which tells the kind.
    takes : tuple of str
        Fields of :class:`Choice` that mean something here.
    holds_table : bool
        Whether there is a table to read; files without one are refused with advice.
    """

    title: ClassVar[str] = ""
    extensions: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[tuple[bytes, ...]] = ()
    takes: ClassVar[tuple[str, ...]] = ()
    holds_table: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if cls.__dict__.get("title"):
            FORMATS.append(cls())

    def recognises(self, file: TableFile) -> bool:
        """Whether the content is of this kind, by its first bytes."""
        return file.head.startswith(self.magic) if self.magic else False

    def may_be(self, file: TableFile) -> bool:
        """Whether a file with one of these extensions can be of this kind, whatever it holds."""
        return file.extension in self.extensions

    @abstractmethod
    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """The table in the file."""


def format_of(file: TableFile) -> FileFormat:
    """The kind of a file: by its content, else by its name, else text."""
    _define_all()
    by_content = (one for one in FORMATS if one.recognises(file))
    by_name = (one for one in FORMATS if one.may_be(file))
    found = next(by_content, None) or next(by_name, None)
    return found or next(one for one in FORMATS if "" in one.extensions)


def read_file(file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
    """Read a file of any kind; what was said about another kind is refused."""
    kind = format_of(file)
    for name in choice.given():
        if name not in kind.takes:
            readable = (one for one in FORMATS if one.holds_table)
            fitting = [one.title for one in readable if name in one.takes]
            raise PanelDataError(
                f"{file.shown} is {kind.title}, which takes no {name}=...; "
                f"that is for {alternatives(fitting)}"
            )
    return kind.read(file, choice, label_column)


def chosen_part(file: TableFile, what: str, given: str | None, names: Sequence[str]) -> str:
    """The sheet or table that was named, or the only one; else an error that lists them.

    Parameters
    ----------
    file : TableFile
    what : {"sheet", "table"}
    given : str, optional
    names : sequence of str
        Those of the file.
    """
    if given is not None:
        if given in names:
            return given
        raise PanelDataError(f"{file.shown} has no {what} {given!r}; {unknown_name(given, names)}")
    if not names:
        raise PanelDataError(f"{file.shown} is empty; it has no {what}")
    if len(names) > 1:
        listed = ", ".join(repr(name) for name in names[:20])
        raise PanelDataError(
            f"{file.shown} has {len(names)} {what}s, {listed}"
            f"{', ...' if len(names) > 20 else ''}: say which with {what}=..."
        )
    return names[0]


def missing_package(kind: str, package: str, extra: str = "files") -> MissingExtraError:
    """Say that a package is not installed, and how to get it."""
    return MissingExtraError(
        f"{kind} cannot be read without the package {package}: pip install 'gp4c[{extra}]'"
    )


def _define_all() -> None:
    """Import every module of this folder, so that each kind of file has joined."""
    from gp4c.data.tables import formats

    for module in iter_modules(formats.__path__):
        import_module(f"{formats.__name__}.{module.name}")
