"""Effects of covariates in words and tables: the same numbers wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gp4c.plain import p_words
from gp4c.reporting.page.report_page import paragraph, table
from gp4c.reporting.words import estimate, number, percent

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.regression.covariate_effects import EffectRow

HEADER = ("covariate", "rate ratio", "interval", "p", "coefficient", "robust se", "model se")
#: what the numbers mean and how sure they are
ABOUT_EFFECTS = (
    "A rate ratio says by what factor the rate of events is multiplied, at all times: per unit "
    "of a numeric covariate, or relative to the reference level of a category, the other "
    "covariates being equal. Intervals and p-values use standard errors that are robust to "
    "overdispersion: a sandwich over subjects, or with fewer than 100 subjects their jackknife and "
    "quantiles of a t distribution."
)


def has_effects(model: PanelEstimator) -> bool:
    """Whether a model was fitted with covariates."""
    return model.coefficients_ is not None


def p_text(value: float) -> str:
    """Write a p-value: ``p = 0.011``, ``p < 0.0001``."""
    return p_words(value, least=1e-4)


def effect_text(row: EffectRow, level: float) -> str:
    """Write an effect: ``times 0.30 (95% interval 0.14 to 0.61), p = 0.001``."""
    low, high = estimate(row.low), estimate(row.high)
    ratio = f"times {estimate(row.rate_ratio)} ({percent(level)} interval {low} to {high})"
    return f"{ratio}, {p_text(row.p_value)}"


def effect_cells(row: EffectRow) -> tuple[str, ...]:
    """An effect under :data:`HEADER`."""
    return (
        str(row.covariate), estimate(row.rate_ratio),
        f"{estimate(row.low)} to {estimate(row.high)}", p_cell(row.p_value),
        number(row.coefficient), number(row.robust_se), number(row.se),
    )  # fmt: skip


def p_cell(value: float) -> str:
    """Write a p-value in a column of p-values: ``0.011``, ``< 0.0001``."""
    return p_text(value).removeprefix("p ").removeprefix("= ")


def references(model: PanelEstimator) -> str:
    """The levels that effects of categories are relative to: ``arm: placebo; sex: f``."""
    if model.coefficients_ is None:
        return ""
    design, found = model.coefficients_.design, []
    for name, levels in design.levels.items():
        without = [level for level in levels if f"{name}[{level}]" not in design.names]
        if len(without) == 1:  # not so with other codings, or without a main effect
            found.append(f"{name}: {without[0]}")
    return "; ".join(found)


def effects_frame(
    models: Mapping[str, PanelEstimator] | Mapping[str | None, PanelEstimator], level: float,
    by: str | None,
) -> pd.DataFrame | None:  # fmt: skip
    """Effects of all groups as one table; None without covariates."""
    import pandas as pd

    frames = []
    for name, model in models.items():
        if model.coefficients_ is not None:
            frame = model.coefficients_.table(level).assign(level=level)
            if by is not None:
                frame.insert(0, "group", name)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else None


def effects_section(
    models: Mapping[str, PanelEstimator], level: float, by: str | None
) -> Iterator[str]:
    """Paragraph and tables of a report."""
    shown = [(name, m, m.coefficients_) for name, m in models.items() if m.coefficients_]
    if not shown:
        return
    yield paragraph(ABOUT_EFFECTS)
    for name, model, effects in shown:
        rows = [effect_cells(row) for row in effects.rows(level)]
        caption = f"{effects.design.formula} ({percent(level)} intervals)"
        caption += f"; standard errors: {effects.rows(level)[0].errors}"
        if references(model):
            caption += f"; reference levels: {references(model)}"
        yield table(f"{by}: {name}; {caption}" if by else caption, HEADER, rows, numbers=True)


def effects_in_words(model: PanelEstimator, level: float = 0.95) -> str:
    """One sentence per covariate: factor, interval, p-value and probability of a lower rate.

    The probability is that of a normal law around the estimate with the robust standard error (a t
    law with fewer than 100 subjects), which is the posterior of the coefficient under a flat prior.
    """
    lines = []
    effects = model.coefficients_
    if effects is None:
        return "The model has no covariates."
    for row in effects.rows(level):
        lower = float(effects.tail(np.array(row.z)))
        word = "lowers" if lower > 0.5 else "raises"
        low, high = estimate(row.low), estimate(row.high)
        lines.append(
            f"{row.covariate} changes the rate by a factor of {estimate(row.rate_ratio)} "
            f"({percent(level)} interval {low} to {high}), {p_text(row.p_value)}; probability "
            f"that it {word} the rate {_probability(max(lower, 1 - lower))}"
        )
    return "\n".join(lines)


def _probability(value: float) -> str:
    return "above 0.999" if value > 0.9995 else f"{value:.3f}"
