"""``gp4c simulate``: a panel drawn from a known intensity, as CSV."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gp4c.cli.outputs import OutOption, say_written, write_all


class Scheme(StrEnum):
    """When subjects are visited."""

    DIRICHLET = "dirichlet"
    FIXED = "fixed"


def simulate(
    intensity: Annotated[
        str,
        typer.Argument(
            help="square_wave, synthetic_b, synthetic_c, a constant rate, "
            "or a table with columns time and rate."
        ),
    ] = "square_wave",
    subjects: Annotated[int, typer.Option(min=1, help="Number of subjects.")] = 100,
    intervals: Annotated[int, typer.Option(min=1, help="Intervals per subject.")] = 10,
    window: Annotated[tuple[float, float], typer.Option(help="Start and end of observation.")] = (
        0.0,
        60.0,
    ),
    visits: Annotated[
        Scheme, typer.Option(help="Visits at random times or evenly spaced.")
    ] = Scheme.DIRICHLET,
    dropout: Annotated[float, typer.Option(help="Rate of leaving the study.")] = 0.0,
    frailty: Annotated[
        float | None, typer.Option(help="Variance of gamma subject effects; none if absent.")
    ] = None,
    bursts: Annotated[
        float | None,
        typer.Option(
            help="φ of events that come in bursts: variance over mean of a count, less 1."
        ),
    ] = None,
    rate_ratio: Annotated[
        float | None,
        typer.Option(help="Rate of every second subject (group B) relative to the others."),
    ] = None,
    time_unit: Annotated[str | None, typer.Option(help="Unit of time, for axes.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 0,
    out: OutOption = None,
) -> None:
    """Simulate a panel of counts and the events behind it.

    Prints the panel as CSV, or writes panel.csv and events.csv into --out.

    Example: gp4c simulate square_wave --subjects 20 --seed 1
    """
    from gp4c.data.simulate.simulate_panel import simulate_panel
    from gp4c.reporting.csv_tables import to_csv, write_csv

    panel, events = simulate_panel(
        _read_intensity(intensity),
        window=window,
        n_subjects=subjects,
        n_intervals=intervals,
        visits=visits.value,
        dropout=dropout,
        frailty=frailty,
        bursts=bursts,
        time_unit=time_unit,
        random_state=seed,
        **_two_groups(subjects, rate_ratio),
    )
    if out is None:
        typer.echo(to_csv(panel.to_frame()), nl=False)
        return
    written = write_all(
        out,
        {
            "panel.csv": lambda path: write_csv(panel.to_frame(), path),
            "events.csv": lambda path: write_csv(events.to_frame(), path),
        },
    )
    say_written(written)


def _read_intensity(text: str) -> object:
    """Read a number, a table of times and rates, or a name for the library to know."""
    from pathlib import Path

    try:
        return float(text)
    except ValueError:
        pass
    if not Path(text).is_file():
        return text
    import pandas as pd

    from gp4c.data.tables.frames import table_of

    table = table_of(pd.read_csv(text))
    return table.column("time").to_numpy(), table.column("rate").to_numpy()


def _two_groups(n_subjects: int, rate_ratio: float | None) -> dict[str, Any]:
    """Covariate and coefficient for every second subject in group B."""
    if rate_ratio is None:
        return {}
    import math

    from gp4c.exceptions import PanelDataError

    if not rate_ratio > 0:
        raise PanelDataError(f"--rate-ratio must be positive; it is {rate_ratio:g}")
    group = ["AB"[k % 2] for k in range(n_subjects)]
    return {
        "covariates": {"group": group},
        "coefficients": {"group": {"B": math.log(rate_ratio)} if n_subjects > 1 else {}},
    }
