"""What a process at work tells the page; plain values that travel through a pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from gp4c.app.choices import Reading


@dataclass(frozen=True)
class Progress:
    """A few words about the step that begins."""

    text: str


@dataclass(frozen=True)
class Failed:
    """Why nothing came of it: one or more sentences for the user."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Stopped:
    """The user stopped it."""


@dataclass(frozen=True)
class Look:
    """What a table holds, and how it is understood.

    Attributes
    ----------
    reading : Reading
        How the table was understood.
    columns : tuple of (str, str)
        Name of each column, and a few of its values.
    n_rows : int
    roles : dict
        Role to the column that has it; absent where none is known.
    is_visits : bool
        One row per visit; else one per interval.
    problems : tuple of str
        What is wrong, each with its row; empty if the table can be fitted.
    notes : tuple of str
        What was decided while reading.
    facts : tuple of (str, str)
        Summary of the panel, empty if it cannot be read.
    groups : dict
        Covariates that can make groups, each with its values.
    divisions, covariates : tuple of str
        Covariates that can divide subjects, such as centres, and all that can stand in a formula.
    picture : bytes
        The panel as PNG, empty if it cannot be read.
    alternative : str
        The picture in words.
    """

    reading: Reading
    columns: tuple[tuple[str, str], ...] = ()
    n_rows: int = 0
    roles: dict[str, str] = field(default_factory=dict)
    is_visits: bool = False
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    groups: dict[str, tuple[str | float, ...]] = field(default_factory=dict)
    divisions: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    picture: bytes = b""
    alternative: str = ""


@dataclass(frozen=True)
class Part:
    """A section of the report with the figures in it; the header has no heading."""

    key: str
    heading: str
    html: str
    figures: dict[str, object]


@dataclass(frozen=True)
class Written:
    """Names of the files that now lie in the folder of the results."""

    files: tuple[str, ...]


Message: TypeAlias = Progress | Look | Part | Written | Failed | Stopped
#: takes a message to the page
Send: TypeAlias = Callable[[Message], None]
