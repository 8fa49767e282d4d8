"""``gp4c power``: how many subjects a trial needs, or the power that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gp4c.cli.options.estimator_options import JsonOption, QuietOption
from gp4c.cli.options.large_tables import on_cluster
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import counting
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from gp4c.analysis.planning.power_plan import PowerPlan
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: finished trials, in --out
TRIALS = "power-trials.json"
_EVENTS, _TRIAL, _TEST, _RUN = "Events", "Trial", "Test", "Simulation"
#: arguments of the library, as options
_OPTIONS = {
    "n_per_arm": "--n-per-arm", "follow_up": "--follow-up", "drop_out": "--drop-out",
    "frailty_variance": "--frailty-variance", "n_trials": "--trials",
    "n_permutations": "--permutations", "random_state": "--seed",
}  # fmt: skip

#: and those of the same name, as the subject of a rule or as what is lacking
_SAME = re.compile(
    r"^(ratio|rate|dispersion|allocation|visits|jitter|strata|alpha|target)(?= must be )"
    r"|(?<=needs a )rate\b"
)


class Tested(StrEnum):
    """What the permutation test looks for."""

    LEVEL = "level"
    CURVE = "curve"
    ANY = "any"


@takes_output
def power(
    ratio: Annotated[
        list[float],
        typer.Option(help="Rate of the second arm over the first's; repeat for several."),
    ],
    rate: Annotated[
        float | None,
        typer.Option(help="Events of the first arm per unit of time.", rich_help_panel=_EVENTS),
    ] = None,
    frailty_variance: Annotated[
        float | None,
        typer.Option(help="Variance of subjects' rates, 1 if absent.", rich_help_panel=_EVENTS),
    ] = None,
    dispersion: Annotated[
        float | None,
        typer.Option(
            help="Variance of a count over its mean given the subject, 1 if absent; more with "
            "bursts.",
            rich_help_panel=_EVENTS,
        ),
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="FIT.json|FILE",
            help="Saved fit or table that gives rate, frailty variance, dispersion and follow-up.",
            rich_help_panel=_EVENTS,
        ),
    ] = None,
    n_per_arm: Annotated[
        list[int] | None,
        typer.Option(
            help="Subjects of the first arm, repeat for several; searched for if absent.",
            rich_help_panel=_TRIAL,
        ),
    ] = None,
    allocation: Annotated[
        float,
        typer.Option(
            help="Subjects of the second arm for each of the first.", rich_help_panel=_TRIAL
        ),
    ] = 1.0,
    follow_up: Annotated[
        float | None, typer.Option(help="Length of follow-up.", rich_help_panel=_TRIAL)
    ] = None,
    visits: Annotated[
        int, typer.Option(help="Visits, evenly spaced.", rich_help_panel=_TRIAL)
    ] = 8,
    jitter: Annotated[
        float,
        typer.Option(
            help="Share of half the distance by which visits are early or late.",
            rich_help_panel=_TRIAL,
        ),
    ] = 0.0,
    drop_out: Annotated[
        float, typer.Option(help="Share of subjects who leave early.", rich_help_panel=_TRIAL)
    ] = 0.1,
    strata: Annotated[
        list[float] | None,
        typer.Option(help="Relative rate of a stratum, one for each.", rich_help_panel=_TRIAL),
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="Unit of time, for the words.", rich_help_panel=_TRIAL)
    ] = None,
    test: Annotated[
        Tested,
        typer.Option(
            help="Test for more or fewer events, or also for another course.",
            rich_help_panel=_TEST,
        ),
    ] = Tested.LEVEL,
    alpha: Annotated[
        float, typer.Option(help="Two-sided level of the test.", rich_help_panel=_TEST)
    ] = 0.05,
    target: Annotated[
        float, typer.Option(help="Power to search a size for.", rich_help_panel=_TEST)
    ] = 0.8,
    trials: Annotated[
        int, typer.Option(help="Simulated trials of each size.", rich_help_panel=_RUN)
    ] = 1000,
    permutations: Annotated[
        int, typer.Option(help="Permutations in each trial.", rich_help_panel=_RUN)
    ] = 999,
    jobs: Annotated[
        int, typer.Option(help="Processes; -1 for one per core.", rich_help_panel=_RUN)
    ] = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask scheduler (tcp://...) whose workers run trials.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the random numbers.", rich_help_panel=_RUN)
    ] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    *,
    output: OutputOptions,
) -> None:  # fmt: skip
    """Simulate trials of two arms: their power, or the subjects that they need.

    Prints a paragraph for a protocol with everything that was assumed.
    With --out also writes it, a table and the power curve, and keeps finished
    trials: the same command goes on where it was interrupted.

    Example: gp4c power --ratio 0.6 --rate 0.2 --follow-up 24 --drop-out 0.1
    """
    if jobs == 0:
        raise typer.BadParameter("--jobs must not be 0; -1 takes one process per core")
    out = output.out
    store = None if out is None else out / TRIALS
    with (
        on_cluster(scheduler), _workers(jobs, scheduler), _in_options(), _resumable(store),
        counting(quiet or as_json, "trials") as progress,
    ):  # fmt: skip
        import gp4c

        plan = gp4c.power(
            ratio, rate=rate, n_per_arm=n_per_arm or None, follow_up=follow_up, visits=visits,
            frailty_variance=frailty_variance, dispersion=dispersion, drop_out=drop_out,
            allocation=allocation, strata=strata or None, jitter=jitter, test=test.value,
            alpha=alpha, target=target, pilot=_pilot(pilot), n_trials=trials,
            n_permutations=permutations, time_unit=time_unit, random_state=seed, store=store,
            progress=progress,
        )  # fmt: skip
    if not quiet:
        typer.echo(plan_json(plan) if as_json else str(plan))
    if out is not None:
        written = write_all(out, _writers(plan, output))
        if not quiet:
            say_written(written)


def _pilot(source: str | None) -> PanelCounts | PanelEstimator | None:
    """A saved fit, a table or a data set."""
    if source is None:
        return None
    from gp4c.cli.options.saved_fits import open_fit
    from gp4c.cli.options.table_options import TableOptions, read_source

    if source.endswith(".json"):
        model: PanelEstimator = open_fit(Path(source))
        return model
    from gp4c.exceptions import PanelDataError

    try:
        return read_source(source, TableOptions())
    except PanelDataError as error:
        raise PanelDataError(
            f"the pilot cannot be read with its usual columns ({str(error).splitlines()[0]}); fit "
            "it first, `gp4c fit` with --out DIR, and pass --pilot DIR/fit.json"
        ) from None


@contextmanager
def _workers(jobs: int, scheduler: str | None) -> Iterator[None]:
    """As many processes as asked for; a cluster has its own."""
    if scheduler is not None:
        yield
        return
    from joblib import parallel_config

    with parallel_config(n_jobs=jobs):
        yield


@contextmanager
def _in_options() -> Iterator[None]:
    """Messages of the library in terms of the command line."""
    from gp4c.exceptions import PanelDataError

    try:
        yield
    except PanelDataError as error:
        names = "|".join(_OPTIONS)
        text = re.sub(rf"\b({names})\b", lambda found: _OPTIONS[found[1]], str(error))
        text = _SAME.sub(lambda found: f"--{found[0]}", text)
        raise PanelDataError(text) from None


@contextmanager
def _resumable(store: Path | None) -> Iterator[None]:
    """What Ctrl-C leaves, in the program's one line."""
    try:
        yield
    except KeyboardInterrupt:
        if store is None or not store.exists():
            raise
        raise KeyboardInterrupt(
            f"interrupted; finished trials are kept in {store}, the same command goes on from there"
        ) from None


def plan_json(plan: PowerPlan) -> str:
    """The plan for programs: assumptions, rows, words."""
    import json
    from dataclasses import asdict

    from gp4c import __version__

    design = asdict(plan.design)
    if plan.design.constant:
        del design["times"], design["cumulative"]
    document: dict[str, Any] = {
        "gp4c": __version__,
        "n_per_arm": _plain(plan.n_per_arm),
        "power": _plain(plan.power),
        "error": _plain(plan.error),
        "target": plan.target,
        "alpha": plan.alpha,
        "formula_size": plan.formula_size,
        "seed": plan.random_state,
        "time_unit": plan.time_unit,
        "pilot": plan.pilot,
        "design": {"rate": plan.design.rate, "follow_up": plan.design.follow_up, **design},
        "rows": plan.to_frame().to_dict(orient="records"),
        "explanation": str(plan),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A number, or a list of them."""
    return value if isinstance(value, int | float) else value.tolist()


def _writers(plan: PowerPlan, output: OutputOptions) -> dict[str, Writer]:
    from gp4c.reporting.csv_tables import write_csv

    files: dict[str, Writer] = {
        "power.txt": lambda path: path.write_text(f"{plan}\n", encoding="utf-8"),
        "power.csv": lambda path: write_csv(plan.to_frame(), path),
        "power.json": lambda path: path.write_text(plan_json(plan) + "\n", encoding="utf-8"),
    }
    return files | output.table_files(power=plan.table) | output.style.files("power", plan.plot)
