"""Forecasts by date where time is counted from entry: every unit at its own age."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import PanelDataError

ZERO = pd.Timestamp("2020-03-10")
#: days after ZERO on which units enter, and on which the second one is retired
ENTRY, RETIRED = np.array([0.0, 200.0, 500.0]), 650.0


def visits():
    rows = []
    for unit, entry in enumerate(ENTRY):
        last = RETIRED if unit == 1 else 700.0
        for k, day in enumerate(np.linspace(entry, last, 6)):
            gone = ZERO + pd.Timedelta(days=RETIRED) if unit == 1 else None
            rows.append((unit, ZERO + pd.Timedelta(days=day), k * (unit + 1), gone))
    return pd.DataFrame(rows, columns=["subject", "time", "count", "gone"])


@pytest.fixture(scope="module")
def panel():
    return gp4c.PanelCounts.from_visits(
        visits(), origin=None, since_entry=True, time_unit="days", end="gone"
    )


@pytest.fixture(scope="module")
def model(panel):
    return gp4c.PowerLaw().fit(panel)


def expected(model, start, stop):
    """Expected events of units from a day to a day after ZERO, from the curve by age."""
    ages = [np.maximum(day - ENTRY, 0.0) for day in (start, stop)]
    return np.subtract(*(model.cumulative(age, extrapolate=True) for age in ages[::-1]))


def day(number):
    return (ZERO + pd.Timedelta(days=number)).date().isoformat()


def test_dates_take_each_unit_at_its_own_age(model):
    found = model.forecast(day(720), day(820), n_draws=2000)
    assert found.subjects == "active"
    means = expected(model, 720, 820)
    assert_allclose(found.mean, means[[0, 2]].sum(), rtol=0.02)  # averaged over parameters
    several = model.forecast(day(720), day(820), subjects="all", each=True, n_draws=2000)
    assert_allclose(several.mean, means, rtol=0.02)
    assert "2 of 3 subjects are in service" in found.note
    assert "Each subject is at its own age on these dates, 220 to 820 days" in found.note
    row = found.to_frame().iloc[0]
    assert (row["start_date"], row["stop_date"]) == (day(720), day(820))
    same = model.forecast(720, 820, n_draws=2000)
    assert "all 2 subjects are put at the same age, 720 to 820 days; dates put" in same.note
    assert not np.isclose(same.mean, found.mean, rtol=0.02)


def test_months_of_the_calendar_add_up_and_new_units_begin_at_age_0(model):
    months = model.forecast(day(720), day(900), every="month", n_draws=500)
    assert months.to_frame()["start_date"].str[-2:].nunique() == 1
    whole = model.forecast(day(720), day(900), n_draws=500)
    assert_allclose(months.mean.sum(), whole.mean, rtol=0.02)
    more = model.forecast(day(720), day(900), new_units=4, at=day(800), n_draws=500)
    new = 4 * model.cumulative(100.0, extrapolate=True)
    assert_allclose(more.mean - whole.mean, new, rtol=0.05)
    assert f"4 from {day(800)} on" in more.note


def test_nothing_counts_before_entry_or_after_retirement(model):
    found = model.forecast(day(100), day(600), n_draws=2000)
    assert_allclose(found.mean, expected(model, 100, 600).sum(), rtol=0.02)
    assert "2 subjects were first seen after the window begins" in found.note
    assert "up to there it is a repetition of the past" in found.note
    late = model.forecast(day(600), day(700), subjects="active", n_draws=2000)
    truth = expected(model, 600, 700)
    truth[1] = expected(model, 600, RETIRED)[1]
    assert_allclose(late.mean, truth.sum(), rtol=0.02)


def test_what_is_not_asked_for_so_is_refused(model, panel):
    with pytest.raises(PanelDataError, match="both dates or both times since entry; found 700 and"):
        model.forecast(700, day(800))
    with pytest.raises(PanelDataError, match="new subject are counted from its entry: give num"):
        model.forecast(day(700), day(800), subjects=None)
    with pytest.raises(PanelDataError, match="at= says when new units enter"):
        model.forecast(day(700), day(800), at=day(720))
    plain = gp4c.PanelCounts.from_frame(
        {"subject": [0], "start": [0], "stop": [5], "count": [1]}, time_unit="days"
    )
    with pytest.raises(PanelDataError, match="does not say when its subjects entered: read it"):
        model.forecast(day(700), day(800), history=plain)
    numbers = gp4c.HomogeneousPoisson().fit(plain)
    with pytest.raises(PanelDataError, match="numbers, not dates"):
        numbers.forecast(day(700), day(800))


def test_units_in_service_do_not_count_before_they_are_seen():
    rows = {"subject": ["a", "b"], "start": [0, 60], "stop": [100, 100], "count": [20, 8]}
    model = gp4c.HomogeneousPoisson().fit(gp4c.PanelCounts.from_frame(rows))
    found = model.forecast(40, 80, subjects="active")
    assert_allclose(found.mean, model.rate_ * (40 + 20))
    assert "1 subject was first seen after the window begins, and counts from then on" in found.note
