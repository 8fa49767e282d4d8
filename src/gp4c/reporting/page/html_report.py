"""The HTML report: an analysis on one page, to send to a colleague."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.analysis.comparison import Comparison
from gp4c.analysis.type_comparison import TypeComparison
from gp4c.data.checks import check_choice
from gp4c.data.types.typed_panel import TypedPanel, together
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.exceptions import PanelDataError
from gp4c.reporting.effect_rows import effects_section
from gp4c.reporting.figures.curves import Curves
from gp4c.reporting.figures.observed_numbers import ObservedNumbers, observed_numbers
from gp4c.reporting.fit_result import EVENT_TYPE
from gp4c.reporting.page import report_figures as figures
from gp4c.reporting.page.classes.class_section import classes_section
from gp4c.reporting.page.pdf_report import page_pdf
from gp4c.reporting.page.report_figures import Figure
from gp4c.reporting.page.report_page import Section, page
from gp4c.reporting.page.sections.component_section import component_section
from gp4c.reporting.page.sections.group_parts import is_adjusted, regressions, shown_curves
from gp4c.reporting.page.sections.report_sections import (
    comparison_section,
    data_section,
    diagnostics_section,
    forecast_section,
    method_section,
    models_section,
    page_header,
    reproduce_section,
    results_section,
)
from gp4c.reporting.page.sections.unit_section import units_section
from gp4c.reporting.summary import ModelSummary, summarise

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
        self._take(
            models={str(name): one for name, one in self.models.items()},
            forecasts={str(name): one for name, one in self.forecasts.items()},
        )

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
            ("results", "Event rate and number of events", results_section(self)),
            ("components", "What the rate is made of",
             component_section(self.models, self.levels, self.by, self.figures)),
            ("classes", "Subgroups of subjects",
             classes_section(self.models, self.panel, self.level, self.by)),
            ("effects", "Effects of covariates",
             effects_section(regressions(self.models, self.single), self.level, self.by)),
            ("comparison", "Comparison of groups", comparison_section(self)),
            ("forecast", "Forecast", forecast_section(self)),
            ("units", "Units", units_section(self.models, self.level, self.by)),
            ("data", "Data", data_section(self)),
            ("models", models, models_section(self)),
            ("diagnostics", "Do the counts look like the model's?", diagnostics_section(self)),
            ("method", "Method and citation", method_section(self)),
            ("reproduce", "To reproduce", reproduce_section(self)),
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
        return page_header(self)


def panel_png(panel: PanelCounts) -> bytes:
    """The picture of a panel, as PNG."""
    from gp4c.reporting.figures.panel_picture import figure_size, plot_panel
    from gp4c.reporting.figures.plot_style import png_of

    return png_of(partial(plot_panel, panel), figure_size(panel), dpi=130)


def _group(panel: PanelCounts, by: str, name: str) -> PanelCounts:
    """Subjects of a group by the text of its label."""
    return panel[np.flatnonzero(panel.covariates[by].astype(str).to_numpy() == name)]
