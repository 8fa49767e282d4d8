"""Log evidence at fixed hyper-parameters by importance sampling from q.

The bound lies below the log evidence by KL(q ‖ posterior), which grows as length-scales shrink
and as f comes closer to zero: hyper-parameters weighted by the bound would be too smooth. The
average of likelihood × prior / q over draws from q removes that (docs/maths.md, section 10). The
draws are made of the same normals everywhere, so that neighbours are compared like with like.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.hyper import Optimum
from gp4c.inference.response import frailty_response
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Workspace

Floats = NDArray[np.float64]

#: draws, half of them mirror images of the others
DRAWS = 256
#: numbers held at once: many draws of many subjects are treated in turn
_MOST_NUMBERS = 20_000_000


@lru_cache(maxsize=8)
def _normals(size: int, n: int) -> Floats:
    half = np.random.default_rng(0).standard_normal((size, n // 2))
    return np.concatenate([half, -half], axis=1)


def log_likelihood(work: Workspace, hyper: Hyper, v: Floats) -> Floats:
    """ln p(counts | v) of each column of v, −Σ ln m! left out, frailties integrated out.

    What v leaves open of f enters f² with its expectation: a small share unless the user asked
    for fewer inducing inputs than the length-scale needs.
    """
    likelihood = work.likelihood
    at_once = max(_MOST_NUMBERS // likelihood.largest, 1)
    if v.shape[1] > at_once:
        cuts = range(at_once, v.shape[1], at_once)
        return np.concatenate([log_likelihood(work, hyper, u) for u in np.split(v, cuts, axis=1)])
    f = hyper.mean + np.sqrt(hyper.variance) * (work.features @ v)
    square = f * f + hyper.variance * work.residual[:, None]
    value = np.full(v.shape[1], likelihood.constant)
    if len(likelihood.count):
        value += likelihood.count @ np.log(np.maximum(likelihood.integrals.apply(square), 1e-300))
    if likelihood.to_events is not None:
        at_events = likelihood.to_events @ f
        value += np.log(np.maximum(at_events**2, 1e-300)).sum(axis=0)
    exposure = likelihood.exposure
    if exposure.subject_cost is None or exposure.totals is None:
        return np.asarray(value - exposure.base_weights @ square)
    expected = exposure.expected(square)
    cost = exposure.subject_cost.cost(exposure.totals[:, None], expected, hyper.shape)
    return np.asarray(value - cost.sum(axis=0))


def log_evidence(at: Optimum, n_draws: int = DRAWS) -> float:
    """ln ∫ p(counts | v) p(v) dv at the optimum's hyper-parameters."""
    q = frailty_response(at)
    normals = _normals(at.work.size, n_draws)
    v = q.mean[:, None] + q.root @ normals
    log_weight = log_likelihood(at.work, at.hyper, v)
    log_weight += ((normals**2).sum(axis=0) - (v**2).sum(axis=0) + q.log_det) / 2
    # weights above √n times their mean are cut there: a single draw must not decide
    cap = logsumexp(log_weight) - np.log(n_draws) / 2
    return float(logsumexp(np.minimum(log_weight, cap)) - np.log(n_draws))
