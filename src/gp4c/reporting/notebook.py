"""What a notebook shows of models, comparisons and forecasts; every text is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gp4c.analysis.words.comparison_words import conclusions
from gp4c.data.summaries.panel_summary import html_table
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import GP4CError
from gp4c.reporting.figures.plot_style import axis_of
from gp4c.reporting.summary import summarise
from gp4c.reporting.words import estimate, percent, point, when

if TYPE_CHECKING:
    from gp4c.analysis.comparison import Comparison
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.forecasts.forecast_result import Forecast

#: rows of a table in a notebook
_MOST_ROWS = 20


def model_html(model: PanelEstimator) -> str:
    """Summary of a fitted estimator; its parameters before ``fit``."""
    try:
        model._check_fitted()
    except GP4CError:
        return f"<p><code>{escape(repr(model))}</code>, not fitted yet</p>"
    return f"<p><code>{escape(repr(model))}</code></p>{summarise(model)._repr_html_()}"


def comparison_html(found: Comparison) -> str:
    """Groups, ratios at the horizon and the test of a comparison."""
    pairs = found.pairwise()
    several = len(found.groups) > 2
    time = when(float(pairs["time"].iloc[0]), axis_of(found.panel))
    header = ["", f"ratio by {time}", "95% band", "probability that it is lower"]
    header += ["p (Holm)"] if several else []
    rows = [
        [
            f"{row['second']} relative to {row['first']}",
            estimate(row["ratio"]),
            f"{estimate(row['low'])} to {estimate(row['high'])}",
            f"{row['probability']:.3f}",
            *([f"{row['p_adjusted']:.4f}"] if several else []),
        ]
        for row in pairs.to_dict("records")
    ]
    sizes = ", ".join(f"{g} ({int((found.codes == k).sum())})" for k, g in enumerate(found.groups))
    title = f"Mean number of events by {found.by}: {sizes} subjects"
    return html_table(title, header, rows, [*conclusions(found), *found.notes])


def forecast_html(found: Forecast) -> str:
    """Mean and interval of each window; one row per subject where there are several."""
    table = found.to_frame()
    header = ["", "window", "expected events", f"{percent(found.level)} interval"]
    axis = TimeAxis(found.time_unit, found.time_origin)
    rows = [
        [str(row["subject"]),
         " to ".join(axis.date(row[end]) or point(row[end]) for end in ("start", "stop")),
         estimate(row["mean"]),
         f"{row['low']:g} to {row['high']:g}"]
        for row in table.head(_MOST_ROWS).to_dict("records")
    ]  # fmt: skip
    hidden = len(table) - len(rows)
    more = [f"and {hidden:,} more; to_frame() has them all"] if hidden else []
    return html_table("Forecast", header, rows, [*more, *filter(None, [found.note])])
