"""LocalEM as an estimator: choice of the bandwidth, invariance, limits, edges."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

import gp4c
from classical_panels import panel_of, random_panel, random_rows, toy
from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
from gp4c.classical.smoothed.local_em import LocalEM
from gp4c.classical.step_functions.step import NPMLE
from gp4c.exceptions import ConvergenceWarning, GP4CWarning, OutsideWindowError


@pytest.fixture(scope="module")
def thiotepa():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")


def test_toy_from_the_notes():
    model = LocalEM(bandwidth=1.0, tol=1e-12).fit(toy())
    assert model.converged_
    assert_allclose(
        model.cumulative([1, 2, 3]), np.cumsum([0.740989, 0.754683, 0.991867]), atol=2e-6
    )
    wanted = [0.786079, 0.736498, 0.714014, 0.743659, 0.838565, 0.987834, 1.161270]
    assert_allclose(model.intensity([0, 0.5, 1, 1.5, 2, 2.5, 3]), wanted, atol=1e-6)
    assert isinstance(model.intensity(1.5), float)


@pytest.mark.parametrize("bandwidth", [0.4, 3.0, 20.0])
def test_cumulative_is_the_integral_of_the_intensity(bandwidth):
    panel = random_panel(3, gaps=True, exposure=True).with_window((-2.0, 25.0))
    model = LocalEM(bandwidth=bandwidth).fit(panel)
    times = np.array([-2.0, -1.0, 0.3, 4.0, 11.7, 20.0, 25.0])
    pieces = [
        quad(model.intensity, a, b, limit=500, epsabs=1e-10, points=np.arange(np.ceil(a), b))[0]
        for a, b in itertools.pairwise(times)
    ]
    assert_allclose(np.diff(model.cumulative(times)), pieces, rtol=1e-7, atol=1e-8)
    assert model.cumulative(-2.0) == 0.0


def test_outside_the_window_the_rate_goes_on():
    model = LocalEM(bandwidth=1.0).fit(toy())
    with pytest.raises(OutsideWindowError):
        model.intensity(3.5)
    edge = model.intensity(3.0)
    assert model.intensity(9.0, extrapolate=True) == edge
    assert model.cumulative(5.0, extrapolate=True) == pytest.approx(
        model.cumulative(3.0) + 2 * edge
    )


def test_limits_of_the_bandwidth():
    panel = random_panel(12, n_subjects=40)
    wide = LocalEM(bandwidth=1e4).fit(panel)
    constant = HomogeneousPoisson().fit(panel)
    assert_allclose(wide.intensity([0.0, 7.0, 20.0]), constant.rate_, rtol=1e-5)
    assert_allclose(wide.objective_, constant.objective_, rtol=1e-6)
    narrow = LocalEM(bandwidth=1e-4, max_iter=20_000, tol=1e-7).fit(panel)
    best = NPMLE().fit(panel)
    assert narrow.objective_ <= best.objective_
    assert_allclose(narrow.objective_, best.objective_, atol=0.05)


def test_objective_is_the_score_of_the_data(thiotepa):
    for model in (LocalEM(bandwidth=4.0), LocalEM.paper()):
        model.fit(thiotepa)
        assert_allclose(model.objective_, model.score(thiotepa), rtol=1e-9)


# -- choice of the bandwidth -----------------------------------------------------------------


def manual_scores(panel, bandwidths, fold, **options):
    """Held-out scores fold by fold, each fold a panel and a fit of its own."""
    total = np.zeros(len(bandwidths))
    for k in range(fold.max() + 1):
        train, test = panel[np.flatnonzero(fold != k)], panel[np.flatnonzero(fold == k)]
        for place, h in enumerate(bandwidths):
            total[place] += LocalEM(bandwidth=h, **options).fit(train).score(test)
    return total


def test_cross_validation_against_separate_fits(thiotepa):
    bandwidths = np.array([4.0, 7.0, 15.0])
    model = LocalEM(bandwidths=bandwidths, folds="contiguous").fit(thiotepa)
    fold = (np.arange(38) * 5) // 38
    scores = manual_scores(thiotepa, bandwidths, fold)
    # a fold's own fit has coarser cells: it does not know the visits of the held-out subjects
    assert_allclose(model.cv_scores_, scores, atol=0.5)
    assert_allclose(np.diff(model.cv_scores_), np.diff(scores), atol=0.3)
    assert model.bandwidth_ == bandwidths[np.argmax(model.cv_scores_)]


def test_default_grid_is_the_published_one_at_sixty():
    panel = random_panel(2, n_subjects=20).with_window((0.0, 60.0))
    model = LocalEM().fit(panel)
    assert_allclose(model.bandwidths_, np.linspace(0.02, np.sqrt(60.0), 15), rtol=1e-12)
    paper = LocalEM.paper().fit(panel)
    assert_allclose(paper.bandwidths_, np.linspace(0.02, np.sqrt(60.0), 15), rtol=1e-12)


def test_published_grid_is_in_the_units_of_the_data(thiotepa):
    paper = LocalEM.paper().fit(thiotepa)
    assert_allclose(paper.bandwidths_[[0, -1]], [0.02, np.sqrt(53.0)])
    assert paper.n_iter_ < 30
    assert paper.converged_
    assert paper.residual_ > 1e-8  # it stops short of the fixed point


def test_equal_scores_take_the_smoother():
    nothing = panel_of([(k, 0.0, 1.0, 0) for k in range(6)])
    model = LocalEM().fit(nothing)
    assert model.bandwidth_ == model.bandwidths_[-1]


def test_published_folds_follow_the_labels():
    rows = [(f"s{k:02d}", 0.0, 1.0 + k % 3, k % 4) for k in range(11)]
    panel = panel_of(rows)
    model = LocalEM.paper()
    model.fit(panel)
    fold = model._fold_of_subjects(model._rows)
    by_label = np.empty(11, dtype=int)
    by_label[model._rows.order] = fold
    assert_array_equal(by_label, (np.arange(11) * 5) // 11)


# -- invariance ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LocalEM(), LocalEM(bandwidth=2.0)], ids=repr)
def test_labels_and_order_of_rows(model):
    rows = random_rows(4, exposure=True, n_subjects=16)
    rng = np.random.default_rng(0)
    names = {k: f"s{rng.integers(10**9)}" for k in {row[0] for row in rows}}
    other = [(names[row[0]], *row[1:]) for row in rng.permutation(np.array(rows, dtype=object))]
    first = LocalEM(**model.get_params()).fit(panel_of(rows))
    second = LocalEM(**model.get_params()).fit(panel_of(other))
    times = np.linspace(*first.window_, 30)
    assert first.bandwidth_ == second.bandwidth_
    assert_array_equal(first.intensity(times), second.intensity(times))


def test_unit_and_origin_of_time():
    rows = random_rows(4, n_subjects=16)
    scaled = [(s, 5.0 + 30.0 * a, 5.0 + 30.0 * b, m, e) for s, a, b, m, e in rows]
    first, second = LocalEM().fit(panel_of(rows)), LocalEM().fit(panel_of(scaled))
    assert_allclose(second.bandwidth_, 30.0 * first.bandwidth_, rtol=1e-12)
    times = np.linspace(*first.window_, 30)
    assert_allclose(second.intensity(5.0 + 30.0 * times), first.intensity(times) / 30.0, rtol=1e-9)
    assert_allclose(second.cumulative(5 + 30 * times), first.cumulative(times), atol=1e-9)
    assert_allclose(second.objective_, first.objective_, rtol=1e-10)


def test_copies_of_subjects_merge_into_exposure():
    rows = [(s, a, b, m) for s, a, b, m, _ in random_rows(9, n_subjects=10)]
    twice = rows + [(100 + s, a, b, m) for s, a, b, m in rows]
    merged = [(s, a, b, 2 * m, 2.0) for s, a, b, m in rows]
    curves = [
        LocalEM(bandwidth=2.0, tol=1e-11).fit(panel_of(r)).intensity(np.linspace(0, 18, 20))
        for r in (twice, merged, rows)
    ]
    assert_allclose(curves[0], curves[1], rtol=1e-8)
    assert_allclose(curves[0], curves[2], rtol=1e-8)


# -- edges -----------------------------------------------------------------------------------


def test_degenerate_panels():
    nothing = LocalEM().fit(panel_of([("a", 0.0, 1.0, 0), ("b", 0.0, 2.0, 0)]))
    assert_array_equal(nothing.intensity([0.0, 1.0, 2.0]), 0.0)
    assert nothing.score(panel_of([("c", 0.0, 2.0, 0)])) == 0.0
    with pytest.warns(GP4CWarning, match="one subject cannot be cross-validated"):
        single = LocalEM().fit(panel_of([("a", 2.0, 5.0, 4)]))
    assert_allclose(single.intensity([2.0, 3.0, 5.0]), 4 / 3, rtol=1e-8)
    assert not hasattr(single, "cv_scores_")
    same = LocalEM().fit(panel_of([(k, 0.0, 1.0, m) for k, m in enumerate([0, 3, 2, 1])]))
    assert_allclose(same.intensity([0.0, 0.4, 1.0]), 1.5, rtol=1e-8)
    two = LocalEM().fit(panel_of([(k, 0.0, 1.0 + k, 2) for k in range(2)]))
    assert np.isfinite(two.objective_)


def test_a_gap_that_nobody_was_seen_in():
    rows = [(k, 0.0, 1.0, k % 3) for k in range(6)] + [(k, 9.0, 10.0, 4) for k in range(6)]
    model = LocalEM(bandwidth=0.1).fit(panel_of(rows))
    assert_allclose(model.intensity([0.5, 9.5]), [1.0, 4.0], rtol=1e-4)
    assert_allclose(model.intensity([4.0, 6.0]), [1.0, 4.0], rtol=1e-4)


def test_a_short_run_warns_with_the_remedy(thiotepa):
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or the bandwidth"):
        LocalEM(bandwidth=0.05, max_iter=3).fit(thiotepa)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth, unless it is 'cv', must be a positive number"),
        ({"bandwidth": "auto"}, "must be a positive number"),
        ({"bandwidths": "log"}, "bandwidths must be None, 'paper'"),
        ({"bandwidths": [1.0, -2.0]}, "bandwidths must be positive numbers"),
        ({"n_splits": 1}, "n_splits must be an integer of at least 2"),
        ({"folds": "random"}, "folds must be 'shuffled' or 'contiguous'"),
        ({"stop": "never"}, "stop must be"),
        ({"tol": np.nan}, "tol must be a positive number"),
        ({"max_iter": 0}, "max_iter must be a positive number"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LocalEM(**options).fit(toy())


def test_seed_of_the_folds(thiotepa):
    assert_array_equal(
        LocalEM(random_state=None).fit(thiotepa).cv_scores_,
        LocalEM(random_state=0).fit(thiotepa).cv_scores_,
    )
    other = LocalEM(random_state=1).fit(thiotepa).cv_scores_
    assert not np.array_equal(other, LocalEM().fit(thiotepa).cv_scores_)


def test_the_published_rule_converges_only_if_it_stops(thiotepa):
    model = LocalEM(bandwidth=2.0, stop="squared-change", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        assert not model.fit(thiotepa).converged_
    assert LocalEM(bandwidth=2.0, stop="squared-change").fit(thiotepa).converged_
