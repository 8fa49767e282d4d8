"""The sections of a report on one fit or several: each a row of pieces of HTML.

Sections add their figures to those of the report, which the page's script draws. Sections on
effects, classes, components and units stand in modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.comparison import Comparison
from gp4c.analysis.type_comparison import TypeComparison
from gp4c.data.summaries.panel_table import tabulate
from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.curves import at_exposure
from gp4c.reporting.page import report_figures as figures
from gp4c.reporting.page.report_method import (
    PAPER,
    citation,
    comparison_method,
    method_paragraphs,
    short_methods,
    typed_method,
    versions,
)
from gp4c.reporting.page.report_page import (
    group_table,
    level_switch,
    observed_table,
    paragraph,
    picture,
    plot,
    summary_table,
    table,
    values_table,
    warning_box,
)
from gp4c.reporting.page.sections.group_parts import (
    STANDARDISED,
    average_figure,
    comparison_parts,
    is_adjusted,
    ratio_cards,
    typed_parts,
    whose,
)
from gp4c.reporting.summary import summarise
from gp4c.reporting.words import estimate, number, per, percent, point, when, window_span

if TYPE_CHECKING:
    from gp4c.reporting.page.html_report import Report


def page_header(report: Report) -> str:
    """HTML under the title: sizes of the data, and a card for each group."""
    axis, (start, end) = TimeAxis.of(report.first), report.first.window_
    n, lead = _sizes(report), window_span(start, end, axis)
    if n:
        lead = f"{n[0]:,} subjects, {n[1]:,} intervals, {n[2]:,} events; {lead}"
    exposed = escape(at_exposure(report.first))
    cards = list(ratio_cards(report.single, report.level))
    standardised = f", {STANDARDISED}" if is_adjusted(report.single) else ""
    for name, curves in report.curves.items():
        edges = curves.cumulative_bands.get(report.level)
        band = (
            "" if edges is None else f"{percent(report.level)} band {estimate(edges[0][-1])} to "
            f"{estimate(edges[1][-1])}"
        )  # fmt: skip
        label = f"{report.by}: {name}" if report.by else "all subjects"
        cards.append(
            f'<div class="card"><div class="name">{escape(label)}</div>'
            f'<div class="figure">{estimate(float(curves.cumulative[-1]))}</div>'
            f"<div>events per subject{exposed} by {escape(when(end, axis))}"
            f"{standardised}</div>"
            f'<div class="range">{escape(band)}</div></div>'
        )
    return f'{paragraph(lead, "lead")}<div class="cards">{"".join(cards)}</div>'


def results_section(report: Report) -> Iterator[str]:
    """Curves of all groups with their bands."""
    if all(c.cumulative_bands for c in report.curves.values()):
        keys = [figures.level_key(level) for level in report.levels]
        yield level_switch(keys, figures.level_key(report.level))
    unit, adjusted = report.first.time_unit_, is_adjusted(report.single)
    below = "" if report.numbers_observed is None else " Numbers: subjects still observed."
    if any(c.rate is not None for c in report.curves.values()):
        report.figures["rate"] = figures.curve_figure(
            report.curves, "rate", report.drawn, report.numbers_observed
        )
        ticks = " Ticks below: visits." if report.figures["rate"]["rug"] else ""
        yield plot(
            "rate", _in_words(report, "rate"),
            f"Event rate, {escape(per(unit, report.first.usage_))}, "
            f"{whose(report.single, 'for a subject of average rate')}, "
            f"with <span data-level></span> bands.{ticks}{below}", _values(report, "rate"),
        )  # fmt: skip
    report.figures["cumulative"] = figures.curve_figure(
        report.curves, "cumulative", observed=report.numbers_observed
    )
    yield plot(
        "cumulative", _in_words(report, "cumulative"),
        "Mean number of events per subject since the beginning, "
        f"{whose(report.single, '')}{', ' if adjusted else ''}with "
        f"<span data-level></span> bands.{below}", _values(report, "cumulative"),
    )  # fmt: skip
    if adjusted:
        yield average_figure(
            report.models, report.levels, report.level, report.numbers_observed, report.figures
        )


def _in_words(report: Report, what: str) -> str:
    """Text for those who do not see the figure."""
    parts = []
    for name, c in report.curves.items():
        values = c.rate if what == "rate" else c.cumulative
        if values is not None:
            whose = f"{name}: " if len(report.curves) > 1 else ""
            parts.append(
                f"{whose}from {number(values[0])} at {when(c.times[0], c.axis)} to "
                f"{number(values[-1])} at {when(c.times[-1], c.axis)}, at most "
                f"{number(values.max())}"
            )
    title = "Event rate over time. " if what == "rate" else "Mean number of events over time. "
    return title + "; ".join(parts) + "."


def _values(report: Report, what: str) -> str:
    """Table of a figure's values at a few times."""
    tables = []
    for name, c in report.curves.items():
        values = c.rate if what == "rate" else c.cumulative
        if values is not None:
            bands = c.rate_bands if what == "rate" else c.cumulative_bands
            label = name if report.by else ""
            tables.append(values_table(label, c.axis, c.times, values, bands, report.level))
    return "".join(tables) + observed_table(report.numbers_observed)


def comparison_section(report: Report) -> Iterator[str]:
    """Tests and ratios of groups, if they were compared."""
    shown = (report.levels, report.level, TimeAxis.of(report.first), report.figures)
    if isinstance(report.comparison, TypeComparison):
        yield from typed_parts(report.comparison, *shown)
    elif report.comparison is not None:
        yield from comparison_parts(report.comparison, *shown)


def forecast_section(report: Report) -> Iterator[str]:
    """Numbers of events to come, by time and in all."""
    if not report.forecasts:
        return
    rows, fans = [], []
    for name, (times, forecast) in report.forecasts.items():
        bands = {v: (forecast.quantile((1 - v) / 2), forecast.quantile((1 + v) / 2))
                 for v in report.levels}  # fmt: skip
        median = forecast.quantile(0.5)
        fans.append((name, *figures.from_zero(forecast.start[0], times, median, bands)))
        low, high = (int(np.atleast_1d(edge)[-1]) for edge in bands[report.level])
        axis = TimeAxis(forecast.time_unit, forecast.time_origin)
        end = _window_words(float(forecast.start[-1]), float(times[-1]), axis)
        whose = f"{name}, in service" if forecast.subjects == "active" else name
        mean = estimate(float(np.atleast_1d(forecast.mean)[-1]))
        rows.append([whose, end, mean, f"{low} to {high}"])
    names, times_of, medians, bands_of = zip(*fans, strict=True)
    report.figures["fan"] = figures.fan_figure(names, times_of[0], medians, bands_of, axis)
    header = ["", "window", "expected events", f"{percent(report.level)} interval"]
    yield table("Number of events to come, all subjects together", header, rows)
    yield plot(
        "fan", "Forecast of the number of events over time; see the table above.",
        "Number of events from the start of the forecast to each time: median and "
        "<span data-level></span> prediction interval.",
    )  # fmt: skip
    for name, (_, forecast) in report.forecasts.items():
        if forecast.note:
            yield paragraph(f"{name}: {forecast.note}" if report.by else forecast.note)


def data_section(report: Report) -> Iterator[str]:
    """What there is: numbers of the panel, the groups' table, a picture."""
    if report.panel is None:
        return
    summary = report.panel.summary()
    rows = summary.texts()
    half = -(-len(rows) // 2)
    yield warning_box(summary.remarks, "Note")
    yield (f'<div class="columns">{table("", (), rows[:half])}{table("", (), rows[half:])}</div>')
    if report.by is not None and report.joint is None:
        known = np.flatnonzero(report.panel.covariates[report.by].notna())
        found = report.comparison
        first = None if found is None else found.groups[0]
        codes_of = found.tested.design_columns if isinstance(found, Comparison) else []
        yield group_table(tabulate(report.panel[known], report.by, first, codes_of=codes_of))
    if report.drawn is None:
        return
    yield picture(
        report.panel_picture,
        f"Panel picture: {report.panel.n_subjects} rows, one per subject; rectangles are "
        "intervals between visits, darker where more events were counted.",
        "One row per subject, one rectangle per interval between visits; darker means more "
        "events, grey none, white not observed.",
    )


def models_section(report: Report) -> Iterator[str]:
    """Every fit as a table."""
    parts = []
    if report.joint is not None:
        summary = summarise(report.joint, level=report.level)
        parts.append(f"<div><h3>All types together</h3>{summary_table(summary)}</div>")
    for name, summary in report.summaries.items():
        heading = f"{report.by}: {name}" if report.by else summary.title
        body = warning_box(summary.remarks) + summary_table(summary)
        parts.append(f"<div><h3>{escape(heading)}</h3>{body}</div>")
    yield f'<div class="{"columns" if len(parts) > 1 else ""}">{"".join(parts)}</div>'


def diagnostics_section(report: Report) -> Iterator[str]:
    """Counts beside those that the models expect."""
    if report.panel is None:
        return
    from gp4c.reporting.figures.count_checks import check_counts

    yield paragraph(
        "Left: bars hang from the expected numbers of intervals with 0, 1, 2, ... events and "
        "should end near zero. Right: bars should be level; a U shape means that subjects vary "
        "more than the model says, a hump that they vary less. Dashed: where 95% of the bars "
        "lie if the model is right. Both are on the data of the fit, which flatters a little."
    )
    for k, (name, model) in enumerate(report.models.items()):
        check = check_counts(model, report.part_of(name))
        report.figures[f"rootogram-{k}"] = figures.rootogram_figure(check)
        report.figures[f"pit-{k}"] = figures.pit_figure(check)
        heading = f"<h3>{escape(f'{report.by}: {name}')}</h3>" if report.by else ""
        seen, expected = check.observed[0], check.expected[0]
        yield heading + '<div class="columns">' + plot(
            f"rootogram-{k}", f"Counts per interval: {seen:.0f} intervals without events, "
            f"{expected:.0f} expected.", "Counts per interval (rootogram).", small=True,
        ) + plot(
            f"pit-{k}", "Where subjects' totals stand among those expected: heights from "
            f"{check.pit.min() * 10:.2f} to {check.pit.max() * 10:.2f}; 1 is ideal.",
            "Where subjects' totals stand among those that the model expects.", small=True,
        ) + "</div>"  # fmt: skip


def method_section(report: Report) -> Iterator[str]:
    """How the fits were obtained, in full and in brief."""
    full, short = (how(report.models, report.by) for how in (method_paragraphs, short_methods))
    if report.joint is not None:
        full, short = typed_method(report.joint)
    if isinstance(report.comparison, Comparison):
        full.insert(0, comparison_method(report.comparison))
    for heading, texts in (("In full", [*full, PAPER]), ("In brief", short)):
        quoted = "".join(paragraph(text) for text in texts)
        yield f"<h3>{heading}</h3><blockquote>{quoted}</blockquote>"
    yield f"<details><summary>BibTeX</summary><pre>{escape(citation())}</pre></details>"


def reproduce_section(report: Report) -> Iterator[str]:
    """The command, the model, the seed and the versions."""
    if report.command:
        yield f"<pre>{escape(report.command)}</pre>"
    rows = [["model", repr(report.first)]]
    if report.seed is not None:
        rows.append(["seed", str(report.seed)])
    yield table("", (), rows + [[name, version] for name, version in versions()])


def _sizes(report: Report) -> tuple[int, ...]:
    """Subjects, intervals and events: of the data, or what the only fit keeps of them."""
    if report.panel is not None:
        return report.panel.n_subjects, report.panel.n_intervals, report.panel.n_events
    if len(report.models) > 1 or not report.first.data_summary_:
        return ()
    kept = report.first.data_summary_
    return tuple(int(kept[name]) for name in ("n_subjects", "n_intervals", "n_events"))


def _window_words(start: float, stop: float, axis: TimeAxis) -> str:
    """A window in numbers, or in dates where the data had dates."""
    return f"{axis.date(start) or point(start)} to {axis.date(stop) or point(stop)}"
