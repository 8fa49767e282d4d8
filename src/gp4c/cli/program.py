"""The program ``gp4c`` and its list of commands.

To add a command, write its module and name its function in ``COMMANDS``. Command modules import
typer and the standard library only; whatever computes is imported inside the function, so that
``gp4c --help`` stays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from gp4c.cli.about.cite import cite
from gp4c.cli.about.datasets import datasets
from gp4c.cli.about.reproduce import reproduce
from gp4c.cli.compare import compare
from gp4c.cli.describe import describe
from gp4c.cli.fit import fit
from gp4c.cli.fleet.backtesting import backtest
from gp4c.cli.fleet.forecast import forecast
from gp4c.cli.fleet.trend import trend
from gp4c.cli.fleet.units import units
from gp4c.cli.guard import guarded
from gp4c.cli.planning.power import power
from gp4c.cli.planning.simulate import simulate
from gp4c.cli.predict import predict
from gp4c.cli.report import report
from gp4c.cli.screen import app as app_command

#: every command, in the order of the help text
COMMANDS: tuple[Callable[..., Any], ...] = (
    describe, trend, fit, compare, report, app_command, predict, forecast, units, backtest, power,
    datasets, simulate, reproduce, cite,
)  # fmt: skip

app = typer.Typer(
    name="gp4c",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in COMMANDS:
    app.command()(guarded(_command))


def _print_version(wanted: bool) -> None:
    if wanted:
        from gp4c.cli.about.version_text import version_text

        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def gp4c(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, with its commit where known.",
        ),
    ] = False,
) -> None:
    """Event rates with honest uncertainty from panel count data.

    Panel counts say how many events each subject had between visits, not when.
    """
