"""Log evidence at fixed hyper-parameters by importance sampling from q.

The bound lies below the log evidence by KL(q ‖ posterior), which grows as length-scales shrink
and as f comes closer to zero: hyper-parameters weighted by the bound would be too smooth. The
average of likelihood × prior / q over draws from q removes that (docs/maths.md, section 10). The
draws are made of the same normals everywhere, so that neighbours are compared like with like.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    at_once = draws_at_once(work)
    some = np.split(v, range(at_once, v.shape[1], at_once), axis=1)
    curves = (Curves.of(work, hyper, values_at_nodes(work, hyper, u)) for u in some)
    return np.concatenate([each.log_likelihood(work, hyper) for each in curves])


def draws_at_once(work: Workspace) -> int:
    """Draws that are treated together."""
    return max(_MOST_NUMBERS // work.likelihood.largest, 1)


@dataclass(frozen=True)
class Curves:
    """What the likelihood needs of curves f, a column for each.

    Attributes
    ----------
    counted : (J, n)
        Integrals of f² over the intervals with events.
    seen : (n,) or (K, n)
        Integrals of f² over all that was seen, or of each of K subjects with an effect.
    at_events : (E, n), optional
        f where events are known exactly.
    """

    counted: Floats
    seen: Floats
    at_events: Floats | None

    @classmethod
    def of(cls, work: Workspace, hyper: Hyper, f: Floats) -> Curves:
        """Curves with these values at the nodes."""
        integrals = square_integrals(work, f * f + hyper.variance * work.residual[:, None])
        return cls(*integrals, values_at_events(work, f))

    def log_likelihood(self, work: Workspace, hyper: Hyper) -> Floats:
        """ln p(counts | f) of each curve."""
        likelihood, exposure = work.likelihood, work.likelihood.exposure
        value = np.full(self.seen.shape[-1], likelihood.constant)
        if len(likelihood.count):
            value += likelihood.count @ np.log(np.maximum(self.counted, 1e-300))
        if self.at_events is not None:
            value += np.log(np.maximum(self.at_events**2, 1e-300)).sum(axis=0)
        if exposure.subject_cost is None or exposure.totals is None:
            return np.asarray(value - self.seen)
        seen = np.maximum(self.seen, 1e-300)
        cost = exposure.subject_cost.cost(exposure.totals[:, None], seen, hyper.shape)
        return np.asarray(value - cost.sum(axis=0))


def values_at_nodes(work: Workspace, hyper: Hyper, v: Floats) -> Floats:
    """E[f | v] at the nodes, of each column of v."""
    return np.asarray(hyper.mean + np.sqrt(hyper.variance) * (work.features @ v))


def square_integrals(work: Workspace, square: Floats) -> tuple[Floats, Floats]:
    """Integrals over counted intervals and over all that was seen: linear in the columns."""
    likelihood, exposure = work.likelihood, work.likelihood.exposure
    counted = np.zeros((0, square.shape[1]))
    if len(likelihood.count):
        counted = likelihood.integrals.apply(square)
    if exposure.subject_cost is None or exposure.subjects is None:
        return counted, np.asarray(exposure.base_weights @ square)
    return counted, exposure.subjects.apply(square)


def values_at_events(work: Workspace, f: Floats) -> Floats | None:
    """Values of curves where events are known exactly."""
    to_events = work.likelihood.to_events
    return None if to_events is None else np.asarray(to_events @ f)


def log_evidence(at: Optimum, n_draws: int = DRAWS) -> float:
    """ln ∫ p(counts | v) p(v) dv at the optimum's hyper-parameters."""
    q = frailty_response(at)
    normals = _normals(at.work.size, n_draws)
    v = q.mean[:, None] + q.root @ normals
    log_weight = log_likelihood(at.work, at.hyper, v)
    log_weight += ((normals**2).sum(axis=0) - (v**2).sum(axis=0) + q.log_det) / 2
    return float(logsumexp(capped(log_weight)) - np.log(n_draws))


def capped(log_weight: Floats) -> Floats:
    """Weights above √n times their mean are cut there: a single draw must not decide."""
    cap = logsumexp(log_weight) - np.log(len(log_weight)) / 2
    return np.asarray(np.minimum(log_weight, cap))
