"""A curve with a trend: the coefficient, its forecasts, its words, its file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import gp4c
from gp4c.estimators.forecasts import continuation
from gp4c.estimators.forecasts.continuation import late_scores
from gp4c.exceptions import PanelDataError

GROWTH = 0.03


@pytest.fixture(scope="module")
def panel():
    """60 subjects over 60 months, rate 0.05 exp(0.03 t), frailty of variance a half."""
    return gp4c.simulate_panel(
        lambda t: 0.05 * np.exp(GROWTH * t), n_subjects=60, window=(0, 60), frailty=0.5,
        random_state=1, time_unit="months",
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def model(panel):
    return gp4c.GP4C(trend="loglinear", effect="gamma", bursts=False).fit(panel)


def test_the_interval_holds_the_truth_and_agrees_with_a_growth_model(model, panel):
    """Deviations from the trend make the interval wider than that of the growth model."""
    found = model.trend_estimate(0.95)
    alone = gp4c.LogLinear(effect="gamma").fit(panel)
    assert found.low < GROWTH < found.high
    assert found.low < alone.slope_ < found.high
    low, high = alone.curve_parameters(0.95)[0][-2:]
    assert high - low < found.high - found.low
    assert model.trend_.startswith("the rate grows by ")
    assert " a year (95%: " in model.trend_


def test_the_summary_says_how_probable_the_trend_alone_is(model):
    """Data that follow the trend leave most probability to it; a swing about it leaves none."""
    assert 0.5 < model.trend_alone_ < 0.99
    row = next(row for row in model.summary().rows if row.quantity == "trend alone")
    told = f"probability {model.trend_alone_:.2f}"
    assert row.text == f"the rate follows the trend without further variation: {told}"
    swinging, _ = gp4c.simulate_panel(
        lambda t: 0.2 * np.exp(GROWTH * t + 0.9 * np.sin(t / 5)), n_subjects=60, window=(0, 60),
        random_state=1,
    )  # fmt: skip
    found = gp4c.GP4C(trend="loglinear", effect=None, bursts=False).fit(swinging)
    assert found.trend_alone_ < 0.005
    text = next(row for row in found.summary().rows if row.quantity == "trend alone").text
    assert text.endswith("probability below 0.01")


def test_one_length_scale_knows_of_no_trend_alone(panel):
    """The best hyper-parameters alone leave the curve its variation."""
    found = gp4c.GP4C(trend="loglinear", effect=None, bursts=False, hyper="optimize").fit(panel)
    assert found.trend_alone_ is None
    assert not found.posterior_.steady.any()


def test_methods_say_the_trend(model):
    assert "product of this curve and a log-linear trend" in model.methods_text()
    assert "season" not in model.methods_text()


def test_forecasts_continue_the_trend(model):
    """The three ways beyond the window, each against the mean of draws of the rate."""
    truth = 60 * quad(lambda t: 0.05 * np.exp(GROWTH * t), 60, 72)[0]
    on = model.forecast(60, 72, subjects="all", beyond="trend")
    assert on.interval[0] < truth < on.interval[1]
    held = model.forecast(60, 72, subjects=None, beyond="hold")
    assert_allclose(held.mean, 12 * model.intensity(60.0), rtol=1e-6)
    times = np.linspace(60, 72, 400)
    rate = model.intensity(times, extrapolate=True)
    new = model.forecast(60, 72, subjects=None, beyond="trend")
    assert_allclose(new.mean, np.trapezoid(rate, times), rtol=2e-3)
    assert on.mean > held.mean * 60
    assert "with its trend: the rate grows" in on.note


def test_the_default_way_is_said(model):
    """ "auto" is the model's own way unless another is clearly ahead on the last quarter."""
    scores = late_scores(model)
    found = model.forecast(60, 72, subjects="all")
    assert set(scores) == {"prior", "hold", "trend"}
    own = model.forecast(60, 72, subjects="all", beyond="trend")
    assert scores["trend"] > max(scores.values()) - 3.0
    assert found.mean == own.mean
    assert "When the last quarter of the window was forecast" in found.note
    assert "last quarter" not in own.note


@pytest.mark.parametrize(
    ("scores", "way", "words"),
    [
        ({"prior": -9.0, "hold": -1.0, "trend": -5.0}, "hold", "a held rate did best"),
        ({"prior": -9.0, "hold": -1.0, "trend": -3.0}, "trend", 'beyond="hold" takes it'),
        ({"prior": -9.0, "hold": -1.0, "trend": -1.5}, "trend", "the past does not decide"),
    ],
)
def test_another_way_is_taken_only_with_clear_odds(model, monkeypatch, scores, way, words):
    """Odds of 20 to 1; what the last quarter said is told in every case."""
    monkeypatch.setattr(continuation, "late_scores", lambda model: scores)
    monkeypatch.setattr(model, "_continuation", None)
    found = model.forecast(60, 72, n_draws=50)
    assert model.continuation().way == way
    assert words in found.note


def test_a_saved_trend_gives_the_same_answers(model, tmp_path):
    model.save(tmp_path / "fit.json")
    loaded = gp4c.load_model(tmp_path / "fit.json")
    assert loaded.trend_ == model.trend_
    assert loaded.trend_estimate() == model.trend_estimate()
    assert loaded.trend_alone_ == model.trend_alone_
    ask = {"subjects": "all", "random_state": 4}
    assert loaded.forecast(60, 72, **ask).mean == model.forecast(60, 72, **ask).mean


def test_auto_finds_the_power_law_and_no_trend():
    """A power trend of exponent 2.2, and a level that only fluctuates."""
    rising, _ = gp4c.simulate_panel(
        lambda t: 3e-3 * t**1.2, n_subjects=80, window=(0, 60), random_state=2
    )
    found = gp4c.GP4C(trend="auto", effect=None, bursts=False).fit(rising)
    assert found.trend_evidences_["power"] == max(found.trend_evidences_.values())
    assert found.trend_estimate().low < 2.2 < found.trend_estimate().high
    assert "chosen by the evidence" in found.trend_


def test_no_trend_is_judged_under_the_prior_that_trends_have():
    """Its evidence is that of a curve that is constant with probability ½, as beside a trend."""
    level, _ = gp4c.simulate_panel(
        lambda t: 0.1 + 0 * t, n_subjects=12, window=(0, 20), random_state=5
    )
    ask = {"effect": None, "bursts": False}
    found = gp4c.GP4C(trend="auto", **ask).fit(level)
    plain = gp4c.GP4C(**ask).fit(level)
    assert found.log_evidence_ == plain.log_evidence_
    assert_array_equal(found.posterior_.weights, plain.posterior_.weights)
    # a constant rate f² with ln f² ~ N(0, 1) in units of the mean rate: a one-dimensional integral
    n, at_risk = level.count.sum(), level.exposure @ (level.stop - level.start)
    levels = np.linspace(-5, 5, 2001)
    log_p = n * levels - n * np.exp(levels) + norm.logpdf(levels)
    parts = (level.stop - level.start)[level.count > 0] * n / at_risk
    constant = logsumexp(log_p) + np.log(levels[1] - levels[0])
    constant += level.count[level.count > 0] @ np.log(parts)
    expected = np.logaddexp(constant, plain.log_evidence_) - np.log(2)
    assert_allclose(found.trend_evidences_["none"], expected, atol=0.06)


def test_a_summary_says_that_no_trend_was_found():
    """Events at a constant rate, so that a trend is one parameter too many."""
    level, _ = gp4c.simulate_panel(
        lambda t: 0.1 + 0 * t, n_subjects=12, window=(0, 20), random_state=5
    )
    found = gp4c.GP4C(trend="auto", effect=None, bursts=False).fit(level)
    assert not found.has_trend
    row = next(row for row in found.summary().rows if row.quantity == "trend")
    assert row.text.startswith("no trend was found: the curve alone was chosen by the evidence, ")
    assert row.section == "Shape of the curve"


def test_a_power_from_time_zero_is_integrated_exactly():
    """Λ of every draw against quad of its rate; t^(b-1) is steep at 0."""
    panel, _ = gp4c.simulate_panel(
        lambda t: 0.6 * (t + 1e-9) ** -0.5, n_subjects=60, window=(0, 40), random_state=4
    )
    model = gp4c.GP4C(trend="power", effect=None, bursts=False).fit(panel)
    posterior, who = model.posterior_, np.arange(3)
    part, w = posterior.modulation.parts[0], posterior.modulating[0, :3]
    ends = np.array([0.5, 7.0, 40.0])
    found = posterior.integrals_of(np.zeros(3), ends, who, np.random.default_rng(0))
    for s in who:
        power = float(part.coefficients(w)[s]) - 1

        def smooth(t, s=s, power=power):
            at = float(posterior.intensity_paths(np.array([t]), np.array([s]))[0, 0])
            return at / max(t, 0.08) ** power  # the rate is shown from 0.08 on

        exact = [quad(smooth, 0.0, end, weight="alg", wvar=(power, 0))[0] for end in ends]
        assert_allclose(found[:, s], exact, rtol=3e-3)


@pytest.mark.parametrize(
    ("options", "window", "words"),
    [
        ({"trend": "power"}, (-5, 60), "times from 0 on"),
        ({"trend": "cubic"}, (0, 60), "trend must be"),
        ({"trend": "auto", "count_term": "exact"}, (0, 60), "go with count_term=None"),
    ],
)
def test_what_does_not_go_is_one_sentence(options, window, words, panel):
    with pytest.raises((ValueError, PanelDataError), match=words):
        gp4c.GP4C(**options).fit(panel.with_window(window))


def test_a_trend_that_was_not_fitted_cannot_go_on(panel):
    plain = gp4c.GP4C(effect=None, bursts=False).fit(panel)
    with pytest.raises(ValueError, match="continues a trend"):
        plain.forecast(60, 72, beyond="trend")
    assert plain.trend_ is None
