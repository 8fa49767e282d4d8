"""Every number of the guide to fleets agrees with the truth that its records were drawn from."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "fleet.md"
RATE = 0.004


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What the examples of the page leave behind."""
    mpl.use("agg")
    text = GUIDE.read_text(encoding="utf-8")
    left = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fleet"))
        for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            exec(compile(code, str(GUIDE), "exec"), left)
    return left


@pytest.fixture(scope="module")
def active(page):
    return np.isnan(page["panel"].end)


def test_the_rate_per_hour_is_found(page):
    # the mean factor of these machines stands beside the rate of the truth
    truth = RATE * page["factor"].mean()
    low, high = page["model"].intensity_band("2024-06-30", 0.95)
    assert low < truth < high
    assert page["model"].usage_ == "hours"


def test_the_forecast_of_those_in_service_holds_the_truth(page, active):
    truth = RATE * 364 * (page["daily"] * page["factor"])[active].sum()
    low, high = page["year"].total().interval
    assert low < truth < high
    assert abs(page["year"].total().mean / truth - 1) < 0.1
    assert f"{active.sum()} of 120 subjects are in service" in page["year"].note
    everybody = RATE * 364 * (page["daily"] * page["factor"]).sum()
    assert everybody > high  # counting retired machines would be wrong


def test_what_if_and_additions_hold_the_truth(page, active):
    truth = RATE * 300 * 12 * page["factor"][active].sum()
    low, high = page["what_if"].interval
    assert low < truth < high
    added = page["more"].mean - page["year"].total().mean
    expected = RATE * page["daily"][active].mean() * 10 * 274
    assert abs(added / expected - 1) < 0.2


def test_the_worst_machines_are_among_the_truly_worst(page):
    worst = page["worst"]
    number = worst["subject"].str[1:].astype(int)
    truly = number.isin(np.argsort(-page["factor"])[:12])
    expected = worst["probability"][:12].sum()  # how many of the first twelve are, if it is right
    assert expected > 7
    assert abs(truly[:12].sum() - expected) < 3
    factors = page["factor"][number]
    inside = (worst["low"] < factors) & (factors < worst["high"])
    assert inside.mean() > 0.88  # 95% intervals of 120 machines


def test_one_shelf_needs_fewer_parts(page):
    stock = page["stock"]["stock"]
    assert stock.iloc[-1] < 0.9 * stock.iloc[:-1].sum()


def test_intervals_that_take_machines_for_equal_hold_too_little(page):
    held = page["tested"].coverage["subjects_exact"]
    assert held["poisson"] < 0.8
    assert 0.86 < held["constant rate"] < 0.95
