"""The constant rate with bursts: the yardstick with frailty and bursts."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import nbinom

import gp4c
from classical_panels import panel_of, random_panel, toy
from gp4c import HomogeneousPoisson
from gp4c.analysis import diagnostics


def arm(name, label):
    panel = gp4c.load_dataset(name)
    return panel.where(**{panel.covariates.columns[0]: label})


ARMS = [("nausea", "A"), ("nausea", "B"), ("bladder", "A"), ("bladder", "B")]


def simulated(phi, variance, seed=0, n_subjects=400, **options):
    return gp4c.simulate_panel(
        0.2,
        n_subjects=n_subjects,
        n_intervals=8,
        frailty=None if variance is None else ("gamma", 1 / variance),
        bursts=phi,
        random_state=seed,
        **options,
    )[0]


@pytest.mark.parametrize(("name", "label"), ARMS)
def test_without_frailty_it_is_the_negative_binomial_maximum(name, label):
    panel = arm(name, label)
    model = HomogeneousPoisson(bursts=True).fit(panel)
    length = panel.stop - panel.start

    def cost(x):
        mean, phi = np.exp(x[0]) * length, np.exp(x[1])
        return -(nbinom.logpmf(panel.count, mean / phi, 1 / (1 + phi))).sum()

    ours = np.log([model.rate_, model.dispersion_ - 1])
    theirs = minimize(cost, ours + 0.2, method="Nelder-Mead", options={"xatol": 1e-9})
    assert_allclose(ours, theirs.x, atol=1e-4)
    assert_allclose(model.objective_, gammaln(panel.count + 1).sum() - theirs.fun, atol=1e-3)
    assert model.frailty_variance_ == 0.0
    assert model.frailty_shape_ == np.inf
    assert model.subject_effects_ is None


@pytest.mark.parametrize(("name", "label"), ARMS)
def test_bursts_are_worth_many_nats_on_real_data(name, label):
    panel = arm(name, label)
    both = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frailty = HomogeneousPoisson(effect="gamma").fit(panel)
    bursts = HomogeneousPoisson(bursts=True).fit(panel)
    assert both.converged_
    assert both.residual_ < 1e-10
    assert np.all(np.diff(both.history_) >= 0)
    assert both.objective_ > frailty.objective_ + 40
    assert both.objective_ > bursts.objective_ + 5
    assert_allclose(both.objective_, both.score(panel), atol=1e-9)
    assert_allclose(both.score(panel, constant=True), both.objective_ - panel.log_factorials)
    low, high = both.rate_interval()
    assert low < both.rate_ < high


def test_the_values_of_the_bladder_trial():
    # the prototype of the engine gave 46, 48, 5 and 40 nats over GP4C with these (ENGINE.md)
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(arm("bladder", "B"))
    assert_allclose(model.rate_, 0.1890, atol=5e-4)
    assert_allclose(model.frailty_variance_, 1.203, atol=5e-3)
    assert_allclose(model.dispersion_, 4.911, atol=5e-3)
    assert_allclose(model.burst_size_, 3.911 / np.log(4.911), atol=5e-3)
    assert_allclose(model.objective_, -137.989, atol=5e-3)
    assert "bursts of 2.5 on average (variance 4.9 times" in " ".join(str(model.summary()).split())


def test_what_was_simulated_is_found():
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(
        simulated(3.0, 0.5, n_subjects=2000)
    )
    assert_allclose(model.rate_, 0.2, rtol=0.1)
    assert_allclose(model.dispersion_, 4.0, rtol=0.1)
    assert_allclose(model.frailty_variance_, 0.5, rtol=0.2)


def test_intervals_hold_the_rate():
    held = 0
    for seed in range(40):
        panel = simulated(3.0, 1.0, seed=seed, n_subjects=40)
        low, high = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel).rate_interval(0.9)
        held += low < 0.2 < high
    assert held >= 30  # of 40 at 0.9: fewer than one in 200 times below


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_regular_counts_show_no_bursts(effect):
    panel = panel_of([(k, a, a + 1.0, 3) for k in range(5) for a in range(3)])
    model = HomogeneousPoisson(effect=effect, bursts=True).fit(panel)
    plain = HomogeneousPoisson(effect=effect).fit(panel)
    assert (model.dispersion_, model.burst_size_, model.frailty_variance_) == (1.0, 1.0, 0.0)
    assert model.rate_ == plain.rate_
    assert_allclose(model.objective_, plain.objective_)
    assert_allclose(model.score(panel), plain.score(panel))
    assert_allclose(
        model.rate_interval(),
        HomogeneousPoisson(effect="gamma").fit(panel).rate_interval(),
        rtol=1e-3,
    )
    assert "events come one by one" in str(model.summary())
    assert model.forecast(0.0, 3.0, subjects=[0, 1]).mean.shape == (2,)


def test_bursts_without_frailty_leave_no_frailty():
    rows = [(k, float(a), a + 1.0, 8 * ((k + a) % 4 == 0)) for k in range(12) for a in range(8)]
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel_of(rows))
    assert model.frailty_variance_ == 0.0
    assert model.dispersion_ > 3
    assert_allclose(model.subject_effects_, 1.0)
    assert np.isfinite(model.rate_interval()).all()
    assert model.forecast(0.0, 3.0, subjects=[0, 1]).mean.shape == (2,)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_no_events_and_one_event(effect):
    model = HomogeneousPoisson(effect=effect, bursts=True).fit(panel_of([("a", 0.0, 4.0, 0)]))
    assert (model.rate_, model.objective_, model.dispersion_) == (0.0, 0.0, 1.0)
    assert_allclose(model.rate_interval(0.9), (0.0, -np.log(0.05) / 4))
    one = HomogeneousPoisson(effect=effect, bursts=True).fit(panel_of([("a", 0.0, 4.0, 1)]))
    assert (one.rate_, one.dispersion_) == (0.25, 1.0)


def test_one_subject_with_one_burst_is_no_crash():
    panel = panel_of([("a", 0.0, 1.0, 5000), *((k, 0.0, 1.0, 0) for k in "bcdef")])
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    assert np.isfinite(model.objective_)
    low, high = model.rate_interval()
    assert 0 <= low < model.rate_ < high


def test_row_order_and_labels_do_not_matter():
    panel = arm("bladder", "A")
    rng = np.random.default_rng(0)
    names = dict(enumerate(rng.permutation(panel.n_subjects)))
    rows = [
        (int(names[k]), a, b, m)
        for k, a, b, m in zip(
            panel.subject_index, panel.start, panel.stop, panel.count, strict=True
        )
    ]
    shuffled = panel_of([rows[i] for i in rng.permutation(len(rows))])
    one, other = (
        HomogeneousPoisson(effect="gamma", bursts=True).fit(p)
        for p in (panel, shuffled.with_window(panel.window))
    )
    assert one.rate_ == other.rate_
    assert one.dispersion_ == other.dispersion_
    assert one.frailty_shape_ == other.frailty_shape_
    assert_allclose(one.subject_effects_, other.subject_effects_[list(names.values())], rtol=1e-12)


def test_the_unit_of_time_does_not_matter():
    panel = random_panel(4, n_subjects=30)
    days = panel_of(
        [
            (k, 30 * a, 30 * b, m)
            for k, a, b, m in zip(
                panel.subject_index, panel.start, panel.stop, panel.count, strict=True
            )
        ]
    )
    months, other = (HomogeneousPoisson(effect="gamma", bursts=True).fit(p) for p in (panel, days))
    assert_allclose(months.rate_, 30 * other.rate_, rtol=1e-8)
    assert_allclose(months.dispersion_, other.dispersion_, rtol=1e-8)


def test_cutting_an_interval_in_two_moves_nothing_but_the_constant():
    # the law is divisible: a visit at which nothing had happened since the last changes no estimate
    rows = [(k, 0.0, 2.0, m) for k, m in enumerate([4, 0, 1, 7, 0, 2, 0, 3])]
    cut = [
        part
        for k, a, b, m in rows
        for part in ([(k, a, b, m)] if m else [(k, a, 1.0, 0), (k, 1.0, b, 0)])
    ]
    one, other = (HomogeneousPoisson(bursts=True).fit(panel_of(r)) for r in (rows, cut))
    assert_allclose(one.rate_, other.rate_, rtol=1e-9)
    assert_allclose(one.objective_, other.objective_, rtol=1e-9)


def test_held_out_subjects_prefer_the_law_that_made_them():
    panel = simulated(4.0, 1.0, n_subjects=60)
    models = {
        "frailty": HomogeneousPoisson(effect="gamma"),
        "both": HomogeneousPoisson(effect="gamma", bursts=True),
    }
    scores = gp4c.cross_validate(models, panel)
    assert scores["both"].mean() > scores["frailty"].mean() + 10


def test_saved_models_say_the_same(tmp_path):
    panel = arm("bladder", "A")
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel).bootstrap(5, random_state=1)
    model.save(tmp_path / "model.json")
    again = gp4c.load_model(tmp_path / "model.json")
    assert again.rate_interval() == model.rate_interval()
    assert again.score(panel) == model.score(panel)
    who = list(panel.subjects[:2])
    assert_allclose(again.forecast(0, 9, who).draws, model.forecast(0, 9, who).draws)
    assert again.count_law_ is model.count_law_


def test_bootstrap_resamples_subjects():
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(arm("bladder", "B"))
    profile = model.rate_interval()
    model.bootstrap(100, random_state=0)
    low, high = model.intensity_band(1.0)
    assert_allclose(np.log([low, high]), np.log(profile), atol=0.3)


def test_a_forecast_of_a_new_subject_has_the_moments_of_the_law():
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(arm("bladder", "B"))
    forecast = model.forecast(0.0, 10.0, n_draws=200_000)
    mean = 10 * model.rate_
    assert_allclose(forecast.mean, mean)
    assert_allclose(forecast.draws.mean(), mean, rtol=0.02)
    variance = mean * model.dispersion_ + model.frailty_variance_ * mean**2
    assert_allclose(forecast.draws.var(), variance, rtol=0.05)


def test_forecasts_of_known_subjects_average_over_their_effects():
    panel = arm("bladder", "B")
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    who = panel.subjects[[0, int(np.argmax(model.subject_totals_))]].tolist()
    forecast = model.forecast(53.0, 63.0, who, n_draws=200_000)
    place = [list(panel.subjects).index(label) for label in who]
    mean = 10 * model.rate_ * model.subject_effects_[place]
    error = 10 * model.rate_ * model.subject_effect_errors_[place]
    # the rule behind forecasts has thirteen nodes, that of the estimator sixty
    assert_allclose(forecast.mean, mean, rtol=3e-3)
    assert_allclose(forecast.draws.var(axis=0), model.dispersion_ * mean + error**2, rtol=0.05)
    same = model.forecast(53.0, 63.0, who, history=panel, n_draws=2000)
    assert_allclose(same.draws, model.forecast(53.0, 63.0, who, n_draws=2000).draws)


def test_a_total_has_the_spread_of_its_parts():
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(arm("bladder", "B"))
    total = model.forecast(53.0, 63.0, "all", n_draws=20_000).draws
    parts = model.forecast(53.0, 63.0, model.subjects_.tolist(), n_draws=20_000).draws.sum(axis=1)
    assert_allclose(total.mean(), parts.mean(), rtol=0.02)
    assert_allclose(total.std(), parts.std(), rtol=0.04)


def test_diagnostics_use_the_law():
    panel = simulated(4.0, 0.5, n_subjects=120)
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    by_model = diagnostics.dispersion(model, panel).set_index("reference")["p_value"]
    assert by_model["Poisson"] < 0.01 < by_model["model"]
    values = np.sort(diagnostics.pit(model, panel)["pit"])
    assert np.abs(values - (np.arange(len(values)) + 0.5) / len(values)).max() < 0.05
    table = diagnostics.rootogram(model, panel)
    assert_allclose(table["expected"].sum(), panel.n_intervals)
    assert_allclose(diagnostics.contributions(model, panel)["score"], model.score_subjects(panel))
    values = np.sort(diagnostics.next_visit_pit(model, panel)["pit"])
    assert np.abs(values - (np.arange(len(values)) + 0.5) / len(values)).max() < 0.05


def test_wrong_bursts():
    with pytest.raises(ValueError, match="bursts must be False or True; found 'auto'"):
        HomogeneousPoisson(bursts="auto").fit(toy())
    assert repr(HomogeneousPoisson(bursts=True)) == "HomogeneousPoisson(bursts=True)"


def test_counts_whose_curvature_overflows_are_fitted():
    """Two intervals with 10¹² events each: on the way the Hessian is not finite."""
    panel = panel_of([
        ("A", 2e-7, 6e-7, 0), ("A", 9e-7, 1e-6, 10**12), ("D", 7.334911e-7, 7.834089e-7, 10**12),
        ("B", 5e-7, 1.2e-6, 0), ("C", 3e-7, 9e-7, 0),
    ])  # fmt: skip
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    time = 4e-7 + 1e-7 + 4.9918e-8 + 7e-7 + 6e-7
    assert 0.1 < model.rate_ * time / 2e12 < 10


def test_a_likelihood_that_overflows_is_no_maximum():
    """2⁵³ events in one interval beside subjects without any."""
    rows = [
        ("a", 0.0, 1.2e-3, 0), ("b", 0.0, 1e-4, 2**53), ("b", 6e-4, 7e-4, 0),
        ("c", 6.43e-4, 6.66e-4, 0), ("d", 0.0, 1.2e-3, 0), ("e", 5e-4, 1.2e-3, 0),
    ]  # fmt: skip
    panel = panel_of([(*row, 1e-6) for row in rows])
    assert np.isfinite(HomogeneousPoisson(effect="gamma", bursts=True).fit(panel).objective_)
