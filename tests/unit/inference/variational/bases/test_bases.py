"""Several bases: the split of the count term, the weights, the starts, the bounds reported."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from gp4c.estimators.fitting import find_optimum
from gp4c.estimators.mixtures.mixture_rows import event_rows
from gp4c.inference.variational.bases.basis_em import Bases, fit_bases
from gp4c.inference.variational.bases.basis_weights import EventRows, best_weights
from gp4c.inference.variational.bases.coarse_starts import coarse_starts
from gp4c.inference.variational.bases.reported_terms import bases_bound, joint_logs
from gp4c.inference.variational.exposure import SMALLEST_WEIGHT
from gp4c.inference.variational.hyper import Problem
from gp4c.model.kernels import KERNELS
from mixed_panels import two_courses
from problems import observed
from tolerances import NEVER_DOWN, ROUNDING, STANDARD_ERRORS

COUNT_TERMS = ["lemma2", "pointwise", "exact"]


def problem_of(count_term: str) -> tuple[Problem, EventRows]:
    panel, _ = two_courses(seed=3, n_subjects=16)
    data = observed(panel)
    problem = Problem(data, KERNELS["se"], count_term, 0.3, "weight", n_inducing=8)
    return problem, event_rows(panel, data.count != 0)


@lru_cache
def found_by(count_term: str, n_bases: int = 2) -> tuple[Problem, EventRows, Bases]:
    problem, rows = problem_of(count_term)
    first = find_optimum(problem, mean="learn", tol=1e-4, max_iter=50)
    bases = fit_bases(
        problem, rows, first, n_bases, mean=None, tol=1e-3, max_iter=30, n_starts=4,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return problem, rows, bases


# -- weights --------------------------------------------------------------------------------------


def random_rows(n_bases: int) -> tuple[EventRows, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    subject = np.repeat(np.arange(4), 6)
    rows = EventRows(subject, rng.integers(0, 7, 24), rng.integers(1, 6, 24) * 1.0, 4, 7)
    return rows, rng.normal(0.0, 1.5, (7, n_bases)), rng.uniform(0.5, 3.0, (4, n_bases))


def test_weights_are_those_that_a_general_optimiser_finds():
    rows, logs, expected = random_rows(3)
    found = best_weights(rows, logs, expected, np.ones((4, 3)))

    def negative(x: np.ndarray) -> float:
        weights = x.reshape(4, 3)
        rates = (weights[rows.subject] * np.exp(logs[rows.interval])).sum(axis=1)
        return float((weights * expected).sum() - rows.count @ np.log(rates))

    best = minimize(negative, np.ones(12), bounds=[(SMALLEST_WEIGHT, None)] * 12, tol=1e-13)
    assert_allclose(found.value, -best.fun, rtol=0.0, atol=1e-5)
    assert found.value <= -best.fun + 1e-7


def test_weights_on_one_basis_are_the_paper_s():
    rows, logs, expected = random_rows(1)
    found = best_weights(rows, logs, expected, np.ones((4, 1)))
    totals = np.bincount(rows.subject, rows.count)
    assert_allclose(found.weights[:, 0], totals / expected[:, 0], **ROUNDING)


def test_shares_make_jensen_s_inequality_an_equation():
    rows, logs, expected = random_rows(2)
    found = best_weights(rows, logs, expected, np.ones((4, 2)))
    r, w = found.shares, found.weights[rows.subject]
    split = rows.count @ (r * (logs[rows.interval] + np.log(w) - np.log(r))).sum(axis=1)
    # the value returned belongs to these weights and shares, with the exposure taken off
    assert_allclose(split - (found.weights * expected).sum(), found.value, rtol=1e-12)


# -- starts ---------------------------------------------------------------------------------------


def test_coarse_starts_tell_early_from_late_subjects():
    panel, weights = two_courses(seed=1, n_subjects=40, pure=True)
    data = observed(panel)
    rows = event_rows(panel, data.count != 0)
    best = coarse_starts(data, rows, 2, 5, np.random.default_rng(0))[0]
    own = np.argmax(best.shares, axis=1) == np.argmax(weights[rows.subject], axis=1)
    right = rows.count @ own / rows.count.sum()
    assert max(right, 1.0 - right) > 0.9


def test_coarse_starts_are_different_and_the_most_likely_comes_first():
    panel, _ = two_courses(seed=1, n_subjects=40)
    data = observed(panel)
    rows = event_rows(panel, data.count != 0)
    starts = coarse_starts(data, rows, 2, 10, np.random.default_rng(0))
    values = [start.value for start in starts]
    assert values == sorted(values, reverse=True)
    assert len(starts) < 10  # equal ones were dropped


# -- the bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count_term", COUNT_TERMS)
def test_cycles_never_lower_the_bound_and_bounds_are_in_order(count_term: str):
    problem, rows, found = found_by(count_term)
    assert np.diff(found.path).min() > -NEVER_DOWN * abs(found.path[0]) - 1e-6
    with_own = bases_bound(problem, rows, found, count_term)
    exact = bases_bound(problem, rows, found, "exact")
    paper = bases_bound(problem, rows, found, "lemma2")
    assert paper < bases_bound(problem, rows, found, "pointwise") < exact
    if count_term != "exact":  # whose split over the bases is Jensen's
        assert_allclose(with_own, found.bound.total, rtol=0.0, atol=1e-6)
    assert found.bound.total < exact + 1e-9


def test_the_exact_count_term_of_all_bases_is_a_monte_carlo_mean():
    problem, rows, found = found_by("pointwise")
    judge = problem.variant(count_term="exact")
    works = [judge.workspace(b.hyper.length_scale, b.work.size) for b in found.bases]
    logs = joint_logs(rows, found, works)
    rng, row = np.random.default_rng(1), int(np.argmax(found.shared.shares.min(axis=1)))
    interval, weights = rows.interval[row], found.shared.weights[rows.subject[row]]
    total = np.zeros(200_000)
    for work, one, weight in zip(works, found.bases, weights, strict=True):
        block = next(b for b in work.blocks if interval in b.which)
        place = int(np.flatnonzero(block.which == interval)[0])
        mean, covariance = block.moments(one.hyper, one.estep.q.mean, one.estep.q.root)
        f = rng.multivariate_normal(mean[place], covariance[place], len(total), method="eigh")
        total += weight * (f**2 @ block.root_weights[place] ** 2)
    sample = np.log(total)
    error = sample.std() / np.sqrt(len(sample))
    assert abs(sample.mean() - logs[row]) < STANDARD_ERRORS * error


def test_two_bases_are_never_worse_than_one():
    problem, _ = problem_of("pointwise")
    first = find_optimum(problem, mean="learn", tol=1e-4, max_iter=50)
    _, _, found = found_by("pointwise")
    assert found.bound.total > first.value
