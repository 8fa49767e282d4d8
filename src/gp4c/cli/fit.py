"""``gp4c fit``: the event rate of a table of panel counts."""

from __future__ import annotations

from dataclasses import replace

import typer

from gp4c.cli.options.estimator_options import (
    BootstrapOption,
    ByOption,
    JsonOption,
    LevelOption,
    QuietOption,
    SeedOption,
    fit_groups,
    with_covariates,
)
from gp4c.cli.options.large_tables import (
    FilesArgument,
    SchedulerOption,
    fit_in_parts,
    in_parts,
    scan_source,
)
from gp4c.cli.options.model_options import ModelOptions, takes_model
from gp4c.cli.options.table_options import TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import working
from gp4c.reporting.fit_result import FitResult


@takes_table
@takes_model
@takes_output
def fit(
    files: FilesArgument,
    table: TableOptions,
    *,
    scheduler: SchedulerOption = None,
    model: ModelOptions,
    by: ByOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    bootstrap: BootstrapOption = 200,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    output: OutputOptions,
) -> None:
    """Estimate the event rate and the mean number of events over time, with bands.

    Prints a summary; with --out also writes the fitted model (fit.json), its
    curves (curves.csv), effects of covariates (effects.csv), plots, the summary;
    with --tables also tables to publish.

    Parquet files in a folder or of a pattern such as visits/*.parquet are one table.

    Example: gp4c fit visits.csv --out results --tables docx,tex --figures pdf
    """
    with working("fitting", quiet=quiet or as_json) as say:
        if in_parts(files, scheduler):
            source = scan_source(files, table, by=by, formula=model.formula)
            built = replace(model, formula=None).build(seed)
            fitted = fit_in_parts(source, built, scheduler, say)
        else:
            panel = read_source(files[0], table, say=not quiet)
            panel = with_covariates(panel, model.formula, table.drop_missing, (by,))
            fitted = fit_groups(
                panel, by, lambda: model.build(seed), bootstraps=bootstrap, seed=seed, say=say
            )
        say("summing up")
        result = FitResult(fitted, by, level, seed, with_curves=output.out is not None)
        if not quiet:
            typer.echo(result.json() if as_json else result.text())
        if output.out is None:
            return
        say("drawing")
        written = write_all(output.out, result.writers(output.style, output.table_formats))
    if not quiet:
        say_written(written)
