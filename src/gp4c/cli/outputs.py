"""Files that commands leave in ``--out``: all of them, each whole, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

#: writes one file to the path it is given
Writer: TypeAlias = Callable[[Path], object]

OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder to write results to; made if absent."),
]


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
    from gp4c.atomic import replacing

    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / name for name in writers]
    try:
        # every file is complete under a temporary name before the first takes its own
        with ExitStack() as stack:
            for target, write in zip(targets, writers.values(), strict=True):
                write(stack.enter_context(replacing(target)))
    except BaseException:
        for parent in made:
            parent.rmdir()
        raise
    return targets


def say_written(paths: list[Path]) -> None:
    """Tell on stderr which files were written, so that stdout stays data."""
    typer.echo("wrote " + ", ".join(str(path) for path in paths), err=True)
