"""Maximise the likelihood of a step function: active-set Newton, EM and ICM.

All three maximise the same :class:`~gp4c.classical.step_functions.jumps.JumpProblem` and stop on
the conditions of its maximum, never on a small change of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.optimize import nnls

from gp4c.classical.step_functions.isotonic import nondecreasing_fit
from gp4c.classical.step_functions.jumps import (
    ExposureTerm,
    Gradient,
    JumpProblem,
    gradient,
    improvement,
    kkt_residual,
    log_likelihood,
)
from gp4c.classical.visit_cells import Floats, Indices

_ARMIJO = 1e-4
_HALVINGS = 40
#: jumps that carry less than this share of the events and want to shrink are set to 0
_NEGLIGIBLE = 1e-13
_RIDGES = (1e-12, 1e-9, 1e-6)


@dataclass(frozen=True, eq=False)
class JumpFit:
    """Result of a maximisation.

    Attributes
    ----------
    jumps : (G,)
        λ at the problem's sites.
    residual : float
        See :func:`~gp4c.classical.step_functions.jumps.kkt_residual`.
    converged : bool
    n_iter : int
    history : (n_iter + 1,)
        Log-likelihood, never decreasing.
    """

    jumps: Floats
    residual: float
    converged: bool
    n_iter: int
    history: Floats


class _Ascent:
    """Current jumps with their log-likelihood, which only rises."""

    def __init__(self, problem: JumpProblem, term: ExposureTerm, jumps: Floats) -> None:
        self.problem, self.term, self.jumps = problem, term, jumps
        self.history = [log_likelihood(problem, term, jumps)]
        self.slopes = gradient(problem, term, jumps)

    def gain(self, step: Floats) -> float:
        return improvement(self.problem, self.term, self.jumps, step)

    def move(self, jumps: Floats, gained: float) -> None:
        self.jumps = jumps
        self.slopes = gradient(self.problem, self.term, jumps)
        self.history.append(self.history[-1] + max(gained, 0.0))

    def residual(self) -> float:
        return kkt_residual(self.jumps, self.slopes, self.problem.total)

    def result(self, tol: float) -> JumpFit:
        residual = self.residual()
        history = np.asarray(self.history)
        return JumpFit(self.jumps, residual, residual <= tol, len(history) - 1, history)


def even_start(problem: JumpProblem, term: ExposureTerm) -> Floats:
    """Return positive jumps at every site, each with an equal share of the events, (G,)."""
    return _after_em(problem, term, np.ones(len(problem.sites)))


def sparse_start(problem: JumpProblem, term: ExposureTerm) -> Floats:
    """Return jumps at as few sites as can explain all events, (G,): small quadratic models.

    The sites are found from the left: each is the last one inside the interval that ends first
    among those not explained yet.
    """
    inside = problem.inside
    ends_first = np.full(inside.size + 1, inside.size + 1)
    np.minimum.at(ends_first, inside.first, inside.last)
    ends_first = np.minimum.accumulate(ends_first[::-1])[::-1]
    share = np.zeros(inside.size)
    end = ends_first[0]
    while end <= inside.size:
        share[end - 1] = 1.0
        end = ends_first[end]
    return _after_em(problem, term, share)


def _after_em(problem: JumpProblem, term: ExposureTerm, share: Floats, n_steps: int = 10) -> Floats:
    """Spread the events over sites in the given shares and take a few EM steps."""
    cost = problem.exposure.cost(term.slope(np.zeros(problem.exposure.n_subjects)))
    jumps = share * problem.total / (share.sum() * cost)
    for _ in range(n_steps):
        jumps = jumps * gradient(problem, term, jumps).ratio
    return np.asarray(jumps, dtype=np.float64)


def newton(
    problem: JumpProblem,
    term: ExposureTerm,
    start: Floats | None = None,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> JumpFit:
    """Active-set Newton: quadratic models on few sites, each solved with λ ≥ 0.

    Each step adds the site with the largest gain per cost between any two jumps (where it is
    above 1), maximises the quadratic model over the chosen sites with non-negative jumps, and
    goes as far towards it as the likelihood rises; where it cannot, it takes an EM step.

    Parameters
    ----------
    problem : JumpProblem
    term : ExposureTerm
    start : (G,), optional
        Jumps to start from, with mass in every interval with events.
    tol : float
        Bound on the residual of the conditions of the maximum.
    max_iter : int

    Returns
    -------
    JumpFit
    """
    if len(problem.sites) == 0:
        return _nothing(term, problem)
    if start is None:
        start = sparse_start(problem, term)
    state = _Ascent(problem, term, start)
    for _ in range(max_iter):
        if state.residual() <= tol:
            break
        chosen = _chosen_sites(state.jumps, state.slopes)
        target = _quadratic_target(state, chosen)
        if target is None or not _towards(state, target):
            _em_step(state)
    return state.result(tol)


def em(
    problem: JumpProblem, term: ExposureTerm, tol: float = 1e-8, max_iter: int = 20_000
) -> JumpFit:
    """Self-consistency iteration λ ← λ · gain/cost, extrapolated where that helps (SQUAREM)."""
    return _repeated(_squared_em_step, problem, term, tol, max_iter)


def icm(
    problem: JumpProblem, term: ExposureTerm, tol: float = 1e-8, max_iter: int = 20_000
) -> JumpFit:
    """Iterative convex minorant in Λ, damped, each step followed by an EM step.

    Isotonic regression of Λ + gradient/weight with the diagonal of the Hessian as weights, then
    a step towards it with halving (Jongbloed 1998); the EM step in between is the hybrid of
    Wellner and Zhan (1997), which needs far fewer iterations than either alone.
    """

    def step(state: _Ascent) -> None:
        _towards(state, _convex_minorant(state))
        _em_step(state)

    return _repeated(step, problem, term, tol, max_iter)


def _repeated(
    step: Callable[[_Ascent], None], problem: JumpProblem, term: ExposureTerm, tol: float,
    max_iter: int,
) -> JumpFit:  # fmt: skip
    """Take a step from even jumps on, again and again, until the residual is small."""
    if len(problem.sites) == 0:
        return _nothing(term, problem)
    state = _Ascent(problem, term, even_start(problem, term))
    for _ in range(max_iter):
        if state.residual() <= tol:
            break
        step(state)
    return state.result(tol)


def _nothing(term: ExposureTerm, problem: JumpProblem) -> JumpFit:
    """No events: no jumps, whatever the exposure."""
    value = term.value(np.zeros(problem.exposure.n_subjects))
    return JumpFit(np.zeros(0), 0.0, True, 0, np.array([value]))


def _chosen_sites(jumps: Floats, slopes: Gradient) -> Indices:
    """Sites with a jump, and between each two of them the best site that wants one."""
    support = np.flatnonzero(jumps > 0.0)
    wanting = np.flatnonzero((slopes.ratio > 1.0) & (jumps <= 0.0))
    if len(wanting) == 0:
        return support
    gap = np.searchsorted(support, wanting)
    best = wanting[np.lexsort((slopes.ratio[wanting], gap))]
    last_of_gap = np.append(np.diff(np.sort(gap)) > 0, True)
    return np.union1d(support, best[last_of_gap])


def _quadratic_target(state: _Ascent, chosen: Indices) -> Floats | None:
    """Maximiser of the quadratic model over λ ≥ 0 on the chosen sites, (G,), or None.

    The model is concave with the Poisson term. With frailty it need not be, far from the maximum:
    there each direction of positive curvature is turned round, which keeps the step an ascent.
    """
    problem, slopes, term = state.problem, state.slopes, state.term
    cost = slopes.cost[chosen]
    H = problem.inside.on(chosen).gram(problem.count / slopes.mass**2) / np.outer(cost, cost)
    curvature = term.curvature(problem.exposure.by_subject(state.jumps))
    if curvature is not None:
        V = problem.exposure.columns(chosen) * np.sqrt(curvature)[:, None] / cost
        H = _concave(H - V.T @ V)
    return _nonnegative_quadratic(H, state, chosen)


def _concave(H: Floats) -> Floats:
    """Replace the eigenvalues of H by their absolute values if any is negative."""
    values, vectors = eigh(H)
    if values[0] > 0.0:
        return H
    return np.asarray((vectors * np.abs(values)) @ vectors.T, dtype=np.float64)


def _nonnegative_quadratic(H: Floats, state: _Ascent, chosen: Indices) -> Floats | None:
    """Solve max gᵀy − ½ yᵀHy over y = cost·λ ≥ 0, or None if rounding prevents it."""
    slopes = state.slopes
    scaled = state.jumps[chosen] * slopes.cost[chosen]
    linear = slopes.ratio[chosen] - 1.0 + H @ scaled
    for ridge in _RIDGES:
        try:
            factor = cholesky(H + ridge * np.diag(np.diag(H)))
            right = solve_triangular(factor, linear, trans="T")
            solution, _ = nnls(factor, right)
        except (LinAlgError, RuntimeError):
            continue
        target = np.zeros_like(state.jumps)
        target[chosen] = solution / slopes.cost[chosen]
        return target
    return None


def _towards(state: _Ascent, target: Floats) -> bool:
    """Go towards non-negative jumps as far as the likelihood rises enough; False if nowhere."""
    step = target - state.jumps
    promised = float((state.slopes.gain - state.slopes.cost) @ step)
    if promised <= 0.0:
        return False
    size = 1.0
    for _ in range(_HALVINGS):
        gained = state.gain(size * step)
        if gained >= _ARMIJO * size * promised:
            state.move(_pruned(state, state.jumps + size * step), gained)
            return True
        size /= 2.0
    return False


def _pruned(state: _Ascent, jumps: Floats) -> Floats:
    """Set negligible jumps that want to shrink to 0, unless an interval would be left bare."""
    share = jumps * state.slopes.cost / state.problem.total
    dropped = (share < _NEGLIGIBLE) & (state.slopes.ratio < 1.0)
    kept = np.where(dropped, 0.0, np.maximum(jumps, 0.0))
    return kept if np.all(state.problem.inside.sums(kept) > 0.0) else np.maximum(jumps, 0.0)


def _em_step(state: _Ascent) -> None:
    """λ ← λ · gain/cost, which never lowers the likelihood."""
    jumps = state.jumps * state.slopes.ratio
    state.move(jumps, state.gain(jumps - state.jumps))


def _squared_em_step(state: _Ascent) -> None:
    """Two EM steps and their squared extrapolation (Varadhan and Roland 2008) if it is better."""
    before = state.jumps
    _em_step(state)
    middle = state.jumps
    _em_step(state)
    first, second = middle - before, state.jumps - 2.0 * middle + before
    norm = float(np.linalg.norm(second))
    if norm == 0.0:
        return
    size = -max(float(np.linalg.norm(first)) / norm, 1.0)
    jumps = np.maximum(before - 2.0 * size * first + size**2 * second, 0.1 * state.jumps)
    gained = state.gain(jumps - state.jumps)
    if gained > 0.0:
        state.move(jumps, gained)


def _convex_minorant(state: _Ascent) -> Floats:
    """Jumps of the isotonic regression of Λ + gradient/weight, (G,)."""
    problem, slopes = state.problem, state.slopes
    n_sites = len(problem.sites)
    pull = problem.count / slopes.mass
    last, first = problem.inside.last - 1, problem.inside.first - 1
    started = first >= 0

    def at_ends(values: Floats, sign: float) -> Floats:
        ends = np.bincount(last, values, minlength=n_sites)
        begins = np.bincount(first[started], values[started], minlength=n_sites)
        return np.asarray(ends + sign * begins, dtype=np.float64)

    leaving = slopes.cost - np.append(slopes.cost[1:], 0.0)
    grad = at_ends(pull, -1.0) - leaving
    weight = np.maximum(at_ends(pull / slopes.mass, 1.0), 1e-8 * float(pull.max()))
    level = np.cumsum(state.jumps)
    target = np.maximum(nondecreasing_fit(level + grad / weight, weight), 0.0)
    return np.diff(target, prepend=0.0)
