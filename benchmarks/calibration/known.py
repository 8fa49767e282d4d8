"""The posterior with the hyper-parameters known: what is left when only q is approximate."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.calibration.cases import LENGTH, Case

import gp4c
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference.hyper import Optimum, Problem, solve_q
from gp4c.inference.signs import best_signs
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.fitting import optimised_fit, store_fit


def known_problem(case: Case) -> tuple[Problem, Hyper]:
    """The exact bound on a data set, and the hyper-parameters that it was drawn from."""
    data = observe(case.panel, None, case.panel.window)
    mean_square = case.events_per_subject / LENGTH / (1 + case.variation**2)
    scale = data.rate / LENGTH  # intensity that f² = 1 stands for
    hyper = Hyper(
        length_scale=case.length_scale,
        variance=case.variation**2 * mean_square / scale,
        mean=float(np.sqrt(mean_square / scale)),
    )
    return Problem(data, KERNELS["se"], "exact"), hyper


def fit_known(case: Case) -> Any:
    """A fitted model whose (a, γ, g) are those the data were drawn from, sign patterns included."""
    problem, hyper = known_problem(case)
    work = problem.workspace(hyper.length_scale)
    estep = best_signs(work, hyper, solve_q(work, hyper, None, 1e-6), 1e-6)
    optimum = Optimum(hyper, work, estep, 0.0, (), estep.converged)
    model = gp4c.GP4C(effect=None, hyper="optimize")
    store_fit(model, problem, optimised_fit(problem, optimum, free_level=False))
    return model
