"""What a rate is made of, in the report: curves of the parts, and pictures that a model has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from gp4c.reporting.figures.curves import curves_of
from gp4c.reporting.figures.plot_style import SIZE, png_of
from gp4c.reporting.page.report_figures import Figure, curve_figure
from gp4c.reporting.page.report_page import picture, plot, table

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator


def component_section(
    models: Mapping[str, PanelEstimator],
    levels: Sequence[float],
    by: str | None,
    figures: dict[str, Figure],
) -> Iterator[str]:
    """Curves of the parts of each model that has parts; they join the `figures` of the page."""
    for k, (name, model) in enumerate(models.items()):
        parts = model.components()
        whose, key = f"{by}: {name}. " if by else "", f"components-{k}"
        if parts:
            curves = {part: curves_of(one, levels=levels) for part, one in parts.items()}
            figures[key] = curve_figure(curves, "rate")
            words = "Rates that the rate is made of, with <span data-level></span> bands."
            yield plot(
                key, f"{whose}Event rates over time: {', '.join(parts)}.",
                f"{escape(whose)}{words}",
            )  # fmt: skip
            yield table("", (), [[quantity, words] for _, quantity, words, _ in model.facts()])
        for title, draw in model.own_plots().items():
            words = f"{whose}{title[:1].upper()}{title[1:]}."
            yield picture(png_of(draw, SIZE), words, escape(words))
