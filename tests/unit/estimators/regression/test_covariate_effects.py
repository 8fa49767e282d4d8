"""GP4C with covariates: effects, curves at covariates, scores, forecasts, files, scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import PanelDataError
from tolerances import ROUNDING, STANDARD_ERRORS

BLADDER = gp4c.load_dataset("bladder")
FORMULA = "initial_number + initial_size + treatment"
SINGLE = {"bursts": False}  # events come one by one, as in a Poisson regression
THIOTEPA = {"treatment": "thiotepa"}


@pytest.fixture(scope="module")
def poisson():
    return gp4c.GP4C(formula=FORMULA, effect=None, **SINGLE).fit(BLADDER)


@pytest.fixture(scope="module")
def frailty():
    return gp4c.GP4C(formula=FORMULA, **SINGLE).fit(BLADDER)


# -- estimates -----------------------------------------------------------------------------------


def rate_model(n_bins):
    """Poisson-process maximum likelihood: piecewise-constant rate, errors clustered by patient."""
    table = BLADDER.covariates
    z = np.column_stack(
        [table.initial_number, table.initial_size, (table.treatment == "thiotepa").astype(float)]
    )[BLADDER.subject_index]
    ends = np.quantile(np.repeat(BLADDER.stop, BLADDER.count), np.arange(1, n_bins) / n_bins)
    edges = np.unique(np.concatenate([[BLADDER.window[0]], ends, [BLADDER.window[1]]]))
    low, high = BLADDER.start[:, None], BLADDER.stop[:, None]
    overlap = np.maximum(np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1]), 0.0)

    def loss(x):
        rate, factor = np.exp(x[3:]), np.exp(z @ x[:3])
        mean = factor * (overlap @ rate)
        slope = 1.0 - BLADDER.count / mean
        gradient = np.concatenate([z.T @ (slope * mean), rate * (overlap.T @ (slope * factor))])
        return mean.sum() - BLADDER.count @ np.log(mean), gradient

    start = np.concatenate([np.zeros(3), np.full(len(edges) - 1, -2.0)])
    best = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7}).x
    # regression of the counts on z and on the share of each bin in the row's expected count: its
    # errors are those of the likelihood at its maximum
    rate = overlap * np.exp(best[3:])
    mean = np.exp(z @ best[:3]) * rate.sum(axis=1)
    X = np.column_stack([z, rate / rate.sum(axis=1, keepdims=True)])
    offset = np.log(mean) - X @ best
    fitted = sm.GLM(BLADDER.count, X, sm.families.Poisson(), offset=offset).fit(
        cov_type="cluster", cov_kwds={"groups": BLADDER.subject_index}
    )
    assert_allclose(fitted.params, best, atol=1e-3)
    return best[:3], fitted.bse[:3]


@pytest.mark.parametrize("n_bins", [1, 5, 10])
def test_bladder_agrees_with_the_poisson_process_rate_model(poisson, n_bins):
    coefficients, errors = rate_model(n_bins)
    ours = poisson.effects_
    assert ours["covariate"].tolist() == ["initial_number", "initial_size", "treatment[thiotepa]"]
    assert_allclose(ours["coefficient"], coefficients, atol=0.01)
    assert_allclose(ours["robust_se"], errors, rtol=0.05)
    assert np.all(ours["se"] < 0.6 * ours["robust_se"])  # counts are overdispersed


def test_constant_rates_give_the_regression_with_offset():
    panel, _ = gp4c.simulate_panel(
        0.3, n_subjects=60, covariates={"x": np.linspace(-1, 1, 60)}, coefficients={"x": 0.7},
        random_state=3,
    )  # fmt: skip
    # a prior without variation over time would be exactly this; the data ask for hardly any
    ours = gp4c.GP4C(formula="x", effect=None, **SINGLE).fit(panel)
    X = sm.add_constant(panel.covariates["x"].to_numpy()[panel.subject_index])
    offset = np.log(panel.exposure * (panel.stop - panel.start))
    other = sm.GLM(panel.count, X, sm.families.Poisson(), offset=offset).fit()
    assert_allclose(ours.effects_["coefficient"][0], other.params[1], atol=0.02 * other.bse[1])
    # the deviation of 10,000 weighted draws is known to about 1%
    assert_allclose(ours.effects_["se"][0], other.bse[1], rtol=0.04)


def test_the_table_is_arithmetic_of_coefficients_and_errors(frailty):
    table = frailty.effects_
    for errors, column in (("robust", "robust_se"), ("model", "se")):
        found = frailty.effect_table(0.9, errors=errors)
        low = np.exp(table["coefficient"] - 1.6448536 * table[column])
        assert_allclose(found["low"], low, rtol=1e-6)
        assert_allclose(found["z"], table["coefficient"] / table[column])
    assert_allclose(table["rate_ratio"], np.exp(table["coefficient"]))
    robust, jackknife = (frailty.effect_table(errors=name) for name in ("robust", "jackknife"))
    assert_allclose(robust["p_value"], 2 * (1 - _normal_cdf(np.abs(robust["z"]))), atol=1e-12)
    assert np.all(jackknife["high"] / jackknife["low"] > robust["high"] / robust["low"])


def test_few_subjects_have_the_jackknife_and_a_t_distribution(frailty):
    # 85 patients and three coefficients: 81 degrees of freedom, whose 97.5% point is 1.9897
    table, jackknife = frailty.effects_, frailty.effect_table(errors="jackknife")
    assert set(table["errors"]) == {"jackknife, t with 81 degrees of freedom"}
    assert_allclose(table["z"], jackknife["z"])
    error = table["coefficient"] / table["z"]
    assert_allclose(np.log(table["high"] / table["low"]) / (2 * error), 1.98969, rtol=1e-4)


def test_the_jackknife_is_that_of_leaving_subjects_out():
    # a constant rate, so that refits are quick: 16 refits without one subject each
    rng = np.random.default_rng(5)
    x = rng.standard_normal(16)
    panel, _ = gp4c.simulate_panel(
        0.3, window=(0.0, 10.0), n_subjects=16, n_intervals=2, covariates={"x": x},
        coefficients={"x": 0.4}, frailty=1.0, random_state=5,
    )  # fmt: skip
    options = {"formula": "x", "effect": None, "bursts": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gp4c.exceptions.GP4CWarning)
        every = gp4c.GP4C(**options).fit(panel)
        left = [
            gp4c.GP4C(**options).fit(panel[np.delete(np.arange(16), k)]).effects_["coefficient"][0]
            for k in range(16)
        ]
    refitted = np.sqrt(((np.array(left) - every.effects_["coefficient"][0]) ** 2).sum())
    row = every.effect_table(errors="jackknife").iloc[0]
    # one Newton step, and the error of the draws behind each posterior mean
    assert_allclose(row["coefficient"] / row["z"], refitted, rtol=0.12)


def test_errors_have_known_names(frailty):
    with pytest.raises(ValueError, match="errors must be"):
        frailty.effect_table(errors="none")


def _normal_cdf(x):
    from scipy.stats import norm

    return norm.cdf(x)


def test_frailty_shares_out_the_weight_of_busy_patients(frailty, poisson):
    assert frailty.effect_ == "gamma"
    assert "with subject effects over" in frailty.effect_choice_
    assert "odds above 1000 to 1" in frailty.effect_choice_
    # with frailty in the model its own errors are about those of the sandwich, which 85 subjects
    # leave uncertain by a tenth; without it the sandwich is two to three times as wide
    table = frailty.effects_
    assert_allclose(table["se"], table["robust_se"], rtol=0.3)
    # of those that are clearly not zero; the sign of the initial size is anybody's guess
    clear = np.abs(table["z"]) > 2
    assert clear.sum() == 2
    signs, others = np.sign(table["coefficient"]), np.sign(poisson.effects_["coefficient"])
    assert np.all((signs == others)[clear])


def test_row_order_labels_and_processes_change_nothing(frailty):
    frame = BLADDER.to_frame().sample(frac=1.0, random_state=4)
    again = gp4c.GP4C(formula=FORMULA, **SINGLE).fit(
        PanelCounts.from_frame(frame, window=BLADDER.window)
    )
    pd.testing.assert_frame_equal(again.effects_, frailty.effects_, check_exact=True)


def test_the_unit_of_a_covariate_is_the_unit_of_its_coefficient(frailty):
    frame = BLADDER.to_frame()
    frame["initial_number"] = 10.0 * frame["initial_number"] + 3.0
    other = gp4c.GP4C(formula=FORMULA, **SINGLE).fit(
        PanelCounts.from_frame(frame, window=BLADDER.window)
    )
    table, expected = other.effects_, frailty.effects_
    scale = np.array([10.0, 1.0, 1.0])
    assert_allclose(table["coefficient"] * scale, expected["coefficient"], rtol=1e-4, atol=1e-6)
    assert_allclose(table["robust_se"] * scale, expected["robust_se"], rtol=1e-4)
    assert_allclose(other.intensity(12.0), frailty.intensity(12.0), rtol=1e-4)


def test_the_reference_level_changes_the_sign_alone(frailty):
    turned = FORMULA.replace("treatment", "C(treatment, contr.treatment('thiotepa'))")
    other = gp4c.GP4C(formula=turned, **SINGLE).fit(BLADDER)
    assert other.effects_["covariate"][2] == "treatment[placebo]"
    # other draws of the same posterior: means are known to deviation / √(effective draws)
    error = frailty.effects_["se"][2] * np.sqrt(2 / frailty.effective_draws_)
    gap = other.effects_["coefficient"][2] + frailty.effects_["coefficient"][2]
    assert abs(gap) < STANDARD_ERRORS * error
    low, high = frailty.intensity_band(12.0, 0.68)
    error = (high - low) / 2 * np.sqrt(2 / frailty.effective_draws_)
    assert abs(other.intensity(12.0) - frailty.intensity(12.0)) < STANDARD_ERRORS * error


def test_covariates_that_change_over_time_are_found():
    # the dose of each interval is drawn anew; the rate doubles per unit
    rng = np.random.default_rng(8)
    n, cuts = 80, np.linspace(0.0, 10.0, 6)
    dose = rng.integers(0, 2, (n, 5)).astype(float)
    mean = 0.4 * 2.0 * np.exp(np.log(2.0) * dose)
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n), 5),
            "start": np.tile(cuts[:-1], n),
            "stop": np.tile(cuts[1:], n),
            "count": rng.poisson(mean).ravel(),
            "dose": dose.ravel(),
        }
    )
    model = gp4c.GP4C(formula="dose", effect=None, **SINGLE).fit(PanelCounts.from_frame(frame))
    row = model.effects_.iloc[0]
    assert row["low"] < 2.0 < row["high"]
    assert row["p_value"] < 1e-4
    # the same by a regression with a level per interval
    X = np.column_stack([dose.ravel(), np.tile(np.eye(5), (n, 1))])
    other = sm.GLM(frame["count"], X, sm.families.Poisson()).fit()
    assert_allclose(row["coefficient"], other.params.iloc[0], atol=0.03 * other.bse.iloc[0])
    assert_allclose(row["se"], other.bse.iloc[0], rtol=0.04)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_observed_and_expected_events_agree_along_every_covariate(effect, poisson, frailty):
    model = poisson if effect is None else frailty
    seen = model._adjusted(BLADDER)
    rows = seen.exposure * model.posterior_.expected_integral(seen.start, seen.stop)
    expected = np.bincount(seen.subject_index, rows)
    if effect is None:
        table = BLADDER.covariates
        totals = np.bincount(BLADDER.subject_index, BLADDER.count)
        for column in (table.initial_number, table.treatment == "thiotepa"):
            # at the maximum of the likelihood they are equal; the posterior mean is off by a part
            # of the deviation of these totals, 1/√402 = 5% for counts that come one by one
            assert_allclose(column @ expected, column @ totals, rtol=0.01)
    else:
        assert_allclose(model.subject_expected_.sum(), expected.sum(), rtol=0.05)


# -- curves --------------------------------------------------------------------------------------

TIMES = np.array([1.0, 12.0, 40.0])


@pytest.mark.parametrize("method", ["intensity", "cumulative"])
def test_curves_at_covariates_are_multiples(frailty, method):
    curve = getattr(frailty, method)
    # multiples draw by draw; a ratio of means differs from exp of a mean by about the variance of
    # the coefficient, which is 0.1
    ratio = frailty.effects_["rate_ratio"][2]
    two = [curve(TIMES, covariates={"treatment": level}) for level in ("placebo", "thiotepa")]
    assert_allclose(two[1] / two[0], ratio, rtol=0.05)
    draws = frailty.posterior_
    name = {"intensity": "intensities", "cumulative": "integrals"}[method]
    where = (TIMES,) if method == "intensity" else (np.zeros(3), TIMES)
    share = (BLADDER.covariates.treatment == "thiotepa").mean()
    each = getattr(draws, name)(*where) * np.exp((1 - share) * draws.coefficients[2])
    assert_allclose(two[1], each @ draws.weights, rtol=1e-10)
    assert isinstance(curve(12.0, covariates=THIOTEPA), float)
    assert_allclose(curve(TIMES, covariates={}), curve(TIMES), **ROUNDING)


def test_expected_counts_follow(frailty):
    z = {"initial_number": 4, **THIOTEPA}
    difference = frailty.cumulative(20.0, covariates=z) - frailty.cumulative(10.0, covariates=z)
    assert_allclose(frailty.expected_counts(10.0, 20.0, covariates=z), difference, rtol=1e-9)


def test_known_subjects_have_their_own_curves(frailty):
    labels = BLADDER.subjects[[0, 50]].tolist()
    curves = frailty.intensity(TIMES, subjects=labels)
    assert curves.shape == (2, 3)
    # the average curve at the estimates of coefficients and effect: what was seen of the subject
    # fixes the product of these two, so that a mean over coefficients alone would be too high
    effects = frailty.coefficients_
    row = BLADDER.covariates.loc[labels[1], list(BLADDER.covariates)[1:]].to_dict()
    factor = np.exp(effects.log_factor(effects.profile(row)))
    expected = frailty.subject_effects_[50] * factor * frailty.intensity(TIMES)
    assert_allclose(curves[1], expected, rtol=1e-9)
    assert_allclose(frailty.intensity(TIMES, subjects=labels[1]), curves[1], **ROUNDING)
    with pytest.raises(KeyError, match="nobody"):
        frailty.intensity(1.0, subjects="nobody")
    with pytest.raises(ValueError, match="exclude each other"):
        frailty.intensity(1.0, subjects=labels[0], covariates={})


@pytest.mark.parametrize("curve", ["intensity", "cumulative"])
def test_bands_at_covariates_have_both_uncertainties(frailty, curve):
    band, mean = getattr(frailty, f"{curve}_band"), getattr(frailty, curve)
    low, high = band(TIMES, 0.9)
    same_low, same_high = band(TIMES, 0.9, covariates={})
    assert_allclose(same_low, low, rtol=2e-3)
    assert_allclose(same_high, high, rtol=2e-3)
    at_low, at_high = band(TIMES, 0.9, covariates=THIOTEPA)
    inside = mean(TIMES, covariates=THIOTEPA)
    assert np.all((at_low < inside) & (inside < at_high))
    assert np.all(at_high / at_low > high / low)


def test_bands_at_covariates_are_quantiles_of_draws(frailty):
    draws = frailty.sample_intensity(TIMES, 20_000, 5, covariates=THIOTEPA)
    low, high = frailty.intensity_band(TIMES, 0.8, covariates=THIOTEPA)
    for edge, probability in ((low, 0.1), (high, 0.9)):
        share = (draws < edge).mean(axis=0)
        assert_allclose(share, probability, atol=STANDARD_ERRORS * np.sqrt(0.09 / 20_000) + 2e-3)
    wide = frailty.intensity_band(TIMES, 0.8, "simultaneous", covariates=THIOTEPA)
    assert np.all(wide[0] < low)
    assert np.all(wide[1] > high)


# -- scores and forecasts ------------------------------------------------------------------------


def test_scores_are_those_of_a_panel_with_multiplied_exposure(frailty):
    one = BLADDER[[60]]
    value, error = frailty.score_with_error(one)
    row = BLADDER.covariates.iloc[60][["initial_number", "initial_size", "treatment"]].to_dict()
    factor = frailty.intensity(5.0, covariates=row) / frailty.intensity(5.0)
    rng, n = np.random.default_rng(6), 40_000
    effects = rng.gamma(frailty.frailty_shape_, 1 / frailty.frailty_shape_, n)
    mass = frailty.posterior_.sample_integrals(one.start, one.stop, n, rng)
    means = factor * effects[:, None] * mass
    logs = (one.count * np.log(means) - means).sum(axis=1)
    direct = logsumexp(logs) - np.log(n)
    spread = np.exp(logs - direct).std() / np.sqrt(n)
    # by hand α and β are at their estimates; uncertain, they move ln p by some hundredths
    assert abs(value - direct) < STANDARD_ERRORS * np.hypot(error, spread) + 0.05


def test_covariates_help_to_predict(frailty):
    plain = gp4c.GP4C(effect="gamma", **SINGLE).fit(BLADDER)
    assert frailty.score_subjects(BLADDER).sum() > plain.score_subjects(BLADDER).sum() + 3.0


def test_new_subjects_are_forecast_at_their_covariates(frailty):
    z = {"initial_number": 6, **THIOTEPA}
    found = frailty.forecast(10.0, 30.0, covariates=z, n_draws=40_000)
    # both average over the draws of curve and coefficients, the forecast over 40,000 picks of them
    assert_allclose(found.mean, frailty.expected_counts(10.0, 30.0, covariates=z), rtol=1e-3)
    average = frailty.forecast(10.0, 30.0)
    assert_allclose(average.mean, frailty.expected_counts(10.0, 30.0), rtol=1e-9)
    assert_allclose(found.draws.mean(), found.mean, atol=5 * found.draws.std() / np.sqrt(40_000))


def test_known_subjects_keep_their_covariates(frailty):
    label = BLADDER.subjects[50]
    own = frailty.forecast(40.0, 50.0, subjects=label)
    curve = frailty.expected_counts(40.0, 50.0, subjects=label)
    assert_allclose(own.mean, curve, rtol=0.15)  # effect and curve are dependent
    same = frailty.forecast(40.0, 50.0, subjects=label, history=BLADDER)
    assert_allclose(same.mean, own.mean, rtol=1e-9)


def test_known_subjects_may_be_asked_about_under_other_covariates(frailty):
    # what was seen of a subject was seen under its own: only the future is multiplied
    label = BLADDER.where(treatment="placebo").subjects[5]
    options = {"subjects": label, "n_draws": 40_000}
    own = frailty.forecast(40.0, 50.0, **options)
    treated = frailty.forecast(40.0, 50.0, covariates=THIOTEPA, **options)
    table = frailty.effects_
    ratio = float(table.loc[table["covariate"].str.contains("thiotepa"), "rate_ratio"].iloc[0])
    assert_allclose(treated.mean / own.mean, ratio, rtol=0.1)  # averaged over draws of β
    assert "Covariates are as given: treatment=thiotepa." in treated.note
    same = frailty.forecast(40.0, 50.0, covariates={"treatment": "placebo"}, **options)
    assert_allclose(same.mean, own.mean, rtol=1e-9)
    stored = frailty.forecast(40.0, 50.0, covariates=THIOTEPA, history=BLADDER, **options)
    assert_allclose(stored.mean, treated.mean, rtol=1e-9)
    with pytest.raises(ValueError, match="the formula has no covariate 'dose'"):
        frailty.forecast(40.0, 50.0, covariates={"dose": 1}, **options)


def test_diagnostics_know_the_covariates(frailty):
    from gp4c.analysis import diagnostics

    table = diagnostics.contributions(frailty, BLADDER)
    expected = frailty.subject_expected_
    # one averages exp(βᵀz) over draws, the other has it at the estimate: they part far from z = 0
    assert_allclose(np.median(table["expected"] / expected), 1.0, rtol=0.1)
    assert np.corrcoef(np.log(table["expected"]), np.log(expected))[0, 1] > 0.99
    means = diagnostics.pit(frailty, BLADDER, per="subject")["expected"]
    assert np.corrcoef(np.log(means), np.log(expected))[0, 1] > 0.99


def test_pictures_of_subjects_know_the_covariates(frailty):
    from matplotlib.figure import Figure

    from gp4c.reporting.figures.subject_plots import plot_subject

    axes = plot_subject(frailty, BLADDER, BLADDER.subjects[50], Figure().subplots())
    drawn = axes.get_lines()[1].get_ydata()[-1]
    expected = frailty.subject_effects_[50] * frailty.subject_expected_[50]
    assert_allclose(drawn, expected, rtol=0.05)  # the posterior widened for frailty


# -- errors --------------------------------------------------------------------------------------


def test_levels_that_the_fit_has_not_seen_are_named(frailty):
    frame = BLADDER.to_frame()
    frame.loc[frame["subject"] == 3, "treatment"] = "pyridoxine"
    other = PanelCounts.from_frame(frame, window=BLADDER.window)
    with pytest.raises(PanelDataError, match="no level 'pyridoxine' in the fit"):
        frailty.score(other)


def test_missing_covariates_are_an_error_or_dropped():
    frame = BLADDER.to_frame().astype({"initial_size": float})
    frame.loc[frame["subject"] == 3, "initial_size"] = np.nan
    panel = PanelCounts.from_frame(frame, window=BLADDER.window)
    with pytest.raises(PanelDataError, match="'initial_size' is missing for 1 subject: 3"):
        gp4c.GP4C(formula=FORMULA, **SINGLE).fit(panel)
    dropped = gp4c.GP4C(formula=FORMULA, missing="drop", **SINGLE).fit(panel)
    without = gp4c.GP4C(formula=FORMULA, **SINGLE).fit(BLADDER.where(subject=lambda s: s != 3))
    assert dropped.data_summary_["n_subjects"] == 84
    pd.testing.assert_frame_equal(dropped.effects_, without.effects_)
    with pytest.raises(PanelDataError, match="missing must be"):
        gp4c.GP4C(formula=FORMULA, missing="impute", **SINGLE).fit(panel)


def test_a_group_without_events_has_no_finite_effect():
    frame = BLADDER.to_frame()
    frame.loc[frame["treatment"] == "thiotepa", "count"] = 0
    with pytest.raises(PanelDataError, match=r"'treatment\[thiotepa\]' has no finite estimate"):
        gp4c.GP4C(formula="treatment", **SINGLE).fit(PanelCounts.from_frame(frame))
    frame["count"] = 0
    with pytest.raises(PanelDataError, match="no events"):
        gp4c.GP4C(formula="treatment", **SINGLE).fit(PanelCounts.from_frame(frame))


@pytest.mark.parametrize("options", [{"effect": "weight"}, {"optimizer": "vem"}])
def test_what_does_not_go_with_a_formula_is_refused(options):
    with pytest.raises(ValueError, match="formula= goes with"):
        gp4c.GP4C(formula="treatment", count_term="exact", **options).fit(BLADDER)


def test_without_a_formula_there_are_no_effects():
    model = gp4c.GP4C(effect="gamma", **SINGLE).fit(BLADDER)
    assert model.effects_.empty
    assert "rate_ratio" in model.effects_
    assert model.coefficients_ is None
    with pytest.raises(ValueError, match="formula"):
        model.intensity(1.0, covariates=THIOTEPA)


# -- files and scikit-learn ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "formula", ["treatment * log(initial_number)", "C(initial_number > 1)", "poly(initial_size, 2)"]
)
def test_saved_models_keep_their_covariates(formula, tmp_path):
    if ">" in formula:
        formula = "treatment + scale(initial_size)"
    model = gp4c.GP4C(formula=formula, effect="gamma", **SINGLE).fit(BLADDER)
    model.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    pd.testing.assert_frame_equal(again.effects_, model.effects_, check_exact=True)
    z = {"initial_size": 2} if "size" in formula else THIOTEPA
    assert again.intensity(12.0, covariates=z) == model.intensity(12.0, covariates=z)
    np.testing.assert_array_equal(again.score_subjects(BLADDER), model.score_subjects(BLADDER))
    label = BLADDER.subjects[7]
    assert again.forecast(50, 60, subjects=label).mean == model.forecast(50, 60, label).mean


def test_scikit_learn_searches_over_formulas():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    model = gp4c.GP4C(formula="treatment", effect="gamma", n_inducing=8, **SINGLE)
    assert clone(model).formula == "treatment"
    found = GridSearchCV(model, {"formula": [None, "treatment", FORMULA]}, cv=3).fit(BLADDER)
    assert np.all(np.isfinite(found.cv_results_["mean_test_score"]))
    assert found.best_estimator_.formula == found.best_params_["formula"]


def test_the_sampler_agrees_about_coefficients():
    panel = BLADDER[:30]
    options = {"formula": "initial_number", "effect": "gamma", "n_inducing": 6}
    options["hyper"] = "optimize"
    weighted = gp4c.GP4C(**options, **SINGLE).fit(panel)
    sampled = gp4c.GP4C(**options, **SINGLE, method="mcmc", random_state=1).fit(panel)
    row, expected = sampled.effects_.iloc[0], weighted.effects_.iloc[0]
    # the sampler's few thousand draws are dependent: its own halves differ by a few tenths
    assert abs(row["coefficient"] - expected["coefficient"]) < 0.3 * expected["se"]
    assert_allclose(sampled.cumulative(30.0), weighted.cumulative(30.0), rtol=0.15)
