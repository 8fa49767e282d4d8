"""NPMPLE, NPMLE and NPMPLGF as estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln
from sklearn.isotonic import IsotonicRegression

import gp4c
from classical_panels import panel_of, random_panel, random_rows, toy
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.step_functions.jumps import GammaExposure, log_likelihood
from gp4c.classical.step_functions.npmle import newton
from gp4c.classical.step_functions.pseudo import CumulativeCounts, frailty_problem
from gp4c.classical.step_functions.step import NPMLE, NPMPLE, NPMPLGF
from gp4c.exceptions import (
    ConvergenceWarning,
    GP4CWarning,
    NoIntensityError,
    NotFittedError,
    OutsideWindowError,
)

LIKELIHOOD_BASED = [NPMLE(), NPMLE(effect="gamma")]
ALL = [NPMPLE(), NPMPLGF(), *LIKELIHOOD_BASED, NPMLE(method="icm")]


def fitted(model, panel):
    return type(model)(**model.get_params()).fit(panel)


# -- values ----------------------------------------------------------------------------------


def test_npmple_of_the_toy():
    model = NPMPLE().fit(toy())
    assert_array_equal(model.times_, [1.0, 2.0, 3.0])
    assert_allclose(model.values_, [1.25, 1.25, 2.5], rtol=1e-14)
    # Σ N log Λ − Λ by hand: N = 1, 2 | 0, 3 | 2, 2
    wanted = 3 * np.log(1.25) + 2 * np.log(1.25) + 5 * np.log(2.5) - 4 * 1.25 - 2 * 2.5
    assert_allclose(model.objective_, wanted, rtol=1e-13)


@pytest.mark.parametrize("model", [NPMLE(method=m) for m in ("newton", "icm", "em")], ids=repr)
def test_npmle_of_the_toy(model):
    fitted(model, toy())
    found = fitted(model, toy())
    assert_allclose(found.values_, [1.0, 1.0, 3.0], atol=1e-7)
    assert_allclose(found.objective_, 4 * np.log(2) - 7, atol=1e-9)


def test_npmplgf_of_the_toy_with_its_shape_fixed():
    data = CumulativeCounts.of(PanelRows.of(toy()))
    problem = frailty_problem(data, np.ones(3))
    events = data.by_subject(data.count)
    term = GammaExposure(1.0, events, np.ones(3))
    fit = newton(problem, term, tol=1e-12)
    jumps = np.zeros(3)
    jumps[problem.sites] = fit.jumps
    assert_allclose(np.cumsum(jumps), [1.094627, 1.094627, 3.491046], atol=1e-6)
    effects = term.slope(problem.exposure.by_subject(fit.jumps))
    assert_allclose(np.sort(effects), np.sort([0.716118, 0.716118, 1.567764]), atol=1e-6)
    value = log_likelihood(problem, term, fit.jumps) - gammaln(data.count + 1).sum()
    assert_allclose(value, -9.967127, atol=1e-6)


def test_without_overdispersion_frailty_changes_nothing():
    pseudo = NPMPLGF().fit(toy())
    assert pseudo.frailty_shape_ == np.inf
    assert_allclose(pseudo.values_, NPMPLE().fit(toy()).values_, rtol=1e-9)
    assert_allclose(pseudo.objective_, NPMPLE().fit(toy()).objective_, rtol=1e-9)
    full = NPMLE(effect="gamma").fit(toy())
    assert full.frailty_shape_ == np.inf
    assert_allclose(full.values_, [1, 1, 3], atol=1e-9)
    assert_allclose(full.subject_effects_, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_npmple_against_scikit_learn_on_the_raw_cumulative_counts(seed):
    panel = random_panel(seed, n_subjects=15)
    model = NPMPLE().fit(panel)
    times, counts = [], []
    for subject in range(panel.n_subjects):
        mine = panel.subject_index == subject
        times += panel.stop[mine].tolist()
        counts += np.cumsum(panel.count[mine]).tolist()
    theirs = IsotonicRegression().fit(times, counts).predict(model.times_)
    assert_allclose(model.values_, theirs, rtol=1e-12, atol=1e-12)
    assert model.residual_ < 1e-12


def test_npmple_with_exposure_is_a_weighted_regression():
    rows = random_rows(3, exposure=True)
    model = NPMPLE().fit(panel_of(rows))
    times, rate, weight, total = [], [], [], {}
    for subject, _, stop, count, units in rows:
        total[subject] = total.get(subject, 0) + count
        times.append(stop)
        rate.append(total[subject] / units)
        weight.append(units)
    theirs = IsotonicRegression().fit(times, rate, sample_weight=weight).predict(model.times_)
    assert_allclose(model.values_, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["nausea", "bladder", "skin_full"])
def test_real_data_converge(name):
    panel = gp4c.load_dataset(name)
    panel = panel.total() if panel.event_types else panel
    for model in ALL:
        found = fitted(model, panel)
        assert found.converged_
        assert np.all(np.diff(found.history_) >= 0)
        assert np.all(np.diff(found.values_) >= 0)
        assert_allclose(found.history_[-1], found.objective_)
    plain, gamma = (fitted(model, panel) for model in LIKELIHOOD_BASED)
    assert gamma.objective_ > plain.objective_ + 20
    assert_allclose(gamma.subject_effects_.mean(), 1.0, atol=0.2)


def test_the_pseudo_likelihood_overstates_the_frailty_variance():
    panel = gp4c.load_dataset("bladder")
    assert NPMPLGF().fit(panel).frailty_shape_ < NPMLE(effect="gamma").fit(panel).frailty_shape_


def test_objective_is_the_score_of_the_data():
    panel = random_panel(11, n_subjects=30, exposure=True)
    for model in LIKELIHOOD_BASED:
        found = fitted(model, panel)
        assert_allclose(found.objective_, found.score(panel), rtol=1e-10)


# -- the curve -------------------------------------------------------------------------------


def test_steps_are_right_continuous_and_start_at_nothing():
    model = NPMLE().fit(toy().with_window((-1.0, 5.0)))
    assert model.cumulative(0.999) == 0.0
    assert model.cumulative(1.0) == pytest.approx(1.0)
    assert isinstance(model.cumulative(2), float)
    assert_allclose(model.cumulative([[0.0, 1.5], [2.999, 3.0]]), [[0, 1], [1, 3]])
    assert_allclose(model.cumulative([-1.0, 5.0]), [0.0, 3.0])
    assert_allclose(model.expected_counts([0.0, 1.0], [1.0, 3.0]), [1.0, 2.0])
    assert isinstance(model.expected_counts(0.0, 3.0), float)
    with pytest.raises(ValueError, match="stop must not be before"):
        model.expected_counts(2.0, 1.0)


def test_outside_the_window():
    model = NPMPLE().fit(toy())
    with pytest.raises(OutsideWindowError, match="extrapolate=True"):
        model.cumulative(3.1)
    assert_allclose(model.cumulative([-9.0, 90.0], extrapolate=True), [0.0, 2.5])


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_there_is_no_intensity(model):
    found = fitted(model, toy())
    with pytest.raises(NoIntensityError, match=r"step function.*cumulative"):
        found.intensity(1.0)
    with pytest.raises(NoIntensityError):
        found.intensity_band(1.0)


def test_before_fit():
    with pytest.raises(NotFittedError):
        NPMLE().cumulative(1.0)
    with pytest.raises(NotFittedError):
        NPMPLE().score(toy())


# -- invariance ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*intervals with events")
@pytest.mark.parametrize("model", ALL, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_labels_order_of_rows_and_unit_of_time(model, seed):
    rows = random_rows(seed, exposure=True, n_subjects=15)
    first = fitted(model, panel_of(rows))
    rng = np.random.default_rng(seed)
    names = {k: f"s{rng.integers(10**9)}" for k in {row[0] for row in rows}}
    other = [(names[row[0]], *row[1:]) for row in rng.permutation(np.array(rows, dtype=object))]
    second = fitted(model, panel_of(other))
    assert_array_equal(first.values_, second.values_)
    assert first.score(panel_of(rows)) == pytest.approx(second.score(panel_of(rows)), rel=1e-13)
    scaled = [(s, 7 + 30 * a, 7 + 30 * b, m, e) for s, a, b, m, e in rows]
    third = fitted(model, panel_of(scaled))
    assert_allclose(third.values_, first.values_, rtol=1e-9)
    assert_allclose(third.times_, 7 + 30 * first.times_)
    assert third.score(panel_of(scaled)) == pytest.approx(first.score(panel_of(rows)), rel=1e-9)


@pytest.mark.parametrize("model", LIKELIHOOD_BASED, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_splitting_an_interval_without_events_changes_nothing(model, seed):
    rows = random_rows(seed, n_subjects=14, gaps=seed > 1)
    zero = next(k for k, row in enumerate(rows) if row[3] == 0)
    subject, start, stop, _, units = rows[zero]
    middle = start + 0.43 * (stop - start)
    split = [*rows, (subject, start, middle, 0, units), (subject, middle, stop, 0, units)]
    del split[zero]
    first, second = fitted(model, panel_of(rows)), fitted(model, panel_of(split))
    times = np.linspace(*first.window_, 200)
    assert_allclose(first.cumulative(times), second.cumulative(times), atol=1e-7)
    assert first.objective_ == pytest.approx(second.objective_, abs=1e-9)


@pytest.mark.parametrize("model", [NPMPLE(), NPMLE()], ids=repr)
def test_identical_subjects_merge_into_exposure(model):
    rows = [(s, a, b, m) for s, a, b, m, _ in random_rows(9, n_subjects=10)]
    twice = rows + [(100 + s, a, b, m) for s, a, b, m in rows]
    merged = [(s, a, b, 2 * m, 2.0) for s, a, b, m in rows]
    first, second, single = (fitted(model, panel_of(r)) for r in (twice, merged, rows))
    assert_allclose(first.values_, second.values_, rtol=1e-8, atol=1e-12)
    assert_allclose(first.values_, single.values_, rtol=1e-8, atol=1e-12)


# -- traps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_zero_counts_are_data(model):
    rows = [(s, 0.0, 10.0, 4) for s in range(3)]
    more = rows + [(100 + s, 0.0, 10.0, 0) for s in range(9)]
    assert fitted(model, panel_of(rows)).cumulative(10.0) == pytest.approx(4.0)
    assert fitted(model, panel_of(more)).cumulative(10.0) == pytest.approx(1.0)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_events_before_the_first_visit_count(model):
    panel = gp4c.load_dataset("bladder")
    found = fitted(model, panel)
    early = panel.stop == 1.0
    assert panel.count[early].sum() == 14
    assert found.cumulative(1.0) > 0.05


# -- gaps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [NPMPLE, NPMPLGF])
def test_pseudo_likelihood_leaves_out_what_it_cannot_use_and_says_so(cls):
    rows = [
        ("a", 0.0, 1.0, 1),
        ("a", 1.0, 2.0, 1),
        ("b", 0.0, 1.0, 2),
        ("b", 1.5, 2.0, 7),
        ("c", 1.0, 2.0, 9),
    ]
    with pytest.warns(GP4CWarning, match=r"2 of 5 rows \(2 subjects\).*NPMLE uses all rows"):
        model = cls().fit(panel_of(rows))
    assert model.n_left_out_ == 2
    usable = cls().fit(panel_of([rows[0], rows[1], rows[2]]))
    assert usable.n_left_out_ == 0
    assert_allclose(model.values_, usable.values_)
    assert NPMLE().fit(panel_of(rows)).cumulative(2.0) > 3.0


def test_npmle_uses_gaps_and_late_entries():
    # two subjects seen on disjoint windows: each increment is its own mean
    rows = [("a", 0.0, 1.0, 3), ("b", 5.0, 6.0, 8)]
    model = NPMLE().fit(panel_of(rows))
    assert_allclose(model.cumulative([0.5, 1.0, 4.0, 5.5, 6.0]), [0, 3, 3, 3, 11])


# -- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_degenerate_panels_have_defined_answers(model):
    nothing = panel_of([("a", 0.0, 2.0, 0), ("b", 0.0, 1.0, 0), ("b", 1.0, 3.0, 0)])
    found = fitted(model, nothing)
    assert found.converged_
    assert_array_equal(found.cumulative([0.0, 2.0, 3.0]), 0.0)
    assert found.score(nothing) == 0.0
    assert found.frailty_shape_ == np.inf
    single = fitted(model, panel_of([("a", 2.0, 5.0, 4)]))
    assert_allclose(single.cumulative([4.9, 5.0]), [0.0, 4.0], rtol=1e-9)
    same = fitted(model, panel_of([(k, 0.0, 1.0, m) for k, m in enumerate([0, 3, 2, 1])]))
    assert_allclose(same.cumulative(1.0), 1.5, rtol=1e-7)


def test_the_floor_is_documented_and_announced():
    model = NPMLE().fit(toy())
    rows = [("x", 1.0, 2.0, 2), ("x", 2.0, 3.0, 1)]
    with pytest.warns(GP4CWarning, match="1 of 2 intervals with events"):
        score = model.score(panel_of(rows, window=(0.0, 3.0)))
    floor = 0.5 * 1.0 / 8.0  # eight units of time at risk in the toy
    assert_allclose(score, 2 * np.log(floor) - floor + np.log(2.0) - 2.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_maximum_likelihood_fit_never_needs_the_floor_on_its_own_data(seed):
    panel = random_panel(seed, gaps=True, exposure=True, n_subjects=20)
    NPMLE().fit(panel).score(panel)  # a warning would be an error here


def test_a_short_run_warns_with_the_remedy():
    panel = random_panel(1, n_subjects=30)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = NPMLE(method="em", max_iter=2).fit(panel)
    assert not model.converged_


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NPMLE(effect="weight"), "effect must be None or 'gamma'"),
        (NPMLE(method="bfgs"), "method must be 'newton', 'icm' or 'em'"),
        (NPMLE(effect="gamma", method="em"), "needs method='newton'"),
        (NPMLE(tol=0.0), "tol must be a positive number"),
        (NPMLE(max_iter=-1), "max_iter must be a positive number"),
        (NPMPLGF(tol="small"), "tol must be a positive number"),
        (NPMPLGF(max_iter=0), "max_iter must be a positive number"),
    ],
)
def test_wrong_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(toy())


def test_a_second_fit_forgets_the_first():
    model = NPMLE().fit(toy()).bootstrap(5, random_state=0)
    model.fit(random_panel(2))
    with pytest.raises(NotFittedError):
        model.cumulative_band(1.0)
