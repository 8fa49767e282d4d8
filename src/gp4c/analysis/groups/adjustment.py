"""The covariates that a comparison of groups is adjusted for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.formulas.changing_terms import changing_terms
from gp4c.data.formulas.covariate_rows import design_rows, learn_design
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.data.formulas.formula_text import drop_column
from gp4c.estimators.gp4c import GP4C
from gp4c.estimators.regression.engine_regression import SharedDesign
from gp4c.estimators.regression.estimable import check_estimable
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Adjustment:
    """A formula of covariates beside the groups, learned from everybody.

    Attributes
    ----------
    formula : str
        Without the groups.
    design : FormulaDesign
        Columns of the regression, centred at their average over all subjects.
    rows : (n_intervals, p)
        Their values in the rows of the panel.
    note : str
        What was taken out of the formula; empty if nothing was.
    """

    formula: str
    design: FormulaDesign
    rows: Floats
    note: str = ""

    def shared(self, panel: PanelCounts) -> SharedDesign:
        """The formula as it was learned, for fits to the groups."""
        return SharedDesign.of(panel, self.design, self.rows)

    def of(self, panel: PanelCounts, members: NDArray[np.intp]) -> Floats:
        """Rows of some subjects, in the order of ``panel[members]``."""
        return self.rows[np.isin(panel.subject_index, members)]


def read_adjustment(panel: PanelCounts, formula: str | None, by: str) -> Adjustment | None:
    """Learn a formula from a panel; None if it has nothing beside the groups."""
    if formula is not None and changing_terms(formula)[1]:
        raise PanelDataError(
            "a comparison is adjusted for constant effects; fit GP4C with over_time() instead, and "
            "see effect_over_time"
        )
    kept, left_out = (None, []) if formula is None else drop_column(formula, by)
    if kept is None:
        return None
    design, _ = learn_design(panel, kept)
    rows = design_rows(design, panel)
    check_estimable(panel, rows, design)
    return Adjustment(kept, design, rows, _note(by, left_out))


def fit_alike(
    model: GaussianProcessModel,
    panel: PanelCounts,
    adjustment: Adjustment | None,
    shared: SharedDesign | None,
) -> GaussianProcessModel:
    """A fresh fit of the model, with the covariates that all fits of a comparison have."""
    fresh = type(model)().set_params(**model.get_params())
    if not fresh.has_posterior:
        raise TypeError(f"{type(model).__name__} gives no posterior; compare with GP4C")
    if not isinstance(fresh, GP4C):
        return fresh.fit(panel)
    fresh.formula = None if adjustment is None else adjustment.formula
    return fresh.fit(panel, design=shared)


def group_fitter(
    build: Callable[[], PanelEstimator], panel: PanelCounts, by: str | None
) -> Callable[[PanelCounts], PanelEstimator]:
    """How groups of a panel are fitted, each by itself: as :func:`gp4c.compare` fits them.

    A formula is learned from everybody, so that the curves of all groups belong to the same
    covariates.
    """
    model = build()
    formula = model.formula if isinstance(model, GP4C) else None
    if by is None or formula is None or changing_terms(formula)[1]:
        return lambda part: build().fit(part)
    assert isinstance(model, GP4C)
    adjustment = read_adjustment(panel, formula, by)
    shared = None if adjustment is None else adjustment.shared(panel)
    return partial(fit_alike, model, adjustment=adjustment, shared=shared)


def _note(by: str, left_out: list[str]) -> str:
    if not left_out:
        return ""
    text = f"{by!r} makes the groups and was taken out of the formula"
    mixed = [term for term in left_out if ":" in term]
    if not mixed:
        return f"{text}; the groups are compared at equal covariates."
    return (
        f"{text}, and so was {', '.join(map(repr, mixed))}: the adjusted ratio is one for all. "
        "The curves of the groups have coefficients of their own, so that the standardised curves "
        "have the interaction in them."
    )
