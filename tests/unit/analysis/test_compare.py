"""Comparison of groups against answers known from theory, from draws and from the models."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.analysis.permutation import PermutationTest
from gp4c.analysis.words.comparison_words import _probability, _ratio, conclusions
from gp4c.data.checks import few_digits
from gp4c.exceptions import OutsideWindowError, PanelDataError

QUICK = gp4c.GP4C(effect=None, bursts=False)
TIMES = np.array([5.0, 20.0, 35.0])


def trial(ratio=0.5, n_arms=2, seed=3):
    arms = np.repeat(["a", "b", "c"][:n_arms], 25)
    return gp4c.simulate_panel(
        0.15, window=(0, 40), n_subjects=len(arms), n_intervals=5, covariates={"arm": arms},
        coefficients={"arm": {"b": float(np.log(ratio))}}, time_unit="weeks", random_state=seed,
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def two():
    return compare(trial(), "arm", QUICK, n_permutations=999)


@pytest.fixture(scope="module")
def three():
    return compare(trial(n_arms=3), "arm", QUICK, n_permutations=999, bayes_factor=False)


def test_each_group_has_its_own_fit(two):
    alone = gp4c.GP4C(effect=None, bursts=False).fit(trial().where(arm="b"))
    assert_allclose(two.models["b"].intensity(TIMES), alone.intensity(TIMES), rtol=1e-9)
    assert two.groups == ["a", "b"]
    assert two.pooled.window_ == (0.0, 40.0)


def test_cumulative_ratio_agrees_with_poisson_counts(two):
    # at the end of the window only the totals matter: ratio of two gamma variables, nearly
    panel = trial()
    events = {arm: panel.where(arm=arm).n_events for arm in "ab"}
    law = stats.f(2 * events["b"] + 1, 2 * events["a"] + 1)
    scale = events["b"] / events["a"]
    low, high = two.ratio_band(40.0, 0.9, curve="cumulative")
    assert_allclose(two.ratio(40.0, curve="cumulative"), scale, rtol=0.05)
    assert_allclose([low, high], scale * law.ppf([0.05, 0.95]), rtol=0.08)
    assert two.probability(40.0, curve="cumulative") > 0.99


def test_differences_have_the_models_means(two):
    for curve, name in (("rate", "intensity"), ("cumulative", "cumulative")):
        b, a = (getattr(two.models[g], name)(TIMES) for g in "ba")
        found = two.difference(TIMES, curve=curve)
        low, high = two.difference_band(TIMES, curve=curve)
        # Monte Carlo: four standard errors of 4,000 draws
        assert np.all(np.abs(found - (b - a)) < 4 * (high - low) / 3.9 / np.sqrt(4000))
        assert np.all((low < found) & (found < high))


def test_rate_bands_of_one_group_match_its_own(two):
    # the ratio of a group to itself under independent seeds is not 1, but to nothing is its rate
    draws = two._draws.of(TIMES, "rate", "a", "curves")
    low, high = two.models["a"].intensity_band(TIMES, 0.8)
    assert_allclose(np.quantile(draws, 0.1, axis=0), low, rtol=0.03)
    assert_allclose(np.quantile(draws, 0.9, axis=0), high, rtol=0.03)


def test_answers_do_not_depend_on_the_company_of_times(two):
    for curve in ("rate", "cumulative"):
        together = two.ratio(TIMES, curve=curve)
        alone = [two.ratio(t, curve=curve) for t in TIMES]
        assert_allclose(alone, together, rtol=1e-9)
    assert isinstance(two.ratio(3.0), float)
    assert two.ratio(TIMES.reshape(3, 1)).shape == (3, 1)


def test_simultaneous_bands_are_wider(two):
    inner = two.ratio_band(TIMES, 0.9)
    outer = two.ratio_band(TIMES, 0.9, "simultaneous")
    assert np.all(outer[0] < inner[0])
    assert np.all(outer[1] > inner[1])
    # whole curves lie inside with the probability asked for
    grid = np.linspace(0, 40, 61)[1:]
    low, high = two.difference_band(grid, 0.9, "simultaneous")
    b, a = (two._draws.of(grid, "rate", group, "curves") for group in "ba")
    draws = b - a
    assert np.mean(np.all((draws >= low) & (draws <= high), axis=1)) == pytest.approx(0.9, abs=0.02)


def test_the_reference_turns_the_comparison_round(two):
    back = compare(trial(), "arm", QUICK, reference="b", n_permutations=999, bayes_factor=False)
    assert back.groups == ["b", "a"]
    assert_allclose(
        back.ratio(40.0, curve="cumulative") * two.ratio(40.0, curve="cumulative"), 1.0, rtol=0.05
    )
    assert np.isnan(back.log_bayes_factor)


def test_a_real_difference_is_found_and_none_is_not(two):
    assert two.p_value < 0.01
    assert two.probabilities["same"] < 0.01
    assert two.log_bayes_factor > 2
    none = compare(trial(ratio=1.0), "arm", QUICK, n_permutations=999)
    assert none.p_value > 0.05
    assert none.log_bayes_factor < 0
    assert max(none.probabilities, key=none.probabilities.get) == "same"


def test_labels_and_row_order_change_nothing(two):
    panel = trial()
    frame = panel.to_frame()
    names = {label: f"s{k * 17 % 53}" for k, label in enumerate(panel.subjects)}
    frame["subject"] = frame["subject"].map(names)
    other = gp4c.PanelCounts.from_frame(
        frame.sample(frac=1.0, random_state=0), window=panel.window, time_unit="weeks"
    )
    again = compare(other, "arm", QUICK, n_permutations=999)
    assert again.p_value == two.p_value
    assert_allclose(again.ratio(TIMES), two.ratio(TIMES), rtol=1e-6)
    assert_allclose(again.log_bayes_factor, two.log_bayes_factor, atol=1e-6)


def test_three_groups_are_compared_at_once_and_in_pairs(three):
    table = three.pairwise()
    assert list(zip(table["first"], table["second"], strict=True)) == three.pairs
    assert three.p_value < 0.01
    same = table.query("first == 'a' and second == 'c'").iloc[0]
    assert same["p_value"] > 0.05
    assert (table["p_adjusted"] >= table["p_value"]).all()
    by_hand = 3 * table["p_value"].min()
    assert_allclose(table["p_adjusted"].min(), min(by_hand, 1.0))
    assert_allclose(three.ratio(20.0, pair=("a", "c")), 1.0, atol=0.4)
    with pytest.raises(ValueError, match="say which of the 3 groups"):
        three.ratio(20.0)
    with pytest.raises(ValueError, match="no group 'z'"):
        three.ratio(20.0, pair=("a", "z"))
    frame = three.to_frame([10.0, 20.0])
    assert len(frame) == 3 * 2 * 2


def test_words_and_tables(two):
    text = str(two)
    assert "arm: a (25), b (25) subjects" in text
    assert "Mean number of events by 40 weeks: b has 0." in text
    assert f"p = {two.p_value:.4f}" in text
    assert "nats" not in text
    frame = two.to_frame()
    assert len(frame) == 100
    assert (frame["ratio_low"] <= frame["ratio"]).all()
    assert (frame["ratio"] <= frame["ratio_high"]).all()


def answer(p_value, same, factor, test="level", weights="even"):
    """As much of a comparison as its words about test and evidence need."""
    strata = SimpleNamespace(name="centre", levels=["x", "y", "z"])
    overall = PermutationTest(1.0, p_value, False, np.array([[4, 6]]))
    return SimpleNamespace(
        p_value=p_value, test=test, groups=["a", "b"], hypotheses="some",
        probabilities={"same": same, "factor": factor, "curves": 1 - same - factor},
        tested=SimpleNamespace(
            overall=overall, strata=strata, blocks=None, weights=weights, scores=None,
            n_permutations=99, ratio=lambda first, second: 0.5, adjustment=None,
            cluster=None, permutes_centres=False,
        ),
        interval=lambda level: (0.25, np.inf),
        factor_interval=lambda level, pair: (0.5, 0.9),
    )  # fmt: skip


def test_test_and_probabilities_are_explained_and_disagreement_is_pointed_out():
    only_evidence = " ".join(conclusions(answer(0.2149, 0.01, 0.03)))
    assert "p = 0.2149 (99 permutations of subjects within 3 strata of centre)" in only_evidence
    assert "Ratio of rates by this test: 0.50 (95% 0.25 to infinity, the ratios" in only_evidence
    assert (
        "The data speak for a curve of its own for each group (probability 0.96; one shape at "
        "different levels 0.03, one common curve 0.01)."
    ) in only_evidence
    assert "whether a group has more events" in only_evidence
    assert "Here only the probabilities speak for a difference" in only_evidence
    only_test = " ".join(conclusions(answer(0.01, 0.8, 0.1)))
    assert "The data lean towards one common curve (probability 0.80; " in only_test
    assert "Here only the test" in only_test
    neither = conclusions(answer(0.4, 0.4, 0.35))
    assert any(line.startswith("The data do not tell the accounts apart") for line in neither)
    assert "so far differ at any time" in " ".join(conclusions(answer(0.5, 0.9, 0.05, "curve")))
    assert "above all late" in " ".join(conclusions(answer(0.5, 0.9, 0.05, weights="late")))
    shape = " ".join(conclusions(answer(0.2149, 0.11, 0.09)))
    assert "lean towards a difference (of shape, which the test does not look for)" in shape
    level = " ".join(conclusions(answer(0.2, 0.2, 0.7)))
    assert "lean towards a difference (of level)" in level
    missed = " ".join(conclusions(answer(0.2, 0.01, 0.03, "curve")))
    assert "The test may have missed it by chance, or the model may not fit" in missed
    for agreed in (answer(0.01, 0.02, 0.9), answer(0.5, 0.9, 0.05), answer(0.2, 0.3, 0.3)):
        assert "Here only" not in " ".join(conclusions(agreed))
    for found in (only_evidence, only_test):
        assert "nats" not in found


def test_a_lone_subject_a_group_without_events_and_strata_are_pointed_out():
    frame = trial().to_frame().query("subject % 25 < 6")
    first = frame["subject"].eq(frame["subject"].iloc[0])
    lone = gp4c.PanelCounts.from_frame(frame.assign(arm=np.where(first, "lone", "rest")))
    said = str(compare(lone, "arm", QUICK, n_permutations=99, bayes_factor=False))
    assert "lone has 1 subject: how much subjects differ is learned from all groups" in said
    assert "rest has 1" not in said
    frame.loc[frame["arm"] == "b", "count"] = 0
    frame["site"] = np.where(frame["subject"] % 2, "x", "y")
    quiet = gp4c.PanelCounts.from_frame(frame)
    said = str(compare(quiet, "arm", QUICK, strata="site", n_permutations=99, bayes_factor=False))
    assert "b has no events: its curve" in said
    assert "a has no events" not in said
    assert (
        "Strata of site belong to the test and its interval; not part of them: the curves." in said
    )


def test_maximised_hyper_parameters_give_no_probabilities():
    model = gp4c.GP4C(count_term="pointwise", hyper="optimize", effect=None)
    found = compare(trial(), "arm", model, n_permutations=99)
    assert np.isnan(found.log_bayes_factor)
    assert all(np.isnan(p) for p in found.probabilities.values())
    assert np.isnan(found.factor)
    assert "No probabilities of one curve, one shape or separate curves" in str(found)
    with pytest.raises(ValueError, match="needs the probabilities"):
        found.ratio(3.0, under="average")


def wavy_trial(shapes, seed=4):
    """Thirty subjects per arm, whose rates have these values at times 0, 10, ..., 40."""
    rows = []
    for k, (arm, shape) in enumerate(shapes.items()):
        panel, _ = gp4c.simulate_panel(
            (np.arange(0.0, 50.0, 10.0), np.array(shape)), window=(0, 40), n_subjects=30,
            n_intervals=8, random_state=seed + k,
        )  # fmt: skip
        rows.append(
            panel.to_frame().assign(arm=arm, subject=lambda f, a=arm: a + f["subject"].astype(str))
        )
    return gp4c.PanelCounts.from_frame(pd.concat(rows), window=(0, 40))


WAVES = [0.1, 0.6, 0.1, 0.5, 0.1]


@pytest.mark.parametrize(
    ("other", "name"),
    [(WAVES, "same"), ([0.6 * x for x in WAVES], "factor"), (WAVES[1:] + WAVES[3:4], "curves")],
)
def test_the_account_that_is_true_is_named(other, name):
    found = compare(wavy_trial({"a": WAVES, "b": other}), "arm", QUICK, n_permutations=99)
    assert max(found.probabilities, key=found.probabilities.get) == name
    assert found.probabilities[name] > (0.7 if name == "same" else 0.95)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)


def test_the_factor_is_that_of_poisson_counts(two):
    events = [trial().where(arm=arm).n_events for arm in "ab"]
    deviation = np.sqrt(1 / events[0] + 1 / events[1])
    low, high = two.factor_interval(0.95)
    # the prior N(0, ln²2) shrinks the logarithm a little
    shrunk = np.log(events[1] / events[0]) / (1 + (deviation / np.log(2)) ** 2)
    assert_allclose(np.log(two.factor), shrunk, atol=0.02)
    assert_allclose(np.log(high / low), 2 * 1.96 * deviation, rtol=0.1)


def test_curves_are_averaged_over_the_accounts(two):
    shares = two.probabilities
    draws = two._draws.of(TIMES, "rate", "b", "average") / two._draws.of(
        TIMES, "rate", "a", "average"
    )
    assert_allclose(np.mean(np.all(draws == 1.0, axis=1)), shares["same"], atol=1e-3)
    shape = np.isclose(np.ptp(draws, axis=1), 0.0, atol=1e-9)
    assert_allclose(shape.mean(), shares["same"] + shares["factor"], atol=1e-3)
    assert two.ratio(TIMES, under="same").tolist() == [1.0, 1.0, 1.0]
    assert_allclose(two.ratio(TIMES, under="factor"), two.factor, rtol=0.01)


def test_the_interval_leaves_out_one_if_and_only_if_the_test_rejects(two):
    for level in (0.5, 0.9, 0.99, 0.9999):
        low, high = two.interval(level)
        assert (low <= 1 <= high) == (two.p_value > 1 - level)
    p = two.p_value
    assert not two.interval(1 - p)[0] <= 1 <= two.interval(1 - p)[1]
    inner, outer = two.interval(0.8), two.interval(0.95)
    assert outer[0] < inner[0] < inner[1] < outer[1]


def test_intervals_of_pairs_agree_with_adjusted_p_values(three):
    table = three.intervals()
    outside = (table["low"] > 1) | (table["high"] < 1)
    assert outside.tolist() == (table["p_adjusted"] <= 0.05).tolist()
    assert outside.any()
    assert not outside.all()


def test_p_values_of_pairs_stand_beside_the_name_of_their_test(three):
    """Not beside the ratio of mean numbers, whose band is that of the curves."""
    numbers = [line for line in str(three).splitlines() if line.startswith("Mean number")]
    assert len(numbers) == 3
    assert not any("p = " in line for line in numbers)
    assert "Permutation tests of pairs (level; p-values by Holm's method): " in str(three)
    trend = compare(
        trial(n_arms=3), "arm", QUICK, n_permutations=99, bayes_factor=False, test="trend",
        scores={"a": 0, "b": 1, "c": 2},
    )  # fmt: skip
    assert "Permutation tests of pairs (level; p-values" in str(trend)
    assert "per unit of the score (a 0, b 1, c 2)" in str(trend.table())


@pytest.mark.parametrize(
    ("value", "text"), [(0.9961, "0.996"), (1.0, "1.00"), (0.5961, "0.60"), (1.00004, "1.00")]
)
def test_a_bound_beside_1_does_not_read_as_1(value, text):
    assert _ratio(value) == text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "dose"}, PanelDataError, "no covariate 'dose' of subjects; there are: arm"),
        ({"by": "arm", "reference": "z"}, PanelDataError, "no level 'z'"),
        ({"by": "arm", "test": "both"}, PanelDataError, "test must be"),
        ({"by": "arm", "test": "any", "weights": "early"}, PanelDataError, "weights go with"),
        ({"by": "arm", "scores": {"a": 1, "b": 2}}, PanelDataError, "scores go with"),
        ({"by": "arm", "model": gp4c.HomogeneousPoisson()}, TypeError, "gives no posterior"),
    ],
)
def test_bad_questions_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        compare(trial(), **options)


def test_groups_must_be_known_and_different():
    panel = trial()
    with pytest.raises(PanelDataError, match="one level only"):
        compare(panel.where(arm="a"), "arm", QUICK)
    frame = panel.to_frame()
    frame.loc[frame["subject"] == 4, "arm"] = None
    with pytest.raises(PanelDataError, match="missing for 1 subject: 4"):
        compare(gp4c.PanelCounts.from_frame(frame), "arm", QUICK)


def test_bad_bands_are_refused(two):
    with pytest.raises(OutsideWindowError):
        two.ratio(41.0)
    with pytest.raises(ValueError, match="level"):
        two.ratio_band(3.0, 1.2)
    with pytest.raises(ValueError, match="kind"):
        two.ratio_band(3.0, 0.9, "both")
    with pytest.raises(ValueError, match="curve"):
        two.ratio(3.0, curve="hazard")


def test_the_formula_of_the_model_is_what_is_adjusted_for():
    panel = gp4c.load_dataset("bladder")
    model = gp4c.GP4C(effect="gamma", bursts=True, formula="initial_number")
    found = compare(panel, "treatment", model, n_permutations=99, bayes_factor=False)
    assert found.tested.adjustment.formula == "initial_number"
    assert "Adjusted for initial_number: thiotepa has" in found.summary()


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "below 0.001"), (0.0004, "below 0.001"), (0.0005, "0.001"), (0.647, "0.647"),
     (0.9994, "0.999"), (1.0, "above 0.999")],
)  # fmt: skip
def test_a_share_of_draws_is_never_a_certainty(share, said):
    assert _probability(share) == said


@pytest.mark.parametrize(
    ("time", "said"), [(43.0, "43"), (28.944557, "28.94"), (1234.4, "1234"), (0.12345, "0.1235")]
)
def test_times_have_four_digits(time, said):
    assert few_digits(time) == said
