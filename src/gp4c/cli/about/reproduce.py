"""``gp4c reproduce``: the paper's tables and figures beside its own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import QuietOption
from gp4c.cli.options.large_tables import on_cluster
from gp4c.cli.outputs import say_written
from gp4c.cli.progress import counting

if TYPE_CHECKING:
    from gp4c.paper.reproduction import Reproduction
    from gp4c.paper.sections import Plan, Section
    from gp4c.paper.store import Store

_FAILED = 1


class What(StrEnum):
    """Tables and figures of the paper."""

    ALL = "all"
    TABLE1 = "table1"
    TABLE2 = "table2"
    TABLE3 = "table3"
    TABLE4 = "table4"
    FIG_BOUND = "fig-bound"
    FIG_SYNTHETIC = "fig-synthetic"
    FIG_INDUCING = "fig-inducing"
    FIG_SUBJECTS = "fig-subjects"
    FIG_BLADDER = "fig-bladder"


def reproduce(
    what: Annotated[
        list[What] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="Which of: all (if absent), table1 to table4, fig-bound, fig-synthetic, "
            "fig-inducing, fig-subjects, fig-bladder.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each setting.")] = 40,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask scheduler (tcp://...) whose workers run trials."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the page and its figures.")
    ] = Path("reproduction"),
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE",
            help="Folder of finished trials, cache in --out if absent; "
            "with --report-only also a trials.jsonl.gz of an earlier run.",
        ),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; show the trials there are.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(help="With --report-only: show trials of this source version."),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write the page into this folder, for the docs."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Run the paper's experiments and write its tables and figures beside its own numbers.

    Finished trials are kept, so that the same command goes on where it was interrupted.

    Example: gp4c reproduce fig-bound table2
    """
    from gp4c.paper.catalogue import NAMES
    from gp4c.paper.reproduction import reproduce as run_and_render
    from gp4c.paper.sections import Plan

    if source is not None and not report_only:
        raise typer.BadParameter("--source goes with --report-only: other versions cannot be run")
    if jobs == 0:
        raise typer.BadParameter("--jobs must not be 0; -1 takes one process per core")
    asked = {what_.value for what_ in what or [What.ALL]}
    names = [name for name in NAMES if name in asked or "all" in asked]
    plan, store = Plan(trials, seed), _store(cache or out / "cache", source, report_only)
    with on_cluster(scheduler), counting(quiet, "trials") as progress, _resumable(store):
        made = run_and_render(names, plan, store, jobs=jobs, run=not report_only, progress=progress)
    _write_and_tell(made, plan, store, [out, *([docs] if docs else [])], names, quiet)
    if made.failed:
        raise typer.Exit(_FAILED)


def _store(place: Path, source: str | None, report_only: bool) -> Store:
    """The folder of trials, or the one file of a finished run."""
    from gp4c.paper.store import PackedStore, Store

    if not place.is_file():
        return Store(place, source)
    if not report_only:
        raise typer.BadParameter("--cache is a file: that goes with --report-only")
    return PackedStore(place, source)


def _write_and_tell(
    made: Reproduction, plan: Plan, store: Store, folders: list[Path], names: list[str],
    quiet: bool,
) -> None:  # fmt: skip
    """Write the page; say what holds, what failed and what is not there yet."""
    from gp4c.paper.catalogue import NAMES
    from gp4c.paper.results_page import write_page
    from gp4c.paper.store import pack

    title = "reproduction" if len(names) == len(NAMES) else "-".join(names)
    written = []
    folders[0].mkdir(parents=True, exist_ok=True)
    if made.found:
        pack(made.found, store.version, folders[0] / "trials.jsonl.gz")
    for folder in folders:
        written += write_page(
            folder, title, made.sections, plan, made.found, store.version, made.missing
        )
    for outcome in made.failed:
        typer.echo(f"gp4c: {outcome.task}: {outcome.error}", err=True)
    if made.missing:
        typer.echo(f"gp4c: {made.missing} trials are not there yet", err=True)
    if not quiet:
        typer.echo(_targets(made.sections))
        say_written([path for path in written if path.suffix == ".md"])


def _targets(sections: list[Section]) -> str:
    """What was asked for and what came out, one line each."""
    targets = [target for section in sections for target in section.targets]
    lines = [f"{'ok  ' if t.met else 'MISS'}  {t.asked}: {t.found}" for t in targets]
    return "\n".join([*lines, f"{sum(t.met for t in targets)} of {len(targets)} hold"])


@contextmanager
def _resumable(store: Store) -> Iterator[None]:
    """What Ctrl-C leaves, in the program's one line."""
    from gp4c.paper.running import Interrupted

    try:
        yield
    except Interrupted as stop:
        raise KeyboardInterrupt(
            f"interrupted; {stop.done} of {stop.total} trials are kept in {store.folder}, "
            "the same command goes on from there"
        ) from None
