"""What a summary says of unusual fits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import GP4CWarning
from gp4c.reporting.figures.curves import curves_of
from gp4c.reporting.figures.panel_picture import label_step
from gp4c.reporting.figures.subject_plots import _effect_of
from gp4c.reporting.fit_rows import compression_text
from gp4c.reporting.remarks import warnings_of
from gp4c.reporting.summary import summarise
from gp4c.reporting.summary_rows import _result_rows
from gp4c.reporting.words import moment, point, span, when

SIZES = {"n_rows": 12_000, "n_intervals": 400, "error": 2e-5, "relative_error": 3e-9}


def test_rows_that_are_kept_exactly_are_said_to_be():
    text = compression_text({"method": "distinct", **SIZES})
    assert text == "12,000 rows as 400 different intervals, exactly"


def test_nodes_are_said_with_their_error():
    text = compression_text({"method": "nodes", **SIZES})
    assert "400 weighted intervals" in text
    assert "within 2e-05 of those of the rows" in text


@pytest.fixture(scope="module")
def quiet():
    frame = {"subject": [1, 2], "start": [0, 0], "stop": [5, 8], "count": [0, 0]}
    panel = gp4c.PanelCounts.from_frame(frame)
    return gp4c.GP4C(effect=None, count_term="exact", n_inducing=4).fit(panel)


def test_without_events_the_curve_is_called_an_upper_limit(quiet):
    assert "there were no events: the curve is an upper limit set by a weak prior" in list(
        warnings_of(quiet)
    )


def test_rows_that_an_estimator_cannot_use_are_counted():
    frame = {"subject": [1, 1, 2], "start": [0, 4, 0], "stop": [2, 6, 8], "count": [1, 3, 2]}
    with pytest.warns(GP4CWarning, match=r"1 of 3 rows \(1 subject\)"):
        model = gp4c.NPMPLE().fit(gp4c.PanelCounts.from_frame(frame))
    assert model.n_left_out_ == 1
    said = [text for text in warnings_of(model) if "not used" in text]
    assert said == ["1 row after a late entry, a gap or a change of exposure was not used"]


def test_curves_that_stop_early_are_not_taken_for_the_end(quiet):
    curves = curves_of(quiet)
    short = replace(
        curves,
        times=curves.times[:-1],
        cumulative=curves.cumulative[:-1],
        cumulative_bands={0.95: tuple(end[:-1] for end in curves.cumulative_bands[0.95])},
    )
    assert next(_result_rows(quiet, 0.95, short)) == next(_result_rows(quiet, 0.95, None))


@pytest.mark.parametrize("height", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 7, 900, 10**7])
def test_labels_of_subjects_fit_into_the_picture(n, height):
    step = label_step(n, height)
    assert (str(step).rstrip("0") or "1") in ("1", "2", "5")
    taller = label_step(n, 10 * height)
    assert taller <= step
    assert taller < step or step == 1


def test_a_model_without_effects_has_the_effect_one(quiet):
    frame = {"subject": [1, 2], "start": [0, 0], "stop": [5, 8], "count": [0, 0]}
    panel = gp4c.PanelCounts.from_frame(frame)
    assert quiet.subject_effects_ is None
    assert _effect_of(quiet, panel, 0) == 1.0
    assert np.isfinite(quiet.cumulative(8.0))


# -- crude rates ---------------------------------------------------------------------------------


def crude(model):
    return [row for row in summarise(model).rows if row.quantity == "crude rate"]


def panel_of(stops, counts, starts=0.0, **more):
    frame = {"subject": np.arange(len(stops)), "start": starts, "stop": stops, "count": counts}
    return gp4c.PanelCounts.from_frame(
        pd.DataFrame(frame | more), time_unit="months", window=(0, 10)
    )


def test_a_crude_rate_is_said_where_those_observed_longer_had_other_rates():
    panel = panel_of([1.0] * 8 + [10.0] * 8, [3] * 16)
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    (row,) = crude(model)
    assert row.value == pytest.approx(48 / 88)
    assert row.value < model.rate_ / 1.1
    assert row.text == (
        "0.545 per month (events by time at risk), lower because subjects who were observed "
        "longer had lower rates, and each counts once in a mean"
    )
    other = gp4c.HomogeneousPoisson(effect="gamma").fit(
        panel_of([1.0] * 40 + [10.0] * 4, [0, 1] * 20 + [60] * 4)
    )
    said = "higher because subjects who were observed longer had higher rates"
    assert said in crude(other)[0].text


def test_a_crude_rate_is_said_where_few_were_there_to_see_low_rates():
    early, late = panel_of([2.0] * 30, [8] * 30), ([2.0] * 6, [10.0] * 6, [2] * 6)
    rows = pd.concat(
        [
            early.to_frame(),
            pd.DataFrame(
                {"subject": range(6), "start": late[0], "stop": late[1], "count": late[2]}
            ),
        ]
    )
    panel = gp4c.PanelCounts.from_frame(rows, time_unit="months")
    model = gp4c.GP4C(effect=None, hyper="optimize", count_term="pointwise").fit(panel)
    (row,) = crude(model)
    assert row.value == pytest.approx((240 + 12) / (60 + 48))
    assert row.text.endswith("higher because more of the time at risk is where the rate is high")


def test_a_crude_rate_that_says_the_same_is_left_out(quiet):
    same = gp4c.HomogeneousPoisson(effect="gamma").fit(panel_of([10.0] * 6, [1, 2, 3, 1, 9, 0]))
    assert crude(same) == []
    assert crude(quiet) == []  # no events


def test_a_crude_rate_is_not_that_of_average_covariates():
    panel = panel_of([10.0] * 12, [1, 30] * 6, dose=[0.0, 1.0] * 6)
    model = gp4c.GP4C(formula="dose", effect=None, bursts=False).fit(panel)
    assert crude(model)[0].text.endswith("higher because the average is that of average covariates")


def test_times_of_a_calendar_have_dates(quiet):
    frame = {"subject": [1], "start": ["2024-01-01"], "stop": ["2024-04-10"], "count": [5]}
    dated = gp4c.HomogeneousPoisson().fit(gp4c.PanelCounts.from_frame(frame))
    assert when(40.0, TimeAxis.of(dated)) == "2024-02-10"
    assert span(31.0, 40.0, TimeAxis.of(dated)) == "2024-02-01 to 2024-02-10"
    assert when(4.0, TimeAxis.of(quiet)) == "time 4"
    assert summarise(dated)["window"].text == "2024-01-01 to 2024-04-10 (days 0 to 100)"


def test_years_are_points_in_time_not_amounts():
    assert [point(t) for t in (1963, 1963.25, 12, 0.5, 12345)] == [
        "1963", "1963.2", "12", "0.5", "12345",
    ]  # fmt: skip
    assert [moment(t, "years") for t in (1963.0, 12.0)] == ["1963", "12 years"]
    panel, _ = gp4c.simulate_panel(
        0.4, window=(1963, 1990), n_subjects=8, n_intervals=3, time_unit="years", random_state=1
    )
    text = str(gp4c.HomogeneousPoisson().fit(panel).summary())
    assert "window                  1963 to 1990 years" in text
    assert "by 1990, per subject" in " ".join(text.split())
    assert "1,9" not in text


def test_a_curve_that_a_constant_fits_is_called_flat():
    flat, _ = gp4c.simulate_panel(
        0.4, window=(0, 20), n_subjects=15, n_intervals=10, time_unit="weeks", random_state=1
    )
    model = gp4c.GP4C(effect=None, bursts=False).fit(flat)
    row = summarise(model)["length scale"]
    assert row.text.startswith("the curve is flat within its band: a constant rate of")
    assert row.value == model.length_scale_
    said = float(row.text.split("rate of ")[1].split()[0])
    low, high = model.intensity_band(np.linspace(0, 20, 51))
    assert low.max() <= said <= high.min()
    steep, _ = gp4c.simulate_panel(
        lambda t: 0.1 + 1.5 * (t > 10), window=(0, 20), n_subjects=30, n_intervals=6,
        time_unit="weeks", random_state=1,
    )  # fmt: skip
    row = summarise(gp4c.GP4C(effect=None, bursts=False).fit(steep))["length scale"]
    assert row.text.startswith("the rate varies on a scale of about")
