"""The exact likelihood of paths: adaptive quadrature, frailties integrated numerically."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma

from gp4c.data.events import RecurrentEvents
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference.hyper import Problem
from gp4c.inference.paths import path_model
from gp4c.inference.sparse_prior import Hyper, SparsePrior
from problems import observed, visits_panel
from tolerances import ROUNDING

HYPER = Hyper(length_scale=0.3, variance=0.4, mean=0.8)
#: the sampler's grid is coarser than the bound's: 8 nodes per gap, 1e-6 of a log-likelihood
PATH_GRID = {"rtol": 1e-6, "atol": 1e-5}


def flat_prior(theta):
    return np.zeros(theta.shape[1])


def path(v, hyper, size):
    """f as a function, straight from the kernel."""
    prior = SparsePrior(KERNELS["se"], np.linspace(0, 1, size), hyper.length_scale)
    return lambda x: (
        hyper.mean + np.sqrt(hyper.variance) * float(prior.features(np.array([x]))[0] @ v)
    )


def integral(f, low, high):
    return quad(lambda x: f(x) ** 2, low, high, epsabs=1e-12, epsrel=1e-12, limit=200)[0]


def problem(effect=None, size=8, seed=0):
    data = observed(visits_panel(seed, with_exposure=True, window=(2.0, 12.0)))
    return Problem(data, KERNELS["se"], "exact", effect=effect, n_inducing=size)


def by_hand(panel, f, log_subject):
    """Σ_k log_subject(k, counts, means) with each mean exposure · ∫λ by adaptive quadrature."""
    rate = max(panel.n_events, 1) / (panel.exposure @ ((panel.stop - panel.start) / 10.0))
    total = 0.0
    for k in range(panel.n_subjects):
        rows = np.flatnonzero(panel.subject_index == k)
        means = np.array(
            [
                rate * panel.exposure[i]
                * integral(f, (panel.start[i] - 2) / 10, (panel.stop[i] - 2) / 10)
                for i in rows
            ]
        )  # fmt: skip
        total += log_subject(k, panel.count[rows], means)
    return total


@pytest.fixture
def draws(rng):
    return rng.standard_normal((8, 3))


def test_poisson_likelihood_is_that_of_the_counts(draws):
    panel = visits_panel(0, with_exposure=True, window=(2.0, 12.0))
    model = path_model(problem(), HYPER)
    expected = [
        by_hand(panel, path(v, HYPER, 8), lambda _, m, mu: m @ np.log(mu) - mu.sum())
        for v in draws.T
    ]
    assert_allclose(model.evaluate(draws)[0], expected, **PATH_GRID)
    assert_allclose(model.evaluate(draws)[1], 0.0)


def test_fixed_weights_multiply_the_means(draws, rng):
    panel = visits_panel(0, with_exposure=True, window=(2.0, 12.0))
    weights = rng.uniform(0.3, 3.0, panel.n_subjects)
    model = path_model(problem("weight"), HYPER, weights=weights)

    def log_subject(k, m, mu):
        return m @ np.log(weights[k] * mu) - weights[k] * mu.sum()

    expected = [by_hand(panel, path(v, HYPER, 8), log_subject) for v in draws.T]
    assert_allclose(model.evaluate(draws)[0], expected, **PATH_GRID)


def test_gamma_effects_are_integrated_out(draws):
    panel = visits_panel(0, with_exposure=True, window=(2.0, 12.0))
    hyper = Hyper(0.3, 0.4, 0.8, shape=0.7)
    model = path_model(problem("gamma"), hyper)

    def log_subject(_, m, mu):
        peak = m @ np.log(mu) - mu.sum()

        def density(effect):
            log_poisson = m @ np.log(effect * mu) - effect * mu.sum() - peak
            return np.exp(log_poisson) * gamma.pdf(effect, 0.7, scale=1 / 0.7)

        pieces = [(0, 1e-3), (1e-3, 0.1), (0.1, 1), (1, 5), (5, 60)]
        return peak + np.log(sum(quad(density, *p, epsabs=0, epsrel=1e-10)[0] for p in pieces))

    expected = [by_hand(panel, path(v, hyper, 8), log_subject) for v in draws.T]
    assert_allclose(model.evaluate(draws)[0], expected, **PATH_GRID)


def test_gamma_effects_without_spread_are_poisson(draws):
    plain = path_model(problem(), HYPER).evaluate(draws)
    assert_allclose(path_model(problem("gamma"), HYPER).evaluate(draws), plain, **ROUNDING)
    nearly = path_model(problem("gamma"), Hyper(0.3, 0.4, 0.8, shape=1e9)).evaluate(draws)
    assert_allclose(nearly, plain, rtol=1e-6)


def test_exact_events_are_scored_by_the_intensity_there(draws):
    events = RecurrentEvents.from_frame(
        {"id": [1, 1, 2], "t": [3.0, 7.5, 9.1]}, subject="id", time="t", window=(2.0, 12.0)
    )
    data = observe(None, events, (2.0, 12.0))
    model = path_model(Problem(data, KERNELS["se"], "exact", n_inducing=8), HYPER)
    rate = 3 / 2  # events per subject and window
    expected = []
    for v in draws.T:
        f = path(v, HYPER, 8)
        at = sum(np.log(rate / 10 * f((t - 2) / 10) ** 2) for t in (3.0, 7.5, 9.1))
        expected.append(at - 2 * rate * integral(f, 0, 1))
    assert_allclose(model.evaluate(draws)[0], expected, **PATH_GRID)


def test_columns_do_not_depend_on_their_company(rng):
    model = path_model(problem("gamma"), None, log_prior=flat_prior)
    theta = np.array([[-1.0], [-1.0], [0.9], [0.2]]) + 0.3 * rng.standard_normal((4, 20))
    x = np.concatenate([rng.standard_normal((8, 20)), theta])
    alone = np.concatenate([model.evaluate(x[:, [i]]) for i in range(20)], axis=1)
    assert_allclose(model.evaluate(x), alone, **ROUNDING)


def test_the_table_of_length_scales_holds_the_fixed_model(rng):
    free = path_model(problem(), None, log_prior=flat_prior)
    entry = len(free.table) // 3
    fixed = path_model(problem(), Hyper(float(np.exp(free.table[entry])), 0.3, 0.9))
    v = rng.standard_normal((8, 4))
    # anywhere in the entry's cell
    log_a = free.table[entry] + np.array([-0.49, 0.0, 0.3, 0.49]) * np.diff(free.table)[0]
    theta = np.array([log_a, np.full(4, np.log(0.3)), np.full(4, 0.9)])
    x = np.concatenate([v, theta])
    assert_allclose(free.evaluate(x)[0], fixed.evaluate(v)[0], **PATH_GRID)


def test_outside_the_box_there_is_no_density(rng):
    model = path_model(problem(), None, log_prior=flat_prior)
    x = np.concatenate([rng.standard_normal((8, 3)), [[-1.0] * 3, [-1.0] * 3, [0.9, -0.1, 80.0]]])
    prior = model.evaluate(x)[1]
    assert np.isfinite(prior[0])
    assert np.all(prior[1:] == -np.inf)


def test_the_default_number_of_inducing_inputs_leaves_little_out():
    data = problem().data
    free = Problem(data, KERNELS["se"], "exact")
    assert path_model(free, HYPER).unexplained() < 1.5e-3
    assert path_model(free, None, log_prior=flat_prior).unexplained() < 1.5e-3


def test_mirror_images_have_the_same_intensity(rng):
    model = path_model(problem(), HYPER)
    v = rng.standard_normal((8, 5))
    assert_allclose(model.evaluate(model.mirror(v))[0], model.evaluate(v)[0], atol=0.1)
    assert_allclose(model.mirror(model.mirror(v)), v, **ROUNDING)
    assert np.abs(model.mirror(v) - v).min() > 1e-3


def test_missing_pieces_are_named():
    with pytest.raises(ValueError, match="weights"):
        path_model(problem("weight"), HYPER)
    with pytest.raises(ValueError, match="need values"):
        path_model(problem(), None)
    with pytest.raises(ValueError, match="need values"):
        path_model(problem(), None, log_prior=flat_prior, free=(True, True, False, False))


def test_no_events_at_all(draws):
    panel = visits_panel(0, level=0.0)
    model = path_model(Problem(observed(panel), KERNELS["se"], "exact", n_inducing=8), HYPER)
    data = observed(panel)
    expected = [
        -sum(
            n * integral(path(v, HYPER, 8), a, b)
            for n, a, b in zip(data.exposure, data.start, data.stop, strict=True)
        )
        for v in draws.T
    ]
    assert_allclose(model.evaluate(draws)[0], expected, **PATH_GRID)
