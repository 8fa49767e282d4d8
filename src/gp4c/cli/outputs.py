"""Files that commands leave in ``--out``: all of them, each whole, or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gp4c.plain import printable
from gp4c.reporting.fit_result import Writer

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
