"""Bad actors: probabilities of being among the worst, against the truth and another route."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.fleets.unit_plots import funnel_limits
from tolerances import STANDARD_ERRORS


def units(n=50, seed=0, rate=0.5):
    """Units watched for 2 to 40 months; their effects are known."""
    rng = np.random.default_rng(seed)
    effect, watched = rng.gamma(2.0, 0.5, n), rng.uniform(2, 40, n)
    frame = pd.DataFrame({"subject": np.arange(n), "start": 0.0, "stop": watched})
    frame["count"] = rng.poisson(rate * effect * watched)
    return frame, effect


@pytest.fixture(scope="module")
def fitted():
    frame, effect = units()
    panel = gp4c.PanelCounts.from_frame(frame)
    return gp4c.HomogeneousPoisson(effect="gamma").fit(panel), panel, effect


def test_probabilities_are_those_of_independent_gamma_draws(fitted):
    model, panel, _ = fitted
    found = model.unit_ranking(worst=0.1, n_draws=20_000).set_index("subject")
    alpha, rng = model.frailty_shape_, np.random.default_rng(9)
    rate = alpha + model.rate_ * panel.stop  # with a plugged-in curve effects are independent
    drawn = rng.gamma(alpha + panel.count, 1 / rate, (20_000, panel.n_subjects))
    theirs = (drawn >= np.sort(drawn, axis=1)[:, [-5]]).mean(axis=0)
    ours = found["probability"].reindex(panel.subjects).to_numpy()
    error = np.sqrt(2 * np.maximum(theirs * (1 - theirs), 1e-4) / 20_000)
    assert np.all(np.abs(ours - theirs) < STANDARD_ERRORS * error)
    assert_allclose(ours.sum(), 5)  # a tenth of 50, in every draw


def test_worst_first_with_what_was_seen(fitted):
    model, panel, _ = fitted
    found = model.unit_ranking()
    assert found.columns.tolist() == [
        "subject", "probability", "effect", "low", "high", "events", "expected",
    ]  # fmt: skip
    assert found["probability"].is_monotonic_decreasing
    assert sorted(found["subject"]) == panel.subjects.tolist()
    by_label = found.set_index("subject").loc[panel.subjects]
    assert np.array_equal(by_label["events"], panel.count)
    assert_allclose(by_label["expected"], model.rate_ * panel.stop, rtol=1e-9)
    assert np.all((found["low"] < found["effect"]) & (found["effect"] < found["high"]))


def test_probabilities_are_calibrated_over_fleets():
    # of the units that are given probability p, a share p is among the truly worst
    given, true = [], []
    for seed in range(60):
        frame, effect = units(n=30, seed=seed)
        model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.PanelCounts.from_frame(frame))
        found = model.unit_ranking(worst=0.2, n_draws=500).set_index("subject")
        given.append(found["probability"].reindex(range(30)).to_numpy())
        true.append(effect >= np.sort(effect)[-6])
    given, true = np.concatenate(given), np.concatenate(true)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 1.01)):
        some = (given >= low) & (given < high)
        error = np.sqrt((given[some] * (1 - given[some])).sum()) / some.sum()
        assert abs(true[some].mean() - given[some].mean()) < STANDARD_ERRORS * error + 0.02


def test_a_smooth_fit_ranks_alike_and_says_who_is_in_service():
    frame, effect = units(n=24)
    frame["gone"] = np.where(frame["subject"] % 2, "yes", "no")
    model = gp4c.GP4C(effect="gamma").fit(gp4c.PanelCounts.from_frame(frame, end="gone"))
    found = model.unit_ranking()
    assert found["subject"].iloc[0] in np.argsort(-effect)[:4]
    assert np.array_equal(found["in_service"], found["subject"] % 2 == 0)


def test_what_cannot_be_ranked_is_one_sentence(fitted):
    model, panel, _ = fitted
    with pytest.raises(ValueError, match="worst must be a share between 0 and 1, not 3"):
        model.unit_ranking(worst=3)
    with pytest.raises(PanelDataError, match="no subject effects, so no unit is worse"):
        gp4c.HomogeneousPoisson(bursts=True).fit(panel).unit_ranking()


def test_the_funnel_holds_what_it_says(fitted):
    from scipy import stats

    model, _, _ = fitted
    expected = np.array([0.5, 3.0, 40.0])
    low, high = funnel_limits(model, expected, 0.95)
    assert low.tolist() == stats.poisson(expected).ppf(0.025).tolist()
    assert high.tolist() == stats.poisson(expected).ppf(0.975).tolist()
