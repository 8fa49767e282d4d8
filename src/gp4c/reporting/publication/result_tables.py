"""Tables of results other than models: comparison, forecast, plan, back-test, ranking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gp4c.analysis.groups.group_draws import shown
from gp4c.analysis.planning.power_words import plan_text, table_rows
from gp4c.analysis.words.comparison_words import (
    ACCOUNTS,
    errors_of_ratios,
    scores_in_words,
    table_notes,
)
from gp4c.data.checks import plural
from gp4c.data.summaries.table import Table
from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.plot_style import axis_of
from gp4c.reporting.publication.estimate_lines import Estimate, one_column
from gp4c.reporting.words import duration, estimate, number, percent, point, when

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.analysis.backtests.backtest import Backtest
    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.planning.power_plan import PowerPlan
    from gp4c.estimators.forecasts.forecast_result import Forecast


def comparison_table(found: Comparison, level: float = 0.95) -> Table:
    """Groups, ratios with intervals, tests and probabilities of a comparison."""
    sizes = [f"{g} ({int((found.codes == k).sum())})" for k, g in enumerate(found.groups)]
    return one_column(
        f"Comparison of {found.by}", list(_compared(found, level)), level,
        table_notes(found), f"{', '.join(sizes)} subjects.",
    )  # fmt: skip


def _compared(found: Comparison, level: float) -> Iterator[Estimate]:
    """Adjusted ratios, numbers by the horizon and their ratios, the test's ratios; accounts."""
    time = found.horizon
    then = when(time, axis_of(found.panel))
    standardised = ", standardised" if found.tested.adjustment is not None else ""
    for row in found.adjusted(level).to_dict("records"):
        yield Estimate(
            f"Adjusted ratio of rates ({errors_of_ratios(found, row['errors'])})",
            f"{row['second']} to {row['first']}", row["ratio"], (row["low"], row["high"]),
            row["p_value"],
        )  # fmt: skip
    for group in found.groups:
        model = shown(found.models[group], "standardised")
        low, high = model.cumulative_band(time, level)
        yield Estimate(
            f"Mean number of events by {then}{standardised}", str(group),
            float(model.cumulative(time)), (float(low), float(high)),
        )  # fmt: skip
    for pair in found.pairs:
        low, high = found.ratio_band(time, level, curve="cumulative", pair=pair)
        yield Estimate(
            f"Ratio of mean numbers by {then}{standardised} (posterior median)",
            f"{pair[1]} to {pair[0]}",
            float(found.ratio(time, curve="cumulative", pair=pair)), (float(low), float(high)),
        )  # fmt: skip
    if found.tested.scores is not None and len(found.groups) > 2:
        factor, low, high = found.tested.trend_interval(level)
        yield Estimate(
            "Factor of the rate by the permutation test of the trend",
            f"per unit of the score ({scores_in_words(found)})", factor, (low, high), found.p_value,
        )  # fmt: skip
    adjusted = " (pairs adjusted by Holm's method)" if len(found.pairs) > 1 else ""
    of_level = "" if found.test == "level" else " of the level"
    for row in found.intervals(level).to_dict("records"):
        yield Estimate(
            f"Ratio of rates by the permutation test{of_level}{adjusted}",
            f"{row['second']} to {row['first']}", row["ratio"], (row["low"], row["high"]),
            row["p_adjusted"],
        )  # fmt: skip
    if found.hypotheses is not None:
        yield from _accounts(found, level)


def _accounts(found: Comparison, level: float) -> Iterator[Estimate]:
    """Ratios if the curves have one shape, and how probable each account of the groups is."""
    base = found.groups[0]
    for group in found.groups[1:]:
        middle, _ = found.factor_interval(1e-9, pair=(base, group))
        yield Estimate(
            "Ratio of rates if the curves have one shape", f"{group} to {base}", middle,
            found.factor_interval(level, pair=(base, group)),
        )  # fmt: skip
    for name, share in found.probabilities.items():
        section = "Posterior probability of"
        yield Estimate(section, ACCOUNTS[name], share, certain=True)


def forecast_table(found: Forecast) -> Table:
    """Expected events, median and interval of each subject and window."""
    frame = found.to_frame()
    axis = TimeAxis(found.time_unit, found.time_origin)
    parts = [frame]
    if found.draws.ndim > 1:  # several cells: their sum has an interval of its own
        whole = found.total() if found.draws.ndim == 2 else found.total().total()
        parts.append(whole.to_frame().assign(subject="total"))
    rows = tuple(
        (
            str(row["subject"]),
            " to ".join(axis.date(row[end]) or point(row[end], 4) for end in ("start", "stop")),
            estimate(row["mean"]), f"{row['median']:,.0f}",
            f"{row['low']:,.0f} to {row['high']:,.0f}",
        )
        for part in parts
        for row in part.to_dict("records")
    )  # fmt: skip
    unit = f" ({found.time_unit})" if found.time_unit and axis.origin is None else ""
    columns = ("", f"window{unit}", "expected", "median", f"{percent(found.level)} interval")
    import pandas as pd

    return Table(
        "Forecast of the number of events", columns, rows, tuple(filter(None, [found.note])),
        numbers=pd.concat(parts, ignore_index=True),
    )  # fmt: skip


def plan_table(plan: PowerPlan) -> Table:
    """Power of every size and ratio that was simulated."""
    header, rows = table_rows(plan)
    text, _, _ = plan_text(plan).partition("\n\n  ")
    notes = [" ".join(part.split()) for part in text.split("\n\n")]
    return Table(
        "Power of a trial of two arms", tuple(header), tuple(map(tuple, rows)), tuple(notes),
        numbers=plan.to_frame(),
    )  # fmt: skip


def backtest_table(found: Backtest) -> Table:
    """How often intervals held, and log scores, by model."""
    import pandas as pd

    frame = pd.concat([found.coverage.add_prefix("held_"), found.scores], axis=1).reset_index()
    rows = tuple(
        (
            str(row["model"]), percent(round(row["held_subjects_exact"], 3)),
            percent(round(row["held_totals_exact"], 3)),
            *(f"{number(row[of])} ({number(row[f'{of}_error'])})" for of in ("subjects", "totals")),
        )
        for row in frame.to_dict("records")
    )  # fmt: skip
    columns = ("model", "held, subjects", "held, totals", "score, subjects", "score, totals")
    origins = plural(found.rows["origin"].nunique(), "origin")
    ahead = duration(found.horizon, found.time_unit, 4)
    notes = (
        f"Held: share of the counts inside their {percent(found.level)} intervals; a count at the "
        "edge counts in part.",
        f"Score: sum of log scores less that of {found.reference}; more is better. In brackets "
        "the standard error.",
    )
    caption = f"Forecasts of the next {ahead} from {origins}."
    return Table("Back-test of forecasts", columns, rows, notes, caption, frame)


def ranking_table(ranking: pd.DataFrame, level: float, rows: int | None = None) -> Table:
    """Units by their probability to be among the worst; the first `rows` of them."""
    cells = tuple(
        (
            str(row["subject"]), percent(round(row["probability"], 3)), estimate(row["effect"]),
            f"{estimate(row['low'])} to {estimate(row['high'])}", str(row["events"]),
            estimate(row["expected"]),
        )
        for row in ranking.head(rows if rows is not None else len(ranking)).to_dict("records")
    )  # fmt: skip
    columns = (
        "unit", "probability", "effect", f"{percent(level)} interval", "events", "expected",
    )  # fmt: skip
    notes = (
        "Probability: that the unit is among the worst.",
        "Effect: 2 means twice the events of an average unit.",
    )
    return Table("Units most likely among the worst", columns, cells, notes, numbers=ranking)
