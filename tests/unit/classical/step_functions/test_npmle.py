"""Maximum of the step-function likelihood: its conditions, three solvers, general optimisers."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from scipy.special import digamma, gammaln

from classical_panels import random_rows, toy
from gp4c.classical.step_functions.frailty_npmle import fit_jumps_and_frailty
from gp4c.classical.step_functions.jumps import (
    Exposure,
    GammaExposure,
    JumpProblem,
    PoissonExposure,
    gradient,
    improvement,
    log_likelihood,
)
from gp4c.classical.step_functions.npmle import em, even_start, icm, newton
from gp4c.classical.visit_cells import Grid, Runs
from gp4c.data.datasets.bundled import load_dataset

OPTIONS = [
    {},
    {"gaps": True},
    {"exposure": True},
    {"gaps": True, "exposure": True, "whole_times": False},
]


class Case:
    """Rows of a panel as plain arrays, with the problem built from them."""

    def __init__(self, rows):
        self.subject = np.array([r[0] for r in rows])
        self.subject = np.unique(self.subject, return_inverse=True)[1]
        self.start, self.stop, self.count = (
            np.array([r[k] for r in rows], dtype=float) for k in (1, 2, 3)
        )
        self.exposure = np.array([r[4] if len(r) > 4 else 1.0 for r in rows])
        self.grid = Grid.of(self.start, self.stop)
        self.n_subjects = self.subject.max() + 1

    def pooled(self):
        runs = self.grid.runs
        return JumpProblem.of(runs, self.count, Exposure.pooled(runs, self.exposure))

    def by_subject(self):
        runs = self.grid.runs
        exposure = Exposure(runs, self.exposure, self.subject, self.n_subjects)
        return JumpProblem.of(runs, self.count, exposure)

    def jumps_everywhere(self, problem, jumps):
        every = np.zeros(self.grid.runs.size)
        every[problem.sites] = jumps
        return every

    def rows_of_cell(self, cell):
        left, right = self.grid.points[cell], self.grid.points[cell + 1]
        return (self.start <= left) & (right <= self.stop)

    def increments(self, every):
        """ΔΛ of each row, cell by cell."""
        total = np.zeros(len(self.start))
        for cell, jump in enumerate(every):
            total[self.rows_of_cell(cell)] += jump
        return total


def random_case(seed, options):
    return Case(random_rows(seed, **options))


def skin_case():
    panel = load_dataset("skin_full", event="all")
    rows = zip(panel.subject_index, panel.start, panel.stop, panel.count, strict=True)
    return Case(list(rows))


def check_kkt(case, every, tol=1e-8):
    """Gradient, cell by cell over all cells and not only the sites that the solver kept."""
    increments = case.increments(every)
    for cell, jump in enumerate(every):
        covering = case.rows_of_cell(cell)
        at_risk = case.exposure[covering].sum()
        seen = covering & (case.count > 0)
        pull = (case.count[seen] / increments[seen]).sum()
        assert pull <= at_risk * (1 + tol)
        if jump > 0:
            assert_allclose(pull, at_risk, rtol=tol)


def check_invariant(case, every):
    at_risk = [case.exposure[case.rows_of_cell(c)].sum() for c in range(len(every))]
    assert_allclose(at_risk @ every, case.count.sum(), rtol=1e-8)


def test_toy_by_hand():
    panel = toy()
    case = Case(list(zip(panel.subject_index, panel.start, panel.stop, panel.count, strict=True)))
    for solver in (newton, em, icm):
        fit = solver(case.pooled(), PoissonExposure())
        every = case.jumps_everywhere(case.pooled(), fit.jumps)
        assert_allclose(every, [1.0, 0.0, 2.0], atol=1e-7)
        assert_allclose(fit.history[-1], 4 * np.log(2) - 7, atol=1e-8)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(8))
def test_newton_meets_the_optimality_conditions(seed, options):
    case = random_case(seed, options)
    problem = case.pooled()
    fit = newton(problem, PoissonExposure())
    assert fit.converged
    every = case.jumps_everywhere(problem, fit.jumps)
    check_kkt(case, every)
    check_invariant(case, every)
    assert np.all(np.diff(fit.history) >= 0)
    value = log_likelihood(problem, PoissonExposure(), fit.jumps)
    assert_allclose(fit.history[-1], value, atol=1e-9)


def test_newton_on_the_full_skin_data():
    case = skin_case()
    problem = case.pooled()
    fit = newton(problem, PoissonExposure())
    every = case.jumps_everywhere(problem, fit.jumps)
    check_kkt(case, every)
    check_invariant(case, every)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_em_icm_and_newton_agree(seed, options):
    problem = random_case(100 + seed, options).pooled()
    best = newton(problem, PoissonExposure()).history[-1]
    for solver in (em, icm):
        fit = solver(problem, PoissonExposure(), tol=1e-9)
        assert fit.converged
        assert np.all(np.diff(fit.history) >= 0)
        assert_allclose(fit.history[-1], best, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_general_optimiser_finds_no_more(seed):
    case = random_case(200 + seed, {"gaps": True, "exposure": True, "n_subjects": 6})
    every = np.zeros(case.grid.runs.size)
    problem = case.pooled()
    ours = newton(problem, PoissonExposure()).history[-1]

    def cost(log_jumps):
        increments = case.increments(np.exp(log_jumps))
        seen = case.count > 0
        value = (case.count[seen] * np.log(increments[seen])).sum()
        return (case.exposure * increments).sum() - value

    theirs = minimize(cost, every - 1.0, method="L-BFGS-B", options={"maxiter": 3000})
    assert ours >= -theirs.fun - 1e-9
    assert_allclose(ours, -theirs.fun, atol=1e-3)


def test_no_events_give_no_jumps():
    case = Case([(0, 0.0, 1.0, 0), (1, 0.5, 2.0, 0)])
    for solver in (newton, em, icm):
        fit = solver(case.pooled(), PoissonExposure())
        assert fit.converged
        assert fit.history[-1] == 0.0
        assert len(fit.jumps) == 0


def test_one_interval_has_its_mean():
    case = Case([(0, 0.0, 3.0, 5, 2.0), (1, 0.0, 3.0, 2, 1.5)])
    fit = newton(case.pooled(), PoissonExposure())
    assert_allclose(fit.jumps, [7 / 3.5], rtol=1e-9)


def test_huge_counts_beside_single_events():
    case = Case([(0, 0.0, 1.0, 10**9), (0, 1.0, 2.0, 1), (1, 0.0, 2.0, 10), (1, 2.0, 3.0, 2)])
    problem = case.pooled()
    fit = newton(problem, PoissonExposure())
    assert fit.converged
    check_kkt(case, case.jumps_everywhere(problem, fit.jumps))


def test_an_extra_visit_without_events_moves_no_jump():
    rows = random_rows(7, n_subjects=10)
    first = Case(rows)
    zero = next(k for k, row in enumerate(rows) if row[3] == 0 and row[2] - row[1] > 1)
    subject, start, stop, _, units = rows[zero]
    middle = start + 0.37 * (stop - start)
    split = [*rows, (subject, start, middle, 0, units), (subject, middle, stop, 0, units)]
    del split[zero]
    second = Case(split)
    fits = [newton(case.pooled(), PoissonExposure()) for case in (first, second)]
    times = [c.grid.points[1:][c.pooled().sites] for c in (first, second)]
    held = [t[f.jumps > 0] for t, f in zip(times, fits, strict=True)]
    assert_allclose(held[0], held[1])
    assert_allclose(fits[0].jumps[fits[0].jumps > 0], fits[1].jumps[fits[1].jumps > 0], rtol=1e-12)


def test_a_short_run_says_so():
    problem = random_case(3, {"n_subjects": 20}).pooled()
    fit = em(problem, PoissonExposure(), tol=1e-12, max_iter=2)
    assert not fit.converged
    assert fit.residual > 1e-12


def test_sums_through_cumulative_sums_agree_with_the_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 30, 50)
    last = first + rng.integers(1, 10, 50)
    exact, other = Runs(first, last, 40), Runs(first, last, 40)
    monkeypatch.setattr("gp4c.classical.visit_cells._MATRIX_ENTRIES", 0)
    assert not other._small
    for values in (rng.uniform(size=40), rng.uniform(size=(40, 3))):
        assert_allclose(other.sums(values), exact.matrix @ values, rtol=1e-12)
    for values in (rng.uniform(size=50), rng.uniform(size=(50, 3))):
        assert_allclose(other.cover(values), exact.matrix.T @ values, atol=1e-12)
    weights = rng.uniform(size=50)
    dense = exact.matrix.toarray()
    assert_allclose(exact.gram(weights), dense.T @ (weights[:, None] * dense), atol=1e-12)
    case = random_case(1, {})
    small = newton(case.pooled(), PoissonExposure())
    assert_allclose(small.history[-1], newton(case.pooled(), PoissonExposure()).history[-1])


def frailty_terms(case):
    events = np.bincount(case.subject, case.count)
    return GammaExposure(0.8, events, np.array([1.0, 2.0, *np.ones(case.n_subjects - 2)]))


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_improvement_agree_with_differences(seed):
    case = random_case(300 + seed, {"gaps": True, "exposure": True})
    problem, term = case.by_subject(), frailty_terms(case)
    jumps = even_start(problem, term)
    slopes = gradient(problem, term, jumps)
    for site in range(len(jumps)):
        step = np.zeros_like(jumps)
        step[site] = 1e-5 * jumps[site]
        up, down = (log_likelihood(problem, term, jumps + s) for s in (step, -step))
        numeric = (up - down) / (2 * step[site])
        assert_allclose(slopes.gain[site] - slopes.cost[site], numeric, rtol=1e-5, atol=1e-5)
        change = up - log_likelihood(problem, term, jumps)
        assert_allclose(improvement(problem, term, jumps, step), change, atol=1e-11)
    assert improvement(problem, term, jumps, -jumps) == -np.inf
    exposure = problem.exposure.by_subject(jumps)
    numeric = (term.slope(exposure * (1 - 1e-6)) - term.slope(exposure * (1 + 1e-6))) / (
        2e-6 * exposure
    )
    assert_allclose(term.curvature(exposure), numeric, rtol=1e-6)


@pytest.mark.parametrize("change", [-1.0, -0.999, -0.4, 1e-12, 3.0])
def test_gain_of_the_frailty_term_for_any_size_of_step(change):
    exposure = np.array([0.3, 5.0, 1e18])
    term = GammaExposure(2.5, np.array([0.0, 4.0, 10.0]), np.array([1.0, 2.0, 1.0]))
    gained = term.gain(exposure, change * exposure)
    with mpmath.workdps(50):
        wanted = sum(
            -w
            * (mpmath.mpf(1) / 2.5 + n)
            * mpmath.log((1 + 2.5 * (L + change * L)) / (1 + 2.5 * L))
            for w, n, L in zip(
                term.weights, term.events, [mpmath.mpf(e) for e in exposure], strict=True
            )
        )
    assert_allclose(gained, float(wanted), rtol=1e-11)
    assert GammaExposure(0.0, term.events, term.weights).gain(exposure, exposure) == -(
        term.weights @ exposure
    )


def negative_multinomial(case, increments, variance):
    """Log-likelihood with the frailty integrated out, from its textbook form with α = 1/v."""
    a = 1.0 / variance
    total = np.bincount(case.subject, case.count)
    mean = np.bincount(case.subject, case.exposure * increments)
    seen = case.count > 0
    value = (case.count[seen] * np.log(increments[seen])).sum()
    return (
        value
        + (gammaln(a + total) - gammaln(a) + a * np.log(a) - (a + total) * np.log(a + mean)).sum()
    )


def plain_em(case, n_steps):
    """The textbook EM of jumps and α, on all cells: no acceleration, no choice of sites."""
    cells = range(case.grid.runs.size)
    inside = np.array([case.rows_of_cell(cell) for cell in cells]).T.astype(float)
    inside, counted = inside[:, inside.any(axis=0)], case.count > 0
    owner = (case.subject == np.arange(case.n_subjects)[:, None]).astype(float)
    at_risk = owner @ (case.exposure[:, None] * inside)
    total, jumps, a = owner @ case.count, np.full(inside.shape[1], 0.1), 1.0
    for _ in range(n_steps):
        mean = at_risk @ jumps
        frailty, log_frailty = (a + total) / (a + mean), digamma(a + total) - np.log(a + mean)
        pull = inside[counted].T @ (case.count[counted] / (inside[counted] @ jumps))
        jumps = jumps * pull / (at_risk.T @ frailty)
        centre = np.mean(log_frailty - frailty)
        a = np.exp(brentq(lambda u: u + 1 - digamma(np.exp(u)) + centre, -30, 30))  # noqa: B023
    return negative_multinomial(case, inside @ jumps, 1.0 / a)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(2))
def test_frailty_fit_against_the_textbook_em(seed, options):
    case = random_case(410 + seed, {**options, "n_subjects": 16})
    problem = case.by_subject()
    events = np.bincount(case.subject, case.count)
    fit = fit_jumps_and_frailty(problem, events, np.ones(case.n_subjects))
    assert fit.converged
    assert np.all(np.diff(fit.history) >= 0)
    every = case.jumps_everywhere(problem, fit.jumps)
    ours = negative_multinomial(case, case.increments(every), fit.variance)
    assert_allclose(fit.history[-1], ours, atol=1e-8)
    assert 0.01 < fit.variance < 20.0
    slow = plain_em(case, 3000)
    assert slow <= ours + 1e-9
    assert_allclose(slow, ours, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_no_general_optimiser_improves_the_frailty_fit(seed):
    case = random_case(500 + seed, {"gaps": True, "exposure": True, "n_subjects": 8})
    problem = case.by_subject()
    events = np.bincount(case.subject, case.count)
    fit = fit_jumps_and_frailty(problem, events, np.ones(case.n_subjects))
    every = case.jumps_everywhere(problem, fit.jumps)

    def cost(x):
        return -negative_multinomial(case, case.increments(np.exp(x[:-1])), np.exp(x[-1]))

    start = np.append(np.log(every + 0.02), np.log(max(fit.variance, 0.05)))
    bounds = [(-30.0, 10.0)] * len(every) + [(-14.0, 6.0)]
    theirs = minimize(cost, start, method="L-BFGS-B", bounds=bounds)
    assert fit.history[-1] >= -theirs.fun - 1e-4


def test_frailty_without_overdispersion_is_the_poisson_fit():
    panel = toy()
    case = Case(list(zip(panel.subject_index, panel.start, panel.stop, panel.count, strict=True)))
    events = np.bincount(case.subject, case.count)
    fit = fit_jumps_and_frailty(case.by_subject(), events, np.ones(3))
    assert fit.variance == 0.0
    assert_allclose(case.jumps_everywhere(case.by_subject(), fit.jumps), [1, 0, 2], atol=1e-8)
