"""gp4c.power: size, power where a formula is right, the search, pilots, and its words."""

import math
from statistics import NormalDist

import joblib
import numpy as np
import pytest

import gp4c
from gp4c.analysis.planning.power_plan import PowerRow
from gp4c.analysis.planning.trial_power import search_size
from gp4c.exceptions import PanelDataError
from tolerances import STANDARD_ERRORS

#: a small trial whose 999 permutations would cost more than they tell
QUICK = {"rate": 0.2, "follow_up": 24.0, "n_permutations": 199}
NORMAL = NormalDist()


def test_the_test_rejects_5_percent_of_trials_without_a_difference():
    plan = gp4c.power(
        1.0, n_per_arm=15, visits=3, dispersion=3.0, drop_out=0.3, n_trials=1500, **QUICK
    )
    assert abs(plan.power - 0.05) < STANDARD_ERRORS * plan.error


def test_power_is_that_of_the_formula_for_a_moderate_ratio():
    plan = gp4c.power(
        0.7, n_per_arm=95, visits=4, frailty_variance=0.5, drop_out=0.0, n_trials=1500,
        **QUICK | {"n_permutations": 399},
    )  # fmt: skip
    (row,) = plan.rows
    assert 0.75 < row.formula < 0.85
    assert abs(plan.power - row.formula) < 0.03


def test_power_for_a_strong_ratio_is_that_of_a_difference_of_means():
    # with equal follow-up U is a difference of mean totals, studentised by its own variance with
    # the pooled mean in place of the arms' (docs/maths_power.md): an expectation without the code
    n, first, second, v = 45, 4.8, 2.4, 1.0
    plan = gp4c.power(
        0.5, n_per_arm=n, visits=4, frailty_variance=v, drop_out=0.0, n_trials=1000, **QUICK
    )
    variance = sum(m + v * m**2 for m in (first, second)) / n
    away = (first - second) / math.sqrt(variance)
    expected = NORMAL.cdf(away - NORMAL.inv_cdf(0.975))
    assert abs(plan.power - expected) < 0.02 + 2 * plan.error


def test_strata_that_matter_cost_power_when_they_are_ignored():
    how = {"n_per_arm": 64, "visits": 2, "frailty_variance": 0.1, "n_trials": 300, **QUICK}
    within = gp4c.power(0.75, strata=[0.2, 1.8], **how)
    assert within.power > 0.6
    # the same subjects without strata: rates that differ by these factors have variance 0.64 more
    ignored = gp4c.power(0.75, **{**how, "frailty_variance": 0.1 + 0.64})
    assert within.power - ignored.power > 0.15


def test_the_same_seed_gives_the_same_plan_whatever_the_workers(tmp_path):
    how = {"n_per_arm": 12, "n_trials": 60, **QUICK}
    alone = gp4c.power([0.4, 0.6], **how)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert gp4c.power([0.4, 0.6], **how) == alone
    kept = gp4c.power([0.4, 0.6], store=tmp_path / "trials.json", **how)
    assert kept == alone == gp4c.power([0.4, 0.6], store=tmp_path / "trials.json", **how)
    assert gp4c.power([0.4, 0.6], random_state=1, **how) != alone


def test_another_level_reads_the_same_trials_again(tmp_path):
    how = {"n_per_arm": 20, "n_trials": 100, "store": tmp_path / "trials.json", **QUICK}
    strict, loose = (gp4c.power(0.5, alpha=alpha, **how) for alpha in (0.01, 0.1))
    assert strict.power < loose.power


# -- the search -----------------------------------------------------------------------------


def exact_row(n, slope, n_trials=10**6):
    share = NORMAL.cdf(slope * math.sqrt(n) - 1.96)
    return PowerRow(n, n, 0.5, n_trials, round(share * n_trials), 0.0, 0.0)


@pytest.mark.parametrize("slope", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("wrong", [0.4, 1.0, 2.5])
def test_the_search_finds_the_smallest_size_of_a_known_curve(slope, wrong):
    best = ((1.96 + NORMAL.inv_cdf(0.8)) / slope) ** 2
    tried, chosen = search_size(lambda n: exact_row(n, slope), wrong * best, 0.05, 0.8, 2)
    assert tried[chosen].power >= 0.8
    assert chosen <= math.ceil(best) + max(1, round(0.02 * best))
    assert len(tried) <= 8


def test_the_search_goes_on_until_the_target_is_reached_in_spite_of_noise(rng):
    def noisy(n):
        share = NORMAL.cdf(0.3 * math.sqrt(n) - 1.96)
        return PowerRow(n, n, 0.5, 200, int(rng.binomial(200, share)), 0.0, 0.0)

    best = ((1.96 + NORMAL.inv_cdf(0.8)) / 0.3) ** 2
    found = [search_size(noisy, best, 0.05, 0.8, 2) for _ in range(20)]
    reached = [tried[chosen].power >= 0.8 for tried, chosen in found]
    assert sum(reached) >= 18
    assert abs(np.mean([chosen for _, chosen in found]) / best - 1) < 0.1


def test_a_size_is_found_near_that_of_the_formula():
    plan = gp4c.power(0.5, visits=2, n_trials=200, drop_out=0.0, **QUICK)
    assert plan.power >= 0.8
    assert plan.n_per_arm == plan.rows[plan.chosen].n_first
    assert abs(plan.n_per_arm / plan.formula_size - 1) < 0.3
    assert plan.to_frame()["chosen"].sum() == 1
    assert "is the smallest that was found to reach 80% power" in str(plan).replace("\n", " ")


# -- pilots ---------------------------------------------------------------------------------


def test_a_panel_as_pilot_gives_the_fit_of_a_constant_rate():
    panel = gp4c.load_dataset("bladder")
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    how = {"n_per_arm": 20, "n_trials": 25, "n_permutations": 19}
    plan = gp4c.power(0.5, pilot=panel, **how)
    assert plan.design.rate == pytest.approx(model.rate_)
    assert plan.design.follow_up == pytest.approx(panel.window[1] - panel.window[0])
    assert plan.design.frailty_variance == pytest.approx(model.frailty_variance_)
    assert plan.design.dispersion == pytest.approx(model.dispersion_)
    assert plan.rows == gp4c.power(0.5, pilot=model, **how).rows
    said = str(plan).replace("\n", " ")
    assert "where not given, from a pilot: a constant rate fitted to 85 subjects" in said
    assert "per month" in str(plan)


def test_numbers_that_are_given_come_before_those_of_the_pilot():
    panel = gp4c.load_dataset("bladder")
    plan = gp4c.power(
        0.5, pilot=panel, rate=0.3, follow_up=80.0, frailty_variance=0.0, dispersion=1.0,
        n_per_arm=20, n_trials=25, n_permutations=19,
    )  # fmt: skip
    design = plan.design
    assert (design.rate, design.follow_up) == (pytest.approx(0.3), 80.0)
    assert (design.frailty_variance, design.dispersion) == (0.0, 1.0)


def test_a_pilot_with_exposures_is_said_to_be_at_exposure_1():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1, 2, 3], "start": [0] * 3, "stop": [9] * 3, "count": [2, 6, 1],
         "units": [2.0, 3.0, 1.0]}, exposure="units",
    )  # fmt: skip
    plan = gp4c.power(0.5, pilot=panel, n_per_arm=10, n_trials=25, n_permutations=19)
    assert plan.design.rate == pytest.approx(9 / 54, rel=0.3)
    assert "at exposure 1" in str(plan).replace("\n", " ")


def test_a_curve_as_pilot_keeps_its_shape():
    panel, _ = gp4c.simulate_panel(
        ([0.0, 10.0], [0.1, 1.0]), window=(0.0, 10.0), n_subjects=60, random_state=3
    )
    model = gp4c.LocalEM().fit(panel)
    plan = gp4c.power(0.5, pilot=model, follow_up=6.0, n_per_arm=20, n_trials=25, n_permutations=19)
    times = np.linspace(0.0, 6.0, 7)
    assert plan.design.expected(times) == pytest.approx(model.cumulative(times), rel=0.02, abs=0.01)
    assert not plan.design.constant
    assert "at a rate that changes over time" in str(plan).replace("\n", " ")


# -- words, table, plot ---------------------------------------------------------------------


def test_the_paragraph_names_every_assumption():
    plan = gp4c.power(
        0.6, rate=0.25, n_per_arm=20, follow_up=12.0, visits=6, frailty_variance=0.75,
        dispersion=2.5, drop_out=0.15, allocation=2.0, strata=[0.5, 1.5], jitter=0.5,
        time_unit="months", n_trials=25, n_permutations=19, alpha=0.1, random_state=7,
    )  # fmt: skip
    text = str(plan).replace("\n", " ")
    for words in (
        "20 subjects in the first arm and 40 in the second", "25 simulated trials",
        "ratio of event rates of 0.6", "two-sided level 10%", "constant rate of 0.25 per month",
        "variance 0.75", "the variance of its counts is 2.5 times their mean", "12 months",
        "at 6 evenly spaced visits",
        "up to 0.5 early or late", "15% of the subjects leave", "relative rates 0.5, 1.5",
        "19 permutations", "within strata", "seed 7", "negative-binomial formula",
    ):  # fmt: skip
        assert words in text
    assert max(map(len, str(plan).split("\n"))) <= 80


def test_a_search_that_falls_short_does_not_say_that_it_reached_the_target():
    from dataclasses import replace

    plan = gp4c.power(0.4, n_trials=50, **QUICK)
    row = plan.rows[plan.chosen]
    short = replace(plan, rows=(replace(row, n_rejected=35),), chosen=0)
    assert "is the nearest that was tried to 80% power: it has 70%" in str(short).replace("\n", " ")


def test_several_sizes_and_ratios_make_a_table():
    plan = gp4c.power([0.5, 1.0], n_per_arm=[10, 20], n_trials=25, **QUICK)
    frame = plan.to_frame()
    assert frame[["ratio", "n_first"]].to_numpy().tolist() == [
        [0.5, 10],
        [0.5, 20],
        [1, 10],
        [1, 20],
    ]
    assert plan.power.tolist() == frame["power"].tolist()
    assert plan.error.tolist() == frame["error"].tolist()
    assert plan.n_per_arm.tolist() == [10, 20, 10, 20]
    assert len(str(plan).split("\n")[-4:]) == 4
    assert plan._repr_html_().count("<tr>") == 5


def test_no_rejection_at_all_still_has_an_error():
    row = PowerRow(5, 5, 1.0, 100, 0, 0.05, 10.0)
    assert row.power == 0
    assert 0.005 < row.error < 0.02


def test_errors_are_those_of_shares():
    row = PowerRow(5, 5, 0.5, 1000, 800, 0.8, 10.0)
    assert row.error == pytest.approx(math.sqrt(0.8 * 0.2 / 1000), rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ratio": 0.0}, "ratio must be a number from 0.001 to 1000; found 0"),
        ({"ratio": []}, "ratio must be a number or several"),
        ({"ratio": 1.0}, "no number of subjects shows a ratio of 1"),
        ({"ratio": [0.5, 0.6]}, "a size is searched for one ratio"),
        ({"ratio": 0.999}, "subjects would be needed"),
        ({"rate": None}, "a trial needs a rate and a follow_up"),
        ({"rate": -1.0}, "rate must be a number from"),
        ({"follow_up": 0.0}, "follow_up must be a number from"),
        ({"visits": 0}, "visits must be a whole number from 1 to 1000; found 0"),
        ({"visits": 2.5}, "visits must be a whole number"),
        ({"frailty_variance": -0.1}, "frailty_variance must be"),
        ({"dispersion": 0.5}, "dispersion must be a number from 1 to"),
        ({"drop_out": 10}, "drop_out must be a number from 0 to 1; found 10"),
        ({"allocation": 0.0}, "allocation must be"),
        ({"strata": [1.0, -1.0]}, "strata must be"),
        ({"strata": [1.0] * 101}, "strata must be 1 to 100 relative rates"),
        ({"strata": [1.0] * 6, "n_per_arm": 10}, "at least 2 subjects per stratum"),
        ({"jitter": 2.0}, "jitter must be"),
        ({"test": "trend"}, "test must be 'level', 'curve' or 'any'; found 'trend'"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1"),
        ({"target": 0.01}, "target must be above alpha"),
        ({"n_per_arm": 1}, "n_per_arm must be a whole number from 2"),
        ({"n_per_arm": 5.5}, "n_per_arm must be a whole number"),
        ({"n_per_arm": []}, "n_per_arm must be a number or several"),
        ({"n_trials": 0}, "n_trials must be"),
        ({"n_permutations": 5}, "n_permutations must be a whole number from 19"),
        ({"random_state": -1}, "random_state must be"),
        ({"pilot": 3}, "pilot must be a fitted model or a panel; found int"),
    ],
)
def test_each_mistake_is_one_sentence(arguments, words):
    given = {"ratio": 0.5, "rate": 0.2, "follow_up": 24.0} | arguments
    with pytest.raises(PanelDataError, match=words) as caught:
        gp4c.power(given.pop("ratio"), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pilot", "words"),
    [
        (lambda panel: gp4c.GP4C(), "not fitted"),
        (lambda panel: gp4c.GP4CW().fit(panel), "free weights"),
        (lambda panel: gp4c.GP4C(formula="size").fit(panel), "with a formula"),
    ],
)
def test_pilots_that_do_not_say_enough_are_refused(pilot, words):
    panel, _ = gp4c.simulate_panel(
        0.3, window=(0, 10), n_subjects=12, covariates={"size": np.arange(12) % 2 + 1.0}
    )
    with pytest.raises(gp4c.exceptions.GP4CError, match=words):
        gp4c.power(0.5, pilot=pilot(panel))


def test_a_follow_up_beyond_the_pilot_is_refused():
    with pytest.raises(PanelDataError, match="at most the pilot's 53; found 60"):
        gp4c.power(0.5, pilot=gp4c.load_dataset("bladder"), follow_up=60)
