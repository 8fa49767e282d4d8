"""Bad actors in the report: a table of the units that are likely among the worst, and a funnel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gp4c.reporting.figures.fleets.unit_plots import plot_funnel
from gp4c.reporting.figures.plot_style import SIZE, png_of
from gp4c.reporting.page.report_page import paragraph, picture, table
from gp4c.reporting.publication.result_tables import ranking_table

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

#: units in the table
_ROWS = 10


def units_section(
    models: Mapping[str, PanelEstimator], level: float, by: str | None
) -> Iterator[str]:
    """The worst units of each model whose data know about service or usage."""
    for name, model in models.items():
        known = model.histories_
        if known is None or known.service is None or not known.service.is_told:
            continue
        if not model.effect_law_.varies:
            continue
        ranking = model.unit_ranking(level=level)
        shown = ranking_table(ranking, level, _ROWS)
        title = "Units most likely among the worst tenth" + (f", {by}: {name}" if by else "")
        yield table(title, shown.columns, shown.rows)
        yield paragraph("An effect of 2 means twice the events of an average unit.")
        yield picture(
            png_of(partial(plot_funnel, model, ranking), SIZE),
            "Events over expected events of each unit.",
            "Each unit's events over those expected of an average one. Units that are all alike "
            "would lie between the lines.",
        )  # fmt: skip
