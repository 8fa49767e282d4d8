"""Tables of results hold the numbers that the results give themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import PanelDataError
from gp4c.reporting.publication.fit_tables import curve_table, effects_table, estimates_table
from gp4c.reporting.publication.result_tables import ranking_table
from gp4c.reporting.rows.law_rows import dispersion_range, frailty_range
from gp4c.reporting.words import estimate


@pytest.fixture(scope="module")
def default(visits):
    return gp4c.GP4C(effect="gamma", bursts=True).fit(visits)


@pytest.fixture(scope="module")
def compared(visits):
    return gp4c.compare(visits, "arm", gp4c.GP4C(effect=None, bursts=False), n_permutations=99)


def line(table, quantity):
    frame = table.to_frame()
    (found,) = frame[frame["quantity"].str.startswith(quantity)].to_dict("records")
    return found


def test_estimates_are_those_of_the_model(default):
    table = default.table(level=0.9)
    found = line(table, "mean number by 12 months")
    low, high = default.cumulative_band(12.0, 0.9)
    assert_allclose([found["value"], found["low"], found["high"]],
                    [default.cumulative(12.0), low, high], rtol=1e-12)  # fmt: skip
    rate = line(table, "average rate per month")
    assert rate["value"] == found["value"] / 12
    assert line(table, "variance of subject effects")["value"] == default.frailty_variance_
    assert line(table, "variance of a count")["value"] == default.dispersion_
    assert line(table, "length scale")["value"] == default.length_scale_
    assert table.columns == ("", "estimate", "90% interval")
    shown = next(row for row in table.rows if row[0].startswith("mean number"))
    assert shown[1:] == (estimate(found["value"]), f"{estimate(low)} to {estimate(high)}")


def test_intervals_of_variances_hold_their_share_of_the_draws(default):
    posterior = default.posterior_
    excess, variance = np.exp(posterior.params[1]), np.exp(-posterior.params[0])
    low, high = frailty_range(default, 0.8)
    inside = (variance >= low) & (variance <= high)
    assert posterior.weights[inside].sum() == pytest.approx(0.8, abs=0.01)
    low, high = dispersion_range(default, 0.8)
    inside = (1 + excess >= low) & (1 + excess <= high)
    assert posterior.weights[inside].sum() == pytest.approx(0.8, abs=0.01)


def test_a_saved_model_gives_the_same_table(default, tmp_path):
    default.save(tmp_path / "fit.json")
    assert str(gp4c.load_model(tmp_path / "fit.json").table()) == str(default.table())


@pytest.mark.parametrize("name", ["HomogeneousPoisson", "NPMPLE", "NPMLE", "PowerLaw", "LogLinear"])
def test_every_estimator_has_tables(visits, name):
    model = getattr(gp4c, name)().fit(visits)
    for what in ("estimates", "curve"):
        table = model.table(what)
        assert all(len(row) in (1, len(table.columns)) for row in table.rows)
    assert line(model.table(), "mean number by 12 months")["value"] == model.cumulative(12.0)
    rates = [row for row in model.table().rows if row[0].startswith("average rate")]
    assert len(rates) == (0 if model.is_step else 1)


def test_groups_stand_side_by_side(compared):
    models = {str(g): compared.models[g] for g in compared.groups}
    table = estimates_table(models, 0.95, "arm")
    assert table.columns == ("", "a", "b")
    row = next(r for r in table.rows if r[0].startswith("mean number"))
    for cell, model in zip(row[1:], models.values(), strict=True):
        low, high = model.cumulative_band(12.0, 0.95)
        wanted = f"{estimate(model.cumulative(12.0))} ({estimate(low)} to {estimate(high)})"
        assert cell == wanted
    assert set(table.to_frame()["group"]) == {"a", "b"}
    assert [r for r in curve_table(models, by="arm").rows if len(r) == 1] == [
        ("arm: a",), ("arm: b",),
    ]  # fmt: skip


def test_curves_are_read_off_at_the_times_asked_for(default):
    table = default.table("curve", times=[3.0, 6.0])
    frame = table.to_frame()
    assert_allclose(frame["rate"], default.intensity([3.0, 6.0]), rtol=1e-12)
    assert_allclose(frame["cumulative_low"], default.cumulative_band([3.0, 6.0])[0], rtol=1e-12)
    assert [row[0] for row in table.rows] == ["3", "6"]


def test_effects_of_covariates_have_p_values(visits):
    model = gp4c.PowerLaw(formula="arm").fit(visits)
    table = model.table("effects")
    (row,) = model.effects_.to_dict("records")
    assert table.rows[0][:2] == ("arm[b]", estimate(row["rate_ratio"]))
    assert table.to_frame()["p_value"].iloc[0] == row["p_value"]
    assert "Reference levels: arm: a." in table.notes
    assert line(model.table(), "arm[b]")["p_value"] == row["p_value"]
    both = effects_table({"x": model, "y": model}, by="site")
    assert [r for r in both.rows if len(r) == 1] == [("site: x",), ("site: y",)]


def test_what_a_model_has_no_table_of_is_said(default):
    with pytest.raises(PanelDataError, match="without a formula"):
        default.table("effects")
    with pytest.raises(PanelDataError, match="'estimates', 'effects' or 'curve'; found 'x'"):
        default.table("x")


def test_a_comparison_has_ratios_tests_and_probabilities(compared):
    frame = compared.table(0.9).to_frame().set_index(["section", "quantity"])
    time = compared.horizon
    ratio = frame.loc[[s for s in frame.index if s[0].startswith("Ratio of mean")]].iloc[0]
    low, high = compared.ratio_band(time, 0.9, curve="cumulative")
    assert (ratio["low"], ratio["high"]) == (low, high)
    test = frame.loc["Ratio of rates by the permutation test", "b to a"]
    assert (test["low"], test["high"]) == compared.interval(0.9)
    assert test["p_value"] == compared.p_value
    shape = frame.loc["Ratio of rates if the curves have one shape", "b to a"]
    assert shape["value"] == pytest.approx(compared.factor)
    shares = frame.loc["Posterior probability of", "value"]
    assert shares.tolist() == list(compared.probabilities.values())


def test_a_comparison_draws_curves_and_ratios(compared):
    assert len(compared.plot().lines) >= 2
    assert compared.plot(what="rate ratio").get_ylabel() == "ratio of rates, b / a"
    with pytest.raises(PanelDataError, match="'rate ratio'; found 'odds'"):
        compared.plot(what="odds")


def test_a_forecast_adds_up(default):
    found = default.forecast([12, 13], [13, 15], subjects="all")
    table = found.table()
    assert [row[0] for row in table.rows] == ["all", "all", "total"]
    frame = table.to_frame()
    assert frame["mean"].iloc[2] == pytest.approx(frame["mean"].iloc[:2].sum())
    whole = found.total()
    assert (frame["low"].iloc[2], frame["high"].iloc[2]) == whole.interval
    assert len(default.forecast(12, 13).table().rows) == 1


def test_plan_backtest_and_ranking_have_tables(visits, default):
    plan = gp4c.power(ratio=0.6, rate=0.2, n_per_arm=[20, 40], follow_up=24, n_trials=10)
    assert plan.table().to_frame().equals(plan.to_frame())
    tested = gp4c.backtest(gp4c.HomogeneousPoisson(), visits, horizon=3, n_origins=1, n_draws=50)
    names = ["HomogeneousPoisson", "constant rate", "log-linear", "power-law"]
    assert [row[0] for row in tested.table().rows] == names
    ranking = default.unit_ranking()
    assert len(ranking_table(ranking, 0.95, 5).rows) == 5
