"""Growth models against SurPyval, SciPy on the raw formula, and simulated truth."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import chi2, poisson

import gp4c
from classical_panels import panel_of, random_panel
from gp4c import LogLinear, PowerLaw
from gp4c.exceptions import GP4CWarning, OverdispersionWarning, PanelDataError

#: intervals without a zero count, (subject, start, stop, count)
ROWS = [
    (0, 0, 8, 1), (0, 8, 14, 1), (0, 14, 21, 5), (0, 21, 29, 8), (0, 29, 35, 2), (1, 0, 7, 4),
    (1, 7, 10, 1), (1, 10, 16, 2), (1, 16, 24, 1), (1, 24, 29, 4), (2, 0, 8, 1), (2, 8, 16, 4),
    (2, 16, 23, 4), (2, 23, 29, 6), (2, 29, 32, 2), (3, 0, 7, 4), (3, 7, 12, 4), (3, 12, 20, 6),
    (3, 20, 28, 3), (3, 28, 32, 5), (4, 0, 7, 5), (4, 7, 12, 3), (4, 12, 19, 4), (4, 19, 22, 2),
    (4, 22, 30, 4), (5, 0, 3, 1), (5, 3, 11, 2), (5, 11, 17, 4), (5, 17, 20, 4), (5, 20, 27, 7),
]  # fmt: skip


def fleet(seed=0, shape=1.5, scale=4.0, variance=0.5, phi=1.0, n=60, visits=8, end=24.0):
    """Machines with a power-law rate, frailty, bursts and two kinds of machine."""
    rng = np.random.default_rng(seed)
    edges, rows = np.linspace(0.0, end, visits + 1), []
    for k in range(n):
        effect = rng.gamma(1 / variance) * variance if variance else 1.0
        mean = effect * np.diff((edges / scale) ** shape)
        count = rng.poisson(rng.gamma(mean / phi) * phi if phi else mean)
        rows += list(zip([k] * visits, edges[:-1], edges[1:], count.tolist(), strict=True))
    return panel_of(rows)


def increments(kind, x, start, stop):
    if kind is PowerLaw:
        return (stop / np.exp(x[0])) ** np.exp(x[1]) - (start / np.exp(x[0])) ** np.exp(x[1])
    return np.exp(x[0]) * (np.exp(x[1] * stop) - np.exp(x[1] * start)) / x[1]


def raw_maximum(kind, panel, z=None):
    """Parameters and log-likelihood by SciPy on the textbook formula."""
    size = 0 if z is None else z.shape[1]

    def cost(x):
        mean = panel.exposure * increments(kind, x, panel.start, panel.stop)
        if size:
            mean = mean * np.exp(z @ x[2:])
        return -poisson.logpmf(panel.count, mean).sum()

    start = np.r_[np.log([5.0, 1.1]) if kind is PowerLaw else [-1.0, 0.03], np.zeros(size)]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    found = minimize(cost, start, method="Nelder-Mead", options=options)
    return found.x, -found.fun


def test_estimates_of_surpyval():
    # SurPyval 0.25: CrowAMSAA.fit and CoxLewis.fit of [start, stop] rows with c = 2 and n = count
    panel = panel_of([(k, float(a), float(b), m) for k, a, b, m in ROWS])
    power, line = PowerLaw().fit(panel), LogLinear().fit(panel)
    assert_allclose([power.scale_, power.shape_], [3.33054068, 1.28127043], rtol=1e-4)
    assert_allclose([np.log(line.scale_), line.slope_], [-0.99440594, 0.0252621], rtol=1e-4)
    assert_allclose(power.score(panel, constant=True), -57.81489337, atol=1e-6)
    assert_allclose(line.score(panel, constant=True), -57.67931625, atol=1e-6)


@pytest.mark.parametrize("kind", [PowerLaw, LogLinear])
@pytest.mark.parametrize("seed", [1, 2])
def test_zero_counts_exposure_and_late_entry(kind, seed):
    panel = random_panel(seed, n_subjects=40, gaps=True, exposure=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GP4CWarning)
        model = kind().fit(panel)
    x, value = raw_maximum(kind, panel)
    shape = np.log(model.shape_) if kind is PowerLaw else model.slope_
    assert_allclose([np.log(model.scale_), shape], x, atol=2e-5)
    assert_allclose(model.score(panel, constant=True), value, atol=1e-7)
    assert_allclose(model.objective_, model.score(panel), rtol=1e-10)
    ours = model.expected_counts(panel.start, panel.stop)
    assert_allclose(ours, increments(kind, x, panel.start, panel.stop), rtol=1e-4)


@pytest.mark.parametrize("kind", [PowerLaw, LogLinear])
def test_intervals_are_where_the_profile_has_fallen(kind):
    panel = fleet(3, variance=0, phi=0, n=12)
    model = kind().fit(panel)
    best = raw_maximum(kind, panel)[1]
    name = "shape" if kind is PowerLaw else "slope"
    for end in model.interval(name, 0.9):
        x1 = np.log(end) if kind is PowerLaw else end
        mass = increments(kind, [0.0, x1], panel.start, panel.stop)
        # the level has a closed form: all events over all mass
        mean = mass * panel.n_events / mass.sum()
        fallen = best - poisson.logpmf(panel.count, mean).sum()
        assert_allclose(fallen, chi2.ppf(0.9, 1) / 2, rtol=1e-4)
    low, high = model.interval("mtbf", 0.9)
    assert low < model.mtbf_ < high
    assert_allclose(model.mtbf_, 1 / model.intensity(24.0))
    # Wald on the log scale is close where there are many events
    assert_allclose(1 / np.array(model.intensity_band(24.0, 0.9)), [high, low], rtol=0.02)
    low, high = model.interval("scale")
    assert low < model.scale_ < high


def test_growth_rate_mirrors_the_shape():
    model = PowerLaw().fit(fleet(3, variance=0, phi=0, n=12))
    low, high = model.interval("shape")
    assert model.growth_rate_ == 1 - model.shape_
    assert model.interval("growth_rate") == (1 - high, 1 - low)
    with pytest.raises(ValueError, match="name must be"):
        model.interval("slope")


@pytest.mark.parametrize("kind", [PowerLaw, LogLinear])
def test_with_shape_of_a_constant_rate_it_is_the_constant_rate(kind):
    # visits of equal length with equal totals: the best shape is none, whatever the laws
    rows = [(k, float(a), a + 1.0, m) for k, m in enumerate([5, 0, 1, 3]) for a in range(6)]
    panel = panel_of(rows)
    model = kind(effect="gamma", bursts=True).fit(panel)
    constant = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    assert_allclose(model.shape_ if kind is PowerLaw else 1 + model.slope_, 1.0, atol=1e-6)
    assert_allclose(model.objective_, constant.objective_, rtol=1e-9)
    assert_allclose(model.frailty_variance_, constant.frailty_variance_, rtol=1e-5)
    assert_allclose(model.intensity(3.0), constant.rate_, rtol=1e-6)
    assert_allclose(model.subject_effects_, constant.subject_effects_, rtol=1e-5)


def test_simulated_parameters_are_found():
    model = PowerLaw(effect="gamma", bursts=True).fit(fleet(0, n=800))
    assert_allclose(model.shape_, 1.5, rtol=0.05)
    assert_allclose(model.dispersion_, 2.0, rtol=0.1)
    assert_allclose(model.frailty_variance_, 0.5, rtol=0.15)
    low, high = model.interval("scale", 0.99)
    assert low < 4.0 < high


def test_intervals_hold_the_shape_under_frailty_and_bursts():
    held = 0
    for seed in range(60):
        model = PowerLaw(effect="gamma", bursts=True).fit(fleet(seed, n=25))
        low, high = model.interval("shape", 0.9)
        held += low < 1.5 < high
    assert 47 <= held <= 60  # of 60 at 0.9: fewer than one in 200 times below


@pytest.mark.parametrize("kind", [PowerLaw, LogLinear])
def test_covariates_are_a_poisson_regression(kind):
    panel = gp4c.load_dataset("bladder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GP4CWarning)
        model = kind(formula="initial_number + initial_size").fit(panel)
    z = model._covariates_of(panel)
    x, value = raw_maximum(kind, panel, z)
    assert_allclose(model.coefficients_.beta, x[2:], atol=1e-4)
    assert_allclose(model.score(panel, constant=True), value, atol=1e-6)
    chosen = {"initial_number": 3.0}
    ratio = model.intensity(9.0, covariates=chosen) / model.intensity(9.0)
    assert_allclose(ratio, np.exp(model._profile(chosen)[1] @ model.coefficients_.beta))
    low, high = model.intensity_band(9.0, covariates=chosen)
    assert low < model.intensity(9.0, covariates=chosen) < high
    assert_allclose(model.effects_["rate_ratio"], np.exp(x[2:]), rtol=1e-4)


def test_robust_errors_are_those_of_subjects():
    panel = fleet(2, n=300)
    frame = panel.to_frame()
    frame["kind"] = np.where(frame["subject"].to_numpy() % 2, "b", "a")
    panel = gp4c.PanelCounts.from_frame(frame)
    with pytest.warns(OverdispersionWarning):
        plain = PowerLaw(formula="kind").fit(panel)
    both = PowerLaw(effect="gamma", bursts=True, formula="kind").fit(panel)
    # with the right laws both errors agree; without them only the sandwich is right
    assert_allclose(both.effects_["se"], both.effects_["robust_se"], rtol=0.15)
    assert_allclose(plain.effects_["robust_se"], both.effects_["robust_se"], rtol=0.25)
    assert plain.effects_["se"][0] < 0.5 * plain.effects_["robust_se"][0]


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
    for kind in (PowerLaw, LogLinear):
        months, other = (kind(effect="gamma", bursts=True).fit(p) for p in (panel, days))
        assert_allclose(months.mtbf_ * 30, other.mtbf_, rtol=1e-6)
        assert_allclose(months.intensity(5.0), 30 * other.intensity(150.0), rtol=1e-6)


def test_the_origin_matters_to_the_power_law_only():
    panel = fleet(1, variance=0, phi=0, n=10)
    frame = panel.to_frame()
    later = gp4c.PanelCounts.from_frame(
        frame.assign(start=frame["start"] + 10, stop=frame["stop"] + 10)
    )
    assert_allclose(LogLinear().fit(later).slope_, LogLinear().fit(panel).slope_, rtol=1e-6)
    assert PowerLaw().fit(later).shape_ > PowerLaw().fit(panel).shape_ + 0.3


def test_bands_nest_and_hold():
    model = PowerLaw().fit(fleet(5, variance=0, phi=0, n=10))
    t = np.linspace(0.0, 24.0, 9)
    for band, curve in (
        (model.intensity_band, model.intensity), (model.cumulative_band, model.cumulative),
    ):  # fmt: skip
        low, high = band(t)
        wider = band(t, kind="simultaneous")
        assert np.all(wider[0] <= low)
        assert np.all(low <= curve(t))
        assert np.all(curve(t) <= high)
        assert np.all(high <= wider[1])


def test_simultaneous_bands_hold_the_whole_curve():
    t, held = np.linspace(0.5, 24.0, 60), 0
    for seed in range(60):
        low, high = (
            PowerLaw()
            .fit(fleet(seed, variance=0, phi=0, n=10))
            .intensity_band(t, 0.9, kind="simultaneous")
        )
        truth = 1.5 / 4 * (t / 4) ** 0.5
        held += bool(np.all((low < truth) & (truth < high)))
    assert 47 <= held <= 60  # at least 0.9 by Scheffé


def test_bootstrap_replaces_the_band_with_covariates_too():
    panel = gp4c.load_dataset("bladder")
    model = LogLinear(effect="gamma", bursts=True, formula="treatment").fit(panel)
    wald = model.cumulative_band(30.0)
    model.bootstrap(60, random_state=0)
    assert "60 bootstrap samples" in model.band_text()
    assert_allclose(np.log(model.cumulative_band(30.0)), np.log(wald), atol=0.35)


def test_saved_models_say_the_same(tmp_path):
    panel = gp4c.load_dataset("bladder")
    model = PowerLaw(effect="gamma", bursts=True, formula="initial_number").fit(panel)
    model.bootstrap(3, random_state=0)
    model.save(tmp_path / "model.json")
    again = gp4c.load_model(tmp_path / "model.json")
    assert again.interval("shape") == model.interval("shape")
    assert again.score(panel) == model.score(panel)
    assert again.cumulative_band(9.0) == model.cumulative_band(9.0)
    assert str(again.goodness_of_fit(9)) == str(model.goodness_of_fit(9))
    who = list(panel.subjects[:2])
    assert_allclose(
        again.forecast(53, 60, who, n_draws=50).draws, model.forecast(53, 60, who, n_draws=50).draws
    )


def test_a_forecast_goes_on_by_the_formula_or_holds():
    model = PowerLaw().fit(fleet(6, variance=0, phi=0, n=30))
    on, held = (model.forecast(20.0, 36.0, beyond=how) for how in ("prior", "hold"))
    assert_allclose(on.mean, model.expected_counts(20.0, 36.0, extrapolate=True))
    by_hand = model.expected_counts(20.0, 24.0) + 12 * model.intensity(24.0)
    assert_allclose(held.mean, by_hand)
    assert_allclose(on.draws.mean(), on.mean, rtol=0.02)
    assert "follow the normal law of its estimates" in on.note


def test_forecasts_of_a_fleet_hold_what_came():
    held, bias = 0, []
    for seed in range(60):
        whole = fleet(seed, n=30, phi=0, end=36.0, visits=12)
        frame = whole.to_frame()
        seen = gp4c.PanelCounts.from_frame(frame[frame["stop"] <= 24.0])
        came = int(frame["count"][frame["stop"] > 24.0].sum())
        model = PowerLaw(effect="gamma").fit(seen)
        found = model.forecast(24.0, 36.0, subjects="all", level=0.9, n_draws=1000)
        held += found.interval[0] <= came <= found.interval[1]
        bias.append(np.log(found.mean / came))
    assert 47 <= held <= 60  # of 60 at 0.9: fewer than one in 200 times below
    assert abs(np.mean(bias)) < 0.03


def test_summary_names_the_classical_parameters():
    text = str(PowerLaw().fit(fleet(3, variance=0, phi=0, n=12)).summary())
    assert "shape β" in text
    assert "MTBF now" in text
    assert "slope γ" in str(LogLinear().fit(fleet(3, variance=0, phi=0, n=12)).summary())


def test_parameters_carry_the_unit_of_time_or_of_usage():
    frame = fleet(3, variance=0, phi=0, n=12).to_frame()
    frame["hours"] = 50.0 * (frame["stop"] - frame["start"])
    words = {}
    for usage in (None, "hours"):
        panel = gp4c.PanelCounts.from_frame(
            frame.drop(columns="exposure", errors="ignore"), usage=usage, time_unit="months"
        )
        power, line = PowerLaw().fit(panel), LogLinear().fit(panel)
        words[usage] = " ".join(str(power.summary()).split()), " ".join(str(line.summary()).split())
        assert f"{power.mtbf_:.2f}".startswith(words[usage][0].split("MTBF now ")[1][:3])
    power, line = words[None]
    assert re.search(r"scale η [\d.]+ months \(95% .*? one event is expected MTBF", power)
    assert re.search(r"MTBF now [\d.]+ months \(95%", power)
    assert re.search(r"slope γ [\d.-]+ per month \(95%", line)
    assert re.search(r"rate at time 0 [\d.]+ per month \(95%", line)
    power, line = words["hours"]
    assert re.search(r"one event is expected at 1 hour of usage per month MTBF", power)
    assert re.search(r"MTBF now [\d.]+ hours of usage \(95%", power)
    assert re.search(r"rate at time 0 [\d.]+ per hour of usage \(95%", line)
    assert "MTBF now (hours of usage)" in str(PowerLaw().fit(panel).table())


def test_data_that_say_nothing_are_refused():
    with pytest.raises(PanelDataError, match="PowerLaw needs events; this panel has none"):
        PowerLaw().fit(panel_of([("a", 0.0, 1.0, 0), ("a", 1.0, 2.0, 0)]))
    with pytest.raises(PanelDataError, match=r"every row is the interval \(0, 2\]"):
        LogLinear().fit(panel_of([("a", 0.0, 2.0, 3), ("b", 0.0, 2.0, 1)]))
    with pytest.raises(PanelDataError, match=r"begins at time 0; the interval of subject 'a'.*-1"):
        PowerLaw().fit(panel_of([("a", -1.0, 2.0, 3), ("a", 2.0, 3.0, 1)]))


@pytest.mark.parametrize(("counts", "end"), [((4, 0, 0), "beginning"), ((0, 0, 4), "end")])
def test_a_shape_without_a_finite_estimate_is_said(counts, end):
    rows = [(k, float(a), a + 1.0, m) for k in range(3) for a, m in enumerate(counts)]
    with pytest.warns(GP4CWarning, match=f"at the {end} of the time axis"):
        model = LogLinear().fit(panel_of(rows))
    assert np.isfinite(model.objective_)
    assert_allclose(model.expected_counts(0.0, 3.0), 4.0, rtol=1e-6)


def test_a_failed_fit_leaves_the_earlier_one():
    model = PowerLaw().fit(fleet(3, variance=0, phi=0, n=12))
    shape = model.shape_
    with pytest.raises(PanelDataError):
        model.fit(panel_of([("a", 0.0, 1.0, 0), ("a", 1.0, 2.0, 0)]))
    assert model.shape_ == shape
