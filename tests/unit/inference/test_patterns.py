"""Shares of sign patterns: independent turns, systematic arrangements, the sampler's verdict."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from test_signs import HYPER, solved, w_shaped_panel

from gp4c.data.panel import PanelCounts
from gp4c.design.kernels import KERNELS
from gp4c.inference.estep import e_step
from gp4c.inference.hyper import Optimum, Problem, positive_start
from gp4c.inference.importance import log_evidence
from gp4c.inference.mcmc import sample_posterior
from gp4c.inference.parts import Weighted
from gp4c.inference.patterns import (
    LIGHT_PATTERN,
    Turns,
    _coupled,
    _with_mirror,
    arrangements,
    turn_shares,
    with_sign_patterns,
)
from gp4c.inference.signs import Pattern, best_signs, turned_optimum
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.fitting import mixture
from problems import observed
from tolerances import ROUNDING


def test_shares_are_those_of_independent_turns() -> None:
    """All 2ⁿ patterns of n turns, each multiplying the evidence by its own factor."""
    factor = {0.2: 0.05, 0.4: 0.3, 0.7: 0.12}
    places = list(factor)
    weight = {
        turned: float(np.prod([factor[place] for place in turned]))
        for n in range(len(places) + 1)
        for turned in combinations(places, n)
    }
    total = sum(weight.values())
    _, estep = solved("pointwise")
    singles = [Pattern(estep, (place,)) for place in places]
    pairs = [Pattern(estep, pair) for pair in pairwise(places)]
    ratio = np.array([weight[pattern.turned] for pattern in singles + pairs])
    share, log_total = turn_shares(singles + pairs, ratio)
    assert_allclose(log_total, np.log(total), **ROUNDING)
    marginal = [sum(w for turned, w in weight.items() if p in turned) / total for p in places]
    assert_allclose(share[:3], marginal, **ROUNDING)
    assert_allclose(share[3:], 0.0, atol=1e-12)


def test_a_pair_that_turns_only_together_has_its_own_share() -> None:
    _, estep = solved("pointwise")
    share, log_total = turn_shares([Pattern(estep, (0.3, 0.5))], np.array([0.25]))
    assert_allclose(share, [0.2], **ROUNDING)
    assert_allclose(log_total, np.log(1.25), **ROUNDING)


def test_a_pair_that_prefers_to_turn_together_takes_from_its_places() -> None:
    """Four patterns of two places with any evidence, by enumeration."""
    one, two, both = 0.6, 0.4, 0.9
    _, estep = solved("pointwise")
    patterns = [Pattern(estep, turned) for turned in ((0.2,), (0.2, 0.5), (0.5,))]
    share, log_total = turn_shares(patterns, np.array([one, both, two]))
    total = 1 + one + two + both
    assert_allclose(log_total, np.log(total), **ROUNDING)
    turned_first, turned_second = (one + both) / total, (two + both) / total
    assert_allclose(share[0] + share[1], turned_first, **ROUNDING)
    assert_allclose(share[2] + share[1], turned_second, **ROUNDING)


@given(st.lists(st.floats(0.0, 0.999), max_size=14))
def test_every_turn_is_in_its_share_of_the_arrangements(share: list[float]) -> None:
    found = arrangements(np.array(share))
    weights = [weight for weight, _ in found]
    assert_allclose(sum(weights), 1.0, **ROUNDING)
    for turn, expected in enumerate(share):
        inside = [weight for weight, members in found if turn in members]
        assert_allclose(sum(inside), expected, rtol=0, atol=1e-12)
    sizes = {len(members) for weight, members in found if weight > 1e-9}
    assert max(sizes) - min(sizes) <= 1  # as many turns as are expected, everywhere
    assert all(len(set(members)) == len(members) for _, members in found)
    assert all(0 <= turn < len(share) for _, members in found for turn in members)


def test_few_turns_exclude_one_another() -> None:
    assert arrangements(np.array([0.25, 0.5])) == [
        (0.25, (0,)), (0.5, (1,)), (0.25, ()),
    ]  # fmt: skip
    assert arrangements(np.zeros(0)) == [(1.0, ())]


def test_coupled_weights_have_both_margins() -> None:
    first, second = [0.1, 0.5, 0.2], [3.0, 1.0, 2.0]
    pairs = _coupled(first, second)
    for i, expected in enumerate(first):
        assert_allclose(sum(w for a, _, w in pairs if a == i), expected, **ROUNDING)
    for j, expected in enumerate(np.array(second) * 0.8 / 6):
        assert_allclose(sum(w for _, b, w in pairs if b == j), expected, **ROUNDING)


def base_optimum(count_term: str = "pointwise") -> tuple[Problem, Optimum]:
    task = Problem(observed(w_shaped_panel()), KERNELS["se"], count_term, n_inducing=12)
    work = task.workspace(HYPER.length_scale)
    base = best_signs(work, HYPER, e_step(work, HYPER, positive_start(work, HYPER), 1e-9), 1e-9)
    return task, Optimum(HYPER, work, base, 0.0, (), True)


def test_patterns_of_signs_get_their_shares() -> None:
    task, at = base_optimum()
    turns = Turns.at(task, at)
    heavy = turns.share > LIGHT_PATTERN
    assert heavy.sum() > 0
    assert turns.share.sum() < 1.0
    parts = turns.mixed([Weighted(at, 0.75), Weighted(at, 0.25)], Weighted(at, 1.0))
    first, *others = np.split([part.weight for part in parts], [2])
    kept = 1 - turns.share[~heavy].sum()
    assert_allclose(first, np.array([0.75, 0.25]) * (1 - turns.share.sum()) / kept, **ROUNDING)
    assert_allclose(others[0], turns.share[heavy] / kept, **ROUNDING)
    for part, pattern in zip(parts[2:], np.array(turns.patterns)[heavy], strict=True):
        assert part.optimum.estep is pattern.estep


def test_without_a_prior_mean_f_and_its_mirror_image_count_twice() -> None:
    task, at = base_optimum()
    hyper = replace(at.hyper, mean=0.0)
    at = replace(at, hyper=hyper, estep=e_step(at.work, hyper, at.estep.q, 1e-9))
    turns = Turns.at(task, at)
    assert_allclose(turns.log_total, np.log(2) - np.log1p(-turns.share).sum(), atol=1e-9)


def test_a_mean_tells_f_from_its_mirror_image() -> None:
    """With a far mean nothing is left of the image's evidence."""
    _, at = base_optimum()
    for mean, expected in ((0.15, True), (2.0, False)):
        hyper = replace(at.hyper, mean=mean)
        here = replace(at, hyper=hyper, estep=e_step(at.work, hyper, at.estep.q, 1e-9))
        with_image = _with_mirror(here, 0.0)
        assert (with_image > 0.1) is expected
        assert with_image < np.log(2)


# -- many places ------------------------------------------------------------------------------

#: f = cos(5πx) with prior mean zero: five places where it may cross or touch
MANY = Hyper(0.1, 0.8, 0.0)


@pytest.fixture(scope="module")
def many() -> tuple[Problem, Optimum]:
    rng = np.random.default_rng(2)
    x = np.linspace(0.0, 1.0, 20_001)
    cumulative = np.concatenate([[0.0], np.cumsum(60 * np.cos(5 * np.pi * x[:-1]) ** 2) * x[1]])
    cuts = [np.concatenate([[0.0], np.sort(rng.random(7)), [1.0]]) for _ in range(4)]
    panel = PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(4), 8),
            "start": np.concatenate([c[:-1] for c in cuts]),
            "stop": np.concatenate([c[1:] for c in cuts]),
            "count": rng.poisson([np.diff(np.interp(c, x, cumulative)) for c in cuts]).ravel(),
        }
    )
    task = Problem(observed(panel), KERNELS["se"], "exact", n_inducing=16)
    work = task.workspace(MANY.length_scale)
    start = e_step(work, MANY, positive_start(work, replace(MANY, mean=0.5)), 1e-6)
    return task, Optimum(MANY, work, best_signs(work, MANY, start, 1e-6), 0.0, (), True)


def test_turns_at_different_places_are_nearly_independent(many: tuple[Problem, Optimum]) -> None:
    """What the arrangements rest on: two turns far apart change the bound by the sum of theirs."""
    task, at = many
    turns = [p for p in Turns.at(task, at).patterns if len(p.turned) == 1]
    apart = [
        (one, two)
        for one, two in combinations(turns, 2)
        if abs(one.turned[0] - two.turned[0]) > 3 * MANY.length_scale
    ]
    assert len(apart) >= 3
    base = at.estep.evaluation.bound.total
    for pair in apart:
        both = turned_optimum(at.work, at.hyper, at.estep, list(pair))
        assert both is not None
        alone = sum(p.estep.evaluation.bound.total - base for p in pair)
        assert_allclose(both.evaluation.bound.total - base, alone, atol=0.2)


def test_many_patterns_together_are_nearer_to_the_sampler(many: tuple[Problem, Optimum]) -> None:
    """Dozens of patterns explain the data alike: most of their evidence, most of their effect."""
    task, at = many
    turns = Turns.at(task, at)
    assert turns.share.sum() > 1.0  # more than single turns could carry
    draws, report = sample_posterior(task, MANY, size=16, n_draws=2000, random_state=3)
    one = report.log_evidence - log_evidence(at)
    assert one > 2.0
    # patterns that no single turn of this one leads to are missing: a fraction of a nat
    assert abs(one - turns.log_total) < 0.6
    times = np.linspace(0.01, 0.99, 60)
    judge = draws.intensity(times)

    def distance(parts: list[Weighted]) -> float:
        found = mixture(parts, "se", task.data.window, task.data.rate).intensity(times)
        return float(np.abs(found - judge).sum() / judge.sum())

    together = with_sign_patterns(task, Weighted(at, 1.0))
    assert distance(together) < 0.7 * distance([Weighted(at, 1.0)])


# -- within a bump ----------------------------------------------------------------------------


def test_an_f_that_may_cross_zero_within_a_bump_has_the_quartiles_of_the_sampler() -> None:
    """Two neighbouring intervals with events: f large on both, or of opposite signs on them."""
    n = 8
    panel = PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(n), 4),
            "start": np.tile([0.0, 0.3, 0.5, 0.7], n),
            "stop": np.tile([0.3, 0.5, 0.7, 1.0], n),
            "count": np.tile([0, 1, 1, 0], n),
        }
    )
    data = observed(panel)
    task, hyper = Problem(data, KERNELS["se"], "exact"), Hyper(0.08, 1.0, 0.5)
    work = task.workspace(hyper.length_scale)
    positive = e_step(work, hyper, positive_start(work, hyper), 1e-6)
    alone = Weighted(Optimum(hyper, work, positive, 0.0, (), True), 1.0)
    draws, _ = sample_posterior(task, hyper, size=work.size, n_draws=4000, random_state=0)
    middle = np.array([0.45, 0.5, 0.55])
    lower, upper = draws.intensity_quantile(middle, np.array([0.25, 0.75]))

    def away(parts: list[Weighted]) -> np.ndarray:
        ours = mixture(parts, "se", data.window, data.rate)
        quartiles = ours.intensity_quantile(middle, np.array([0.25, 0.75]))
        return np.abs(quartiles - [lower, upper]) / (upper - lower)

    assert away([alone])[0].max() > 0.15  # what crossings between the two take off
    assert away(with_sign_patterns(task, alone)).max() < 0.08
