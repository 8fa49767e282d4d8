"""Latent classes in the report: evidence, shares and the sorted panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses
from gp4c.reporting.figures.panel_picture import figure_size
from gp4c.reporting.figures.plot_style import png_of
from gp4c.reporting.page.classes.class_plots import plot_class_panel
from gp4c.reporting.page.classes.class_rows import class_rows
from gp4c.reporting.page.report_page import paragraph, picture, table

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

_HEADER = ("classes", "log evidence", "held-out likelihood", "gain over one", "± (standard error)")


def classes_section(
    models: Mapping[str, PanelEstimator], panel: PanelCounts | None, level: float, by: str | None
) -> Iterator[str]:
    """Tables and pictures of every model with classes."""
    for name, model in models.items():
        if not isinstance(model, GP4CClasses):
            continue
        if by is not None:
            yield paragraph(f"{by}: {name}")
        yield table("", (), [[row.quantity, row.text] for row in class_rows(model, level)])
        rows = [
            [str(int(row["n_classes"])), f"{row['log_evidence']:.2f}", f"{row['held_out']:.2f}",
             f"{row['held_out_gain']:+.2f}", f"{row['held_out_error']:.2f}"]
            for row in model.choice_.to_frame().to_dict("records")
        ]  # fmt: skip
        yield table("How many classes", _HEADER, rows, numbers=True)
        if model.n_classes_ > 1:
            yield from _pictures(model, panel if by is None else None)


def _pictures(model: GP4CClasses, panel: PanelCounts | None) -> Iterator[str]:
    """The panel sorted by class; the model's own plots stand in another section."""
    if panel is not None and set(panel.subjects.tolist()) == set(model.subjects_.tolist()):
        yield picture(
            png_of(partial(plot_class_panel, model, panel), figure_size(panel)),
            "The panel, subjects sorted by class.",
            "One row per subject, sorted by class, the surest of each class first.",
        )  # fmt: skip
