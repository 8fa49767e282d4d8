"""``gp4c units``: which units are the bad actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import JsonOption
from gp4c.cli.options.saved_fits import FitArgument, open_fit
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import working
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    import pandas as pd

#: rows of the table on the screen
_SHOWN = 20


@takes_output
def units(
    fit: FitArgument,
    worst: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="Share that is called the worst.")
    ] = 0.1,
    level: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Level of the intervals.")
    ] = 0.95,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print all units as CSV instead of a short table.")
    ] = False,
    as_json: JsonOption = False,
    *,
    output: OutputOptions,
) -> None:
    """Rank units by the probability that they are among the worst, worst first.

    Prints a table; with --out also writes units.csv and a funnel plot, units.png.

    Example: gp4c units fleet/fit.json --worst 0.1
    """
    from gp4c.reporting.csv_tables import to_csv, write_csv
    from gp4c.reporting.figures.fleets.unit_plots import plot_funnel
    from gp4c.reporting.publication.result_tables import ranking_table

    model = open_fit(fit)
    with working("ranking", quiet=as_json or as_csv):
        ranking = model.unit_ranking(worst, level)
    if as_csv:
        typer.echo(to_csv(ranking), nl=False)
    else:
        typer.echo(_json(ranking, worst) if as_json else _text(ranking, worst, level))
    if output.out is None:
        return
    files: dict[str, Writer] = {"units.csv": lambda path: write_csv(ranking, path)}
    files |= output.table_files(units=lambda: ranking_table(ranking, level))
    files |= output.style.files("units", lambda ax: plot_funnel(model, ranking, ax))
    say_written(write_all(output.out, files))


def _text(ranking: pd.DataFrame, worst: float, level: float) -> str:
    """The worst units and what the columns mean, in at most 80 columns."""
    from gp4c.plain import printable

    shown = ranking.head(_SHOWN).to_string(index=False, float_format=lambda x: f"{x:.3g}")
    more = len(ranking) - _SHOWN
    lines = [
        shown,
        *([f"… and {more:,} more: --csv or --out gives all of them"] if more > 0 else []),
    ]
    lines += [
        f"probability: that the unit is among the worst {100 * worst:g}% of {len(ranking)} units.",
        f"effect: 2 means twice the events of an average unit; {100 * level:g}% interval.",
    ]
    return printable("\n".join(lines))


def _json(ranking: pd.DataFrame, worst: float) -> str:
    import json

    from gp4c import __version__
    from gp4c.reporting.csv_tables import json_rows

    document = {"gp4c": __version__, "worst": worst, "units": json_rows(ranking)}
    return json.dumps(document, indent=2)
