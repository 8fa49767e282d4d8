"""Export to ArviZ: the draws agree with the model, and ArviZ's own functions work on them."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma, nbinom, poisson

import gp4c
from gp4c.exceptions import MissingExtraError

arviz = pytest.importorskip("arviz")
#: ArviZ 1.0 calls some things otherwise
NEWER = int(arviz.__version__.split(".")[0]) >= 1
PANEL, EVENTS = gp4c.simulate_panel(
    ([0, 12], [0.2, 0.5]), window=(0, 12), n_subjects=20, n_intervals=4, frailty=("gamma", 1.5),
    random_state=4,
)  # fmt: skip


BURSTS, TIES = gp4c.simulate_panel(
    ([0, 12], [0.3, 0.7]), window=(0, 12), n_subjects=25, n_intervals=4,
    frailty=("gamma", 1.5), bursts=2.0,
    random_state=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def frail():
    return gp4c.GP4C(effect="gamma", bursts=False).fit(PANEL)


@pytest.fixture(scope="module")
def variational():
    return gp4c.GP4C(effect="gamma", count_term="pointwise").fit(PANEL)


@pytest.fixture(scope="module")
def bursty():
    return gp4c.GP4C(effect="gamma", bursts=True).fit(BURSTS)


@pytest.fixture(scope="module")
def exported(frail):
    return frail.to_arviz()


@pytest.fixture(scope="module")
def chained(frail):
    """Draws of four independent populations, as a sampler leaves them."""
    model, posterior = gp4c.GP4C(effect="gamma", bursts=False).fit(PANEL), frail.posterior_
    size = posterior.size - posterior.size % 4
    first = np.cumsum([0, *(group.size for group in posterior.groups)])
    groups = [
        replace(group, values=group.values[:, : max(size - at, 0)])
        for group, at in zip(posterior.groups, first, strict=False)
    ]
    model.posterior_ = replace(
        posterior,
        groups=tuple(group for group in groups if group.size),
        weights=posterior.weights[:size] / posterior.weights[:size].sum(),
        variance=posterior.variance[:size],
        prior_mean=posterior.prior_mean[:size],
        params=posterior.params[:, :size],
        coefficients=posterior.coefficients[:, :size],
        chain=np.arange(size) % 4,
    )
    return model


def pooled(data, name):
    """Draws of a variable, chains one after the other."""
    values = data[name].to_numpy()
    return values.reshape(-1, *values.shape[2:])


def test_draws_have_the_moments_of_the_model(frail, exported):
    times = exported.posterior["time"].to_numpy()
    assert times[-1] == 12.0
    rate = pooled(exported.posterior, "intensity")
    error = rate.std(axis=0) / np.sqrt(len(rate))
    assert np.all(np.abs(rate.mean(axis=0) - frail.intensity(times)) < 5 * error)
    number = pooled(exported.posterior, "cumulative_intensity")
    error = number.std(axis=0) / np.sqrt(len(number))
    assert np.all(np.abs(number.mean(axis=0) - frail.cumulative(times)) < 5 * error)
    assert_allclose(pooled(exported.posterior, "f") ** 2, rate)


def test_curves_and_their_integrals_belong_to_the_same_draw(frail):
    data = frail.to_arviz(n_draws=40, n_points=2400)
    times, rate = data.posterior["time"].to_numpy(), pooled(data.posterior, "intensity")
    number = pooled(data.posterior, "cumulative_intensity")
    steps = np.diff(times) * (rate[:, 1:] + rate[:, :-1]) / 2
    assert_allclose(number[:, 1:] - number[:, :1], np.cumsum(steps, axis=1), rtol=1e-3, atol=1e-4)


def test_parameters_vary_with_the_draws_and_the_others_are_constant(frail, exported, variational):
    names = {"length_scale", "prior_variance", "prior_mean", "frailty_shape"}
    assert names <= set(exported.posterior.data_vars)
    assert "dispersion" not in exported.posterior
    mean = float(exported.posterior["length_scale"].mean())
    posterior = frail.posterior_
    assert_allclose(mean, posterior.weights @ posterior.length_scale * 12, rtol=0.05)
    median = float(exported.posterior["frailty_shape"].median())
    assert_allclose(median, frail.frailty_shape_, rtol=0.1)
    point = variational.to_arviz(n_draws=8)
    assert not names & set(point.posterior.data_vars)
    assert_allclose(float(point.constant_data["frailty_shape"]), variational.frailty_shape_)


def test_likelihoods_are_probabilities_of_counts_with_the_frailty_integrated_out(frail, exported):
    # an independent route for one subject and draw: quadrature over the frailty of a product of
    # Poisson probabilities, whose means are read off the draw's own curve
    data = frail.to_arviz(n_draws=8, n_points=6000)
    curve = pooled(data.posterior, "cumulative_intensity")
    times = np.append(0.0, data.posterior["time"].to_numpy())
    likelihood = pooled(data.log_likelihood, "counts")
    for draw, subject in ((0, 0), (3, 7), (7, 19)):
        shape = pooled(data.posterior, "frailty_shape")[draw]
        rows = PANEL.subject_index == subject
        level = np.append(0.0, curve[draw])
        ends = (np.interp(at[rows], times, level) for at in (PANEL.stop, PANEL.start))
        mean, count = np.subtract(*ends) * PANEL.exposure[rows], PANEL.count[rows]

        def integrand(u, mean=mean, count=count, shape=shape):
            return gamma.pdf(u, shape, scale=1 / shape) * poisson.pmf(count, u * mean).prod()

        direct = np.log(quad(integrand, 0, 40, limit=400)[0])
        assert_allclose(likelihood[draw, subject], direct, rtol=2e-4)


def test_likelihoods_average_to_the_score(frail, exported):
    draws = pooled(exported.log_likelihood, "counts")
    mean = np.log(np.exp(draws).mean(axis=0)).sum()
    assert_allclose(mean, frail.score(PANEL, joint=False, constant=True), atol=0.3)


def test_frailties_have_their_posterior_mean(frail, exported):
    draws = pooled(exported.posterior, "frailty")
    error = draws.std(axis=0) / np.sqrt(len(draws))
    difference = np.abs(draws.mean(axis=0) - frail.subject_effects_)
    assert np.all(difference < 5 * error + 0.05)
    assert list(exported.posterior["subject"].to_numpy()) == list(PANEL.subjects)


def test_arviz_summarises_scores_and_draws_it(exported):
    import matplotlib as mpl

    mpl.use("agg")
    table = arviz.summary(exported, var_names=["length_scale", "cumulative_intensity"])
    assert np.all(table["r_hat"] < 1.02)
    assert np.isfinite(arviz.summary(exported).select_dtypes("number")).all(axis=None)
    loo = arviz.loo(exported, pointwise=True)
    assert loo.n_data_points == PANEL.n_subjects
    assert np.isfinite(loo.elpd if NEWER else loo.elpd_loo)
    forest = arviz.plot_forest(exported, var_names=["frailty"], combined=True)
    if not NEWER:
        assert len(forest.ravel()[0].get_yticklabels()) == PANEL.n_subjects
    mpl.pyplot.close("all")


def test_everything_observed_has_replicates(exported):
    import matplotlib as mpl

    assert set(exported.observed_data.data_vars) == set(exported.posterior_predictive.data_vars)
    assert_allclose(exported.constant_data["interval_count"], PANEL.count)
    if hasattr(arviz, "plot_ppc"):  # its name before ArviZ 1.0
        mpl.use("agg")
        axes = arviz.plot_ppc(exported, num_pp_samples=20, random_seed=1)
        assert axes is not None
        mpl.pyplot.close("all")


def test_coefficients_are_those_of_the_curves():
    frame = PANEL.to_frame()
    frame["arm"] = np.where(frame["subject"] % 2 == 0, "a", "b")
    frame["age"] = np.sin(frame["subject"])
    panel = gp4c.PanelCounts.from_frame(frame, window=(0, 12))
    model = gp4c.GP4C(formula="arm + age", effect="gamma", bursts=True).fit(panel)
    data = model.to_arviz(n_draws=4000)
    assert data.posterior["covariate"].to_numpy().tolist() == ["arm[b]", "age"]
    draws = pooled(data.posterior, "coefficient")
    table, error = model.effects_, 8 / np.sqrt(model.effective_draws_)
    spread = table["se"].to_numpy()
    assert np.all(np.abs(draws.mean(axis=0) - table["coefficient"]) < error * spread)
    assert_allclose(draws.std(axis=0), spread, rtol=error)
    likelihood = np.log(np.exp(pooled(data.log_likelihood, "counts")).mean(axis=0))
    score = model.score(panel, joint=False, constant=True)
    assert_allclose(likelihood.sum(), score, atol=0.3)


def test_loo_by_subject_estimates_leaving_subjects_out(exported):
    # refit without each of a few subjects and predict them: the honest number loo estimates
    loo = arviz.loo(exported, pointwise=True)
    each = loo.elpd_i if NEWER else loo.loo_i
    for subject in (0, 5, 11):
        rest = np.delete(np.arange(PANEL.n_subjects), subject)
        model = gp4c.GP4C(effect="gamma", bursts=False).fit(PANEL[rest])
        left_out = model.score(PANEL[[subject]], constant=True)
        assert_allclose(each.to_numpy()[subject], left_out, atol=0.25)


def test_a_sampler_keeps_its_chains(chained):
    data = chained.to_arviz()
    posterior = chained.posterior_
    assert data.posterior.sizes["chain"] == 4
    assert data.posterior.sizes["draw"] == posterior.size // 4
    weight = data.sample_stats["weight"].to_numpy()
    for chain in range(4):
        assert_allclose(
            np.sort(weight[chain]), np.sort(posterior.weights[posterior.chain == chain])
        )
    times = data.posterior["time"].to_numpy()
    mean = weight.ravel() @ pooled(data.posterior, "cumulative_intensity")
    assert_allclose(mean, posterior.weights @ posterior.integrals(0 * times, times).T, rtol=1e-6)
    assert np.all(arviz.summary(data, var_names=["intensity"])["r_hat"] < 1.05)


def test_the_samplers_diagnostics_are_arvizs():
    model = gp4c.GP4C(effect="gamma", method="mcmc", hyper="optimize", n_inducing=6).fit(PANEL)
    data, report = model.to_arviz(n_points=10), model.sampler_
    at = report.names.index("Λ")
    chains = data.posterior["cumulative_intensity"].to_numpy()[..., -1]
    assert_allclose(arviz.rhat(chains), report.r_hat[at], rtol=1e-2)
    assert_allclose(arviz.ess(chains, method="bulk"), report.ess[at], rtol=0.2)


# -- events in bursts ----------------------------------------------------------------------------


def test_bursts_are_exported(bursty):
    data = bursty.to_arviz()
    draws = pooled(data.posterior, "dispersion")
    assert_allclose(np.median(draws), bursty.dispersion_, rtol=0.1)
    frailty = pooled(data.posterior, "frailty")
    error = frailty.std(axis=0) / np.sqrt(len(frailty))
    assert np.all(np.abs(frailty.mean(axis=0) - bursty.subject_effects_) < 5 * error + 0.05)
    likelihood = np.log(np.exp(pooled(data.log_likelihood, "counts")).mean(axis=0))
    scores = bursty.score_subjects(BURSTS)
    constant = np.bincount(BURSTS.subject_index, gammaln(BURSTS.count + 1.0))
    assert_allclose(likelihood, scores - constant, atol=0.1)
    assert np.isfinite(arviz.summary(data).select_dtypes("number")).all(axis=None)
    totals = pooled(data.posterior_predictive, "counts")
    assert_allclose(totals.mean(), np.sum(bursty.cumulative(12.0)), rtol=0.15)


def test_likelihoods_with_bursts_by_quadrature(bursty):
    data = bursty.to_arviz(n_draws=8, n_points=6000)
    curve = pooled(data.posterior, "cumulative_intensity")
    times = np.append(0.0, data.posterior["time"].to_numpy())
    likelihood = pooled(data.log_likelihood, "counts")
    busiest = int(np.argmax(np.bincount(BURSTS.subject_index, BURSTS.count)))
    for draw, subject in ((0, 0), (3, 7), (7, busiest)):
        shape = pooled(data.posterior, "frailty_shape")[draw]
        phi = pooled(data.posterior, "dispersion")[draw] - 1
        rows = BURSTS.subject_index == subject
        level = np.append(0.0, curve[draw])
        ends = (np.interp(at[rows], times, level) for at in (BURSTS.stop, BURSTS.start))
        mean, count = np.subtract(*ends), BURSTS.count[rows]

        def integrand(y, mean=mean, count=count, shape=shape, phi=phi):
            u = np.exp(y)
            counts = nbinom.pmf(count, u * mean / phi, 1 / (1 + phi)).prod()
            return gamma.pdf(u, shape, scale=1 / shape) * u * counts

        direct = np.log(quad(integrand, -20, 5, limit=400, points=[-2, 0, 1])[0])
        assert_allclose(likelihood[draw, subject], direct, atol=0.01)


def test_ties_of_event_times_have_likelihoods():
    """A burst of m events has density λ φ^(m−1) / (m (1 + φ)^m); none has happened elsewhere."""
    model = gp4c.GP3(bursts=True).fit(TIES)
    data = model.to_arviz(n_draws=4, n_points=4000)
    rate = pooled(data.posterior, "intensity")
    number = pooled(data.posterior, "cumulative_intensity")[:, -1]
    times = data.posterior["time"].to_numpy()
    found = pooled(data.log_likelihood, "counts")
    at, size = np.unique(TIES.time[TIES.subject_index == 3], return_counts=True)
    for draw, phi in enumerate(pooled(data.posterior, "dispersion") - 1):
        logs = np.log(np.interp(at, times, rate[draw]))
        logs += (size - 1) * np.log(phi) - size * np.log1p(phi) - np.log(size)
        direct = logs.sum() - np.log1p(phi) / phi * number[draw]
        assert_allclose(found[draw, 3], direct, atol=2e-3 * max(len(at), 1))


def test_event_times_have_likelihoods_too():
    model = gp4c.GP3().fit(EVENTS)
    data = model.to_arviz(n_draws=4, n_points=4000)
    rate = pooled(data.posterior, "intensity")
    number = pooled(data.posterior, "cumulative_intensity")[:, -1]
    times = data.posterior["time"].to_numpy()
    own = EVENTS.time[EVENTS.subject_index == 3]
    direct = [np.log(np.interp(own, times, r)).sum() - n for r, n in zip(rate, number, strict=True)]
    assert_allclose(pooled(data.log_likelihood, "counts")[:, 3], direct, atol=2e-3)


def test_free_weights_are_constants():
    model = gp4c.GP4CW(count_term="pointwise").fit(PANEL)
    data = model.to_arviz(n_draws=8)
    assert_allclose(data.constant_data["subject_effect"], model.subject_effects_)
    assert "frailty" not in data.posterior


def test_a_saved_model_has_draws_and_takes_its_data_back(frail, exported, tmp_path):
    frail.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    alone = again.to_arviz()
    assert "frailty" in alone.posterior
    assert "start" not in alone.constant_data
    full = again.to_arviz(PANEL)
    assert_allclose(full.constant_data["start"], PANEL.start)
    for data in (alone, full):
        # draws are kept in 32 bits
        assert_allclose(
            pooled(data.log_likelihood, "counts"),
            pooled(exported.log_likelihood, "counts"),
            rtol=1e-3,
            atol=1e-4,
        )


def test_another_panel_is_refused(frail):
    with pytest.raises(ValueError, match="not the subjects of the fit"):
        frail.to_arviz(PANEL[[0, 1]])


def test_newer_versions_get_a_tree(frail, monkeypatch):
    import xarray

    monkeypatch.setattr(arviz, "__version__", "1.0.0")
    tree = frail.to_arviz(n_draws=8)
    assert isinstance(tree, xarray.DataTree)
    assert tree["posterior"]["f"].dims == ("chain", "draw", "time")


def test_without_arviz_the_extra_is_named(frail, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"gp4c\[arviz\]"):
        frail.to_arviz()
