"""Fitting a growth model: rows, formula, laws, and what a fit leaves behind."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gp4c.classical.bootstrap import Draw
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.parametric.growth_curve import GrowthCurve
from gp4c.classical.parametric.rate_fit import (
    LawFit,
    RateData,
    RateRows,
    fit_laws,
)
from gp4c.classical.parametric.rate_profile import covariances, shape_information
from gp4c.classical.plug_in import Floats
from gp4c.classical.visit_cells import Indices, group_sums
from gp4c.data.subject_histories import SubjectHistories
from gp4c.estimators.fit_warnings import look_back, warn_if_overdispersed, warn_of_misfit
from gp4c.estimators.inputs import check_choice, check_panel
from gp4c.estimators.regression.estimable import NO_INFORMATION, check_estimable
from gp4c.exceptions import ConvergenceWarning, GP4CWarning, PanelDataError
from gp4c.files import kinds
from gp4c.model.dispersion import poisson_dispersion
from gp4c.model.laws import EFFECTS, LAWS, CountLaw

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

#: bound on the scores, per event
_TOL = 1e-9


class GrowthModel(GrowthCurve):
    """A growth model that fits its curve by maximum likelihood."""

    effect_options: ClassVar[Mapping[str, str | None]] = {
        "auto": "gamma", "none": None, "gamma": "gamma",
    }  # fmt: skip
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": True, "yes": True, "no": False}
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "position_": kinds.array("P"), "covariance_": kinds.array("P", "P"),
        "rows_": kinds.result("RateRows"),
        "coefficients_": kinds.maybe(kinds.result("CovariateEffects")),
        "bootstrap_": kinds.Sometimes(kinds.dict_of(kinds.array("B", "two"))),
        "dispersion_": kinds.Sometimes(kinds.number(positive=True)),
        "law_": kinds.Sometimes(kinds.law),
        "subject_effect_errors_": kinds.Sometimes(kinds.maybe(kinds.array("K"))),
    }  # fmt: skip

    def __init__(
        self, *, effect: str | None = None, bursts: bool = False, formula: str | None = None
    ) -> None:
        self.effect = effect
        self.bursts = bursts
        self.formula = formula

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Estimate the curve from a panel; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LogLinear(effect="gamma", formula="treatment").fit(panel)
        >>> model.converged_
        True
        """
        check_choice("effect", self.effect, tuple(self.effect_options.values()))
        check_choice("bursts", self.bursts, (False, True))
        check_panel(self, panel)
        with self._whole_fit(panel):
            self._check_told(panel)
            self._begin_fit(panel)
            design, z = self._learn(panel)
            self._fitted_rows = replace(self._rows, z=z[self._row_order(panel)])
            data = self._data(self._rows, np.ones(panel.n_subjects))
            fit = fit_laws(data, self._law, EFFECTS[self.effect], _TOL)
            self._store(panel, data, fit, design, z)
        self._warn(panel, fit, data)
        return self

    def _check_told(self, panel: PanelCounts) -> None:
        """Refuse data that say nothing about a change of the rate."""
        name = type(self).__name__
        if panel.n_events == 0:
            raise PanelDataError(f"{name} needs events; this panel has none")
        if len(panel.distinct()) < 2:
            where = f"({panel.start[0]:g}, {panel.stop[0]:g}]"
            raise PanelDataError(
                f"every row is the interval {where}, so that nothing tells how the rate of "
                f"{name} changes; HomogeneousPoisson estimates its average"
            )

    def _learn(self, panel: PanelCounts) -> tuple[Any, Floats]:
        """The design of the formula, and its rows in the panel's order."""
        if self.formula is None:
            return None, np.zeros((panel.n_intervals, 0))
        from gp4c.data.formulas.changing_terms import refuse_changing
        from gp4c.data.formulas.covariate_rows import design_rows, learn_design

        refuse_changing(self.formula, type(self).__name__)
        design, _ = learn_design(panel, self.formula)
        z = design_rows(design, panel)
        check_estimable(panel, z, design)
        return design, z

    def _row_order(self, panel: PanelCounts) -> Indices:
        """Where each row of `_rows` is in the panel."""
        rank = np.empty(panel.n_subjects, dtype=np.intp)
        rank[self._rows.order] = np.arange(panel.n_subjects)
        return np.argsort(rank[panel.subject_index], kind="stable")

    def _data(self, rows: PanelRows, weights: Floats) -> RateData:
        assert rows.z is not None
        every = RateRows(
            rows.count, rows.start, rows.stop, rows.exposure, rows.subject, rows.z,
            rows.n_subjects,
        )  # fmt: skip
        return RateData(every, self._curve(rows.window), weights)

    def _store(
        self, panel: PanelCounts, data: RateData, fit: LawFit, design: Any, z: Floats
    ) -> None:
        covariance, robust, jackknife = covariances(data, fit)
        self.position_, self.covariance_, self.rows_ = fit.x, covariance, data.rows
        self.effect_, self.law_, self.dispersion_ = self.effect, fit.law.name, fit.dispersion
        self.frailty_shape_ = 1.0 / fit.variance if fit.variance > 0.0 else np.inf
        self.history_, self.objective_ = fit.history, fit.value
        self.n_iter_, self.residual_ = len(fit.history), fit.residual
        self.converged_ = bool(fit.residual <= 10 * _TOL)
        self.coefficients_ = None
        self.window_ = panel.window
        if design is not None:
            from gp4c.data.formulas.covariate_rows import last_rows
            from gp4c.estimators.regression.covariate_effects import CovariateEffects

            b = slice(1 + len(data.curve.limits), fit.n_rate)
            self.coefficients_ = CovariateEffects(
                design, fit.x[b], covariance[b, b], robust[b, b], jackknife[b, b],
                z[last_rows(panel)],
            )  # fmt: skip
        adjusted = self._adjusted(panel)
        self._end_fit(adjusted)
        self.histories_ = SubjectHistories.of(adjusted)
        self.subject_effects_ = self.subject_effect_errors_ = None
        if self.effect_ is not None:
            expected = adjusted.exposure * self.expected_counts(panel.start, panel.stop)
            found = self._effect_moments(panel, expected)
            self.subject_effects_, self.subject_effect_errors_ = found
        self.fit_check_ = look_back(self, adjusted)

    def _warn(self, panel: PanelCounts, fit: LawFit, data: RateData) -> None:
        if not self.converged_:
            warnings.warn(
                f"the estimates still moved after {self.n_iter_} steps (residual "
                f"{self.residual_:.1e}); look for a subject with an extreme count",
                ConvergenceWarning,
                stacklevel=3,
            )
        if not shape_information(data, fit) > NO_INFORMATION:
            warnings.warn(
                f"events are so much at the {'end' if fit.x[1] > 0 else 'beginning'} of the time "
                f"axis that the shape of {type(self).__name__} has no finite estimate",
                GP4CWarning,
                stacklevel=3,
            )
        if self.effect is None and not self.bursts:
            each = np.exp(data.means(fit.x).value)
            expected = group_sums(data.rows.subject, each, data.rows.n_subjects)
            found = poisson_dispersion(data.rows.events, expected)
            warn_if_overdispersed(type(self).__name__, found, "effect='gamma'", stacklevel=4)
        warn_of_misfit(self)

    @property
    def _law(self) -> CountLaw:
        return LAWS["bursts" if self.bursts else "poisson"]

    def _draw(self, rows: PanelRows, weights: Floats) -> tuple[Draw, bool]:
        if not weights @ rows.by_subject(rows.count):
            return {"rate": np.array([-np.inf, 0.0])}, True
        data = self._data(rows, weights)
        fit = fit_laws(data, self._law, EFFECTS[self.effect], _TOL)
        return {"rate": fit.x[:2]}, bool(fit.residual <= 10 * _TOL)
