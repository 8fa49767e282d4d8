"""``gp4c trend``: whether the rate of events rises or falls."""

from __future__ import annotations

from typing import Annotated

import typer

from gp4c.cli.options.estimator_options import JsonOption, SeedOption
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table


@takes_table
def trend(
    file: FileArgument,
    table: TableOptions,
    permutations: Annotated[int, typer.Option(min=1, help="Permutations of the tests.")] = 999,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Test whether the rate of events rises or falls: Laplace and MIL-HDBK-189C.

    Prints the result in a sentence, then every test in its Poisson form and by
    permutation of increments, which allows for units that differ and for bursts.

    Example: gp4c trend visits.csv
    """
    from gp4c.analysis.units.trend_testing import trend_test

    found = trend_test(read_source(file, table), n_permutations=permutations, random_state=seed)
    if as_json:
        import json

        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=2))
        return
    import textwrap

    typer.echo("\n".join(textwrap.wrap(str(found), 80)))
    typer.echo()
    typer.echo(found.table.to_string(index=False, float_format=lambda x: f"{x:.4g}"))
