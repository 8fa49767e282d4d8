"""Forecast numerics against dense Gaussian processes, SciPy's laws and sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from classical_panels import panel_of
from gp4c.data.subject_histories import SubjectHistories
from gp4c.model.kernels import KERNELS
from gp4c.posterior.forecasting import (
    count_cdf,
    expected_integrals,
    integral_draws,
)
from gp4c.posterior.sparse_posterior import Posterior
from tolerances import CLOSED_FORM, ROUNDING, STANDARD_ERRORS

WINDOW = (10.0, 20.0)


def posterior(length_scale=0.4, seed=1, size=8):
    """Random q on the window (10, 20]."""
    rng = np.random.default_rng(seed)
    root = 0.2 * np.tril(rng.normal(size=(size, size)))
    mean, z = 0.5 * rng.normal(size=size), np.linspace(0.0, 1.0, size)
    return Posterior("se", length_scale, 0.3, 0.9, z, mean, root, WINDOW, rate=4.0)


def dense_paths(component, times, size, rng):
    """f at unit times drawn from its full joint covariance, residual process included."""
    B = component.prior.features(times)
    K = KERNELS["se"](np.abs(times[:, None] - times), component.length_scale)
    residual = K - B @ B.T
    cov = component.variance * (residual + B @ component.root @ component.root.T @ B.T)
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    mean = component.prior_mean + np.sqrt(component.variance) * (B @ component.mean)
    return mean[:, None] + root @ rng.standard_normal((len(times), size))


@pytest.mark.parametrize(("start", "stop"), [(18.0, 24.0), (21.0, 30.0), (4.0, 12.0)])
def test_integrals_beyond_the_window_have_the_law_of_the_dense_process(start, stop, rng):
    law, size = posterior(), 20_000
    ours = integral_draws(law, np.array([start]), np.array([stop]), size, rng)[:, 0]
    x, w = np.polynomial.legendre.leggauss(60)
    times = law.unit((start + stop) / 2 + (stop - start) / 2 * x)
    paths = dense_paths(law, times, size, rng)
    theirs = law.scale * ((stop - start) / 2 * w) @ paths**2
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    error = np.hypot(ours.std(), theirs.std()) / np.sqrt(size)
    assert abs(ours.mean() - theirs.mean()) < STANDARD_ERRORS * error
    exact = expected_integrals(law, np.array([start]), np.array([stop]))[0]
    assert abs(ours.mean() - exact) < STANDARD_ERRORS * ours.std() / np.sqrt(size)


def test_held_rates_are_the_ends_rates(rng):
    law = posterior()
    start, stop = np.array([22.0, 5.0, 15.0]), np.array([27.0, 8.0, 25.0])
    draws = integral_draws(law, start, stop, 20_000, rng, beyond="hold")
    ends = law.intensity(np.array(WINDOW))
    expected = [5 * ends[1], 3 * ends[0], None]
    inside = law.expected_integral(np.array([15.0]), np.array([20.0]))[0]
    expected[2] = inside + 5 * ends[1]
    assert_allclose(expected_integrals(law, start, stop, "hold"), expected, **ROUNDING)
    errors = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - expected) < STANDARD_ERRORS * errors)
    low, high = law.intensity_quantile(np.array([20.0]), np.array([0.1, 0.9]))[:, 0] * 5
    assert np.mean(draws[:, 0] < low) == pytest.approx(0.1, abs=0.01)
    assert np.mean(draws[:, 0] > high) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("shape", [0.4, 3.0, np.inf])
def test_count_laws_agree_with_scipy(shape):
    n, mean, seen, expected = np.arange(-1.0, 40.0), 6.5, 4.0, 2.2
    if np.isinf(shape):
        theirs = stats.poisson(mean).cdf(n)
    else:
        a, b = shape + seen, shape + expected
        theirs = stats.nbinom(a, b / (b + mean)).cdf(n)
    assert_allclose(count_cdf(n, mean, shape, seen, expected), theirs, **CLOSED_FORM)


def test_histories_join_neighbouring_intervals_and_keep_gaps():
    panel = panel_of(
        [
            ("b", 0.0, 1.0, 1, 1.0),
            ("b", 1.0, 3.0, 2, 1.0),
            ("b", 4.0, 5.0, 0, 1.0),  # a gap before it
            ("a", 0.0, 2.0, 3, 1.0),
            ("a", 2.0, 3.0, 1, 2.5),  # another exposure
            ("c", 1.0, 5.0, 0, 1.0),
        ]
    )
    known = SubjectHistories.of(panel)
    assert known.subjects.tolist() == ["a", "b", "c"]
    assert known.totals.tolist() == [4.0, 3.0, 0.0]
    assert known.span_subject.tolist() == [0, 0, 1, 1, 2]
    lengths = (known.span_stop - known.span_start)[None]
    # at rate 1 the expected counts are the exposed times
    assert_allclose(known.expected(lengths), [[2 + 2.5, 3 + 1, 4]], **ROUNDING)
    some = known.take(known.positions(["c", "a"]))
    assert some.subjects.tolist() == ["c", "a"]
    chosen = (some.span_stop - some.span_start)[None]
    assert_allclose(some.expected(chosen), [[4, 4.5]], **ROUNDING)
    with pytest.raises(KeyError, match=r"no subject 'z'; there are 'a', 'b', 'c'"):
        known.positions(["a", "z"])


def test_histories_of_exact_times_match_those_of_the_counts():
    panel, events = gp4c.simulate_panel(0.2, n_subjects=12, dropout=0.02, random_state=3)
    ours, theirs = SubjectHistories.of(events), SubjectHistories.of(panel)
    assert np.array_equal(ours.totals, theirs.totals)
    assert_allclose(ours.span_stop, theirs.span_stop, **ROUNDING)
    assert np.array_equal(ours.span_start, theirs.span_start)


def test_histories_of_several_sources_follow_one_another():
    panel, events = gp4c.simulate_panel(0.2, n_subjects=5, random_state=3)
    both = SubjectHistories.of_all(panel, None, events)
    assert both.totals.tolist() == SubjectHistories.of(panel).totals.tolist() * 2
    lengths = (both.span_stop - both.span_start)[None]
    assert_allclose(both.expected(lengths), np.full((1, 10), 60.0), **ROUNDING)
