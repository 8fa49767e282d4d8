"""``gp4c backtest``: how forecasts would have done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import (
    BurstsOption,
    EffectOption,
    Estimator,
    FormulaOption,
    JsonOption,
    SeasonOption,
    SeedOption,
    TrendOption,
    estimator_kind,
    with_covariates,
)
from gp4c.cli.options.model_options import ModelOptions
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import working
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from gp4c.analysis.backtests.backtest import Backtest


@takes_table
@takes_output
def backtest(
    file: FileArgument,
    table: TableOptions,
    horizon: Annotated[
        float, typer.Option(help="How far ahead forecasts go, in the unit of time.")
    ],
    origins: Annotated[int, typer.Option(min=1, help="How many forecasts, a horizon apart.")] = 6,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="NAME", help="Model to test; may be repeated. gp4c if absent."
        ),
    ] = None,
    effect: EffectOption = "auto",
    bursts: BurstsOption = "auto",
    formula: FormulaOption = None,
    trend: TrendOption = None,
    season: SeasonOption = None,
    level: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Level of the intervals.")
    ] = 0.9,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    *,
    output: OutputOptions,
) -> None:
    """Forecast from rolling origins and compare the forecasts with what was counted.

    Prints how often intervals held and log scores relative to a constant rate,
    of growth models too; with --out also writes a page (backtest.html),
    backtest.csv and plots.
    --formula, --trend and --season go to the models that have them.

    Example: gp4c backtest bladder --model hpp --horizon 10 --origins 2
    """
    import gp4c

    panel = with_covariates(read_source(file, table), formula, table.drop_missing)
    chosen = model or [Estimator.GP4C.value]
    models = {}
    for kind in chosen:
        adjusted, part, cycle = (
            _where_taken(name, value, kind, chosen)
            for name, value in (("formula", formula), ("trend", trend), ("season", season))
        )
        options = ModelOptions(kind, effect, bursts, adjusted, trend=part, season=cycle)
        models[kind] = options.build(seed)
    with working("testing", quiet=as_json) as say:
        found = gp4c.backtest(
            models, panel, horizon, origins, level=level, random_state=seed, progress=say
        )
        typer.echo(_json(found) if as_json else str(found))
        if output.out is None:
            return
        written = write_all(output.out, _writers(found, output))
    say_written(written)


def _where_taken(option: str, value: str | None, kind: str, chosen: list[str]) -> str | None:
    """An option for a model that has it; for all of them, which is refused, if none has it."""
    having = [one for one in chosen if option in estimator_kind(one)().get_params()]
    return value if kind in having or not having else None


def _writers(found: Backtest, output: OutputOptions) -> dict[str, Writer]:
    from gp4c.reporting.csv_tables import write_csv

    files: dict[str, Writer] = {
        "backtest.html": lambda path: found.save(path),
        "backtest.csv": lambda path: write_csv(found.to_frame(), path),
    }
    files |= output.table_files(backtest=found.table)
    files |= output.style.files("backtest", lambda ax: found.plot(ax, what="total"))
    return files | output.style.files("backtest-pit", lambda ax: found.plot(ax, what="pit"))


def _json(found: Backtest) -> str:
    import json

    from gp4c import __version__
    from gp4c.reporting.csv_tables import json_rows

    document = {
        "gp4c": __version__, "level": found.level, "horizon": found.horizon,
        "coverage": json_rows(found.coverage.reset_index()),
        "scores": json_rows(found.scores.reset_index()), "forecasts": json_rows(found.to_frame()),
    }  # fmt: skip
    return json.dumps(document, indent=2)
