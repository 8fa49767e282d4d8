r"""The evidence of simpler laws, from the draws of the richest one.

A richer law has the curve, the level and the parameters of a simpler one, and parameters θ of its
own. With any density q of θ, the simpler law's evidence is that of the richer one times

.. math::
    \mathrm{E}\Bigl[\frac{p_0(\text{counts}, x)\, q(\theta)}
                         {p_1(\text{counts}, x, \theta)}\Bigr]

over the posterior of the richer law: importance sampling with draws that are there already. q is
the normal law with the posterior mean and covariance of θ. Where the simpler law is about as good,
θ is near the end of its range and both posteriors are alike, so that the mean is sharp. Where the
simpler law is far worse, few draws decide, but then it does not matter how much worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.pareto import pareto_smoothed
from gp4c.inference.engine.weigh import Weighted
from gp4c.model.laws.count_law import Parameter

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: least deviation of q: draws that all agree still need a density
_NARROWEST = 1e-3


@dataclass(frozen=True)
class NestedEvidence:
    """The log evidence of a simpler law, with how far it can be trusted.

    Attributes
    ----------
    log_evidence, effective, pareto_k : float
    """

    log_evidence: float
    effective: float
    pareto_k: float


def nested_parameters(rich: Task, simple: Task) -> Indices | None:
    """Where the simpler law's parameters are among those of the richer; None if some are not."""
    names = [parameter.name for parameter in _parameters(rich)]
    wanted = [parameter.name for parameter in _parameters(simple)]
    if not set(wanted) < set(names):
        return None
    return np.array([names.index(name) for name in wanted], dtype=np.intp)


def nested_evidence(found: Weighted, simple: Task, kept: Indices) -> NestedEvidence:
    """The evidence of `simple` from draws of a richer law, whose parameters `kept` it has."""
    n_params = found.sheaves[0].point.mode.landscape.task.n_params
    left_out = np.setdiff1d(np.arange(n_params), kept)
    theta = np.concatenate([_params(sheaf.x, sheaf.point.mode.landscape.size, n_params)[left_out]
                            for sheaf in found.sheaves], axis=1)  # fmt: skip
    log_q = _normal(theta, found.weights)
    ratios, first = [], 0
    for sheaf in found.sheaves:
        land = simple.landscape(sheaf.point.mode.landscape.log_length)
        size, m = sheaf.x.shape[1], land.size
        rows = np.r_[0 : m + 1, m + 1 + kept, m + 1 + n_params : len(sheaf.x)]
        joint = land.log_density(sheaf.x[rows], np.full(size, sheaf.u))
        rich = sheaf.target - sheaf.log_mass
        ratios.append(joint + log_q[first : first + size] - rich)
        first += size
    log_ratio = np.concatenate(ratios)
    with np.errstate(divide="ignore"):
        log_terms = np.log(found.weights) + np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
    smoothed, k = pareto_smoothed(log_terms)
    total = float(logsumexp(smoothed))
    shares = np.exp(smoothed - total) if np.isfinite(total) else np.ones(1)
    return NestedEvidence(found.log_evidence + total, float(1.0 / (shares**2).sum()), k)


def _parameters(task: Task) -> tuple[Parameter, ...]:
    likelihood = task.likelihood
    return (*likelihood.effect.parameters, *likelihood.law.parameters)


def _params(x: Floats, size: int, n_params: int) -> Floats:
    """The parameters of the laws among the rows of draws."""
    return x[size + 1 : size + 1 + n_params]


def _normal(theta: Floats, weights: Floats) -> Floats:
    """Log density of the normal law with the weighted mean and covariance of θ, (S,)."""
    off = theta - (theta @ weights)[:, None]
    covariance = (off * weights) @ off.T + _NARROWEST**2 * np.eye(len(theta))
    factor = np.linalg.cholesky(covariance)
    z = solve_triangular(factor, off, lower=True)
    scale = np.log(np.diag(factor)).sum() + 0.5 * len(theta) * np.log(2 * np.pi)
    return np.asarray(-0.5 * (z * z).sum(axis=0) - scale)
