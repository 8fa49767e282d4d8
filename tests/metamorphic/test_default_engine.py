"""The default fit: what must not change it, and what must.

Its random numbers depend on the seed alone, so that the same data told in other words give the
same draws, within the 32 bits in which draws are kept (`SAME_DRAWS`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from relations import TIMES, WINDOW, answers, assert_same, panel_of, study

import gp4c
from gp4c.exceptions import PanelDataError
from tolerances import SAME_DRAWS

#: a law, and the study; where f may cross zero its draws come from tempering
LAWS: dict[str, dict[str, Any]] = {
    "auto": {},
    "single events": {"effect": None, "bursts": False},
    "frailty": {"effect": "gamma", "bursts": False},
    "bursts": {"effect": None, "bursts": True},
    "frailty and bursts": {"effect": "gamma", "bursts": True},
    "crossing": {"effect": None, "bursts": False},
}
#: the study in a window of which three quarters are empty: there the data leave all directions of
#: the curve alike, and rounding chooses between them
LONG = (0.0, 64.0)
#: tempering, which takes seconds, is not repeated in the long window
LAWS_AND_WINDOWS = pytest.mark.parametrize(
    ("law", "window"),
    [*((law, WINDOW) for law in LAWS), *((law, LONG) for law in LAWS if law != "crossing")],
    ids=lambda value: value if isinstance(value, str) else f"to {value[1]:g}",
)
#: months in days: a factor that is not exact in floating point
DAYS = 30.4375


def fitted(table: pd.DataFrame, window: tuple[float, float] = WINDOW, **options: Any) -> gp4c.GP4C:
    return gp4c.GP4C(**options).fit(panel_of(table.assign(units=1.0), window, exposure="units"))


def table_of(law: str) -> pd.DataFrame:
    return study(base=1.0 if law == "crossing" else 1.5)


@cache
def as_it_is(law: str, window: tuple[float, float] = WINDOW) -> gp4c.GP4C:
    """The fit that the data told in other words must give as well."""
    return fitted(table_of(law), window, **LAWS[law])


def without_events_split(table: pd.DataFrame) -> pd.DataFrame:
    """Every interval without events in two."""
    none = table["count"] == 0
    assert none.sum() > 5
    middle = (table["start"] + table["stop"]) / 2
    first, last = table[none].assign(stop=middle[none]), table[none].assign(start=middle[none])
    return pd.concat([table[~none], first, last], ignore_index=True)


@LAWS_AND_WINDOWS
def test_intervals_without_events_may_be_cut(law: str, window: tuple[float, float]) -> None:
    """All laws are those of processes with independent increments given the effect: no event in
    an interval is no event in both of its halves. Nothing of the answer may change."""
    whole = as_it_is(law, window)
    parts = fitted(without_events_split(table_of(law)), window, **LAWS[law])
    assert_same(answers(parts, TIMES), answers(whole, TIMES), SAME_DRAWS)
    assert_allclose(parts.log_evidence_, whole.log_evidence_, **SAME_DRAWS)
    assert_allclose(parts.dispersion_, whole.dispersion_, **SAME_DRAWS)


def test_where_events_are_a_cut_tells_something() -> None:
    """Two events in one half and none in the other say more than two events in both."""
    table = table_of("auto")
    row = table[table["count"] >= 2].iloc[[0]]
    middle = (row["start"] + row["stop"]) / 2
    parts = pd.concat(
        [table.drop(row.index), row.assign(stop=middle), row.assign(start=middle, count=0)],
        ignore_index=True,
    )
    start, half = row["start"].item(), middle.item()
    whole, cut = (fitted(t).expected_counts(start, half) for t in (table, parts))
    assert cut > 1.005 * whole


@LAWS_AND_WINDOWS
def test_days_or_months(law: str, window: tuple[float, float]) -> None:
    table = table_of(law)
    days = table.assign(start=DAYS * table["start"], stop=DAYS * table["stop"])
    months = as_it_is(law, window)
    other = fitted(days, (DAYS * window[0], DAYS * window[1]), **LAWS[law])
    assert_same(answers(other, DAYS * TIMES, DAYS), answers(months, TIMES), SAME_DRAWS)
    assert_allclose(other.length_scale_, DAYS * months.length_scale_, **SAME_DRAWS)
    assert_allclose(other.log_evidence_, months.log_evidence_, **SAME_DRAWS)


@LAWS_AND_WINDOWS
def test_exposure_in_other_units(law: str, window: tuple[float, float]) -> None:
    """Exposure in hundreds of units: a rate per hundred, nothing else."""
    one = as_it_is(law, window)
    model = gp4c.GP4C(**LAWS[law])
    hundreds = model.fit(panel_of(table_of(law).assign(units=0.01), window, exposure="units"))
    found, expected = answers(hundreds, TIMES), answers(one, TIMES)
    for what in found.keys() - {"frailty", "subject effects"}:
        found[what] = found[what] / 100.0
    assert_same(found, expected, SAME_DRAWS)
    assert_allclose(hundreds.log_evidence_, one.log_evidence_, **SAME_DRAWS)


@pytest.mark.parametrize("law", ["auto", "bursts"])
def test_more_subjects_make_the_band_narrower(law: str) -> None:
    """Four times as many make it half as wide, about; the effective draws know it to 5%.

    Λ over the first weeks may be less well known if few subjects make the rate look flat.
    """
    copies = [table_of(law).assign(subject=lambda t, k=k: t["subject"] + f" {k}") for k in range(4)]
    more = fitted(pd.concat(copies, ignore_index=True), **LAWS[law])
    once, four_times = (
        np.diff(model.cumulative_band(TIMES[4:], 0.9), axis=0) for model in (as_it_is(law), more)
    )
    assert np.all(four_times < 0.75 * once)


def test_another_seed_moves_the_answer_by_its_error_and_no_more() -> None:
    """Means of weighted draws have the error deviation / √(effective draws)."""
    one, two = as_it_is("auto"), fitted(table_of("auto"), random_state=1)
    assert np.any(one.cumulative(TIMES) != two.cumulative(TIMES))
    deviation = np.diff(one.cumulative_band(TIMES[1:], 0.68), axis=0)[0] / 2
    error = deviation * np.sqrt(1 / one.effective_draws_ + 1 / two.effective_draws_)
    assert np.all(np.abs(one.cumulative(TIMES[1:]) - two.cumulative(TIMES[1:])) < 4 * error)
    gap = abs(one.log_evidence_ - two.log_evidence_)
    assert gap < 4 * np.sqrt(1 / one.effective_draws_ + 1 / two.effective_draws_)


def with_nobody(**change: float) -> pd.DataFrame:
    """The study with one more subject."""
    nobody = {"subject": ["nobody"], "start": 0.0, "stop": 2.0, "count": 0, "group": "a"}
    table = pd.concat([table_of("auto"), pd.DataFrame(nobody)], ignore_index=True).assign(units=1.0)
    table.loc[table["subject"] == "nobody", list(change)] = list(change.values())
    return table


def test_subjects_without_time_at_risk_are_refused() -> None:
    with pytest.raises(PanelDataError, match="'stop' must be greater than 'start'"):
        panel_of(with_nobody(stop=0.0), exposure="units")


def test_subjects_without_exposure_change_nothing() -> None:
    """Nothing could be seen of them: their rows are left out, and so are they."""
    model = gp4c.GP4C().fit(panel_of(with_nobody(units=0.0), exposure="units"))
    assert "nobody" not in model.subjects_
    assert_same(answers(model, TIMES), answers(as_it_is("auto"), TIMES), SAME_DRAWS)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", 0.0, 1.0, 0)],
        [("a", 0.0, 1.0, 3)],
        [("a", 0.0, 1.0, 0), ("b", 0.0, 2.0, 0)],
        [("a", 0.0, 1.0, 1_000_000), ("b", 0.0, 2.0, 100_000), ("c", 0.0, 1.0, 3_000_000)],
        [("a", 0.0, 1e-9, 2), ("b", 0.0, 2e-9, 1)],
        [("a", 0.0, 1.0, 2), ("a", 99.0, 100.0, 3), ("b", 0.0, 1.0, 1)],
        [("a", 0.0, 1e-7, 2), ("a", 1e-7, 1.0, 0), ("b", 0.0, 1.0, 3)],
    ],
    ids=["nothing", "one row", "no events", "millions", "a nanosecond", "a gap", "at once"],
)
def test_small_and_extreme_panels_have_an_answer(rows: list[tuple[str, float, float, int]]) -> None:
    """Finite, in order, and the crude rate lies in a wide band."""
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    window = (0.0, float(table["stop"].max()))
    model = fitted(table, window)
    times = np.linspace(*window, 9)
    low, high = model.cumulative_band(times, 0.999)
    middle = model.cumulative(times)
    assert np.all(np.isfinite([low, middle, high]))
    assert np.all(np.diff(middle) >= 0.0)
    assert np.all((low <= middle) & (middle <= high))
    crude = table["count"].sum() / (table["stop"] - table["start"]).sum() * window[1]
    assert crude <= high[-1]
    assert crude == 0 or crude >= low[-1]
    assert np.isfinite(model.forecast(*window, random_state=0).mean)
