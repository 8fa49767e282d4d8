"""A summary says what the model says, fits the screen, and warns where it should."""

import json

import numpy as np
import pytest
from scipy.stats import gamma

import gp4c
from gp4c.exceptions import NotFittedError
from gp4c.model.laws import EFFECTS
from gp4c.reporting.rows.law_rows import effect_words
from gp4c.reporting.summary import summarise
from gp4c.reporting.words import duration, estimate, listed, moment, number, per, percent

QUICK = {"count_term": "pointwise", "hyper": "optimize", "n_inducing": 12}
INTEGRATED = gp4c.GP4C(effect="gamma", bursts=True)

ESTIMATORS = [
    gp4c.GP4C(effect="auto", **QUICK),
    INTEGRATED,
    gp4c.GP4CW(n_inducing=12),
    gp4c.LocalEM(bandwidth=2.0),
    gp4c.NPMLE(effect="gamma"),
    gp4c.NPMPLE(),
    gp4c.NPMPLGF(),
    gp4c.HomogeneousPoisson(effect="gamma"),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_every_estimator_has_a_summary_of_80_columns(model, visits):
    summary = summarise(model.fit(visits))
    text = str(summary)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert type(model).__name__ in text
    assert "0 to 12 months" in text
    assert summary["mean number of events"].value == model.cumulative(12.0)
    assert summary["converged"].value == model.converged_
    json.dumps(summary.to_dict(), allow_nan=False)
    if model is INTEGRATED:  # then the length scale has a range
        row = summary["length scale"]
        assert row.low <= row.value <= row.high
        assert "flat within its band" in row.text


def test_the_numbers_are_those_of_the_model(smooth, visits):
    summary = summarise(smooth, level=0.8)
    low, high = smooth.cumulative_band(12.0, level=0.8)
    row = summary["mean number of events"]
    np.testing.assert_allclose((row.low, row.high), (low, high), rtol=1e-9)
    assert "80% band" in row.text
    assert summary["frailty variance"].value == 1 / smooth.frailty_shape_
    assert summary["length scale"].value == smooth.length_scale_
    grid = np.linspace(0, 12, 1201)
    np.testing.assert_allclose(
        summary["range of the rate"].high, smooth.intensity(grid).max(), 1e-3
    )
    frame = summary.to_frame().set_index("quantity")
    assert frame.loc["average rate", "value"] == pytest.approx(smooth.cumulative(12.0) / 12)
    if hasattr(smooth, "data_summary_"):
        assert summary["events"].value == visits.n_events
    with pytest.raises(KeyError):
        summary["nothing"]


def test_a_frailty_in_words_is_the_distribution_of_subjects(rng):
    draws = rng.gamma(0.7, 1 / 0.7, 400_000)
    words = effect_words(EFFECTS["gamma"], np.log([0.7]))
    assert f"more than {np.quantile(draws, 0.9):.2g} times" in words
    assert f"less than {np.quantile(draws, 0.5):.2g} times" in words
    assert gamma.mean(0.7, scale=1 / 0.7) == pytest.approx(1)


def test_what_to_beware_of(visits, smooth):
    def remarks(model):
        return " ".join(summarise(model.fit(visits)).remarks)

    assert "leaves out the uncertainty of the length scale" in " ".join(summarise(smooth).remarks)
    assert "too narrow" in remarks(gp4c.GP4C(effect=None, **QUICK))
    assert "too narrow" not in remarks(gp4c.GP4C(effect="gamma", **QUICK))
    assert "bound (b = 0.3) is loose" in remarks(gp4c.GP4CW(n_inducing=12))
    assert "no predictions" in remarks(gp4c.GP4CW(n_inducing=12))
    assert "bootstrap" in remarks(gp4c.NPMLE())
    bootstrapped = gp4c.NPMLE().fit(visits).bootstrap(3, random_state=0)
    assert "bootstrap(200)" not in " ".join(summarise(bootstrapped).remarks)
    assert summarise(bootstrapped)["bands"].value == 3


def test_a_fit_that_did_not_converge_says_so(visits):
    with pytest.warns(gp4c.exceptions.ConvergenceWarning):
        model = gp4c.LocalEM(bandwidth=0.2, max_iter=1).fit(visits)
    summary = summarise(model)
    assert summary["converged"].text.startswith("NO")
    assert summary.remarks[0].startswith("the fit did not converge")


def test_subjects_that_differ_a_great_deal_are_pointed_out():
    counts = [40] + [0] * 9
    panel = gp4c.PanelCounts.from_frame(
        {"subject": range(10), "start": [0] * 10, "stop": [1] * 10, "count": counts}
    )
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    assert any("differ a great deal" in remark for remark in summarise(model).remarks)


def test_the_html_is_escaped(visits):
    attack = "<img src=x onerror=alert(1)>"
    panel = gp4c.PanelCounts.from_frame(visits.to_frame(), time_unit=attack)
    html = summarise(gp4c.HomogeneousPoisson().fit(panel))._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_an_unfitted_model_has_no_summary():
    with pytest.raises(NotFittedError):
        summarise(gp4c.GP4C())


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(0.123456), "0.123"),
        (number(1234.5), "1,234"),
        (number(12.0), "12"),
        (estimate(12.0), "12.0"),
        (estimate(123.4), "123"),
        (estimate(0.5), "0.500"),
        (estimate(0.0), "0"),
        (number(1e-7), "1.00e-07"),
        (number(float("inf")), "∞"),
        (number(float("nan")), "not defined"),
        (percent(0.95), "95%"),
        (percent(0.995), "99.5%"),
        (per("months"), "per month"),
        (per(None), "per unit of time"),
        (duration(1.0, "months"), "1 month"),
        (duration(6.24, "weeks"), "6.2 weeks"),
        (duration(2.0, None), "2 units of time"),
        (moment(5.0, None), "time 5"),
        (moment(5.0, "days"), "5 days"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (listed(["a"]), "a"),
    ],
)
def test_numbers_and_units_as_people_write_them(shown, expected):
    assert shown == expected
