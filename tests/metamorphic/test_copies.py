"""Two copies of a study say the same twice: curves stay, bands shrink; twins may be merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fixed_hyper import fit_at
from numpy.testing import assert_allclose
from relations import (
    CASES,
    LEVEL,
    TIMES,
    answers,
    assert_same,
    baseline,
    names,
    panel_of,
    study,
    tolerance,
)

import gp4c

INNER = TIMES[1:]
POSTERIOR = [name for name in names("copies") if name.startswith("GP")]
BOOTSTRAP = ["LocalEM", "NPMPLE", "NPMLE", "NPMLE gamma", "NPMPLGF"]
POINT_ESTIMATES = [*BOOTSTRAP, "HomogeneousPoisson", "HomogeneousPoisson gamma"]


def copied(table: pd.DataFrame) -> pd.DataFrame:
    """Every subject twice, under another label."""
    other = table.assign(subject=table["subject"] + " again")
    return pd.concat([table, other], ignore_index=True)


def widths(model: Any) -> dict[str, np.ndarray]:
    found = {"cumulative": np.ptp(model.cumulative_band(INNER, LEVEL), axis=0)}
    if not hasattr(model, "times_"):
        found["intensity"] = np.ptp(model.intensity_band(INNER, LEVEL), axis=0)
    return found


def assert_no_wider(twice: Any, once: Any) -> None:
    """The band of Λ is narrower at every time, that of λ on average.

    λ is f², so its band is wider where the curve is higher: where two copies pull the curve
    further up from its prior, the band of λ at that time may be a tenth wider, not more.
    """
    now, before = widths(twice), widths(once)
    assert np.all(now["cumulative"] < 0.9 * before["cumulative"])
    if "intensity" in now:
        assert now["intensity"].mean() < 0.9 * before["intensity"].mean()
        assert np.all(now["intensity"] < 1.1 * before["intensity"])


@pytest.mark.parametrize("effect", [None, "weight", "gamma"])
@pytest.mark.parametrize("count_term", ["exact", "pointwise", "lemma2"])
def test_at_fixed_hyper_parameters_bands_shrink(count_term: str, effect: str | None) -> None:
    once, twice = (
        fit_at(panel_of(table), count_term=count_term, effect=effect)
        for table in (study(), copied(study()))
    )
    assert_no_wider(twice, once)


@pytest.mark.parametrize("name", POSTERIOR)
def test_no_posterior_widens(name: str) -> None:
    case = CASES[name]
    assert_no_wider(case.fit(copied(case.table())), baseline(name))


@pytest.mark.parametrize("name", BOOTSTRAP)
def test_no_bootstrap_widens(name: str) -> None:
    # 30 samples know a width to about a tenth; twice the subjects make it 1/√2 of what it was
    once, twice = (
        CASES[name].make().fit(panel_of(table)).bootstrap(30, random_state=0)
        for table in (study(), copied(study()))
    )
    now, before = widths(twice)["cumulative"], widths(once)["cumulative"]
    assert 0.5 < now.mean() / before.mean() < 0.9


@pytest.mark.parametrize("name", POINT_ESTIMATES)
def test_the_estimate_itself_stays(name: str) -> None:
    model = CASES[name].make()
    if name == "LocalEM":  # folds of other subjects may choose another bandwidth
        model.set_params(bandwidth=baseline(name).bandwidth_)
    once = model.fit(panel_of(study())).cumulative(TIMES)
    assert_allclose(model.fit(panel_of(copied(study()))).cumulative(TIMES), once, rtol=1e-6)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_the_band_of_a_constant_rate_shrinks_by_the_root_of_two(effect: str | None) -> None:
    # many events and, for the frailty, many subjects: then both intervals are nearly normal
    table = study().assign(count=lambda t: 40 * t["count"])
    if effect == "gamma":
        rng = np.random.default_rng(0)
        frailty = rng.gamma(4.0, 0.25, 400)
        table = pd.DataFrame(
            {
                "subject": [f"s{k}" for k in range(400)],
                "start": 0.0,
                "stop": 16.0,
                "count": rng.poisson(8.0 * frailty),
            }
        )
    once, twice = (
        np.diff(gp4c.HomogeneousPoisson(effect=effect).fit(panel_of(t)).rate_interval(LEVEL))
        for t in (table, copied(table))
    )
    assert_allclose(once / twice, np.sqrt(2.0), rtol=3e-3)


# -- twins -----------------------------------------------------------------------------------


def with_twins() -> pd.DataFrame:
    """The study, in which s01 and s11 of group b were seen at the same visits."""
    return study().assign(units=1.0)


def merged() -> pd.DataFrame:
    """The twins as one subject with exposure 2 and the sum of their counts."""
    table = with_twins()
    one, two = (table["subject"] == label for label in ("s01", "s11"))
    count = table.loc[one, "count"].to_numpy() + table.loc[two, "count"].to_numpy()
    together = table[one].assign(subject="s01 and s11", count=count, units=2.0)
    return pd.concat([table[~one & ~two], together], ignore_index=True)


@pytest.mark.parametrize("name", names("merging"))
def test_twins_may_be_one_subject_with_twice_the_exposure(name: str) -> None:
    model = CASES[name].make()
    if name == "LocalEM":
        model.set_params(bandwidth=2.0)
    apart, together = (
        answers_of(model, panel_of(table, exposure="units")) for table in (with_twins(), merged())
    )
    assert_same(together, apart, tolerance(name))


def answers_of(model: Any, panel: Any) -> dict[str, np.ndarray]:
    """Curves, and bands where they come from a posterior and not from resampled subjects."""
    model.fit(panel)
    if isinstance(model, gp4c.GP4C | gp4c.HomogeneousPoisson):
        return answers(model, TIMES)
    return {"cumulative": model.cumulative(TIMES)}
