"""Whether the effects of covariates can be estimated at all, told before anything is fitted.

A rate that is constant over time has a concave likelihood in β; where events occur on one side of
a covariate only, its maximum runs off to infinity, and the information about it vanishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.formulas.formula import FormulaDesign
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: information per event and unit variance of a covariate below which there is no finite estimate
NO_INFORMATION = 1e-7
#: Newton steps are halved until they climb, and end when they promise less than this
_TOL = 1e-10


def check_estimable(panel: PanelCounts, rows: Floats, design: FormulaDesign) -> None:
    """Refuse covariates whose effects have no finite estimate.

    Parameters
    ----------
    rows : (n_intervals, p)
        Centred covariates of the rows.
    """
    if panel.n_events == 0:
        raise PanelDataError("there are no events, so covariates have no effect to estimate")
    at_risk = panel.exposure * (panel.stop - panel.start)
    mean = poisson_means(rows, panel.count.astype(np.float64), at_risk)
    least, which = weakest(rows, mean)
    if not least > NO_INFORMATION:
        raise PanelDataError(
            f"the effect of {design.names[which]!r} has no finite estimate: events occur only on "
            "one side of it (a group without events?); leave it out or join groups"
        )


def poisson_means(z: Floats, count: Floats, at_risk: Floats) -> Floats:
    """Expected counts of a Poisson regression with a constant rate, by Newton steps."""
    design = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(count.sum() / at_risk.sum())

    def at(beta: Floats) -> tuple[float, Floats]:
        mean = at_risk * np.exp(np.minimum(design @ beta, 500.0))
        return float(count @ (design @ beta) - mean.sum()), mean

    value, mean = at(beta)
    for _ in range(100):
        information = design.T @ (mean[:, None] * design)
        information += 1e-12 * np.trace(information) * np.eye(len(beta))
        score = design.T @ (count - mean)
        step = np.linalg.solve(information, score)
        if float(score @ step) / 2 < _TOL:
            break
        share = 1.0
        while share > 1e-6 and at(beta + share * step)[0] < value:
            share /= 2
        if share <= 1e-6:
            break
        beta = beta + share * step
        value, mean = at(beta)
    return mean


def weakest(z: Floats, mean: Floats) -> tuple[float, int]:
    """Least information per event about standardised covariates, and the one it is about."""
    scaled = z / np.maximum(z.std(axis=0), 1e-300)
    share = mean / mean.sum()
    scaled = scaled - share @ scaled
    values, vectors = np.linalg.eigh(scaled.T @ (share[:, None] * scaled))
    return float(values[0]), int(np.argmax(np.abs(vectors[:, 0])))
