"""The analysis itself: fit, show the sections of the report as they come, write the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gp4c.app.choices import Analysis
from gp4c.app.messages import Part, Progress, Send, Written

if TYPE_CHECKING:
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.data.summaries.table import Table
    from gp4c.estimators.base import PanelEstimator
    from gp4c.reporting.fit_result import Writer
    from gp4c.reporting.page.html_report import Report
    from gp4c.reporting.page.report_page import Section

REPORT, WORD = "report.html", "report.docx"
SCRIPT, COMMANDS = "analysis.py", "commands.txt"


@dataclass(frozen=True)
class FitJob:
    """Fit, show and write into a folder that nobody else uses."""

    analysis: Analysis
    folder: str

    def run(self, send: Send) -> None:
        """Send every section when it is there, then the names of the files."""
        report = fitted_report(self.analysis, lambda text: send(Progress(text)))
        send(Progress("drawing"))
        send(Part("header", "", report.header(), {}))
        sections: list[Section] = []
        known: set[str] = set()
        for section in report.sections():
            fresh: dict[str, object] = {
                key: value for key, value in report.figures.items() if key not in known
            }
            known |= fresh.keys()
            sections.append(section)
            send(Part(section.key, section.heading, section.html, fresh))
        send(Progress("writing the files"))
        page = report.page_of(sections)
        send(Written(write_files(self.analysis, report, page, Path(self.folder))))


def fitted_report(analysis: Analysis, say: Callable[[str], None] | None = None) -> Report:
    """Fit what was chosen, as ``gp4c report`` does with the same choices.

    Parameters
    ----------
    analysis : Analysis
    say : callable, optional
        Called with a few words before each step.
    """
    from gp4c.analysis.compare_groups import compare
    from gp4c.analysis.comparison import Comparison
    from gp4c.estimators.gp4c import GP4C
    from gp4c.reporting.page.html_report import Report

    chosen, panel = analysis.choices, analysis.panel()
    # the options are of many types, which the table of choices cannot tell apart
    build = partial(GP4C, **chosen.arguments())  # type: ignore[arg-type]
    found: Comparison | TypeComparison | None = None
    models: dict[str, PanelEstimator] = {}
    by = None if panel.event_types else chosen.by
    if by is None:
        models = {"all subjects": build().fit(panel, progress=say)}
    if chosen.by is not None:
        found = compare(
            panel, chosen.by, build(), random_state=chosen.seed, progress=say,
            **chosen.grouping.arguments(),  # type: ignore[arg-type]
        )  # fmt: skip
    if isinstance(found, Comparison):
        models = {str(name): fitted for name, fitted in found.models.items()}
    return Report(
        models, panel, by, found, title=f"Panel counts: {analysis.source.name}",
        level=chosen.level, seed=chosen.seed, command=analysis.commands()[0],
    )  # fmt: skip


def write_files(analysis: Analysis, report: Report, page: str, folder: Path) -> tuple[str, ...]:
    """Write everything that can be downloaded; the names, in order.

    Parameters
    ----------
    analysis : Analysis
    report : Report
    page : str
        The report as HTML.
    folder : Path
    """
    from gp4c.reporting.publication import table_files
    from gp4c.reporting.publication.word_writer import has_word

    formats = ("docx", "tex") if has_word() else ("tex",)
    commands = "\n".join(analysis.commands()) + "\n"
    texts = {REPORT: page, SCRIPT: analysis.script(), COMMANDS: commands}
    writers: dict[str, Writer] = {
        **{name: partial(Path.write_text, data=t, encoding="utf-8") for name, t in texts.items()},
        **_fit_writers(report, formats),
        **_comparison_writers(report),
        **table_files(_own_tables(report), formats),
    }
    if has_word():
        writers[WORD] = report.save
    for name, write in writers.items():
        write(folder / name)
    return tuple(writers)


def _fit_writers(report: Report, formats: tuple[str, ...]) -> dict[str, Writer]:
    """The files of ``gp4c fit --out --tables``, which has the groups in natural order."""
    from gp4c.data.ordering import natural_key
    from gp4c.reporting.fit_result import FitResult, FittedGroup

    found, by = report.single, None if report.joint else report.by
    if found is None:
        fitted = [FittedGroup(None, report.panel, report.joint or report.first)]
    else:
        codes = {name: k for k, name in enumerate(found.groups)}
        fitted = [
            FittedGroup(str(name), found.panel[found.codes == codes[name]], found.models[name])
            for name in sorted(found.groups, key=natural_key)
        ]
    seed = report.seed or 0
    return FitResult(fitted, by, report.level, seed, with_curves=True).writers(tables=formats)


def _own_tables(report: Report) -> dict[str, Table]:
    """Tables to publish of the data and the comparison; types of events have none of the data."""
    panel, found = report.panel, report.comparison
    tables: dict[str, Table] = {}
    if panel is not None and not panel.event_types:
        tables["data"] = panel.table(report.by)
    if found is not None:
        tables["comparison"] = found.table(report.level)
    return tables


def _comparison_writers(report: Report) -> dict[str, Writer]:
    """The comparison in words, and its tables, where there are groups."""
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.reporting.csv_tables import write_csv

    found, level = report.comparison, report.level
    if found is None:
        return {}
    files: dict[str, Writer] = {
        "comparison.txt": lambda path: path.write_text(f"{found}\n", encoding="utf-8"),
    }
    if isinstance(found, TypeComparison):
        return files | {"types.csv": lambda path: write_csv(found.tests(level), path)}
    return files | {
        "ratios.csv": lambda path: write_csv(found.to_frame(level=level), path),
        "pairs.csv": lambda path: write_csv(found.pairwise(), path),
    }
