"""``gp4c report``: an analysis on one page: HTML, Word or PDF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gp4c.cli.options.estimator_options import (
    BootstrapOption,
    ByOption,
    Estimator,
    LevelOption,
    QuietOption,
    SeedOption,
    fit_groups,
    with_covariates,
)
from gp4c.cli.options.group_options import GroupOptions, takes_groups
from gp4c.cli.options.model_options import ModelOptions, takes_model
from gp4c.cli.options.table_options import TableOptions, read_source, takes_table
from gp4c.cli.outputs import read_formats, say_written, write_all
from gp4c.cli.progress import working

if TYPE_CHECKING:
    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

FORMATS = ("html", "docx", "pdf")
#: endings of documents that a report is not written as; a folder is hardly called like that
_OTHER_DOCUMENTS = ("csv", "doc", "htm", "md", "odt", "rtf", "tex", "txt", "xlsx")


@takes_table
@takes_model
@takes_groups
def report(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|FIT.json",
            help="A table, - or a data set as for gp4c fit; or a saved fit, "
            "which has no data to show.",
        ),
    ],
    table: TableOptions,
    *,
    model: ModelOptions,
    by: ByOption = None,
    groups: GroupOptions,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    bootstrap: BootstrapOption = 200,
    forecast_to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Add a forecast from the end of the data to this time or date."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT,...",
            help="html, docx (Word) or pdf, which a browser prints. If absent as --out ends, "
            "else html.",
        ),
    ] = None,
    quiet: QuietOption = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="PATH", help="Folder, or a file that ends in .html, .docx or .pdf."
        ),
    ] = Path(),
) -> None:
    """Fit, check and describe: everything on one HTML page that needs no network.

    Writes report.html (see --out and --format); with --by also compares
    the groups, adjusted for the covariates of --formula.

    Example: gp4c report visits.csv --out results
    """
    from gp4c.reporting.page.html_report import Report

    folder, names = _targets(out, formats)
    groups.check_used(by if model.name == Estimator.GP4C else None)
    with working("reading", quiet=quiet) as say:
        if file.endswith(".json"):
            parts = _from_saved(file)
        else:
            panel = read_source(file, table, say=not quiet)
            panel = with_covariates(panel, model.formula, table.drop_missing, groups.columns(by))
            parts = _from_table(
                panel, by, partial(model.build, seed),
                partial(groups.compare, panel, seed=seed, progress=say), seed, bootstrap, say,
            )  # fmt: skip
        say("forecasting")
        parts["forecasts"] = _forecasts(parts["models"], forecast_to, seed)
        say("writing")
        page = Report(
            **parts, title=title or _title(file), level=level, seed=seed, command=_command()
        )
        written = write_all(folder, dict.fromkeys(names, page.save))
    if not quiet:
        say_written(written)


def _from_saved(file: str) -> dict[str, Any]:
    from gp4c.cli.options.saved_fits import open_fit

    return {"models": {"all subjects": open_fit(Path(file))}}


def _from_table(
    panel: PanelCounts, by: str | None, build: Callable[[], PanelEstimator],
    compare: Callable[[str, PanelEstimator], Comparison | TypeComparison], seed: int,
    bootstraps: int, say: Callable[[str], None],
) -> dict[str, Any]:  # fmt: skip
    """Fit each group; compare them where the estimator has a posterior."""
    from gp4c.analysis.comparison import Comparison

    if panel.event_types:
        (joint,) = fit_groups(panel, None, build, bootstraps=bootstraps, seed=seed, say=say)
        both = None if by is None else compare(by, build())
        return {"models": {"all subjects": joint.model}, "panel": panel, "comparison": both}
    if by is not None and build().name == Estimator.GP4C:
        say(f"fitting and comparing groups of {by}")
        found = compare(by, build())
        assert isinstance(found, Comparison)
        models = {str(name): found.models[name] for name in found.groups}
        return {"models": models, "panel": panel, "by": by, "comparison": found}
    fitted = fit_groups(
        panel, by, build, bootstraps=bootstraps, seed=seed, say=say,
    )  # fmt: skip
    return {"models": {g.name or "all subjects": g.model for g in fitted}, "panel": panel, "by": by}


def _forecasts(models: dict[str, Any], to: str | None, seed: int) -> dict[str, Any]:
    if to is None:
        return {}
    from gp4c.cli.fleet.forecast import fan, window_asked
    from gp4c.estimators.forecasts.fleet_inputs import default_subjects

    found = {}
    for name, model in models.items():
        window = window_asked(model, None, to, "--forecast-to")
        whom = default_subjects(model, None) or "all"
        forecast = fan(model, window, whom, random_state=seed)
        found[name] = (forecast.stop, forecast)
    return found


def _targets(out: Path, formats: str | None) -> tuple[Path, list[str]]:
    """Folder and names of the files; what cannot be written is refused before anything is read."""
    from gp4c.reporting.page.pdf_report import find_browser
    from gp4c.reporting.publication.word_writer import check_word

    ending = out.suffix.lower().removeprefix(".")
    is_file = ending in FORMATS
    if ending in _OTHER_DOCUMENTS and not out.is_dir():
        raise typer.BadParameter(
            f"--out {out.name}: a report is written as .html, .docx or .pdf, or into a folder"
        )
    asked = read_formats(formats, "--format", FORMATS) or ((ending,) if is_file else ("html",))
    if is_file and asked != (ending,):
        raise typer.BadParameter(f"--out {out.name} is one file; --format {formats} needs a folder")
    if "docx" in asked:
        check_word()
    if "pdf" in asked:
        find_browser()
    return (out.parent, [out.name]) if is_file else (out, [f"report.{kind}" for kind in asked])


def _title(file: str) -> str:
    return "Panel counts" if file == "-" else f"Panel counts: {Path(file).name}"


def _command() -> str:
    """The command line as it was given."""
    import shlex
    import sys

    return shlex.join(["gp4c", *sys.argv[1:]])
