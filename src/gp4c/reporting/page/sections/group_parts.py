"""What a comparison of groups adds to the report, adjusted for covariates or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.groups.group_draws import has_medians, shown
from gp4c.analysis.words.comparison_words import MOST_PAIRS, adjusted_for, errors_of_ratios
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.reporting.effect_rows import p_text
from gp4c.reporting.figures.curves import Bands, Curves, curves_of, ratio_times
from gp4c.reporting.page.report_figures import Figure, curve_figure, ratio_figure
from gp4c.reporting.page.report_page import paragraph, plot, values_table
from gp4c.reporting.words import estimate, number, percent

if TYPE_CHECKING:
    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.groups.ratios.contrast_answers import Question
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.estimators.base import PanelEstimator
    from gp4c.reporting.figures.observed_numbers import ObservedNumbers

#: how the curves of an adjusted comparison are labelled
STANDARDISED = "standardised"
AVERAGE = "at average covariates"


def is_adjusted(comparison: Comparison | None) -> bool:
    """Whether groups were compared at equal covariates."""
    return comparison is not None and comparison.tested.adjustment is not None


def shown_curves(
    models: Mapping[str, PanelEstimator], comparison: Comparison | None, levels: tuple[float, ...]
) -> dict[str, Curves]:
    """Curves of the groups; averaged over everybody's covariates if they are adjusted."""
    found = {}
    for name, model in models.items():
        if is_adjusted(comparison) and isinstance(model, GaussianProcessModel):
            model = shown(model, "standardised")
        found[name] = curves_of(model, levels=levels)
    return found


def average_figure(
    models: Mapping[str, PanelEstimator],
    levels: tuple[float, ...],
    level: float,
    observed: ObservedNumbers | None,
    figures: dict[str, Figure],
) -> str:
    """Curves at average covariates, beside the standardised ones."""
    curves = {name: curves_of(model, levels=levels) for name, model in models.items()}
    figures["cumulative-average"] = curve_figure(curves, "cumulative", observed=observed)
    values = [
        values_table(name, c.axis, c.times, c.cumulative, c.cumulative_bands, level)
        for name, c in curves.items()
    ]
    return plot(
        "cumulative-average", f"Mean number of events over time {AVERAGE}.",
        f"Mean number of events of a subject {AVERAGE}, with <span data-level></span> bands.",
        "".join(values),
    )  # fmt: skip


def whose(comparison: Comparison | None, default: str) -> str:
    """For whom the curves are, in a caption."""
    if comparison is None or comparison.tested.adjustment is None:
        return default
    formula = comparison.tested.adjustment.formula
    text = f"{STANDARDISED}: averaged over the covariates of all subjects ({escape(formula)})"
    medians = [str(g) for g, m in comparison.models.items() if has_medians(m, "standardised")]
    return text + (f", posterior medians for {escape(', '.join(medians))}" if medians else "")


def ratio_cards(comparison: Comparison | None, level: float) -> Iterator[str]:
    """The adjusted ratios, for the top of the page."""
    if comparison is None:
        return
    beside = adjusted_for(comparison)
    for row in comparison.adjusted(level).to_dict("records")[:MOST_PAIRS]:
        interval = (
            f"{percent(level)} interval {estimate(row['low'])} to {estimate(row['high'])}, "
            f"{p_text(row['p_value'])}; {errors_of_ratios(comparison, row['errors'])}"
        )
        yield (
            f'<div class="card"><div class="name">{escape(comparison.by)}: '
            f"{escape(str(row['second']))} relative to {escape(str(row['first']))}</div>"
            f'<div class="figure">{estimate(row["ratio"])}</div>'
            f"<div>ratio of rates, adjusted for {escape(beside)}</div>"
            f'<div class="range">{escape(interval)}</div></div>'
        )


def regressions(
    models: Mapping[str, PanelEstimator], comparison: Comparison | None
) -> dict[str, PanelEstimator]:
    """The models whose effects are shown, that of all groups together first."""
    both = None if comparison is None else comparison.regression
    return dict(models) if both is None else {"all groups, one shape": both, **models}


def typed_parts(
    comparison: TypeComparison,
    levels: tuple[float, ...],
    level: float,
    axis: TimeAxis,
    shown: dict[str, Figure],
) -> Iterator[str]:
    """The tests of all types together and of each, then what was compared in each type."""
    for line in comparison.conclusions():
        yield paragraph(line)
    for place, (name, found) in enumerate(comparison.by_type.items()):
        yield f"<h3>{escape(name)}</h3>"
        yield from comparison_parts(found, levels, level, axis, shown, f"-type-{place}")


def comparison_parts(
    comparison: Comparison,
    levels: tuple[float, ...],
    level: float,
    axis: TimeAxis,
    shown: dict[str, Figure],
    which_type: str = "",
) -> Iterator[str]:
    """The comparison in words, and the ratios of the first pairs over time.

    Parameters
    ----------
    level : float
        Level of the bands in tables.
    axis : TimeAxis
    shown : dict
        Figures of the page, to which those of the ratios are added.
    which_type : str
        What ends the names of the figures.
    """
    for line in str(comparison).splitlines():
        yield paragraph(line)
    times = ratio_times(comparison)
    which = f"{STANDARDISED}, " if is_adjusted(comparison) else ""
    for k, pair in enumerate(comparison.pairs[:3]):
        name = f"{pair[1]} / {pair[0]}"
        for curve, words in (("cumulative", "mean numbers of events"), ("rate", "event rates")):
            how: Question = {"curve": curve, "pair": pair}
            ratio = np.asarray(comparison.ratio(times, **how))
            bands: Bands = {}
            for level in levels:
                low, high = comparison.ratio_band(times, level, **how)
                bands[level] = np.asarray(low), np.asarray(high)
            key = f"ratio-{curve}-{k}{which_type}"
            shown[key] = ratio_figure(name, times, ratio, bands, axis)
            yield plot(
                key, f"Ratio of {words}, {name}, over time: {number(ratio[-1])} at the end.",
                f"Ratio of {words}, {which}{escape(name)}, posterior median with "
                "<span data-level></span> bands; 1 is no difference.",
                values_table(name, axis, times, ratio, bands, level),
            )  # fmt: skip
