"""Forecasts: closed forms where the curve is known, sums and mixtures where it is not."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.count_forecast import forecast
from gp4c.estimators.forecasts.forecast_words import window_text
from gp4c.exceptions import NotFittedError, PanelDataError
from tolerances import ROUNDING, STANDARD_ERRORS


@pytest.fixture(scope="module")
def panel():
    return gp4c.simulate_panel(
        0.1, window=(0, 40), n_subjects=30, n_intervals=4, frailty=("gamma", 1.5), dropout=0.01,
        time_unit="months", random_state=2,
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def smooth(panel):
    return gp4c.GP4C(effect="gamma", bursts=False).fit(panel)


@pytest.fixture(scope="module")
def constant(panel):
    return gp4c.HomogeneousPoisson(effect="gamma").fit(panel)


def follows(draws, cdf, at):
    """Whether empirical probabilities agree with a distribution function at some counts."""
    p = cdf(at)
    error = np.sqrt(p * (1 - p) / len(draws)) + 1 / len(draws)
    return np.all(np.abs((draws[:, None] <= at).mean(axis=0) - p) < STANDARD_ERRORS * error)


def test_a_constant_rate_gives_poisson_counts(panel):
    model = gp4c.HomogeneousPoisson().fit(panel)
    new = forecast(model, 10, 30, exposure=2.0)
    law = stats.poisson(2 * 20 * model.rate_)
    assert follows(new.draws, law.cdf, np.arange(10))
    assert_allclose(new.mean, law.mean(), **ROUNDING)
    fleet = forecast(model, 40, 45, subjects="all")
    law = stats.poisson(5 * model.rate_ * panel.n_subjects)
    assert follows(fleet.draws, law.cdf, np.arange(0, 40, 3))
    assert fleet.quantile(0.5) == law.ppf(0.5)


def test_with_frailty_known_subjects_have_negative_binomial_counts(constant, panel):
    alpha, rate = constant.frailty_shape_, constant.rate_
    new = forecast(constant, 0, 20)
    mean = 20 * rate
    assert follows(new.draws, stats.nbinom(alpha, alpha / (alpha + mean)).cdf, np.arange(12))
    label = panel.subjects[3]
    own = panel[3]
    shape = alpha + own.n_events
    seen = alpha + rate * (own.stop - own.start).sum()
    law = stats.nbinom(shape, seen / (seen + rate * 12))
    known = forecast(constant, 40, 52, subjects=label)
    assert follows(known.draws, law.cdf, np.arange(10))
    assert_allclose(known.mean, law.mean(), rtol=1e-9)


def test_the_stored_subjects_and_the_panel_say_the_same(constant, smooth, panel):
    labels = panel.subjects[:4].tolist()
    stored = forecast(constant, 40, 50, subjects=labels)
    given = forecast(constant, 40, 50, subjects=labels, history=panel)
    assert_allclose(stored.mean, given.mean, rtol=1e-9)
    # with an uncertain curve the panel also tells how effect and curve hang together
    stored = forecast(smooth, 20, 30, subjects=labels)
    given = forecast(smooth, 20, 30, subjects=labels, history=panel)
    assert_allclose(stored.mean, given.mean, rtol=0.1)


def test_smooth_forecasts_match_a_simulation_written_out(smooth, panel):
    size, rng = 4000, np.random.default_rng(9)
    own = panel[[0, 5]]
    n_rows = own.n_intervals
    start, stop = np.append(own.start, 38.0), np.append(own.stop, 50.0)
    integrals = smooth.posterior_.sample_integrals(start, stop, size, rng)
    alpha, totals, counts = smooth.frailty_shape_, [], []
    for k in (0, 1):
        rows = np.flatnonzero(own.subject_index == k)
        expected = integrals[:, :n_rows][:, rows].sum(axis=1)
        effect = rng.gamma(alpha + own.count[rows].sum(), 1 / (alpha + expected))
        counts.append(rng.poisson(effect * integrals[:, -1]))
    totals = counts[0] + counts[1]
    ours = forecast(smooth, 38, 50, subjects=panel.subjects[[0, 5]].tolist(), history=panel)
    for k in (0, 1):
        error = ours.draws[:, k].std() * np.sqrt(1 / size + 1 / len(ours.draws))
        assert abs(ours.draws[:, k].mean() - counts[k].mean()) < STANDARD_ERRORS * error
        assert abs(ours.mean[k] - counts[k].mean()) < STANDARD_ERRORS * error
    fleet = forecast(smooth, 38, 50, subjects="all", history=own)
    assert stats.ks_2samp(fleet.draws, totals).pvalue > 1e-3


def test_the_fleet_is_the_sum_with_its_dependence(smooth, panel):
    labels = panel.subjects.tolist()
    each = forecast(smooth, 40, 60, subjects=labels, history=panel)
    fleet = forecast(smooth, 40, 60, subjects="all", history=panel)
    assert_allclose(fleet.mean, each.mean.sum(), rtol=0.03)
    total = each.draws.sum(axis=1)
    assert_allclose(fleet.draws.std(), total.std(), rtol=0.05)
    # the shared curve makes the sum more variable than independent subjects would be
    assert fleet.draws.std() > 1.3 * np.sqrt(each.draws.var(axis=0).sum())


def test_a_repeat_of_the_whole_study_is_as_uncertain_as_counts_make_it():
    # the fleet's total rate is known from its N events: a repeat has variance N + N, however
    # strong the frailty, because a curve that is too high goes with effects that are too low
    panel = gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), window=(0, 50), n_subjects=60, n_intervals=6,
        frailty=("gamma", 1.2),
        random_state=101,
    )[0]  # fmt: skip
    model = gp4c.GP4C(count_term="pointwise", effect="gamma").fit(panel)
    repeat = forecast(model, 0, 50, subjects="all", history=panel)
    assert_allclose(repeat.mean, panel.n_events, rtol=0.01)
    assert_allclose(repeat.draws.std(), np.sqrt(2 * panel.n_events), rtol=0.05)


def test_windows_add_up(smooth):
    both = forecast(smooth, [0, 15], [15, 33])
    whole = forecast(smooth, 0, 33)
    assert_allclose(both.mean.sum(), whole.mean, rtol=1e-8)
    assert both.draws.shape == (len(whole.draws), 2)
    # one subject's frailty is in both windows
    assert np.corrcoef(both.draws.T)[0, 1] > 0.2
    assert_allclose(whole.mean, smooth.expected_counts(0, 33), rtol=1e-9)


def test_beyond_the_window_it_says_how_it_goes_on(smooth, constant):
    assert forecast(smooth, 10, 20).note == ""
    back = forecast(smooth, 40, 45)
    held = forecast(smooth, 40, 45, beyond="hold")
    assert "returns from its value at the end" in back.note
    assert 'beyond="hold"' in back.note
    assert "held at its value at the end" in held.note
    assert_allclose(held.mean, 5 * smooth.intensity(40.0), rtol=1e-9)
    far = forecast(smooth, 400, 410, n_draws=9).mean / 10
    assert_allclose(far, smooth.posterior_.long_run_rate, rtol=1e-6)
    assert "its error is left out" in forecast(constant, 10, 20).note


def test_rates_are_per_unit_of_the_data(smooth, panel):
    for beyond in ("prior", "hold"):
        assert " per month" in forecast(smooth, 40, 45, beyond=beyond).note
    unnamed = gp4c.GP4C(count_term="pointwise", hyper="optimize", effect=None).fit(
        gp4c.PanelCounts.from_frame(panel.to_frame())
    )
    assert "per unit of time" in forecast(unnamed, 40, 45).note


def test_what_is_past_is_said_of_those_who_were_observed(smooth, constant, panel):
    past = "before the end of what was observed, "
    assert past not in forecast(smooth, 0, 12).note  # a new subject begins at 0
    assert past not in forecast(smooth, 40, 45, subjects="all").note
    assert f"{past}40 months: up to" in forecast(smooth, 30, 45, subjects="all").note
    left = panel[int(np.argmin([panel[k].stop.max() for k in range(panel.n_subjects)]))]
    end = float(left.stop.max())
    assert end < 35
    label = left.subjects[0]
    assert past not in forecast(smooth, 35, 45, subjects=label).note
    assert past in forecast(smooth, end - 1, 45, subjects=label).note
    assert past in forecast(constant, 39, 45, subjects="all").note


@pytest.fixture(scope="module", params=["constant", "smooth"])
def dated(request):
    table = {
        "id": ["a", "a", "b"],
        "from": ["2024-01-01", "2024-02-01", "2024-01-15"],
        "to": ["2024-02-01", "2024-04-01", "2024-04-10"],
        "n": [2, 1, 3],
    }
    names = {"subject": "id", "start": "from", "stop": "to", "count": "n"}
    data = gp4c.PanelCounts.from_frame(pd.DataFrame(table), **names)
    if request.param == "constant":
        return gp4c.HomogeneousPoisson().fit(data)
    return gp4c.GP4C(count_term="pointwise", hyper="optimize", effect=None).fit(data)


@pytest.mark.parametrize("kind", [str, pd.Timestamp, dt.date.fromisoformat, np.datetime64])
def test_windows_may_be_dates(dated, kind):
    found = forecast(dated, kind("2024-04-10"), kind("2024-05-10"))
    assert (found.start[0], found.stop[0]) == (100.0, 130.0)
    assert found.mean == forecast(dated, 100, 130).mean
    assert "events from 2024-04-10 to 2024-05-10 (days 100 to 130), a new" in str(found)
    row = found.to_frame().iloc[0]
    assert (row["start_date"], row["stop_date"]) == ("2024-04-10", "2024-05-10")


def test_several_dates_are_a_table_of_dates(dated):
    days = ["2024-04-10", "2024-04-20"]
    found = forecast(dated, days, "2024-05-10", subjects=["b", "a"], each=True)
    assert found.start.tolist() == [100.0, 110.0]
    lines = str(found).splitlines()
    assert lines[0].split() == [
        "subject",
        "start_date",
        "stop_date",
        "mean",
        "median",
        "low",
        "high",
    ]
    assert lines[5].strip() == "90% intervals"
    assert lines[6].startswith("In all ")
    assert max(map(len, lines[:6])) <= 80


def test_a_new_subject_in_the_calendar_has_a_past_too(dated):
    note = forecast(dated, "2024-04-01", "2024-05-10").note
    assert "before the end of what was observed, 2024-04-10: up to" in note
    assert "before the end" not in forecast(dated, "2024-04-10", "2024-05-10").note
    assert "2024-01-01 to 2024-04-10 (days 0 to 100)" in note


def test_curves_may_be_asked_at_dates(dated):
    days = np.array(["2024-01-11", "2024-03-01"], dtype="datetime64[D]")
    assert_allclose(dated.intensity(days), dated.intensity([10.0, 60.0]))
    assert dated.cumulative("2024-03-01") == dated.cumulative(60)
    assert dated.expected_counts("2024-01-11", "2024-03-01") == dated.expected_counts(10, 60)
    with pytest.raises(PanelDataError, match="not a date: 'March'"):
        dated.cumulative("March")
    page = forecast(dated, 100, 130)._repr_html_()
    assert "<td>2024-04-10 to 2024-05-10</td>" in page


def test_dates_survive_a_file(dated, tmp_path):
    dated.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    assert again.time_origin_ == dated.time_origin_ == "2024-01-01T00:00:00.000000"
    assert str(forecast(again, "2024-04-10", "2024-05-10")) == str(forecast(dated, 100, 130))


def test_dates_need_data_with_dates(constant):
    with pytest.raises(PanelDataError, match="times are numbers, not dates; found '2024-04-10'"):
        forecast(constant, "2024-04-10", "2024-05-10")
    with pytest.raises(PanelDataError, match="times are numbers, not dates; found '2024-04-10'"):
        constant.cumulative("2024-04-10")


def test_shapes_tables_and_words(smooth, panel):
    a, b = panel.subjects[:2].tolist()
    one = forecast(smooth, 40, 45, subjects=a)
    assert isinstance(one.mean, float)
    assert isinstance(one.interval[0], int)
    assert f"subject {a}; 90%" in str(one)
    assert str(forecast(smooth, 40, 45, subjects=[a])) == str(one)  # one is a sentence
    many = forecast(smooth, [40, 45], [45, 50], subjects=[b, a], level=0.8, each=True)
    assert many.mean.shape == many.interval[0].shape == many.quantile(0.3).shape == (2, 2)
    table = many.to_frame()
    assert table["subject"].tolist() == [b, b, a, a]
    assert table["start"].tolist() == [40, 45, 40, 45]
    assert_allclose(table["mean"], many.mean.ravel())
    assert (table["low"] <= table["median"]).all()
    assert (table["median"] <= table["high"]).all()
    fleet = forecast(smooth, 40, 45, subjects="all")
    low, high = fleet.interval
    assert str(fleet).startswith(f"{fleet.mean:.0f} ({low}–{high}) events in (40, 45] months, all")
    assert repr(fleet) == str(fleet)
    assert fleet.to_frame()["subject"].tolist() == ["all"]
    assert low <= fleet.mean <= high
    inside = (fleet.draws >= low) & (fleet.draws <= high)
    assert inside.mean() >= 0.9
    assert fleet.probability(high) >= 0.95 > fleet.probability(high - 1)


def test_the_same_call_gives_the_same_numbers(smooth):
    one, two = forecast(smooth, 40, 50), forecast(smooth, 40, 50)
    assert np.array_equal(one.draws, two.draws)
    other = forecast(smooth, 40, 50, random_state=1)
    assert not np.array_equal(one.draws, other.draws)


def test_exposure_of_each_subject(constant, panel):
    units = np.linspace(0.0, 2.0, panel.n_subjects)
    plain = forecast(constant, 40, 50, subjects=panel.subjects.tolist(), exposure=1.0)
    scaled = forecast(constant, 40, 50, subjects=panel.subjects.tolist(), exposure=units)
    assert_allclose(scaled.mean, units * plain.mean, rtol=1e-9)
    assert np.all(scaled.draws[:, 0] == 0)


def test_free_weights_are_used_for_fitted_subjects(panel):
    model = gp4c.GP4CW(count_term="pointwise").fit(panel)
    labels = panel.subjects.tolist()
    known = forecast(model, 10, 20, subjects=labels)
    expected = model.subject_effects_ * model.expected_counts(10, 20)
    assert_allclose(known.mean, expected, rtol=1e-9)
    new = forecast(model, 10, 20)
    assert_allclose(new.mean, expected.mean(), rtol=1e-6)
    with pytest.raises(ValueError, match="history= needs gamma effects"):
        forecast(model, 10, 20, subjects="all", history=panel)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"start": 5, "stop": 4}, "each stop must not be before its start"),
        ({"start": 0, "stop": np.inf}, "finite"),
        ({"start": [[0]], "stop": 1}, "one-dimensional"),
        ({"start": 0, "stop": 1, "level": 1.0}, "level must be between 0 and 1"),
        (
            {"start": 0, "stop": 1, "beyond": "flat"},
            "beyond must be 'auto', 'prior', 'hold'",
        ),
        ({"start": 0, "stop": 1, "exposure": [1, 2]}, "one per subject"),
        ({"start": 0, "stop": 1, "exposure": -1}, "not be negative"),
        ({"start": 0, "stop": 1, "n_draws": 0}, "n_draws"),
    ],
)
def test_bad_questions_are_refused(constant, call, message):
    with pytest.raises(ValueError, match=message):
        forecast(constant, **call)


def test_unknown_subjects_and_unfitted_models_are_refused(constant):
    with pytest.raises(KeyError, match="no subject 'nobody'"):
        forecast(constant, 0, 1, subjects="nobody")
    with pytest.raises(NotFittedError):
        forecast(gp4c.GP4C(), 0, 1)


@pytest.mark.parametrize(
    ("stop", "said"),
    [(18.0, "18"), (13.930184804928132, "13.93"), (0.00012345, "0.0001234"), (1234.5678, "1235"),
     (123456.0, "123456")],
)  # fmt: skip
def test_times_are_written_as_people_do(stop, said):
    assert window_text(0.0, stop, TimeAxis("months")) == f"(0, {said}] months"


# -- exposures -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machines():
    """Two machines whose hours per day change, and one that runs around the clock."""
    rows = {
        "subject": ["a", "a", "b", "b", "c"],
        "start": [0.0, 5.0, 0.0, 4.0, 0.0],
        "stop": [5.0, 10.0, 4.0, 10.0, 10.0],
        "count": [2, 3, 1, 1, 9],
        "hours": [8.0, 16.0, 8.0, 4.0, 24.0],
        "load": [1.0, 1.0, 0.0, 0.0, 2.0],
    }
    return gp4c.PanelCounts.from_frame(pd.DataFrame(rows), exposure="hours", time_unit="days")


@pytest.mark.parametrize("formula", [None, "load"])
def test_known_subjects_may_keep_their_last_exposure(machines, formula):
    model = gp4c.GP4C(effect="gamma", formula=formula).fit(machines)
    kept = forecast(model, 10, 12, subjects=["c", "a", "b"], exposure="last")
    said = forecast(model, 10, 12, subjects=["c", "a", "b"], exposure=[24.0, 16.0, 4.0])
    assert_allclose(kept.mean, said.mean, rtol=1e-9)
    assert "Exposure is as last observed, 4 to 24." in kept.note
    assert "Exposure" not in said.note
    alone = forecast(model, 10, 12, subjects="b", exposure="last")
    assert "Exposure is as last observed, 4." in alone.note
    assert_allclose(alone.mean, said.mean[2], rtol=1e-9)


def test_an_exposure_that_nobody_chose_is_said(machines, panel, constant):
    model = gp4c.HomogeneousPoisson().fit(machines)
    average = (8 * 5 + 16 * 5 + 8 * 4 + 4 * 6 + 24 * 10) / 30
    assert (
        f"Exposure is 1; in the data it was {average:.3g} on average."
        in forecast(model, 10, 12).note
    )
    assert "Exposure" not in forecast(model, 10, 12, exposure=8.0).note
    assert "Exposure" not in forecast(constant, 40, 45).note
    with pytest.raises(ValueError, match='or "last" for known subjects'):  # nobody is known
        forecast(model, 10, 12, exposure="last")
    fleet = forecast(model, 10, 12, subjects="all")  # known subjects go on as they were last
    assert_allclose(fleet.mean, model.rate_ * 2 * (16 + 4 + 24), **ROUNDING)
    assert fleet.note.startswith("Exposure is as last observed, 4 to 24.")
