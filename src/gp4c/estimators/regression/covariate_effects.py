"""Estimated effects of covariates on a rate, and what they multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import check_choice
from gp4c.data.formulas.covariate_rows import design_rows
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.estimators.inputs import check_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


#: independent subjects below which sandwich errors are short
FEW = 100
#: factors of subjects at once
_CHUNK = 4_000_000


class EffectRow(NamedTuple):
    """One coefficient: errors of the model and of the sandwich, rate ratio with its interval.

    `errors` names the standard errors behind interval, z and p-value.
    """

    covariate: str
    coefficient: float
    se: float
    robust_se: float
    rate_ratio: float
    low: float
    high: float
    z: float
    p_value: float
    errors: str


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

    def table(self, level: float = 0.95, errors: str = "auto") -> pd.DataFrame:
        """The rows as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows(level, errors), columns=list(EffectRow._fields))

    def rows(self, level: float = 0.95, errors: str = "auto") -> list[EffectRow]:
        """One row per coefficient; interval, z and p-value from the standard errors chosen."""
        return self.contrast_rows(np.eye(len(self.beta)), self.design.names, level, errors)

    def contrast_rows(
        self, contrasts: Floats, names: Sequence[str], level: float, errors: str
    ) -> list[EffectRow]:
        """The same for sums of coefficients.

        Parameters
        ----------
        contrasts : (n, p)
            One sum per row.
        """
        from scipy.special import stdtrit

        check_level(level)
        covariance, degrees, words = self._errors(errors)
        se, robust_se, used = (
            np.sqrt(np.einsum("ip,pq,iq->i", contrasts, each, contrasts))
            for each in (self.covariance, self.robust_covariance, covariance)
        )
        value = contrasts @ self.beta
        reach = stdtrit(degrees, (1 + level) / 2) * used
        z = value / used
        numbers = (
            value, se, robust_se, np.exp(value), np.exp(value - reach), np.exp(value + reach), z,
            2 * self.tail(np.abs(z), errors),
        )  # fmt: skip
        columns = (values.tolist() for values in numbers)
        each = zip(names, *columns, [words] * len(names), strict=True)
        return [EffectRow(*row) for row in each]

    def tail(self, z: Floats, errors: str = "auto") -> Floats:
        """Probability above z under the law that intervals are made of."""
        from scipy.special import stdtr

        return np.asarray(stdtr(self._errors(errors)[1], -np.asarray(z)))

    def _errors(self, errors: str) -> tuple[Floats, float, str]:
        """Covariance, degrees of freedom of their quantiles, and how they are called."""
        covariances = {
            "robust": self.robust_covariance,
            "model": self.covariance,
            "jackknife": self.jackknife_covariance,
        }
        check_choice("errors", errors, ("auto", *covariances))
        few = errors == "auto" and len(self.subject_design) < FEW
        name = errors if errors != "auto" else "jackknife" if few else "robust"
        degrees = float(max(len(self.subject_design) - len(self.beta) - 1, 1)) if few else np.inf
        words = f"{name}, t with {degrees:g} degrees of freedom" if few else name
        return covariances[name], degrees, words

    def average_factor(self, coefficients: Floats, covariates: Mapping[str, object]) -> Floats:
        """exp(βᵀz) averaged over the subjects of the fit, all given some covariates, (S,).

        Parameters
        ----------
        coefficients : (p, S)
            Draws of β.
        """
        rows, who = np.unique(self.design.population(covariates), axis=0, return_inverse=True)
        shares = np.bincount(who.ravel(), self.design.weights)
        total = np.zeros(coefficients.shape[1])
        step = max(1, _CHUNK // max(len(total), 1))
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            total += shares[some] @ np.exp(rows[some] @ coefficients)
        return total

    @property
    def least_known(self) -> str:
        """The column that moves the curve of some subject by the least certain factor."""
        farthest = np.abs(self.design.population({})).max(axis=0)
        return self.design.names[int(np.argmax(farthest**2 * np.diag(self.covariance)))]

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
