"""The paper's own optimiser: variational EM by bounded quasi-Newton steps on (μ, Cholesky factor).

It works on the values u = f(z) at the inducing inputs, q(u) = N(μ, Σ) with Σ = C Cᵀ, in the
*data's* units, because its start (a = √window), its floor on the diagonal of C and the path of
its quasi-Newton steps depend on the unit of time. The bound itself is evaluated whitened: with
K = L Lᵀ the kernel matrix at z and f in units of `scale`,

    m = L⁻¹(μ/scale − g)/√γ,   S = R Rᵀ,   R = L⁻¹C/(scale·√γ).

An E-step moves (μ, C) at fixed (a, γ); an M-step moves (ln a, ln γ) at fixed (μ, C), that is,
not at fixed (m, S). Both stop after about ten evaluations, and the whole at a relative change of
1e-4, long before any optimum: this module reproduces an estimator, it is not the way to maximise
the bound (:mod:`gp4c.inference.variational.hyper` is).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from gp4c.inference.variational.bound import Evaluation, Gaussian, Workspace, theorem2
from gp4c.inference.variational.estep import EStep
from gp4c.inference.variational.hyper import (
    MAX_LENGTH_SCALE,
    SHAPE_BOUNDS,
    VARIANCE_BOUNDS,
    Optimum,
    Problem,
)
from gp4c.model.observations import Observations
from gp4c.model.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: inducing inputs on the paper's synthetic data, where the caller gives no number
PAPER_INDUCING = 30
#: floor on the diagonal of C, in the unit of f (square root of events per unit of time)
SMALLEST_DIAGONAL = 0.01
#: coordinates of Hyper.to_vector that an M-step moves; g stays where it started
_A, _GAMMA, _ALPHA = 0, 1, 3


@dataclass(frozen=True)
class InducingValues:
    """q(u) = N(mean, C Cᵀ) for u = f(z), in the data's units; C is lower triangular."""

    mean: Floats
    factor: Floats

    def to_vector(self) -> Floats:
        """(μ, lower triangle of C), the coordinates of an E-step."""
        return np.concatenate([self.mean, self.factor[np.tril_indices(len(self.mean))]])

    @classmethod
    def from_vector(cls, vector: Floats, size: int) -> InducingValues:
        """Invert :meth:`to_vector`."""
        factor = np.zeros((size, size))
        factor[np.tril_indices(size)] = vector[size:]
        return cls(vector[:size], factor)

    def whiten(self, work: Workspace, hyper: Hyper, scale: float) -> Gaussian:
        """q(v) for these values, u = scale·(g + √γ L v)."""
        L, unit = work.prior.factor, scale * np.sqrt(hyper.variance)
        mean = solve_triangular(L, self.mean - scale * hyper.mean, lower=True) / unit
        root = solve_triangular(L, self.factor, lower=True) / unit
        inverse = solve_triangular(self.factor, L, lower=True) * unit
        log_det = 2 * float(np.log(np.diag(self.factor) / (unit * np.diag(L))).sum())
        return Gaussian(mean, root, log_det, inverse.T @ inverse)


def rate_scale(data: Observations) -> float:
    """What the unit of f stands for in the data's units: √(events per unit of time)."""
    return float(np.sqrt(data.rate / (data.window[1] - data.window[0])))


def paper_mean(data: Observations) -> float:
    """g of the paper, √(mean over subjects of count/length), in units of :func:`rate_scale`."""
    at_risk = data.by_subject @ (data.stop - data.start)
    return float(np.sqrt(np.mean(data.totals / at_risk)))


def paper_start(
    problem: Problem, mean: float | None, rng: np.random.Generator
) -> tuple[Hyper, InducingValues]:
    """a = √window, γ = g²/2, μ = √½ g (0.1 + U(0, 1)), Σ = γK with C's diagonal above its floor.

    Where √window is too short for the inducing inputs, or far longer than the window, the
    nearest length-scale that they can carry takes its place.
    """
    data, size = problem.data, problem.n_inducing
    assert size is not None
    g, length = paper_mean(data), data.window[1] - data.window[0]
    a = float(np.clip(length**-0.5, problem.smallest_length_scale(size), MAX_LENGTH_SCALE))
    hyper = Hyper(a, g**2 / 2, g if mean is None else mean, problem.first_shape)
    unit = rate_scale(data) * g / np.sqrt(2)
    factor = unit * problem.workspace(a, size).prior.factor
    np.fill_diagonal(factor, np.maximum(np.diag(factor), SMALLEST_DIAGONAL))
    return hyper, InducingValues(unit * (0.1 + rng.random(size)), factor)


def e_objective(
    work: Workspace, hyper: Hyper, scale: float, values: InducingValues
) -> tuple[float, Floats]:
    """The bound and its gradient by (μ, lower triangle of C)."""
    q = values.whiten(work, hyper, scale)
    at = theorem2(work, hyper, q)
    by_mean, by_root = _q_gradient(q, at)
    # u = scale·(g + √γ L v): gradients by (μ, C) are L⁻ᵀ(gradients by (m, R))/(scale·√γ)
    unit, L = scale * np.sqrt(hyper.variance), work.prior.factor
    by_values = solve_triangular(L, np.column_stack([by_mean, by_root]), lower=True, trans="T")
    by_factor = by_values[:, 1:] / unit
    by_factor[np.diag_indices_from(by_factor)] += 1 / np.diag(values.factor)  # of ½ ln|Σ|
    lower = np.tril_indices(work.size)
    return at.bound.total, np.concatenate([by_values[:, 0] / unit, by_factor[lower]])


def m_objective(
    work: Workspace, hyper: Hyper, scale: float, values: InducingValues
) -> tuple[float, Floats]:
    """The bound and its gradient by (ln a, ln γ, g, ln α) at fixed (μ, C); g's is left at zero."""
    q = values.whiten(work, hyper, scale)
    at = theorem2(work, hyper, q)
    gradient = work.hyper_gradient(hyper, q, at)  # at fixed (m, S)
    by_mean, by_root = _q_gradient(q, at)
    # m and R follow L and √γ: dm = −⌊L⁻¹dK L⁻ᵀ⌋ m by ln a, −m/2 by ln γ, and likewise R
    D = work.prior._factor_derivative
    gradient[_A] -= by_mean @ (D @ q.mean) + np.sum(by_root * (D @ q.root)) + np.trace(D)
    gradient[_GAMMA] -= (by_mean @ q.mean + np.sum(by_root * q.root) + work.size) / 2
    gradient[2] = 0.0
    return at.bound.total, gradient


def _q_gradient(q: Gaussian, at: Evaluation) -> tuple[Floats, Floats]:
    """Gradients of F − KL by m and by R, without that of ½ ln|S|."""
    return at.grad_mean - q.mean, 2 * at.grad_covariance @ q.root - q.root


def vem_e_step(
    work: Workspace,
    hyper: Hyper,
    scale: float,
    start: InducingValues,
    *,
    evaluations: int | None = 10,
    floor: float = SMALLEST_DIAGONAL,
    tol: float = 1e-9,
) -> tuple[InducingValues, bool]:
    """Bounded quasi-Newton ascent in (μ, C) at fixed hyper-parameters.

    Parameters
    ----------
    evaluations : int, optional
        About how many evaluations to spend; None runs until nothing is gained.
    floor : float
        Lower bound on the diagonal of C.
    tol : float
        Stop when a step gains less than this many nats.

    Returns
    -------
    values, converged
        Never below the start.
    """
    size = work.size
    rows, columns = np.tril_indices(size)
    low = np.concatenate([np.full(size, -np.inf), np.where(rows == columns, floor, -np.inf)])

    def function(x: Floats) -> tuple[float, Floats]:
        return e_objective(work, hyper, scale, InducingValues.from_vector(x, size))

    x, converged = _ascend(
        function, start.to_vector(), np.column_stack([low, np.full_like(low, np.inf)]),
        evaluations, tol,
    )  # fmt: skip
    return InducingValues.from_vector(x, size), converged


def vem_m_step(
    problem: Problem,
    hyper: Hyper,
    scale: float,
    values: InducingValues,
    *,
    evaluations: int | None = 10,
    tol: float = 1e-9,
) -> tuple[Hyper, bool]:
    """Quasi-Newton ascent in (ln a, ln γ), and ln α of a gamma frailty, at fixed (μ, C)."""
    size, full = len(values.mean), hyper.to_vector()
    free = [_A, _GAMMA] if np.isinf(hyper.shape) else [_A, _GAMMA, _ALPHA]
    shortest = problem.smallest_length_scale(size)
    bounds = np.log([(shortest, MAX_LENGTH_SCALE), VARIANCE_BOUNDS, (1, 1), SHAPE_BOUNDS])

    def function(x: Floats) -> tuple[float, Floats]:
        vector = full.copy()
        vector[free] = x
        there = Hyper.from_vector(vector)
        value, gradient = m_objective(
            problem.workspace(there.length_scale, size), there, scale, values
        )
        return value, gradient[free]

    full[free], converged = _ascend(function, full[free], bounds[free], evaluations, tol)
    return Hyper.from_vector(full), converged


def _ascend(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Floats,
    evaluations: int | None,
    tol: float,
) -> tuple[Floats, bool]:
    """Maximise by L-BFGS-B; the best point evaluated, and whether it is an optimum."""
    best_value, best = -np.inf, start

    def negative(x: Floats) -> tuple[float, Floats]:
        nonlocal best_value, best
        value, gradient = function(x)
        if value > best_value:
            best_value, best = value, x.copy()
        return -value, -gradient

    first, _ = function(start)
    most = 200_000 if evaluations is None else evaluations
    from scipy.optimize import minimize  # loads slowly, and only the paper's optimiser needs it

    result = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxfun": most, "maxiter": most, "maxcor": 20 if evaluations is None else 10,
                 "ftol": tol / max(abs(first), 1.0), "gtol": 0.0},
    )  # fmt: skip
    return best, bool(result.success)


def fit_vem(
    problem: Problem,
    *,
    mean: float | None = None,
    random_state: int | None = None,
    tol: float = 1e-4,
    max_rounds: int = 200,
    evaluations: int | None = 10,
) -> Optimum:
    """Alternate E- and M-steps from the paper's start until its stopping rule holds.

    The weights of GP4CW, which the paper updates in each M-step, are at their optimum in every
    evaluation here: the exposure term is maximised over them in closed form.

    Parameters
    ----------
    problem : Problem
        The paper's has ``count_term="lemma2"``, the squared exponential, and 30 or 18 inducing
        inputs; 30 are used where it names no number.
    mean : float, optional
        g in units of :func:`rate_scale`, fixed throughout; None is the paper's.
    random_state : int, optional
        Seed of the random start; None is 0, so that a fit can be repeated.
    tol : float
        Stop when a round changes the constant-free bound by less than this share of it.
    max_rounds : int
        Most rounds.
    evaluations : int, optional
        About how many evaluations an E-step and an M-step may take; None lets them converge.
    """
    if problem.n_inducing is None:
        problem = problem.variant(n_inducing=PAPER_INDUCING)
    scale, rng = rate_scale(problem.data), np.random.default_rng(random_state or 0)
    hyper, values = paper_start(problem, mean, rng)
    path: list[float] = []
    converged = False
    while not converged and len(path) < max_rounds:
        work = problem.workspace(hyper.length_scale, problem.n_inducing)
        values, _ = vem_e_step(work, hyper, scale, values, evaluations=evaluations)
        hyper, _ = vem_m_step(problem, hyper, scale, values, evaluations=evaluations)
        work = problem.workspace(hyper.length_scale, problem.n_inducing)
        q = values.whiten(work, hyper, scale)
        at = theorem2(work, hyper, q)
        path.append(at.bound.total)
        change = abs(path[-1] - path[-2]) if len(path) > 1 else np.inf
        converged = change <= tol * abs(at.bound.total - at.given_away)
    estep = EStep(q, at, tuple(path), converged)
    return Optimum(hyper, work, estep, tuple(path), converged)
