"""Expected curvature of the maximised bound in the hyper-parameters, before any step is taken.

At the optimum the likelihood acts on v like Gaussian observations with precision S⁻¹ − I. For
those the Fisher information of (ln a, ln γ, g) is known: with E = I − S, the share of each
direction that the data decide, and W = L⁻¹(∂K/∂ln a)L⁻ᵀ,

    ½ tr(E W E W),  ½ tr(E W E),  ½ tr(E E),   and   1ᵀL⁻ᵀ E L⁻¹1/γ   for g.

It gives a quasi-Newton method its scale, which saves most of its first steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.bound import Gaussian, Workspace
from gp4c.model.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: added to the diagonal, so that directions without data still have a scale
RIDGE = 0.5


def expected_curvature(work: Workspace, hyper: Hyper, q: Gaussian) -> Floats:
    """Negative Hessian, (4, 4), in (ln a, ln γ, g, ln α)."""
    decided = np.eye(work.size) - q.covariance
    half = work.prior._factor_derivative
    W = half + half.T
    EW = decided @ W
    one = work.prior.inverse_factor.sum(axis=1)
    curvature = np.diag([RIDGE, RIDGE, RIDGE, 10.0])
    curvature[0, 0] += np.sum(EW * EW.T) / 2
    curvature[0, 1] = curvature[1, 0] = np.sum(EW * decided.T) / 2
    curvature[1, 1] += np.sum(decided * decided.T) / 2
    curvature[2, 2] += float(one @ decided @ one) / hyper.variance
    return curvature
