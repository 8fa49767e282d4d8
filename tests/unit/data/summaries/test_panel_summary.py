"""Panel summaries: figures counted by hand, overdispersion against simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.summaries.panel_summary import overdispersion


@pytest.fixture
def panel():
    return gp4c.PanelCounts.from_frame(
        {
            "subject": ["a", "a", "b", "c", "c"],
            "start": [0, 2, 1, 0, 5],
            "stop": [2, 4, 4, 2, 6],
            "count": [0, 3, 0, 1, 0],
            "units": [1, 1, 2, 4, 1],
            "arm": ["x", "x", "y", "y", "y"],
            "dose": [1, 2, 1, 1, 1],
        },
        exposure="units",
        time_unit="weeks",
    )


def test_figures(panel):
    summary = panel.summary()
    expected = {
        "subjects": 3,
        "intervals": 5,
        "distinct intervals": 4,
        "distinct end points": 6,
        "intervals per subject": "2 (from 1 to 2)",
        "interval length": "2 (from 1 to 3)",
        "window": "(0, 6)",
        "time unit": "weeks",
        "events": 4,
        "time observed": 10.0,
        "exposure": 2 + 2 + 6 + 8 + 1,
        "rate": 4 / 19,
        "share of zero counts": 0.6,
        "largest count": 3,
        "subjects without events": 1,
        "subject totals, mean": 4 / 3,
        "subject totals, variance": ((3 - 4 / 3) ** 2 + (4 / 3) ** 2 + (1 / 3) ** 2) / 2,
        "gaps": 1,
        "subjects with gaps": 1,
        "late entries": 1,
        "covariates": "arm",
        "interval covariates": "dose",
    }
    for name, value in expected.items():
        assert summary[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_overdispersion_is_pearsons_statistic_per_degree_of_freedom(panel):
    rate = 4 / 19
    expected = sum((m - rate * r) ** 2 / (rate * r) for m, r in [(3, 4), (0, 6), (1, 9)]) / 2
    assert panel.summary()["overdispersion"] == pytest.approx(expected, rel=1e-14)


def test_unequal_follow_up_alone_is_not_overdispersion():
    random = np.random.default_rng(0)
    risk = random.uniform(0.1, 20, 4000)
    totals = random.poisson(2.0 * risk)
    # X²/df has standard deviation of about sqrt(2/4000) = 0.022 here
    assert overdispersion(totals, risk) == pytest.approx(1.0, abs=0.1)
    frailty = random.gamma(2.0, 0.5, 4000)
    expected = 1 + 0.5 * 2.0 * np.mean(risk)  # variance over mean of a Poisson-gamma count
    assert overdispersion(random.poisson(2.0 * risk * frailty), risk) == pytest.approx(
        expected, rel=0.2
    )


def test_overdispersion_needs_events_and_two_subjects(panel):
    assert math.isnan(panel[0].summary()["overdispersion"])
    assert math.isnan(panel[1].summary()["overdispersion"])
    assert "not defined" in str(panel[1].summary())


def test_only_large_overdispersion_is_remarked_upon():
    remark = "vary 11.1 times as much as equal rates would explain"
    assert remark in str(gp4c.load_dataset("bladder").summary())
    random = np.random.default_rng(1)
    even = gp4c.PanelCounts.from_frame(
        {"subject": range(50), "start": [0] * 50, "stop": [1] * 50, "count": random.poisson(3, 50)}
    )
    assert even.summary().remarks == ()
    two = even[[int(np.argmin(even.count)), int(np.argmax(even.count))]]
    assert two.summary()["overdispersion"] > 1.5
    assert two.summary().remarks == ()  # two subjects prove nothing


def test_summary_prints_as_a_table_and_gives_a_frame(panel):
    summary = panel.summary()
    text = str(summary)
    assert text.splitlines()[0] == "Panel of 3 subjects (rate per week)"
    assert any(line.split() == ["events", "4"] for line in text.splitlines())
    assert "Note: column 'dose' varies within subjects, such as" in text
    assert repr(summary) == text
    frame = summary.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["quantity", "value"]
    assert dict(zip(frame["quantity"], frame["value"], strict=True))["events"] == 4


def test_html_of_summaries_is_escaped():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1], "start": [0], "stop": [1], "count": [1], "<b>": [1]}, time_unit="<i>"
    )
    html = panel.summary()._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<i>" not in html


def test_the_origin_of_dates_is_shown():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1], "start": ["2024-01-01"], "stop": ["2024-02-01"], "count": [1]}
    )
    assert panel.summary()["time 0"] == "2024-01-01"


def test_numbers_are_short_whatever_the_unit():
    dates = {"start": ["2022-01-04"] * 3, "stop": ["2022-03-30", "2022-04-01", "2023-07-09"]}
    rows = {"subject": [1, 2, 3], "count": [1, 2, 0], "hours": [21.7, 9000.3, 14.2], **dates}
    panel = gp4c.PanelCounts.from_frame(pd.DataFrame(rows), exposure="hours", time_unit="months")
    said = dict(panel.summary().texts())
    assert said["interval length"] == "2.858 (from 2.793 to 18.1)"
    assert said["window"] == "2022-01-04 to 2023-07-09 (months 0 to 18.1)"
    assert "window 2022-01-04 to 2023-07-09 (months 0 to 18.1)>" in repr(panel)
    assert said["time 0"] == "2022-01-04"
    assert said["exposure"] == "26,043"
    long = gp4c.PanelCounts.from_frame(
        {"subject": [1], "start": [0.5], "stop": [12345.678], "count": [3]}
    )
    assert dict(long.summary().texts())["window"] == "(0.5, 12346)"
