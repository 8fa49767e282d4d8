"""Ratios of groups at equal covariates, from a regression with the groups in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gp4c.analysis.groups.group_columns import Column
    from gp4c.analysis.groups.ratios.contrast_answers import Pair
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.regression.covariate_effects import CovariateEffects

Floats = NDArray[np.float64]

COLUMNS = ("first", "second", "ratio", "low", "high", "p_value", "errors")


def with_groups(panel: PanelCounts, groups: Column) -> PanelCounts:
    """The panel with the groups as a category, the reference first."""
    category = pd.Categorical.from_codes(groups.codes, categories=pd.Index(groups.levels))
    column = pd.Series(category, index=panel.covariates.index)
    return panel._like(_covariates=panel.covariates.assign(**{groups.name: column}))


def group_formula(by: str, formula: str) -> str:
    """The formula with the groups first, whose coefficients are then the first ones."""
    return f"`{by}` + {formula}"


def pair_ratios(
    effects: CovariateEffects | None,
    groups: Sequence[Hashable],
    pairs: Sequence[Pair],
    level: float,
    errors: str,
) -> pd.DataFrame:
    """Ratio of rates of each pair with its interval; no rows without a regression.

    Parameters
    ----------
    effects : CovariateEffects or None
        Whose first coefficients are those of all groups but the first.
    """
    if effects is None:
        return pd.DataFrame(columns=list(COLUMNS))
    contrasts = pair_contrasts(groups, pairs, len(effects.beta))
    names = [f"{second} / {first}" for first, second in pairs]
    rows = effects.contrast_rows(contrasts, names, level, errors)
    found = [
        (*pair, row.rate_ratio, row.low, row.high, row.p_value, row.errors)
        for pair, row in zip(pairs, rows, strict=True)
    ]
    return pd.DataFrame(found, columns=list(COLUMNS))


def pair_contrasts(groups: Sequence[Hashable], pairs: Sequence[Pair], size: int) -> Floats:
    """Differences of the coefficients of groups, second minus first, (pairs, size).

    The first coefficients are those of all groups but the first.
    """
    contrasts = np.zeros((len(pairs), size))
    for row, pair in zip(contrasts, pairs, strict=True):
        for group, sign in zip(pair, (-1.0, 1.0), strict=True):
            place = groups.index(group)
            if place > 0:  # the reference has no coefficient
                row[place - 1] += sign
    return contrasts
