"""Adjusted comparisons: averages over subjects, regressions, one set of numbers everywhere."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.cli.program import app
from gp4c.data.formulas.formula_text import drop_column
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.plots import plot_ratio
from gp4c.reporting.page.sections.group_parts import whose

TIMES = np.array([5.0, 20.0, 40.0])
OPTIONS = {"bursts": False, "effect": None}


def trial(seed=3, n=40):
    rng = np.random.default_rng(seed)
    arm = np.where(np.arange(n) % 2 == 0, "a", "b")
    age = rng.standard_normal(n) + 0.5 * (arm == "b")
    return gp4c.simulate_panel(
        0.12, window=(0, 40), n_subjects=n, n_intervals=4, covariates={"arm": arm, "age": age},
        coefficients={"arm": {"b": float(np.log(0.5))}, "age": 0.8}, time_unit="weeks",
        random_state=seed,
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return gp4c.compare(
        trial(), "arm", gp4c.GP4C(**OPTIONS), formula="arm + age", n_permutations=199
    )


def test_standardised_curves_are_averages_over_subjects(found):
    # the mean of the curves of all subjects, each with their own age: an average of averages
    ages = trial().covariates["age"].to_numpy()
    table = found.standardised(TIMES)
    for arm in ("a", "b"):
        each = [found.models[arm].cumulative(TIMES, covariates={"age": age}) for age in ages]
        mine = table[table.group == arm]
        assert_allclose(mine.cumulative, np.mean(each, axis=0), rtol=1e-8)
        assert (mine.cumulative_low < mine.cumulative).all()
        assert (mine.cumulative < mine.cumulative_high).all()


def test_a_mean_made_by_a_few_draws_gives_way_to_the_median(found):
    # one draw of a thousand has an effect of age that is beyond reason, as a group gives that says
    # next to nothing about it
    model = copy.copy(found.models["b"])
    draws = model.posterior_
    wild = draws.coefficients.copy()
    wild[:, np.argmin(np.abs(draws.weights - 1e-3))] = 60.0
    model.posterior_ = replace(draws, coefficients=wild)
    broken = replace(found, models={**found.models, "b": model})
    table, before = (each.standardised(TIMES).query("group == 'b'") for each in (broken, found))
    assert_allclose(table.cumulative, before.cumulative, rtol=0.1)
    assert_allclose(table.rate, before.rate, rtol=0.2)
    note = "b says next to nothing about the effect of age"
    assert note in str(broken)
    assert note not in str(found)
    change = (each.difference(TIMES, curve="cumulative") for each in (broken, found))
    assert_allclose(*change, rtol=0.2)
    assert ", posterior medians for b" in whose(broken, "")
    assert "medians" not in whose(found, "")


def test_figures_say_whose_curves_they_are(found):
    key = found.plot(at="average").get_legend().get_title().get_text()
    assert key == "arm, at average covariates, 95% bands"
    label = plot_ratio(found, times=TIMES).get_ylabel()
    assert label == "ratio of rates, b / a\nstandardised"


def test_average_covariates_are_those_of_everybody(found):
    # both arms at the same age, although one is older: curves with age at the overall average
    average = float(trial().covariates["age"].mean())
    table = found.at_average(TIMES)
    for arm in ("a", "b"):
        there = found.models[arm].intensity(TIMES, covariates={"age": average})
        assert_allclose(table[table.group == arm].rate, there, rtol=1e-8)


def test_the_ratio_is_that_of_the_regression(found):
    row = found.adjusted().iloc[0]
    effects = found.regression.effects_.set_index("covariate")
    assert_allclose(
        [row.ratio, row.low, row.high, row.p_value],
        effects.loc["arm[b]", ["rate_ratio", "low", "high", "p_value"]].astype(float),
    )
    assert row.errors == "jackknife, t with 37 degrees of freedom"
    assert 0.3 < row.ratio < 0.8
    assert found.p_value < 0.05
    # the unadjusted test does not see it: the older arm has more events by its age
    assert PanelTest.of(trial(), "arm", n_permutations=199).overall.p_value > found.p_value


def test_three_accounts_have_the_covariates(found):
    assert found.probabilities["same"] < 0.1
    # one shape: the ratio is the same whoever is asked
    one = found.ratio(TIMES, under="factor")
    assert_allclose(one, found.ratio(TIMES, under="factor", at="average"), rtol=1e-6)
    assert_allclose(one, one[0], rtol=1e-6)
    assert_allclose(np.log(found.factor), np.log(found.adjusted().ratio[0]), atol=0.15)
    coefficients = found.hypotheses.shape.coefficients @ found.hypotheses.shape.weights
    assert_allclose(coefficients, found.regression.coefficients_.beta[1:], atol=0.1)


def test_the_text_says_what_was_adjusted_for(found):
    text = str(found)
    assert "Adjusted for age: b has" in text
    assert "standard errors: jackknife, t with 37 degrees of freedom" in text
    assert "standardised (averaged over everybody's age)" in text
    assert "(level, adjusted for age)" in text
    assert "'arm' makes the groups and was taken out of the formula" in text


def test_another_reference_turns_the_ratio_round(found):
    back = gp4c.compare(
        trial(), "arm", gp4c.GP4C(formula="age", **OPTIONS), reference="b", n_permutations=199,
        bayes_factor=False,
    )  # fmt: skip
    assert_allclose(back.adjusted().ratio[0] * found.adjusted().ratio[0], 1.0, rtol=0.02)
    assert back.p_value == found.p_value


def test_command_line_and_report_say_the_same(found, tmp_path):
    table = tmp_path / "trial.csv"
    trial().to_frame().to_csv(table, index=False)
    common = [
        str(table), "--by", "arm", "--formula", "arm + age", "--effect", "none", "--bursts", "no",
        "--permutations", "199", "--time-unit", "weeks", "--window", "0", "40",
    ]  # fmt: skip
    said = CliRunner().invoke(app, ["compare", *common, "--json"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert document["formula"] == "age"
    assert document["p_value"] == found.p_value
    assert_allclose(document["adjusted"][0]["ratio"], found.adjusted().ratio[0], rtol=1e-9)
    done = CliRunner().invoke(app, ["report", *common, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    row = found.adjusted().iloc[0]
    head = page[: page.index('id="results"')]
    assert "ratio of rates, adjusted for age" in head
    assert f'<div class="figure">{row.ratio:.3g}' in head
    assert "standardised" in head
    assert "at average covariates" in page
    method = page[page.index('id="method"') :]
    assert "A two-sided permutation test asked whether a group has more events" in method
    assert "under 199 random permutations of the labels of subjects. The part of age" in method
    assert "standard errors: jackknife, t with 37 degrees of freedom." in method
    # each figure has its values: two of standardised curves, one at average covariates, two ratios
    assert page.count("<summary>Values</summary>") == 5


def test_terms_of_the_groups_leave_the_formula():
    assert drop_column("arm + age", "arm") == ("age", ["arm"])
    assert drop_column("age + C(arm) * log(size)", "arm")[0] == "age + log(size)"
    assert drop_column("arm", "arm") == (None, ["arm"])
    assert drop_column("`body mass` + arm", "arm")[0] == "`body mass`"


def test_a_formula_of_the_groups_alone_adjusts_for_nothing():
    panel = trial(n=20)
    found = gp4c.compare(
        panel, "arm", gp4c.GP4C(**OPTIONS), formula="arm", n_permutations=99, bayes_factor=False
    )
    assert found.regression is None
    assert found.adjusted().empty
    assert "has nothing but 'arm'" in str(found)
    with pytest.raises(PanelDataError, match="GP3 has no covariates"):
        gp4c.compare(panel, "arm", gp4c.GP3(), formula="age")
