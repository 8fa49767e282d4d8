"""GP4C at given hyper-parameters in the user's units: what changes is the data's doing alone."""

from __future__ import annotations

import numpy as np

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.estimators.fitting import store_fit
from gp4c.inference.variational.hyper import Optimum, Problem, solve_q
from gp4c.model.kernels import KERNELS
from gp4c.model.observations import observe
from gp4c.model.sparse_prior import Hyper

#: length-scale, variance and mean of f, and frailty shape
GIVEN = (5.0, 0.08, 0.5, 1.5)


def fit_at(
    panel: PanelCounts,
    *,
    count_term: str = "exact",
    effect: str | None = None,
    given: tuple[float, float, float, float] = GIVEN,
    n_inducing: int = 10,
) -> gp4c.GP4C:
    """The optimal q at fixed (a, γ, g, α), as a fitted model."""
    a, gamma, g, alpha = given
    data = observe(panel, None, panel.window)
    length = panel.window[1] - panel.window[0]
    scale = data.rate / length
    shape = alpha if effect == "gamma" else np.inf
    hyper = Hyper(a / length, gamma / scale, g / np.sqrt(scale), shape)
    problem = Problem(data, KERNELS["se"], count_term, 0.3, effect, n_inducing, tol=1e-10)
    work = problem.workspace(hyper.length_scale)
    found = solve_q(work, hyper, None, 1e-11)
    assert found.converged
    model = gp4c.GP4C(count_term=count_term, effect=effect)
    model.coefficients_ = None
    store_fit(model, problem, Optimum(hyper, work, found, (), True))
    return model
