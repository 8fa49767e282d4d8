"""The sampler over the engine's likelihood against brute force, and against the engine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.single import log_prior_at, modes_at
from gp4c.inference.engine.weigh import weigh
from gp4c.inference.sampler.hyper_plan import Guide, find_guide
from gp4c.inference.sampler.judge import sample_posterior
from gp4c.inference.sampler.target import CurveTarget
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells
from problems import visits_panel
from tolerances import ROUNDING, STANDARD_ERRORS

LAWS_AND_EFFECTS = [
    ("poisson", None),
    ("poisson", "gamma"),
    ("bursts", None),
    ("bursts", "gamma"),
]
LENGTH, U = 0.4, -0.5
TIMES = np.array([0.1, 0.5, 0.9])


def task_of(law, effect, *, seed=3, size=4, covariates=False, **options):
    """A tiny problem: by default 4 subjects with 2 intervals, few events, 4 inducing inputs."""
    panel = visits_panel(seed, **({"n_subjects": 4, "n_intervals": 2, "level": 1.0} | options))
    z = None
    if covariates:
        z = (panel.subject_index % 2).astype(float)[:, None]
    cells = observe_cells(panel, None, panel.window, LAWS[law], EFFECTS[effect], z)
    return Task(CountLikelihood(cells, LAWS[law], EFFECTS[effect]), KERNELS["se"], size)


def brute_force(task, n=200_000, seed=11):
    """Log evidence with its error, and posterior means of f², l and parameters, from the prior."""
    target = CurveTarget(task.landscape(np.log(LENGTH)), U)
    draws = target.draw_prior(n, np.random.default_rng(seed))
    log_weight = draws.terms[0]
    weight = np.exp(log_weight - logsumexp(log_weight))
    curve = (
        1
        / np.sqrt(1 + np.exp(2 * U))
        * (1 + np.exp(U) * target.landscape.prior.features(TIMES) @ draws.x[: target.size])
    )
    values = np.vstack([np.exp(draws.x[target.size]) * curve**2, draws.x[target.size :]])
    mean = values @ weight
    error = np.sqrt((weight**2 * (values - mean[:, None]) ** 2).sum(axis=1))
    effective = 1 / (weight @ weight)
    return logsumexp(log_weight) - np.log(n), np.sqrt(1 / effective), mean, error


@pytest.mark.parametrize(("law", "effect"), LAWS_AND_EFFECTS)
def test_fixed_hyper_parameters_agree_with_brute_force(law, effect):
    task = task_of(law, effect, covariates=law == "bursts")
    exact, error, mean, mean_error = brute_force(task)
    draws, report = sample_posterior(
        task, length_scale=LENGTH, u=U, n_draws=8000, n_populations=8, random_state=1
    )
    total = np.hypot(error, report.log_evidence_error)
    assert total < 0.04
    assert abs(report.log_evidence - exact) < STANDARD_ERRORS * total
    values = np.vstack([draws.squares(TIMES), draws.tails])
    each = np.array([values[:, draws.population == p].mean(axis=1) for p in range(8)])
    between = each.std(axis=0, ddof=1) / np.sqrt(8)
    independent = values.std(axis=1) / np.sqrt(draws.size)  # eight populations may agree by luck
    spread = np.hypot(np.maximum(between, independent), mean_error)
    assert np.all(np.abs(values @ draws.weights - mean) < STANDARD_ERRORS * spread)
    assert report.names[7] == "l"
    assert len(report.names) == 7 + len(draws.tails)
    assert np.all(report.r_hat < 1.05)


@pytest.mark.parametrize(("law", "effect"), LAWS_AND_EFFECTS)
def test_the_target_is_the_landscape(law, effect, rng):
    task = task_of(law, effect, covariates=True)
    land = task.landscape(np.log(LENGTH))
    x = rng.standard_normal((land.dimension, 7))
    target = CurveTarget(land, U)
    both = target.evaluate(x).sum(axis=0) - 0.5 * (x[: land.size] ** 2).sum(axis=0)
    both += target.log_prior_at(length_scale=True, u=True) - 0.5 * land.size * np.log(2 * np.pi)
    assert_allclose(both, land.log_density(x, np.full(7, U)), **ROUNDING)


def test_outside_the_support_there_is_no_likelihood():
    target = CurveTarget(task_of("bursts", "gamma").landscape(np.log(LENGTH)), U)
    x = np.zeros((target.landscape.dimension, 2))
    x[target.size, 1] = 1e4
    terms = target.evaluate(x)
    assert np.isfinite(terms[:, 0]).all()
    assert terms[0, 1] == -np.inf


def test_the_same_seed_gives_the_same_draws_in_any_number_of_processes():
    task = task_of("bursts", None)
    options = {"length_scale": LENGTH, "u": U, "n_draws": 100, "n_populations": 2}
    first, report = sample_posterior(task, random_state=4, **options)
    again, same = sample_posterior(task, random_state=4, n_jobs=2, **options)
    other, _ = sample_posterior(task, random_state=5, **options)
    assert_array_equal(first.bundles[1].x, again.bundles[1].x)
    assert report.log_evidence == same.log_evidence
    assert not np.array_equal(first.bundles[1].x, other.bundles[1].x)


def test_draws_become_the_curves_of_an_estimator():
    task = task_of("bursts", "gamma", covariates=True)
    draws, _ = sample_posterior(task, length_scale=LENGTH, u=U, n_draws=80, random_state=4)
    curves = draws.curves("se")
    times = np.array([0.2, 0.7])
    assert_allclose(curves.intensities(times), draws.intensities(times), rtol=1e-9)
    assert_array_equal(curves.params, draws.tails[1:3])
    assert_array_equal(curves.coefficients, draws.tails[3:])
    assert_array_equal(curves.chain, draws.population)


# -- hyper-parameters ---------------------------------------------------------------------------


def gaussian(points, centre=(-1.5, -0.7), width=(0.3, 0.4)):
    return -0.5 * (((points - centre) / width) ** 2).sum(axis=1)


@pytest.mark.parametrize("width", [(0.3, 0.4), (0.08, 1.0), (1.0, 0.1)])
def test_plans_integrate_a_gaussian(width, rng):
    """∫∫ exp(−z²/2) = 2π s₁ s₂, found by random offsets to a percent."""
    guide = find_guide(((-4.0, 0.2), (-5.0, 3.2)), lambda p, _: gaussian(p, width=width))
    totals = []
    for _ in range(8):
        plan = guide.plan(1000, rng)
        totals.append(np.exp(logsumexp(gaussian(plan.points, width=width)) + plan.log_area))
        assert 5 < len(plan.points) < 80
        assert plan.numbers.min() >= 400
    assert_allclose(np.mean(totals), 2 * np.pi * np.prod(width), rtol=0.02)


def test_one_fixed_axis_is_not_planned(rng):
    ranges = ((-1.5, -1.5), (-5.0, 3.2))
    guide = find_guide(ranges, lambda p, _: gaussian(p))
    plan = guide.plan(1000, rng)
    assert_array_equal(plan.points[:, 0], -1.5)
    area = np.exp(logsumexp(gaussian(plan.points)) + plan.log_area)
    assert_allclose(area, np.sqrt(2 * np.pi) * 0.4, rtol=0.02)


def test_a_single_point_gets_all_draws(rng):
    guide = Guide((np.zeros(1), np.zeros(1)), np.zeros((1, 1)), (1.0, 1.0), (0.0, 0.0))
    plan = guide.plan(77, rng)
    assert_array_equal(plan.numbers, [77])
    assert plan.log_area == 0


@pytest.mark.parametrize(("law", "effect"), [("poisson", None), ("bursts", "gamma")])
def test_integrated_hyper_parameters_agree_with_brute_force(law, effect):
    """u alone: 60,000 draws of (u, v, l, …) from their priors."""
    task = task_of(law, effect)
    land, rng = task.landscape(np.log(LENGTH)), np.random.default_rng(2)
    n = 60_000
    u = np.log(0.3) + rng.standard_normal(n)
    x = CurveTarget(land, 0.0).draw_prior(n, rng).x
    likelihood = land.log_likelihood(land.curve(x, u), x)
    exact = logsumexp(likelihood) - np.log(n)
    weight = np.exp(likelihood - logsumexp(likelihood))
    draws, report = sample_posterior(
        task, length_scale=LENGTH, n_draws=3000, n_populations=4, random_state=3
    )
    error = np.hypot(np.sqrt(weight @ weight), report.log_evidence_error)
    assert error < 0.06
    assert abs(report.log_evidence - exact) < STANDARD_ERRORS * error
    assert abs(draws.weights @ draws.each("u") - weight @ u) < 0.12
    assert_allclose(draws.weights.sum(), 1)
    assert report.names[-1] == "u"


# -- the engine under the judge -------------------------------------------------------------------


def curves_of(weighted, times):
    """Mean of f² under the engine's weighted draws."""
    columns = []
    for sheaf in weighted.sheaves:
        land = sheaf.point.mode.landscape
        k = np.exp(sheaf.u) / np.sqrt(1 + np.exp(2 * sheaf.u))
        mean = 1 / np.sqrt(1 + np.exp(2 * sheaf.u))
        f = mean + k * land.prior.features(times) @ sheaf.x[: land.size]
        columns.append(np.exp(sheaf.x[land.size]) * f**2)
    return np.concatenate(columns, axis=1) @ weighted.weights


@pytest.mark.parametrize(
    ("law", "effect", "seed"), [("bursts", "gamma", 9101), ("poisson", None, 9102)]
)
def test_engine_and_judge_agree_on_fresh_data(law, effect, seed):
    """Log evidence within 0.3 nat and mean curves within 3%, at fixed hyper-parameters."""
    task = task_of(law, effect, seed=seed, size=None, n_subjects=25, n_intervals=5, frailty=1.0)
    lattice = modes_at(task, 0.2, U)
    weighted = weigh(lattice, 6000, np.random.default_rng(0))
    draws, report = sample_posterior(task, length_scale=0.2, u=U, n_draws=8000, random_state=0)
    assert abs(weighted.log_evidence - log_prior_at(lattice) - report.log_evidence) < 0.3
    times = np.linspace(0, 1, 101)
    judge = draws.squares(times) @ draws.weights
    assert np.abs(curves_of(weighted, times) - judge).sum() < 0.03 * judge.sum()


@pytest.mark.slow
def test_engine_and_judge_agree_on_fresh_data_with_hyper_parameters_integrated():
    """The whole default, as in the test above."""
    task = task_of("bursts", None, seed=9103, size=8, n_subjects=20, n_intervals=4)
    weighted = weigh(find_modes(task), 6000, np.random.default_rng(0))
    draws, report = sample_posterior(task, n_draws=4000, random_state=0, correlation=0.6)
    assert abs(weighted.log_evidence - report.log_evidence) < 0.3
    times = np.linspace(0, 1, 101)
    judge = draws.squares(times) @ draws.weights
    assert np.abs(curves_of(weighted, times) - judge).sum() < 0.03 * judge.sum()
