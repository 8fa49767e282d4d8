"""GP4C and GP4CW as a user sees them: identities at the optimum, curves, bands, scores."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import simpson
from scipy.special import logsumexp

import gp4c
from gp4c.data.events import RecurrentEvents
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.variational.hyper import MAX_INDUCING, STRETCH
from gp4c.model.kernels import KERNELS
from problems import visits_panel
from tolerances import NEVER_DOWN, ROUNDING, STANDARD_ERRORS

WINDOW = (2.0, 26.0)
PANEL = visits_panel(71, 12, 4, level=3.0, window=WINDOW, frailty=1.5)
TIMES = np.linspace(*WINDOW, 25)
BASE = {"hyper": "optimize", "tol": 1e-8}
SETTINGS = {
    "lemma2": {"count_term": "lemma2", "effect": None},
    "zero-mean": {"count_term": "lemma2", "effect": None, "mean": 0.0},
    "pointwise": {"count_term": "pointwise", "effect": None, "kernel": "matern52"},
    "exact": {"count_term": "exact", "effect": None, "n_inducing": 8},
    "gamma": {"count_term": "lemma2", "effect": "gamma"},
    "weight": {"count_term": "lemma2", "effect": "weight"},
}


@pytest.fixture(scope="module")
def models() -> dict[str, gp4c.GP4C]:
    return {name: gp4c.GP4C(**BASE, **chosen).fit(PANEL) for name, chosen in SETTINGS.items()}


every_model = pytest.mark.parametrize("name", sorted(SETTINGS))


# -- the objective -------------------------------------------------------------------------------


@every_model
def test_the_objective_is_the_sum_of_its_terms(name: str, models: dict[str, gp4c.GP4C]) -> None:
    terms = models[name].terms_
    total = terms.counts + terms.events - terms.exposure - terms.kl + terms.constant
    assert_allclose(models[name].objective_, total, **ROUNDING)
    assert terms.kl > 0
    assert terms.events == 0.0


@every_model
def test_fits_converge_and_never_step_down(name: str, models: dict[str, gp4c.GP4C]) -> None:
    model = models[name]
    assert model.converged_
    assert model.n_iter_ >= 1
    assert np.diff(model.history_).min() >= -NEVER_DOWN
    assert_allclose(model.history_[-1], model.objective_, atol=1e-6)


@every_model
def test_the_paper_bound_is_below_the_evidence_bound(
    name: str, models: dict[str, gp4c.GP4C]
) -> None:
    model = models[name]
    # Lemma 2 gives away its constant per event where f is well known, as here
    assert 0.5 * PANEL.n_events < model.elbo_gap() < 1.2704 * PANEL.n_events
    own = model.elbo_ - model.objective_
    if name == "exact":
        assert own == 0.0
    elif name == "pointwise":
        assert 0.0 <= own < 0.1 * PANEL.n_events
    else:
        assert own == model.elbo_gap()


def test_the_gap_of_an_exact_fit_depends_on_b_as_the_paper_says() -> None:
    chosen = {**BASE, **SETTINGS["exact"]}
    gaps = [gp4c.GP4C(**chosen, b=b).fit(PANEL).elbo_gap() for b in (0.0, 0.3, 1.0)]
    assert gaps == sorted(gaps, reverse=True)  # b = 1 keeps all of the variance
    assert gaps[0] - gaps[2] > 0.01 * PANEL.n_events


@every_model
def test_at_the_optimum_expected_and_observed_events_agree(
    name: str, models: dict[str, gp4c.GP4C]
) -> None:
    # (g, √γ) → c (g, √γ) leaves the KL alone: the derivative by ln c is Σm − Σ υ_k R_k (maths, 6)
    model = models[name]
    # the fit's own expectations where the posterior is widened afterwards
    if name == "gamma":
        each, effects = model.subject_expected_, model.subject_effects_
    elif name in ("exact", "pointwise"):
        each, effects = np.array([model.terms_.exposure]), 1.0
    else:
        rows = PANEL.exposure * model.expected_counts(PANEL.start, PANEL.stop)
        each = np.bincount(PANEL.subject_index, rows)
        effects = 1.0 if model.subject_effects_ is None else model.subject_effects_
    assert_allclose((effects * each).sum(), PANEL.n_events, rtol=2e-4)


def test_a_fixed_mean_is_in_the_users_unit(models: dict[str, gp4c.GP4C]) -> None:
    assert models["zero-mean"].mean_ == 0.0
    fixed = gp4c.GP4C(count_term="lemma2", effect=None, hyper="optimize", mean=0.4).fit(PANEL)
    assert_allclose(fixed.mean_, 0.4, rtol=1e-12)
    assert fixed.objective_ <= models["lemma2"].objective_ + 1e-6


@pytest.mark.parametrize("name", ["lemma2", "pointwise", "gamma"])
def test_inducing_inputs_resolve_the_length_scale_found(
    name: str, models: dict[str, gp4c.GP4C]
) -> None:
    model = models[name]
    spacing = (WINDOW[1] - WINDOW[0]) / (model.n_inducing_ - 1) / model.length_scale_
    finest = STRETCH * KERNELS[model.kernel].spacing
    assert spacing <= finest + 1e-12 or model.n_inducing_ == MAX_INDUCING


def test_more_inducing_inputs_do_not_change_the_answer(models: dict[str, gp4c.GP4C]) -> None:
    denser = gp4c.GP4C(**BASE, **SETTINGS["lemma2"], n_inducing=2 * models["lemma2"].n_inducing_)
    denser.fit(PANEL)
    assert_allclose(denser.objective_, models["lemma2"].objective_, atol=0.05)
    assert_allclose(denser.intensity(TIMES), models["lemma2"].intensity(TIMES), rtol=0.02)


def test_an_exhausted_budget_is_announced() -> None:
    model = gp4c.GP4C(count_term="lemma2", effect=None, hyper="optimize", max_iter=1, n_inducing=8)
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or loosen tol"):
        model.fit(PANEL)
    assert not model.converged_
    assert np.all(np.isfinite(model.intensity(TIMES)))


# -- curves and bands ----------------------------------------------------------------------------


@every_model
def test_the_intensity_is_the_slope_of_the_cumulative(
    name: str, models: dict[str, gp4c.GP4C]
) -> None:
    model, h = models[name], 1e-4
    inner = TIMES[1:-1]
    slope = (model.cumulative(inner + h) - model.cumulative(inner - h)) / (2 * h)
    assert_allclose(model.intensity(inner), slope, rtol=1e-5)


@every_model
def test_the_cumulative_rises_from_zero(name: str, models: dict[str, gp4c.GP4C]) -> None:
    values = models[name].cumulative(np.linspace(*WINDOW, 400))
    assert values[0] == 0.0
    assert np.all(np.diff(values) > 0)
    assert_allclose(models[name].expected_counts(*WINDOW), values[-1], rtol=1e-12)


@every_model
def test_bands_are_ordered_and_nested(name: str, models: dict[str, gp4c.GP4C]) -> None:
    model = models[name]
    for band in (model.intensity_band, model.cumulative_band):
        narrow, wide = band(TIMES[1:], 0.5), band(TIMES[1:], 0.95)
        assert np.all((wide[0] < narrow[0]) | (wide[0] == 0))
        assert np.all(narrow[0] < narrow[1])
        assert np.all(narrow[1] < wide[1])
        assert np.all(wide[0] >= 0)


def test_bands_hold_the_draws_they_should(models: dict[str, gp4c.GP4C]) -> None:
    model, n = models["exact"], 4000
    draws = model.sample_intensity(TIMES, n, random_state=1)
    low, high = model.intensity_band(TIMES, 0.8)
    share = ((draws > low) & (draws < high)).mean(axis=0)
    error = STANDARD_ERRORS * np.sqrt(0.16 / n)
    sure = low > 0.05  # of not being zero
    assert_allclose(share[sure], 0.8, atol=error)
    assert np.all(share > 0.8 - error)
    assert np.all(share[low == 0] > 0.87)  # one tail less
    assert np.any(low == 0)
    assert sure.sum() > 10


def share_of_curves_inside(model: gp4c.GP4C, n_times: int) -> float:
    times = np.linspace(*WINDOW, n_times + 1)[1:]
    draws = model.sample_intensity(times, 2000, random_state=2)
    low, high = model.intensity_band(times, 0.9, kind="simultaneous")
    narrow = model.intensity_band(times, 0.9)
    assert np.all((low <= narrow[0]) & (high >= narrow[1]))
    # the level is that of equal tails; where the rate may be zero the band holds more
    posterior = model.posterior_
    draw = partial(model._draw_intensities, posterior)
    tails = np.array(model._tails(0.9, "simultaneous", draw))
    equal = posterior.intensity_quantile(times, tails)
    assert np.all(low <= equal[0] * (1 + 1e-9))
    assert_allclose(high, equal[1], rtol=1e-9)
    return float(np.all((draws >= equal[0]) & (draws <= high), axis=1).mean())


def test_a_simultaneous_band_holds_whole_curves(models: dict[str, gp4c.GP4C]) -> None:
    # at fewer times than the 400 the band is made for, a few more curves stay inside
    assert 0.87 < share_of_curves_inside(models["lemma2"], 60) < 0.995


def test_a_simultaneous_band_holds_however_closely_one_looks(models: dict[str, gp4c.GP4C]) -> None:
    assert_allclose(share_of_curves_inside(models["lemma2"], 400), 0.9, atol=0.03)


def test_the_band_of_the_cumulative_starts_at_zero(models: dict[str, gp4c.GP4C]) -> None:
    low, high = models["lemma2"].cumulative_band(TIMES)
    assert low[0] == 0.0
    assert_allclose(high[0], 0.0, atol=1e-12)


def test_far_outside_the_intensity_is_the_priors(models: dict[str, gp4c.GP4C]) -> None:
    model = models["lemma2"]
    far = WINDOW[1] + 30 * model.length_scale_
    level = model.mean_**2 + model.variance_
    assert_allclose(model.intensity(far, extrapolate=True), level, rtol=1e-9)


def test_before_the_window_the_cumulative_is_negative_and_its_band_ordered(
    models: dict[str, gp4c.GP4C],
) -> None:
    model, t = models["lemma2"], WINDOW[0] - 3.0
    value = model.cumulative(t, extrapolate=True)
    low, high = model.cumulative_band(t, extrapolate=True)
    assert value < 0
    assert low < value < high


# -- subject effects -----------------------------------------------------------------------------


def test_gp4cw_is_gp4c_with_weights(models: dict[str, gp4c.GP4C]) -> None:
    same = gp4c.GP4CW(tol=1e-8).fit(PANEL)
    assert same.objective_ == models["weight"].objective_
    assert np.array_equal(same.intensity(TIMES), models["weight"].intensity(TIMES))


def test_weights_have_mean_one_and_fit_every_total(models: dict[str, gp4c.GP4C]) -> None:
    model = models["weight"]
    effects = model.subject_effects_
    assert effects is not None
    assert_allclose(effects.mean(), 1.0, **ROUNDING)
    rows = PANEL.exposure * model.expected_counts(PANEL.start, PANEL.stop)
    expected = np.bincount(PANEL.subject_index, rows)
    totals = np.bincount(PANEL.subject_index, PANEL.count)
    seen = totals > 0  # the others have the smallest weight
    assert_allclose((effects * expected)[seen], totals[seen], rtol=1e-9)


def test_expected_counts_of_subjects_go_with_their_weights(models: dict[str, gp4c.GP4C]) -> None:
    model = models["weight"]
    rows = PANEL.exposure * model.expected_counts(PANEL.start, PANEL.stop)
    assert_allclose(model.subject_expected_, np.bincount(PANEL.subject_index, rows), rtol=1e-9)


def test_gamma_effects_are_shrunk_weights(models: dict[str, gp4c.GP4C]) -> None:
    model = models["gamma"]
    alpha, effects = model.frailty_shape_, model.subject_effects_
    assert effects is not None
    totals = np.bincount(PANEL.subject_index, PANEL.count)
    assert_allclose(effects, (alpha + totals) / (alpha + model.subject_expected_), rtol=1e-9)


def inflation(model: gp4c.GP4C) -> float:
    """Expected counts of the posterior relative to those of the fit."""
    rows = PANEL.exposure * model.expected_counts(PANEL.start, PANEL.stop)
    return float(rows.sum() / model.subject_expected_.sum())


def test_widening_for_frailty_leaves_the_mean_nearly_alone() -> None:
    model = gp4c.GP4C(count_term="pointwise", effect="gamma", hyper="optimize", n_inducing=8)
    assert_allclose(inflation(model.fit(PANEL)), 1.0, atol=0.03)


def test_widening_for_frailty_leaves_the_mean_alone_with_the_papers_bound(
    models: dict[str, gp4c.GP4C],
) -> None:
    assert_allclose(inflation(models["gamma"]), 1.0, atol=0.05)


def test_frailty_is_found_where_there_is_some(models: dict[str, gp4c.GP4C]) -> None:
    assert 0.3 < models["gamma"].frailty_shape_ < 8.0
    assert models["gamma"].objective_ > models["lemma2"].objective_ + 5.0


# -- exact events beside counts ------------------------------------------------------------------


def test_exact_times_are_the_limit_of_short_intervals() -> None:
    # one subject as event times, or as a panel of tiny intervals around its events: the bounds
    # differ by the log widths of the intervals
    times, width = np.array([4.0, 9.5, 10.0, 17.0, 25.0]), 1e-5
    events = RecurrentEvents.from_frame(
        {"id": np.zeros(5, dtype=int), "t": times}, subject="id", time="t", window=WINDOW
    )
    cuts = np.sort(np.concatenate([[WINDOW[0], WINDOW[1]], times - width / 2, times + width / 2]))
    count = np.zeros(len(cuts) - 1, dtype=int)
    count[1::2] = 1
    rows = {
        "subject": np.concatenate([PANEL.subject_index, np.full(len(count), 99)]),
        "start": np.concatenate([PANEL.start, cuts[:-1]]),
        "stop": np.concatenate([PANEL.stop, cuts[1:]]),
        "count": np.concatenate([PANEL.count, count]),
    }
    as_panel = PanelCounts.from_frame(rows, window=WINDOW)
    settings = {"count_term": "pointwise", "effect": None, "n_inducing": 8, **BASE}
    fine = gp4c.GP4C(**settings).fit(as_panel)
    mixed = gp4c.GP4C(**settings).fit(PANEL, events=events)
    assert_allclose(fine.objective_ - 5 * np.log(width), mixed.objective_, atol=1e-3)
    assert_allclose(fine.intensity(TIMES), mixed.intensity(TIMES), rtol=1e-3)


# -- scores --------------------------------------------------------------------------------------

HELD_OUT = visits_panel(72, 6, 4, level=3.0, window=WINDOW, frailty=1.5)


def paper_score(model: gp4c.GP4C, panel: PanelCounts, n: int) -> tuple[float, float]:
    """Appendix D as printed: draws of f² on a grid, linear interpolation, Simpson's rule."""
    grid = np.linspace(*WINDOW, 3001)
    total = np.zeros(n)
    draws = model.sample_intensity(grid, n, random_state=9)
    for low, high, m in zip(panel.start, panel.stop, panel.count, strict=True):
        x = np.linspace(low, high, 501)
        index = np.clip(((x - WINDOW[0]) / (grid[1] - grid[0])).astype(int), 0, 2999)
        share = (x - grid[index]) / (grid[1] - grid[0])
        rate = (1 - share) * draws[:, index] + share * draws[:, index + 1]
        mass = simpson(rate, x=x, axis=1)
        total += m * np.log(mass) - mass
    value = logsumexp(total) - np.log(n)
    return float(value), float(np.exp(total - value).std() / np.sqrt(n))


def test_the_score_is_the_papers_test_likelihood(models: dict[str, gp4c.GP4C]) -> None:
    model = models["lemma2"]
    expected, error = paper_score(model, HELD_OUT, 2000)
    ours, own_error = model.score_with_error(HELD_OUT, n_draws=8000)
    assert own_error < 0.2
    assert abs(ours - expected) < STANDARD_ERRORS * np.hypot(error, own_error)


def test_scores_of_subjects_and_constants_add_up(models: dict[str, gp4c.GP4C]) -> None:
    model = models["lemma2"]
    each = model.score_subjects(HELD_OUT)
    assert each.shape == (HELD_OUT.n_subjects,)
    assert_allclose(model.score(HELD_OUT, joint=False), each.sum(), **ROUNDING)
    plain, full = model.score(HELD_OUT), model.score(HELD_OUT, constant=True)
    assert_allclose(plain - full, HELD_OUT.log_factorials, rtol=1e-10)


def test_the_same_question_gets_the_same_score(models: dict[str, gp4c.GP4C]) -> None:
    model = models["lemma2"]
    assert model.score(HELD_OUT) == model.score(HELD_OUT)
    other = gp4c.GP4C(**BASE, **SETTINGS["lemma2"], random_state=11).fit(PANEL)
    assert other.score(HELD_OUT) != model.score(HELD_OUT)
    _, error = model.score_with_error(HELD_OUT)
    assert abs(other.score(HELD_OUT) - model.score(HELD_OUT)) < STANDARD_ERRORS * 2 * error


def test_one_subject_with_frailty_scores_its_own_integral() -> None:
    # E over draws of the negative multinomial = E over draws and frailties of the Poisson
    model, n = gp4c.GP4C(count_term="pointwise", effect="gamma", hyper="optimize"), 40_000
    model.fit(PANEL)
    one = HELD_OUT[[2]]
    ours, error = model.score_with_error(one, n_draws=8000)
    rng = np.random.default_rng(12)
    effects = rng.gamma(model.frailty_shape_, 1 / model.frailty_shape_, n)
    masses = model.posterior_.sample_integrals(one.start, one.stop, n, rng)
    logs = (one.count * np.log(effects[:, None] * masses) - effects[:, None] * masses).sum(axis=1)
    direct = logsumexp(logs) - np.log(n)
    spread = np.exp(logs - direct).std() / np.sqrt(n)
    assert abs(ours - direct) < STANDARD_ERRORS * np.hypot(spread, error)


def test_refitted_weights_flatter_and_new_subjects_do_not(models: dict[str, gp4c.GP4C]) -> None:
    model = models["weight"]
    refitted, honest = model.score(HELD_OUT), model.score(HELD_OUT, new_subjects=True)
    assert refitted > honest
    # one subject: the likelihood averaged over draws and over the fitted weights, written out
    one, rng = HELD_OUT[[2]], np.random.default_rng(13)
    masses = model.posterior_.sample_integrals(one.start, one.stop, 4000, rng)
    assert model.subject_effects_ is not None
    means = model.subject_effects_[:, None, None] * masses
    logs = (one.count * np.log(means) - means).sum(axis=2).ravel()
    expected = logsumexp(logs) - np.log(logs.size)
    ours, error = model.score_with_error(one, new_subjects=True)
    assert abs(ours - expected) < STANDARD_ERRORS * 2 * error


def test_frailty_predicts_uneven_subjects_better(models: dict[str, gp4c.GP4C]) -> None:
    assert models["gamma"].score(HELD_OUT) > models["lemma2"].score(HELD_OUT)


# -- the paper's estimator -----------------------------------------------------------------------


def test_natural_gradients_reach_at_least_the_papers_optimum() -> None:
    paper = gp4c.GP4C.paper(b=0.3, n_inducing=8, random_state=1).fit(PANEL)
    ours = gp4c.GP4C(count_term="lemma2", effect=None, hyper="optimize", n_inducing=8).fit(PANEL)
    assert paper.effect_ is None
    assert paper.n_inducing_ == 8
    assert ours.objective_ >= paper.objective_ - 1e-6
    assert paper.objective_ > ours.objective_ - 30.0  # it stops early, not at random
