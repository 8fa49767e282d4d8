"""Step function and gamma frailty together, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp4c.classical.step_functions.jumps import GammaExposure, JumpProblem, gradient, kkt_residual
from gp4c.classical.step_functions.npmle import newton
from gp4c.classical.visit_cells import Floats
from gp4c.model.gamma_frailty import refine_variance, variance_score

#: Newton steps for the jumps between two updates of the frailty variance
_INNER_STEPS = 20
#: frailty variances to start from
_STARTS = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FrailtyFit:
    """Jumps λ (G,) and frailty variance that maximise the marginal likelihood.

    `residual` is the larger of the jumps' KKT residual and of the score of log v per subject;
    `history` holds the log-likelihood after each round and never decreases.
    """

    jumps: Floats
    variance: float
    residual: float
    converged: bool
    n_iter: int
    history: Floats


def fit_jumps_and_frailty(
    problem: JumpProblem, events: Floats, weights: Floats, tol: float = 1e-9, max_iter: int = 200
) -> FrailtyFit:
    """Alternate Newton for the jumps given v with the exact maximum over v given the jumps.

    Mean and dispersion of a gamma-Poisson model are orthogonal parameters, so a few rounds do.
    The likelihood is not concave; small panels can have two maxima, some hundredths of a nat
    apart. The better of two starts is returned: no frailty, and a frailty variance of 1.

    Parameters
    ----------
    problem : JumpProblem
        Its `exposure` has one row per subject.
    events, weights : (K,)
        Events and multiplicity of each subject.
    tol : float
        Bound on the residual.
    max_iter : int
        Rounds.
    """
    fits = [_from(start, problem, events, weights, tol, max_iter) for start in _STARTS]
    return max(fits, key=lambda fit: float(fit.history[-1]))


def _from(
    variance: float,
    problem: JumpProblem,
    events: Floats,
    weights: Floats,
    tol: float,
    max_iter: int,
) -> FrailtyFit:
    """Fit from a frailty variance."""
    jumps: Floats | None = None
    history: list[float] = []
    residual = np.inf
    while residual > tol and len(history) < max_iter:
        term = GammaExposure(variance, events, weights)
        jumps = newton(problem, term, jumps, 0.1 * tol, _INNER_STEPS).jumps
        exposure = problem.exposure.by_subject(jumps)
        variance = refine_variance(variance, events, exposure, weights)
        term = GammaExposure(variance, events, weights)
        history.append(_value(problem, term, jumps))
        residual = _residual(problem, term, jumps, exposure)
    assert jumps is not None
    rising = np.maximum.accumulate(np.asarray(history))  # they do rise, up to rounding
    return FrailtyFit(jumps, variance, residual, residual <= tol, len(history), rising)


def _value(problem: JumpProblem, term: GammaExposure, jumps: Floats) -> float:
    counts = float(problem.count @ np.log(problem.inside.sums(jumps))) if len(jumps) else 0.0
    return counts + term.value(problem.exposure.by_subject(jumps))


def _residual(problem: JumpProblem, term: GammaExposure, jumps: Floats, exposure: Floats) -> float:
    if len(jumps) == 0:
        return 0.0
    kkt = kkt_residual(jumps, gradient(problem, term, jumps), problem.total)
    score = float(term.weights @ variance_score(term.variance, term.events, exposure))
    if term.variance == 0.0:
        return max(kkt, score / float(term.weights.sum()))
    return max(kkt, abs(score) * term.variance / float(term.weights.sum()))
