"""Estimated effects of covariates on a rate, and what they multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gp4c.data.formulas.covariate_rows import design_rows
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.estimators.inputs import check_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


class EffectRow(NamedTuple):
    """One coefficient: errors of the model and of the sandwich, rate ratio with its interval."""

    covariate: str
    coefficient: float
    se: float
    robust_se: float
    rate_ratio: float
    low: float
    high: float
    z: float
    p_value: float


@dataclass(frozen=True)
class CovariateEffects:
    """Coefficients β of a fit: exp(βᵀz) multiplies the rate, z centred as the design says.

    Attributes
    ----------
    design : FormulaDesign
    beta : (p,)
    covariance : (p, p)
        Model-based, the curve re-estimated.
    robust_covariance : (p, p)
        Sandwich over subjects.
    jackknife_covariance : (p, p)
        The jackknife over subjects, to one Newton step.
    subject_design : (K, p)
        Covariates of the fitted subjects, at their last intervals.
    """

    design: FormulaDesign
    beta: Floats
    covariance: Floats
    robust_covariance: Floats
    jackknife_covariance: Floats
    subject_design: Floats

    def table(self, level: float = 0.95, errors: str = "robust") -> pd.DataFrame:
        """The rows as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows(level, errors), columns=list(EffectRow._fields))

    def rows(self, level: float = 0.95, errors: str = "robust") -> list[EffectRow]:
        """One row per coefficient; interval, z and p-value from the standard errors chosen."""
        from scipy.special import ndtr, ndtri

        check_level(level)
        covariances = {
            "robust": self.robust_covariance,
            "model": self.covariance,
            "jackknife": self.jackknife_covariance,
        }
        if errors not in covariances:
            known = ", ".join(map(repr, covariances))
            raise ValueError(f"errors must be one of {known}, not {errors!r}")
        se, robust_se, used = (
            np.sqrt(np.diag(covariances[name])) for name in ("model", "robust", errors)
        )
        reach = ndtri((1 + level) / 2) * used
        z = self.beta / used
        numbers = (
            self.beta, se, robust_se, np.exp(self.beta), np.exp(self.beta - reach),
            np.exp(self.beta + reach), z, 2 * ndtr(-np.abs(z)),
        )  # fmt: skip
        each = np.stack(numbers, axis=1).tolist()
        return [EffectRow(name, *row) for name, row in zip(self.design.names, each, strict=True)]

    def adjust(self, panel: PanelCounts) -> PanelCounts:
        """The panel with exp(βᵀz) in the exposure of its rows."""
        factor = np.exp(design_rows(self.design, panel) @ self.beta)
        return panel._like(exposure=panel.exposure * factor)

    def profile(self, covariates: Mapping[str, object]) -> Floats:
        """z of chosen covariates, the others at their average, (p,)."""
        return self.design.profile(covariates)

    def log_factor(self, z: Floats) -> Floats:
        """βᵀz."""
        return np.asarray(z @ self.beta)


def no_effects() -> pd.DataFrame:
    """The table of a model without covariates."""
    import pandas as pd

    return pd.DataFrame({name: np.zeros(0) for name in EffectRow._fields})
