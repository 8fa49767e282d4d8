"""Maximising the bound over q at fixed hyper-parameters.

Natural gradients of a Gaussian are linear in its natural parameters x = (P, h) = (S⁻¹, S⁻¹m):
a full step is the fixed-point map x ← (I − 2 ∂F/∂S, ∂F/∂m − 2 (∂F/∂S) m) (docs/maths.md,
section 5). It is accelerated by Anderson's method, safeguarded so that the objective never
decreases, and finished by a quasi-Newton method where it is slow (the paper's bound with b
near 1, whose optimum trades mean against variance).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gp4c.inference.variational.bound import Evaluation, Gaussian, Workspace, theorem2
from gp4c.model.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: relative gain that is rounding error
ROUNDING = 1e-14
#: past residuals that Anderson's method combines
DEPTH = 8
#: relative ridge that keeps nearly parallel residuals from being combined
GRAM_RIDGE = 1e-12
#: evaluations by natural steps before the quasi-Newton method takes over
NATURAL_EVALUATIONS = 60


@dataclass(frozen=True)
class EStep:
    """The optimal q, its evaluation, the path of the objective, and whether it converged."""

    q: Gaussian
    evaluation: Evaluation
    path: tuple[float, ...]
    converged: bool


def e_step(
    work: Workspace,
    hyper: Hyper,
    start: Gaussian,
    tol: float = 1e-8,
    max_iter: int = 500,
    memory: Anderson | None = None,
) -> EStep:
    """Maximise the bound over q; the objective never decreases along the path.

    Parameters
    ----------
    tol : float
        Stop when a full step gains less than this many nats.
    max_iter : int
        Most evaluations by natural steps and then, if those do not suffice, most quasi-Newton
        steps.
    memory : Anderson, optional
        Secant pairs of an E-step at nearby hyper-parameters; this one adds its own.
    """
    natural = natural_e_step(work, hyper, start, tol, min(max_iter, NATURAL_EVALUATIONS), memory)
    if natural.converged or max_iter <= NATURAL_EVALUATIONS:
        return natural
    finish = quasi_newton_e_step(work, hyper, natural.q, tol, max_iter)
    path = natural.path + finish.path[1:]
    return EStep(finish.q, finish.evaluation, path, finish.converged)


def natural_e_step(
    work: Workspace,
    hyper: Hyper,
    start: Gaussian,
    tol: float = 1e-8,
    max_iter: int = 500,
    memory: Anderson | None = None,
) -> EStep:
    """Natural gradients with Anderson acceleration and backtracking; at most `max_iter` tries."""
    q, at = start, theorem2(work, hyper, start)
    tol = max(tol, ROUNDING * abs(at.bound.total))
    path, tries, identity = [at.bound.total], 0, np.eye(work.size)
    memory = memory if memory is not None and memory.size == work.size else Anderson(work.size)
    memory.restart()
    while tries < max_iter:
        present = (q.precision, q.linear)
        target = (
            identity - 2 * at.grad_covariance,
            at.grad_mean - 2 * at.grad_covariance @ q.mean,
        )
        step = _accept(work, hyper, at, memory.propose(present, target))
        rho, tries = 1.0, tries + 1
        while step is None and rho > 1e-9:  # plain natural gradient, halving ρ
            memory.forget()
            mixed = tuple((1 - rho) * x + rho * y for x, y in zip(present, target, strict=True))
            step = _accept(work, hyper, at, mixed)
            rho, tries = rho / 2, tries + 1
        if step is None:  # no ascent beyond rounding error: this is the optimum
            return EStep(q, at, tuple(path), True)
        gain = step[1].bound.total - at.bound.total
        q, at = step
        path.append(at.bound.total)
        if gain < tol and (rho >= 0.5 or gain <= ROUNDING * abs(at.bound.total)):
            return EStep(q, at, tuple(path), True)
    return EStep(q, at, tuple(path), False)


def _accept(
    work: Workspace, hyper: Hyper, at: Evaluation, natural: tuple[Floats, ...] | None
) -> tuple[Gaussian, Evaluation] | None:
    """Evaluate at natural parameters; None if they are none or the objective would fall."""
    q = Gaussian.from_natural(*natural) if natural is not None else None
    if q is None:
        return None
    there = theorem2(work, hyper, q)
    return (q, there) if there.bound.total >= at.bound.total else None


class Anderson:
    """Anderson's mixing for the fixed-point map of the natural parameters.

    Keeps pairs (change of x, change of residual); those of one E-step still serve the next, at
    nearby hyper-parameters, so a memory may be handed from E-step to E-step. LocalEM mixes by the
    same formula, for each column of its own and with singular values instead of a ridge.
    """

    def __init__(self, size: int):
        self.size = size
        # rows of the flattened upper triangle
        self._upper = np.flatnonzero(np.triu(np.ones((size, size), dtype=bool)))
        n = len(self._upper) + size
        self._steps, self._changes = np.zeros((DEPTH, n)), np.zeros((DEPTH, n))
        self._pairs = 0
        self._last: tuple[Floats, Floats] | None = None

    def restart(self) -> None:
        """The next point belongs to another map: it forms no pair with the last."""
        self._last = None

    def forget(self) -> None:
        """Drop all pairs."""
        self._pairs = 0

    def propose(
        self, present: tuple[Floats, Floats], target: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats] | None:
        """The combination of past steps whose residual is least; None while there is no past."""
        x = self._pack(*present)
        residual = self._pack(*target) - x
        if self._last is not None:
            row = self._pairs % DEPTH  # the oldest pair makes room
            np.subtract(x, self._last[0], out=self._steps[row])
            np.subtract(residual, self._last[1], out=self._changes[row])
            self._pairs += 1
        self._last = (x, residual)
        used = min(self._pairs, DEPTH)
        if not used or not np.isfinite(residual @ residual):
            return None
        changes, steps = self._changes[:used], self._steps[:used]
        mix = _least_squares(changes, residual)
        return self._unpack(x + residual - mix @ steps - mix @ changes)

    def _pack(self, precision: Floats, linear: Floats) -> Floats:
        return np.concatenate([precision.ravel()[self._upper], linear])

    def _unpack(self, x: Floats) -> tuple[Floats, Floats]:
        entries = len(self._upper)
        upper = np.zeros((self.size, self.size))
        upper.ravel()[self._upper] = x[:entries]
        precision = upper + upper.T
        precision.ravel()[:: self.size + 1] /= 2
        return precision, x[entries:]


def _least_squares(rows: Floats, target: Floats) -> Floats:
    """Coefficients c that minimise |target − c @ rows|, damped where rows nearly depend."""
    scale = np.sqrt(np.einsum("ij,ij->i", rows, rows)) + 1e-300
    unit = rows / scale[:, None]
    gram = unit @ unit.T
    gram.ravel()[:: len(gram) + 1] += GRAM_RIDGE
    _, mix, failed = lapack.dposv(gram, unit @ target)
    return np.zeros_like(scale) if failed else np.asarray(mix / scale)


def quasi_newton_e_step(
    work: Workspace, hyper: Hyper, start: Gaussian, tol: float = 1e-8, max_iter: int = 1000
) -> EStep:
    """L-BFGS over m = m₀ + R₀d and S = R₀CCᵀR₀ᵀ, R₀ the start's root.

    C is lower triangular with the logarithm of its diagonal free. Whitening by the start makes
    the problem well conditioned near it.
    """
    size, lower = work.size, np.tril_indices(work.size)
    diagonal = np.flatnonzero(lower[0] == lower[1])
    base, here = start.root, theorem2(work, hyper, start)
    path: list[float] = []

    def unpack(x: Floats) -> tuple[Gaussian, Floats]:
        entries = x[size:].copy()
        entries[diagonal] = np.exp(np.clip(entries[diagonal], -200.0, 200.0))
        C = np.zeros((size, size))
        C[lower] = entries
        log_det = start.log_det + 2 * float(np.log(np.diag(C)).sum())
        return Gaussian(start.mean + base @ x[:size], base @ C, log_det), C

    def negative(x: Floats) -> tuple[float, Floats]:
        q, C = unpack(x)
        at = theorem2(work, hyper, q)
        by_mean = base.T @ (at.grad_mean - q.mean)
        by_factor = (base.T @ (2 * at.grad_covariance @ q.root - q.root))[lower]
        by_factor[diagonal] = by_factor[diagonal] * np.diag(C) + 1.0  # ∂ln|C| = 1 per logarithm
        return -at.bound.total, -np.concatenate([by_mean, by_factor])

    from scipy.optimize import minimize  # loads slowly, and is a last resort

    result = minimize(
        negative, np.zeros(size + len(lower[0])), jac=True, method="L-BFGS-B",
        callback=lambda intermediate_result: path.append(-float(intermediate_result.fun)),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 30,
                 "ftol": tol / max(abs(here.bound.total), 1.0), "gtol": 1e-9},
    )  # fmt: skip
    if -result.fun <= here.bound.total:
        return EStep(start, here, (here.bound.total,), bool(result.success))
    q, _ = unpack(result.x)
    path = [here.bound.total, *path]
    return EStep(q, theorem2(work, hyper, q), tuple(path), bool(result.success))
