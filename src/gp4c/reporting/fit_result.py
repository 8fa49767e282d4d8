"""Everything that is said about a fit, and the files that hold it: texts, tables, plots, models."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.data.summaries.table import Table
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.types.typed_answers import TypedCurves
    from gp4c.reporting.figures.plot_style import FigureStyle

#: what makes the groups of a fit to several types of events
EVENT_TYPE = "type of event"
#: writes one file to the path it is given
Writer: TypeAlias = Callable[[Path], object]


@dataclass(frozen=True)
class FittedGroup:
    """One fit: the group's name (None for all subjects), its data and its model.

    Data that are read in parts are not kept.
    """

    name: str | None
    panel: PanelCounts | None
    model: PanelEstimator

    def by_type(self) -> list[FittedGroup]:
        """The fit of each type of event and of their total; itself where there are no types."""
        from gp4c.estimators.types.typed_answers import TypedCurves

        if not isinstance(self.model, TypedCurves) or not self.model.event_types_:
            return [self]
        before = "" if self.name is None else f"{self.name}, "
        each = [
            FittedGroup(before + name, None, one) for name, one in self.model.type_models_.items()
        ]
        return [*each, FittedGroup(f"{before}all types", None, self.model)]


class FitResult:
    """Everything that is said about a fit, computed once: texts, tables, plots."""

    def __init__(
        self, fitted: list[FittedGroup], by: str | None, level: float, seed: int, with_curves: bool
    ) -> None:
        from gp4c.reporting.effect_rows import effects_frame
        from gp4c.reporting.figures.curves import curves_of
        from gp4c.reporting.summary import summarise

        self.fitted, self.by, self.level, self.seed = fitted, by, level, seed
        self.shown = [one for group in fitted for one in group.by_type()]
        typed = len(self.shown) > len(fitted)
        self.shown_by = f"{by}, {EVENT_TYPE}" if by and typed else EVENT_TYPE if typed else by
        models = [group.model for group in self.shown]
        self.curves = [curves_of(model, levels=(level,)) for model in models] if with_curves else []
        known = dict(zip(map(id, models), self.curves, strict=False))
        self.summaries = [
            summarise(group.model, level=level, curves=known.get(id(group.model)))
            for group in fitted
        ]
        self.file_names = file_names([group.name for group in fitted])
        self.single = [group for group in self.shown if not group.model.event_types_]
        self.effects = effects_frame({g.name: g.model for g in self.single}, level, self.shown_by)

    def text(self) -> str:
        """Summaries of all groups, one under the other."""
        parts = []
        for group, summary in zip(self.fitted, self.summaries, strict=True):
            head = "" if group.name is None else f"== {self.by}: {group.name} ==\n\n"
            parts.append(f"{head}{summary}")
        return printable("\n\n".join(parts))

    def json(self) -> str:
        """The same for programs."""
        import json

        from gp4c import __version__
        from gp4c.reporting.csv_tables import json_rows

        fits = [
            {"group": group.name, "file": name, **facts(group.model), "summary": summary.to_dict()}
            for group, name, summary in zip(
                self.fitted, self.file_names, self.summaries, strict=True
            )
        ]
        document = {
            "gp4c": __version__, "by": self.by, "level": self.level, "seed": self.seed,
            "fits": fits,
        }  # fmt: skip
        if self.effects is not None:
            document["effects"] = json_rows(self.effects)
        return json.dumps(document, indent=2, ensure_ascii=False)

    def tables(self) -> dict[str, Table]:
        """Tables to publish, by name: estimates, curves, effects of covariates if there are any."""
        from gp4c.reporting.publication.fit_tables import (
            curve_table,
            effects_table,
            estimates_table,
        )

        models = {str(group.name or ""): group.model for group in self.single}
        asked = (models, self.level, self.shown_by)
        found = {"estimates": estimates_table(*asked), "curve": curve_table(*asked)}
        return found if self.effects is None else found | {"effects": effects_table(*asked)}

    def writers(
        self, style: FigureStyle | None = None, tables: Sequence[str] = ()
    ) -> dict[str, Writer]:
        """Files for ``--out``: name -> function that writes it.

        Parameters
        ----------
        style : FigureStyle, optional
            How figures are written; PNG and SVG of our size if absent.
        tables : sequence of str
            Formats of tables to publish: "docx", "tex", "html", "md", "csv".
        """
        from gp4c.reporting.csv_tables import write_csv

        files: dict[str, Writer] = {
            name: group.model.save for name, group in zip(self.file_names, self.fitted, strict=True)
        }
        files["curves.csv"] = lambda path: write_csv(self._table(), path)
        effects = self.effects
        if effects is not None:
            files["effects.csv"] = lambda path: write_csv(effects, path)
        if tables:
            from gp4c.reporting.publication import table_files

            files |= table_files(self.tables(), tables)
        files |= self._own_files(style)
        files |= self._plots(style)
        files["summary.txt"] = lambda path: path.write_text(self.text() + "\n", encoding="utf-8")
        files["summary.json"] = lambda path: path.write_text(self.json() + "\n", encoding="utf-8")
        return files

    def _own_files(self, style: FigureStyle | None) -> dict[str, Writer]:
        """Tables and plots that only some models have, one of each group."""
        from gp4c.reporting.csv_tables import write_csv
        from gp4c.reporting.figures.plot_style import FigureStyle

        files: dict[str, Writer] = {}
        for fit_name, group in zip(self.file_names, self.fitted, strict=True):
            end = fit_name.removeprefix("fit").removesuffix(".json")
            for name, frame in group.model.own_tables().items():
                files[f"{name}{end}.csv"] = partial(write_csv, frame)
            for name, draw in group.model.own_plots().items():
                files |= (style or FigureStyle()).files(f"{name}{end}", draw, formats=("png",))
        return files

    def _table(self) -> pd.DataFrame:
        import pandas as pd

        from gp4c.reporting.csv_tables import with_dates

        pairs = zip(self.curves, self.shown, strict=True)
        frames = [with_dates(curves.to_frame(), group.model) for curves, group in pairs]
        if self.shown_by is None:
            return frames[0]
        names = [group.name for group in self.shown]
        return pd.concat(
            [frame.assign(group=name) for name, frame in zip(names, frames, strict=True)]
        )[["group", *frames[0].columns]]

    def _plots(self, style: FigureStyle | None) -> dict[str, Writer]:
        from gp4c.reporting.figures.observed_numbers import size_with
        from gp4c.reporting.figures.plot_style import FigureStyle
        from gp4c.reporting.figures.plots import plot_cumulative, plot_groups, plot_intensity

        def draw(what: str) -> Callable[[Axes], Axes]:
            if self.shown_by is None:
                one = plot_intensity if what == "intensity" else plot_cumulative
                panel = self.fitted[0].panel
                return lambda ax: one(self.curves[0], ax, level=self.level, panel=panel)
            named = {str(g.name): c for g, c in zip(self.shown, self.curves, strict=True)}
            return lambda ax: plot_groups(
                named, ax, what=what, level=self.level, title=self.shown_by, observed=observed
            )

        parts = {str(g.name): g.panel for g in self.fitted if g.panel is not None}
        observed = None if self.by is None or self.by != self.shown_by else parts
        size = size_with(len(observed or ()))

        smooth = all(c.rate is not None for c in self.curves)
        files: dict[str, Writer] = {}
        for what in ["intensity", "cumulative"] if smooth else ["cumulative"]:
            files |= (style or FigureStyle()).files(
                what, draw(what), size=size, formats=("png", "svg")
            )
        return files


def facts(model: PanelEstimator) -> dict[str, object]:
    """The fitted laws in numbers; None for what a fit does not have."""
    from gp4c.estimators.types.typed_answers import TypedCurves

    if isinstance(model, TypedCurves) and model.event_types_:
        return _typed_facts(model)
    return {
        "law": model.law_,
        "effect": model.effect_,
        "dispersion": float(model.dispersion_),
        "burst_size": model.count_law_.burst_size(model.law_parameters_),
        "frailty_variance": float(1.0 / model.frailty_shape_),
        "effective_draws": model.effective_draws_,
        "pareto_k": model.pareto_k_,
        **model.factor_numbers(),
        "check": None if model.fit_check_ is None else asdict(model.fit_check_),
    }


def _typed_facts(model: TypedCurves) -> dict[str, object]:
    """Facts of each type, and how the subjects' effects go together."""
    known = model.effect_correlation_
    assert known is not None
    return {
        "types": {name: facts(one) for name, one in model.type_models_.items()},
        "effect_correlations": known.to_frame().to_dict("records"),
        "log_evidence_gain": model.log_evidence_gain_,
        "effective_draws": model.effective_draws_,
        "pareto_k": model.pareto_k_,
    }


def file_names(groups: list[str | None]) -> list[str]:
    """``fit.json``, or ``fit-GROUP.json`` with groups in letters that every file system takes."""
    names: list[str] = []
    for group in groups:
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in group or "")[:40]
        base = "fit" if group is None else f"fit-{plain}"
        taken = {name.casefold() for name in names}
        tries = (f"{base}-{k}.json" if k > 1 else f"{base}.json" for k in itertools.count(1))
        names.append(next(name for name in tries if name.casefold() not in taken))
    return names
