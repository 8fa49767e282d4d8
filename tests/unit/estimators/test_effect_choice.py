"""effect="auto": frailty where subjects differ, none where they do not; invariances of scores."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma, poisson

import gp4c

FAST = {"count_term": "pointwise", "hyper": "optimize"}


def panel(frailty: float | None, seed: int) -> gp4c.PanelCounts:
    return gp4c.simulate_panel(
        lambda t: 0.5 + 0.0 * t, window=(0, 10), n_subjects=40, n_intervals=4,
        frailty=None if frailty is None else ("gamma", frailty),
        random_state=seed,
    )[0]  # fmt: skip


def test_the_evidence_finds_the_frailty_that_is_there() -> None:
    for seed in range(4):
        model = gp4c.GP4C(**FAST).fit(panel(1.0, seed))
        assert model.effect_ == "gamma"
        assert "with subject effects over single events without" in model.effect_choice_
        assert 0.4 < model.frailty_shape_ < 2.5


def test_without_frailty_none_is_found_or_hardly_any() -> None:
    """The richer law is taken to be safe unless the evidence rules it out: then it must be small.

    With 200 events of 40 subjects a variance of 0.2 would double that of the totals.
    """
    for seed in range(4):
        model = gp4c.GP4C(**FAST).fit(panel(None, seed))
        assert model.effect_ is None or model.frailty_variance_ < 0.2


def test_one_subject_has_no_frailty() -> None:
    model = gp4c.GP4C(**FAST).fit(panel(None, 0)[[0]])
    assert model.effect_ is None


def test_score_integrates_the_frailty_of_a_new_subject() -> None:
    train, test = panel(1.0, 1), panel(1.0, 2)[np.arange(3)]
    model = gp4c.GP4C(**FAST, effect="gamma").fit(train)
    shape = model.frailty_shape_
    draws = model.posterior_.sample_integrals(test.start, test.stop, 400, np.random.default_rng(0))
    ours = model.score_subjects(test, n_draws=400)
    for k in range(3):
        rows = test.subject_index == k
        counts = test.count[rows]

        def likelihood(u: float, rows=rows, counts=counts) -> float:  # type: ignore[no-untyped-def]
            each = poisson.pmf(counts, u * draws[:, rows]).prod(axis=1)
            return float(each.mean() * gamma.pdf(u, shape, scale=1 / shape))

        log_factorials = test[[k]].log_factorials
        direct = np.log(quad(likelihood, 0, 40, limit=300)[0]) + log_factorials
        assert_allclose(ours[k], direct, atol=0.02)  # different draws of a tight posterior


def test_weights_average_to_one_and_follow_appendix_f() -> None:
    data = panel(1.0, 3)
    model = gp4c.GP4CW(**FAST).fit(data)
    effects = model.subject_effects_
    assert_allclose(effects.mean(), 1.0, rtol=1e-12)
    totals = np.bincount(data.subject_index, data.count, data.n_subjects)
    seen = totals > 0
    ratio = totals[seen] / model.cumulative(10.0)  # all were seen over the whole window
    assert_allclose(effects[seen] / ratio, (effects[seen] / ratio)[0], rtol=1e-6)
    assert np.all(effects[~seen] < 1e-5)
