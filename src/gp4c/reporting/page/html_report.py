"""The HTML report: an analysis on one page, to send to a colleague."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.analysis.comparison import Comparison
from gp4c.analysis.type_comparison import TypeComparison
from gp4c.data.checks import check_choice
from gp4c.data.timeaxis import TimeAxis
from gp4c.data.types.typed_panel import TypedPanel, together
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.exceptions import PanelDataError
from gp4c.reporting.effect_rows import effects_section
from gp4c.reporting.figures.curves import Curves, at_exposure
from gp4c.reporting.figures.observed_numbers import ObservedNumbers, observed_numbers
from gp4c.reporting.fit_result import EVENT_TYPE
from gp4c.reporting.page import report_figures as figures
from gp4c.reporting.page.classes.class_section import classes_section
from gp4c.reporting.page.component_section import component_section
from gp4c.reporting.page.group_parts import (
    STANDARDISED,
    average_figure,
    comparison_parts,
    is_adjusted,
    ratio_cards,
    regressions,
    shown_curves,
    typed_parts,
    whose,
)
from gp4c.reporting.page.pdf_report import page_pdf
from gp4c.reporting.page.report_figures import Figure
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
    Section,
    group_table,
    level_switch,
    observed_table,
    page,
    paragraph,
    picture,
    plot,
    summary_table,
    table,
    values_table,
    warning_box,
)
from gp4c.reporting.page.unit_section import units_section
from gp4c.reporting.summary import ModelSummary, summarise
from gp4c.reporting.words import estimate, moment, number, per, percent, point, when

if TYPE_CHECKING:
    import os

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: levels of the switch
LEVELS = (0.5, 0.8, 0.95)
#: formats of the report
FORMATS = ("html", "docx", "pdf")


@dataclass(frozen=True, eq=False)
class Report:
    """What goes into a report.

    A single fit to several types of events is shown type by type.

    Attributes
    ----------
    models : dict
        Group (any name if there is one) to fitted estimator, as `Comparison.models` has them.
    panel : PanelCounts, optional
        The data; without them the report has no data section, picture or diagnostics.
    by : str, optional
        The covariate that makes the groups.
    comparison : Comparison or TypeComparison, optional
        What :func:`gp4c.compare` returned.
    forecasts : dict
        Name to (times, Forecast) with one window from now to each time.
    title : str
    level : float
        Level of the bands when the page opens.
    seed : int, optional
    command : str, optional
        How to make the report again.
    observed : bool
        Whether numbers of observed subjects stand below the curves of groups.
    """

    models: Mapping[Any, PanelEstimator]
    panel: PanelCounts | None = None
    by: str | None = None
    comparison: Comparison | TypeComparison | None = None
    forecasts: Mapping[str, Any] = field(default_factory=dict)
    title: str = "Panel counts"
    level: float = 0.95
    seed: int | None = None
    command: str | None = None
    observed: bool = True
    joint: TypedCurves | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Each type of events is a group; groups have the names that are shown: 1 is "1"."""
        joint = self.first
        if isinstance(joint, TypedCurves) and joint.event_types_:
            if len(self.models) > 1:
                raise PanelDataError(
                    "a report shows one fit to several types of events; found "
                    f"{len(self.models)} fits"
                )
            self._take(joint=joint, models=joint.type_models_, by=EVENT_TYPE)
        for kept in ("models", "forecasts"):
            self._take(**{kept: {str(name): one for name, one in getattr(self, kept).items()}})

    def __repr__(self) -> str:
        return f"<Report {self.title!r} on {', '.join(self.models)}: save() writes it>"

    def _take(self, **values: object) -> None:
        """Set fields, which are frozen for everybody else."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # -- results, computed once -------------------------------------------------------------

    @cached_property
    def single(self) -> Comparison | None:
        """The comparison of groups whose curves are the models'; None of types of events."""
        return self.comparison if isinstance(self.comparison, Comparison) else None

    @cached_property
    def drawn(self) -> PanelCounts | None:
        """The data as one count per interval; None where types were counted in different ones."""
        return together(self.panel) if isinstance(self.panel, TypedPanel) else self.panel

    def part_of(self, name: str) -> PanelCounts:
        """The data of a group, or of a type of events.

        :meta private:
        """
        assert self.panel is not None
        if self.by is None:
            return self.panel
        return self.panel.of_type(name) if self.joint else _group(self.panel, self.by, name)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Levels of the switch, increasing."""
        return tuple(sorted({*LEVELS, self.level}))

    @cached_property
    def curves(self) -> dict[str, Curves]:
        """Curves of all groups with bands of all levels."""
        return shown_curves(self.models, self.single, self.levels)

    @cached_property
    def summaries(self) -> dict[str, ModelSummary]:
        """Summaries of all groups, at average covariates where they have some."""
        adjusted = is_adjusted(self.single)
        return {
            name: summarise(m, level=self.level, curves=None if adjusted else self.curves[name])
            for name, m in self.models.items()
        }

    @cached_property
    def panel_picture(self) -> bytes:
        """The picture of the data, as PNG; empty without data."""
        return b"" if self.drawn is None else panel_png(self.drawn)

    @cached_property
    def numbers_observed(self) -> ObservedNumbers | None:
        """Subjects of the groups under observation at a few times; None without groups."""
        if not self.observed or self.panel is None or self.by is None:
            return None
        return observed_numbers({str(g): self.part_of(str(g)) for g in self.models})

    @property
    def first(self) -> PanelEstimator:
        """The first model; what all have in common is read from it."""
        return next(iter(self.models.values()))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures of the sections made so far, as the page's script takes them."""
        return {}

    # -- the page ---------------------------------------------------------------------------

    def html(self) -> str:
        """The report as one HTML document.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
        >>> report = gp4c.Report({"all patients": model}, panel=panel)
        >>> report.html().startswith("<!doctype html>")
        True
        """
        return self.page_of(list(self.sections()))

    def page_of(self, sections: Sequence[Section]) -> str:
        """The document of :meth:`sections` that are there already.

        :meta private:
        """
        content = {"level": figures.level_key(self.level), "figures": self.figures}
        return page(self.title, self.header(), sections, content)

    def sections(self) -> Iterator[Section]:
        """The parts of the page, one after the other; :attr:`figures` grows with them.

        :meta private:
        """
        self.figures.clear()
        models = "Fitted models" if len(self.models) > 1 else "Fitted model"
        for key, heading, parts in (
            ("results", "Event rate and number of events", self._results()),
            ("components", "What the rate is made of",
             component_section(self.models, self.levels, self.by, self.figures)),
            ("classes", "Subgroups of subjects",
             classes_section(self.models, self.panel, self.level, self.by)),
            ("effects", "Effects of covariates",
             effects_section(regressions(self.models, self.single), self.level, self.by)),
            ("comparison", "Comparison of groups", self._comparison()),
            ("forecast", "Forecast", self._forecast()),
            ("units", "Units", units_section(self.models, self.level, self.by)),
            ("data", "Data", self._data()),
            ("models", models, self._models()),
            ("diagnostics", "Do the counts look like the model's?", self._diagnostics()),
            ("method", "Method and citation", self._method()),
            ("reproduce", "To reproduce", self._reproduce()),
        ):  # fmt: skip
            section = Section(key, heading, parts)
            if section.html:
                yield section

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, whole or not at all.

        Parameters
        ----------
        path : path
            Its suffix chooses the format: ``.html``; ``.docx``, which needs the extra ``word``;
            or ``.pdf``, which a browser prints (Chromium, Chrome or Edge).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson().fit(panel)
        >>> report = gp4c.Report({"all patients": model}, panel=panel, title="Bladder trial")
        >>> report.save("report.html")  # doctest: +SKIP
        """
        from gp4c.atomic import replacing

        content = self.content(Path(path).suffix.lower().removeprefix("."))
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    def content(self, kind: str) -> bytes:
        """The report as a file of a format: "html", "docx" or "pdf".

        :meta private:
        """
        check_choice("the format of a report", kind, FORMATS)
        if kind == "docx":
            return import_module("gp4c.reporting.page.word_report").report_docx(self)  # type: ignore[no-any-return]
        html = self.html()
        return page_pdf(html) if kind == "pdf" else html.encode()

    def header(self) -> str:
        """HTML under the title: sizes of the data, and a card for each group.

        :meta private:
        """
        axis, (start, end) = TimeAxis.of(self.first), self.first.window_
        span = f"{point(start)} to {moment(end, axis.unit)}"
        if axis.has_dates:
            span += f" ({_window_words(start, end, axis)})"
        data = self.first.data_summary_ if len(self.models) == 1 else None
        sizes = self.panel or data
        lead = span
        if sizes is not None:
            n = [_size(sizes, key) for key in ("n_subjects", "n_intervals", "n_events")]
            lead = f"{n[0]:,} subjects, {n[1]:,} intervals, {n[2]:,} events; {span}"
        exposed = escape(at_exposure(self.first))
        cards = list(ratio_cards(self.single, self.level))
        standardised = f", {STANDARDISED}" if is_adjusted(self.single) else ""
        for name, curves in self.curves.items():
            edges = curves.cumulative_bands.get(self.level)
            band = (
                "" if edges is None else f"{percent(self.level)} band {estimate(edges[0][-1])} to "
                f"{estimate(edges[1][-1])}"
            )  # fmt: skip
            label = f"{self.by}: {name}" if self.by else "all subjects"
            cards.append(
                f'<div class="card"><div class="name">{escape(label)}</div>'
                f'<div class="figure">{estimate(float(curves.cumulative[-1]))}</div>'
                f"<div>events per subject{exposed} by {escape(when(end, axis))}"
                f"{standardised}</div>"
                f'<div class="range">{escape(band)}</div></div>'
            )
        return f'{paragraph(lead, "lead")}<div class="cards">{"".join(cards)}</div>'

    # -- sections ---------------------------------------------------------------------------

    def _results(self) -> Iterator[str]:
        if all(c.cumulative_bands for c in self.curves.values()):
            keys = [figures.level_key(level) for level in self.levels]
            yield level_switch(keys, figures.level_key(self.level))
        unit, adjusted = self.first.time_unit_, is_adjusted(self.single)
        below = "" if self.numbers_observed is None else " Numbers: subjects still observed."
        if any(c.rate is not None for c in self.curves.values()):
            self.figures["rate"] = figures.curve_figure(
                self.curves, "rate", self.drawn, self.numbers_observed
            )
            ticks = " Ticks below: visits." if self.figures["rate"]["rug"] else ""
            yield plot(
                "rate", self._in_words("rate"),
                f"Event rate, {escape(per(unit, self.first.usage_))}, "
                f"{whose(self.single, 'for a subject of average rate')}, "
                f"with <span data-level></span> bands.{ticks}{below}", self._values("rate"),
            )  # fmt: skip
        self.figures["cumulative"] = figures.curve_figure(
            self.curves, "cumulative", observed=self.numbers_observed
        )
        yield plot(
            "cumulative", self._in_words("cumulative"),
            "Mean number of events per subject since the beginning, "
            f"{whose(self.single, '')}{', ' if adjusted else ''}with "
            f"<span data-level></span> bands.{below}", self._values("cumulative"),
        )  # fmt: skip
        if adjusted:
            yield average_figure(
                self.models, self.levels, self.level, self.numbers_observed, self.figures
            )

    def _in_words(self, what: str) -> str:
        """Text for those who do not see the figure."""
        parts = []
        for name, c in self.curves.items():
            values = c.rate if what == "rate" else c.cumulative
            if values is not None:
                whose = f"{name}: " if len(self.curves) > 1 else ""
                parts.append(
                    f"{whose}from {number(values[0])} at {when(c.times[0], c.axis)} to "
                    f"{number(values[-1])} at {when(c.times[-1], c.axis)}, at most "
                    f"{number(values.max())}"
                )
        title = "Event rate over time. " if what == "rate" else "Mean number of events over time. "
        return title + "; ".join(parts) + "."

    def _values(self, what: str) -> str:
        """Table of a figure's values at a few times."""
        tables = []
        for name, c in self.curves.items():
            values = c.rate if what == "rate" else c.cumulative
            if values is not None:
                bands = c.rate_bands if what == "rate" else c.cumulative_bands
                label = name if self.by else ""
                tables.append(values_table(label, c.axis, c.times, values, bands, self.level))
        return "".join(tables) + observed_table(self.numbers_observed)

    def _comparison(self) -> Iterator[str]:
        shown = (self.levels, self.level, TimeAxis.of(self.first), self.figures)
        if isinstance(self.comparison, TypeComparison):
            yield from typed_parts(self.comparison, *shown)
        elif self.comparison is not None:
            yield from comparison_parts(self.comparison, *shown)

    def _forecast(self) -> Iterator[str]:
        if not self.forecasts:
            return
        rows, fans = [], []
        for name, (times, forecast) in self.forecasts.items():
            bands = {v: (forecast.quantile((1 - v) / 2), forecast.quantile((1 + v) / 2))
                     for v in self.levels}  # fmt: skip
            median = forecast.quantile(0.5)
            fans.append((name, *figures.from_zero(forecast.start[0], times, median, bands)))
            low, high = (int(np.atleast_1d(edge)[-1]) for edge in bands[self.level])
            axis = TimeAxis(forecast.time_unit, forecast.time_origin)
            end = _window_words(float(forecast.start[-1]), float(times[-1]), axis)
            whose = f"{name}, in service" if forecast.subjects == "active" else name
            mean = estimate(float(np.atleast_1d(forecast.mean)[-1]))
            rows.append([whose, end, mean, f"{low} to {high}"])
        names, times_of, medians, bands_of = zip(*fans, strict=True)
        self.figures["fan"] = figures.fan_figure(names, times_of[0], medians, bands_of, axis)
        header = ["", "window", "expected events", f"{percent(self.level)} interval"]
        yield table("Number of events to come, all subjects together", header, rows)
        yield plot(
            "fan", "Forecast of the number of events over time; see the table above.",
            "Number of events from the start of the forecast to each time: median and "
            "<span data-level></span> prediction interval.",
        )  # fmt: skip
        for name, (_, forecast) in self.forecasts.items():
            if forecast.note:
                yield paragraph(f"{name}: {forecast.note}" if self.by else forecast.note)

    def _data(self) -> Iterator[str]:
        if self.panel is None:
            return
        summary = self.panel.summary()
        rows = summary.texts()
        half = -(-len(rows) // 2)
        yield warning_box(summary.remarks, "Note")
        yield (
            f'<div class="columns">{table("", (), rows[:half])}{table("", (), rows[half:])}</div>'
        )
        if self.by is not None and self.joint is None:
            known = np.flatnonzero(self.panel.covariates[self.by].notna())
            first = None if self.comparison is None else self.comparison.groups[0]
            yield group_table(self.panel[known].table(self.by, reference=first))
        if self.drawn is None:
            return
        yield picture(
            self.panel_picture,
            f"Panel picture: {self.panel.n_subjects} rows, one per subject; rectangles are "
            "intervals between visits, darker where more events were counted.",
            "One row per subject, one rectangle per interval between visits; darker means more "
            "events, grey none, white not observed.",
        )

    def _models(self) -> Iterator[str]:
        parts = []
        if self.joint is not None:
            summary = summarise(self.joint, level=self.level)
            parts.append(f"<div><h3>All types together</h3>{summary_table(summary)}</div>")
        for name, summary in self.summaries.items():
            heading = f"{self.by}: {name}" if self.by else summary.title
            body = warning_box(summary.remarks) + summary_table(summary)
            parts.append(f"<div><h3>{escape(heading)}</h3>{body}</div>")
        yield f'<div class="{"columns" if len(parts) > 1 else ""}">{"".join(parts)}</div>'

    def _diagnostics(self) -> Iterator[str]:
        if self.panel is None:
            return
        from gp4c.reporting.figures.count_checks import check_counts

        yield paragraph(
            "Left: bars hang from the expected numbers of intervals with 0, 1, 2, ... events and "
            "should end near zero. Right: bars should be level; a U shape means that subjects vary "
            "more than the model says, a hump that they vary less. Dashed: where 95% of the bars "
            "lie if the model is right. Both are on the data of the fit, which flatters a little."
        )
        for k, (name, model) in enumerate(self.models.items()):
            check = check_counts(model, self.part_of(name))
            self.figures[f"rootogram-{k}"] = figures.rootogram_figure(check)
            self.figures[f"pit-{k}"] = figures.pit_figure(check)
            heading = f"<h3>{escape(f'{self.by}: {name}')}</h3>" if self.by else ""
            seen, expected = check.observed[0], check.expected[0]
            yield heading + '<div class="columns">' + plot(
                f"rootogram-{k}", f"Counts per interval: {seen:.0f} intervals without events, "
                f"{expected:.0f} expected.", "Counts per interval (rootogram).", small=True,
            ) + plot(
                f"pit-{k}", "Where subjects' totals stand among those expected: heights from "
                f"{check.pit.min() * 10:.2f} to {check.pit.max() * 10:.2f}; 1 is ideal.",
                "Where subjects' totals stand among those that the model expects.", small=True,
            ) + "</div>"  # fmt: skip

    def _method(self) -> Iterator[str]:
        full, short = (how(self.models, self.by) for how in (method_paragraphs, short_methods))
        if self.joint is not None:
            full, short = typed_method(self.joint)
        if isinstance(self.comparison, Comparison):
            full.insert(0, comparison_method(self.comparison))
        for heading, texts in (("In full", [*full, PAPER]), ("In brief", short)):
            quoted = "".join(paragraph(text) for text in texts)
            yield f"<h3>{heading}</h3><blockquote>{quoted}</blockquote>"
        yield f"<details><summary>BibTeX</summary><pre>{escape(citation())}</pre></details>"

    def _reproduce(self) -> Iterator[str]:
        if self.command:
            yield f"<pre>{escape(self.command)}</pre>"
        rows = [["model", repr(self.first)]]
        if self.seed is not None:
            rows.append(["seed", str(self.seed)])
        yield table("", (), rows + [[name, version] for name, version in versions()])


def _size(source: PanelCounts | Mapping[str, float], key: str) -> int:
    return int(source[key] if isinstance(source, Mapping) else getattr(source, key))


def _window_words(start: float, stop: float, axis: TimeAxis) -> str:
    """A window in numbers, or in dates where the data had dates."""
    return f"{axis.date(start) or point(start)} to {axis.date(stop) or point(stop)}"


def panel_png(panel: PanelCounts) -> bytes:
    """The picture of a panel, as PNG."""
    from gp4c.reporting.figures.panel_picture import figure_size, plot_panel
    from gp4c.reporting.figures.plot_style import png_of

    return png_of(partial(plot_panel, panel), figure_size(panel), dpi=130)


def _group(panel: PanelCounts, by: str, name: str) -> PanelCounts:
    """Subjects of a group by the text of its label."""
    return panel[np.flatnonzero(panel.covariates[by].astype(str).to_numpy() == name)]
