"""Files that commands leave in ``--out``: all of them, each whole, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gp4c.cli.options.grouped import grouped
from gp4c.plain import printable
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table
    from gp4c.reporting.figures.plot_style import FigureStyle

_FILES = "Files"
_FIGURES = ("png", "svg", "pdf")
_TABLES = ("docx", "tex", "html", "md", "csv")

OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder to write results to; made if absent.",
        rich_help_panel=_FILES,
    ),
]
TablesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT,...",
        help="Also write tables to publish: docx (Word), tex, html, md, csv.",
        rich_help_panel=_FILES,
    ),
]
FiguresOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT,...", help="Formats of figures: png, svg, pdf.", rich_help_panel=_FILES
    ),
]
FigureSizeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="WIDTHxHEIGHT", help="Inches of figures, such as 6x4.", rich_help_panel=_FILES
    ),
]
FontSizeOption: TypeAlias = Annotated[
    float | None,
    typer.Option(min=4, max=40, help="Points of type in figures.", rich_help_panel=_FILES),
]


@dataclass(frozen=True)
class OutputOptions:
    """What to write where, as asked for on the command line."""

    out: OutOption = None
    tables: TablesOption = None
    figures: FiguresOption = None
    figure_size: FigureSizeOption = None
    font_size: FontSizeOption = None

    def __post_init__(self) -> None:
        """Refuse what cannot be written before anything is computed."""
        asked = {
            "--tables": self.tables, "--figures": self.figures,
            "--figure-size": self.figure_size, "--font-size": self.font_size,
        }  # fmt: skip
        lost = [option for option, value in asked.items() if value is not None]
        if lost and self.out is None:
            raise typer.BadParameter(f"{lost[0]} goes with --out DIR, the folder to write to")
        if lost:
            _ = self.style, self.table_formats

    @property
    def style(self) -> FigureStyle:
        """How figures are written."""
        from gp4c.reporting.figures.plot_style import FigureStyle

        formats = read_formats(self.figures, "--figures", _FIGURES)
        return FigureStyle(formats, _size(self.figure_size), self.font_size)

    @property
    def table_formats(self) -> tuple[str, ...]:
        """Formats of tables to publish; Word is refused here if it cannot be written."""
        found = read_formats(self.tables, "--tables", _TABLES)
        if "docx" in found:
            from gp4c.reporting.publication.word_writer import check_word

            check_word()
        return found

    def table_files(self, **tables: Callable[[], Table]) -> dict[str, Writer]:
        """Files of tables, which are made only if some are asked for."""
        if not self.table_formats:
            return {}
        from gp4c.reporting.publication import table_files

        return table_files({name: make() for name, make in tables.items()}, self.table_formats)


#: gives a command every option of :class:`OutputOptions`, together as ``output``
takes_output = grouped("output", OutputOptions)


def read_formats(text: str | None, option: str, known: Sequence[str]) -> tuple[str, ...]:
    """``"docx,tex"`` as a tuple; an unknown format is refused with the known ones."""
    found = tuple(
        dict.fromkeys(part.strip().lower().lstrip(".") for part in (text or "").split(","))
    )
    if text is None:
        return ()
    for one in found:
        if one not in known:
            raise typer.BadParameter(f"{option} takes {', '.join(known)}; found {one!r}")
    return found


def _size(text: str | None) -> tuple[float, float] | None:
    """``"6x4"`` as inches."""
    if text is None:
        return None
    width, _, height = text.lower().replace("×", "x").partition("x")
    try:
        size = float(width), float(height)
    except ValueError:
        size = (0.0, 0.0)
    if not all(1 <= side <= 60 for side in size):
        raise typer.BadParameter(
            f"--figure-size takes WIDTHxHEIGHT in inches, each from 1 to 60, such as 6x4; "
            f"found {text!r}"
        )
    return size


def write_all(folder: Path, writers: Mapping[str, Writer]) -> list[Path]:
    """Write files into a folder; if one fails, none appears and a new folder goes again.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    writers : dict
        File name -> function that writes it to the path it is given.

    Returns
    -------
    list of Path
        The files, in order.
    """
    from gp4c.atomic import replacing_all

    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    targets = [folder / name for name in writers]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # every file is complete under a temporary name before the first takes its own
        with replacing_all(targets) as temporaries:
            for temporary, write in zip(temporaries, writers.values(), strict=True):
                write(temporary)
    except BaseException:
        for parent in made:
            with suppress(OSError):  # not made yet, or somebody else's file is in it by now
                parent.rmdir()
        raise
    return targets


def say_written(paths: list[Path]) -> None:
    """Tell on stderr which files were written, so that stdout stays data."""
    typer.echo("wrote " + printable(", ".join(str(path) for path in paths)), err=True)
