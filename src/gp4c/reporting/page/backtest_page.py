"""The page of a back-test: which model foretold best, all totals, and the shape of the errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gp4c.data.checks import plural
from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.fleets.backtest_plots import plot_backtest
from gp4c.reporting.figures.plot_style import SIZE, png_of
from gp4c.reporting.page.report_page import Section, page, paragraph, picture, table
from gp4c.reporting.publication.result_tables import backtest_table
from gp4c.reporting.words import duration, estimate, listed, percent, when

if TYPE_CHECKING:
    from gp4c.analysis.backtests.backtest import Backtest

_TITLE = "Back-test of forecasts"
#: standard errors beyond which a difference between models is put down to more than chance
_CLEAR = 2.0


def backtest_page(found: Backtest) -> str:
    """The page as HTML; it has no script and loads nothing."""
    sections = (
        Section("models", "Models", _models(found)),
        Section("totals", "Totals", _totals(found)),
        Section("subjects", "Single subjects", _subjects(found)),
    )
    return page(_TITLE, paragraph(_asked(found)), sections)


def _asked(found: Backtest) -> str:
    """What was forecast, and from when."""
    axis = TimeAxis(found.time_unit, found.time_origin)
    times = found.rows["origin"].unique()
    ahead = duration(found.horizon, found.time_unit, 4)
    points = listed([when(float(time), axis) for time in times])
    return (
        f"Each model was fitted to what was known at {plural(len(times), 'point')} in time "
        f"({points}) and forecast the events of the next {ahead}. The page compares the forecasts "
        "with the events that came."
    )


def _models(found: Backtest) -> Iterator[str]:
    """The verdict in a sentence, and shares and scores by model."""
    yield paragraph(_verdict(found))
    shown = backtest_table(found)
    yield table(shown.caption, shown.columns, shown.rows, numbers=True)
    yield from map(paragraph, shown.notes)


def _verdict(found: Backtest) -> str:
    """Which model foretold single subjects best, and whether chance could explain it."""
    scores = found.scores
    best = str(scores["subjects"].idxmax())
    if best == found.reference:
        return f"No model foretold the counts of single subjects better than the {best}."
    gain, error = (float(scores[name][best]) for name in ("subjects", "subjects_error"))
    beyond = gain > _CLEAR * error
    return (
        f"{best} foretold the counts of single subjects best: its log score is "
        f"{estimate(gain)} (standard error {estimate(error)}) above that of the "
        f"{found.reference}, {'more than' if beyond else 'which'} chance "
        f"{'explains' if beyond else 'may explain'}."
    )


def _totals(found: Backtest) -> Iterator[str]:
    """The number of all events at each origin: what came, and each model's forecast."""
    yield picture(
        png_of(partial(plot_backtest, found, what="total"), SIZE),
        "Events that came at each origin, beside the interval of each model.",
        f"All events after each point in time: what came, and each model's mean with its "
        f"{percent(found.level)} interval.",
    )
    axis = TimeAxis(found.time_unit, found.time_origin)
    rows = found.rows[found.rows["of"] == "total"]
    cells = [
        (
            when(float(row["origin"]), axis), str(row["model"]), f"{row['events']:,.0f}",
            estimate(row["mean"]), f"{row['low']:,.0f} to {row['high']:,.0f}",
        )
        for row in rows.to_dict("records")
    ]  # fmt: skip
    head = ("forecast made at", "model", "came", "expected", f"{percent(found.level)} interval")
    yield table("All events, by origin and model", head, cells, numbers=True)


def _subjects(found: Backtest) -> Iterator[str]:
    """Where in its forecast law each count fell."""
    yield picture(
        png_of(partial(plot_backtest, found, what="pit"), SIZE),
        "Histogram of where counts fell in their forecast laws, by model.",
        "Where the counts of single subjects fell in what was forecast. Flat at 1: forecasts are "
        "right. Higher at both ends: intervals are too narrow. Higher in the middle: too wide. "
        "Higher on one side: forecasts are off in one direction.",
    )
