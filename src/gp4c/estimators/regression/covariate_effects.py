"""Estimated effects of covariates on a rate, and what they multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.formulas.covariate_rows import design_rows
from gp4c.data.formulas.formula import FormulaDesign

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

COLUMNS = (
    "covariate", "coefficient", "se", "robust_se", "rate_ratio", "low", "high", "z", "p_value",
)  # fmt: skip


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
        """One row per coefficient; interval, z and p-value from the standard errors chosen."""
        import pandas as pd
        from scipy.special import ndtr, ndtri

        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, not {level!r}")
        each = {
            "robust": self.robust_covariance,
            "model": self.covariance,
            "jackknife": self.jackknife_covariance,
        }
        if errors not in each:
            raise ValueError(f"errors must be one of {', '.join(map(repr, each))}, not {errors!r}")
        se, robust_se, used = (np.sqrt(np.diag(each[name])) for name in ("model", "robust", errors))
        reach = ndtri((1 + level) / 2) * used
        z = self.beta / used
        columns = (
            self.design.names, self.beta, se, robust_se, np.exp(self.beta),
            np.exp(self.beta - reach), np.exp(self.beta + reach), z, 2 * ndtr(-np.abs(z)),
        )  # fmt: skip
        return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    def adjust(self, panel: PanelCounts) -> PanelCounts:
        """The panel with exp(βᵀz) in the exposure of its rows."""
        factor = np.exp(design_rows(self.design, panel) @ self.beta)
        return panel._like(exposure=panel.exposure * factor)

    def profile(self, covariates: Mapping[str, Any]) -> Floats:
        """z of chosen covariates, the others at their average, (p,)."""
        return self.design.profile(covariates)

    def log_factor(self, z: Floats) -> Any:
        """βᵀz."""
        return z @ self.beta


def no_effects() -> pd.DataFrame:
    """The table of a model without covariates."""
    import pandas as pd

    return pd.DataFrame({name: np.zeros(0) for name in COLUMNS})
