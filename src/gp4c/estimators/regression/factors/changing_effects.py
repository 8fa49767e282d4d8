"""Effects of covariates that change over time: their factors, ratio curves and test."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from gp4c.data.formulas.changing_terms import changing_terms
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.estimators.regression.factors.factor_fit import Factors
from gp4c.exceptions import PanelDataError
from gp4c.model.modulation.modulator import Modulator
from gp4c.model.modulation.over_time import OverTime, deviations
from gp4c.model.modulation.sheets import distinct_inputs

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.posterior.modulated_draws import ModulatedDraws

Floats = NDArray[np.float64]

#: most different sets of inputs that the rows of a fit may bring
MOST_SHEETS = 600
#: posterior variance of a deviation, of 1 in the prior, above which the data say nothing of it
_UNKNOWN = 0.95


class ConstantRatioTest(NamedTuple):
    """A Wald test that a ratio does not change: statistic, degrees of freedom, p-value."""

    statistic: float
    df: int
    p_value: float


def changing_factors(
    formula: str, design: FormulaDesign, panel: PanelCounts, rows: Floats
) -> Factors:
    """A part for each term inside ``over_time()``, and the covariates that rows bring to it."""
    found = Factors.none(panel)
    for term in changing_terms(formula)[1]:
        names = _columns_of(term, design)
        places = tuple(design.names.index(name) for name in names)
        z = rows[:, list(places)]
        part = OverTime(term, names, places, np.array([_step(column) for column in z.T]))
        found = found.joined(Factors((part,), z))
    return found


def check_sheets(factors: Factors) -> None:
    """Refuse covariates with so many values that every row would need a curve of its own."""
    number = len(distinct_inputs(factors.inputs)[0])
    if number > MOST_SHEETS:
        raise PanelDataError(
            f"over_time() and season= make {number:,} different curves of these rows, and a fit "
            f"takes {MOST_SHEETS}: round the covariate, or cut it into classes"
        )


def _columns_of(term: str, design: FormulaDesign) -> tuple[str, ...]:
    """Columns of the regression that belong to a term, relative to the same reference levels."""
    table = design.table
    return FormulaDesign.learn(term, table[_names(term, table)], design.weights).names


def _names(term: str, table: pd.DataFrame) -> list[str]:
    from gp4c.data.formulas.formula_text import parse_formula

    return [name for name in parse_formula(term).columns if name in table]


def _step(column: Floats) -> float:
    """The step over which the log ratio deviates by ½: between two values, or two deviations."""
    values = np.unique(column)
    if len(values) == 2:
        return float(values[1] - values[0])
    return max(2 * float(column.std()), 1e-300)


def part_of(parts: tuple[Modulator, ...], name: str) -> tuple[OverTime, int]:
    """The part with an effect, and which of its columns, by the name of either."""
    known = [part for part in parts if isinstance(part, OverTime)]
    for part in known:
        if name in part.names:
            return part, part.names.index(name)
        if name == part.label and len(part.names) == 1:
            return part, 0
    listed = ", ".join(repr(column) for part in known for column in part.names)
    raise PanelDataError(
        f"no effect over time is called {name!r}; there are {listed}"
        if listed
        else "this fit has no effect over time: formula='over_time(arm)' fits one"
    )


def log_ratios(draws: ModulatedDraws, part: OverTime, column: int, times: Floats) -> Floats:
    """β + δ(t) of every draw, per unit of the column, at times of the user, (times, S)."""
    first = draws.modulation.rows(part).start + column * (part.size // len(part.names))
    w = draws.modulating[first : first + part.size // len(part.names)]
    basis = deviations(np.clip(draws.unit(times), 0.0, 1.0)) / part.units[column]
    return np.asarray(draws.coefficients[part.columns[column]] + basis @ w)


def constant_ratio_test(mean: Floats, covariance: Floats, robust: Floats) -> ConstantRatioTest:
    """Test that deviations w are 0, from their posterior and the sandwich over subjects.

    With the sandwich V of the posterior mean m, mᵀV⁻¹m is χ² in the directions of which the data
    say something; the prior shrinks m and V alike.
    """
    values, axes = np.linalg.eigh(covariance)
    told = axes[:, values < _UNKNOWN]
    if not told.shape[1]:
        return ConstantRatioTest(0.0, 0, 1.0)
    along = told.T @ mean
    statistic = float(along @ np.linalg.solve(told.T @ robust @ told, along))
    df = told.shape[1]
    return ConstantRatioTest(statistic, df, float(gammaincc(df / 2, statistic / 2)))
