"""Types weighed together: the correlation's posterior against a grid, and what is left alone."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.types.coupling import Dependence, Margin, couple
from gp4c.posterior.subject_counts import SubjectCounts
from typed_panels import simulated_types


@pytest.fixture(scope="module")
def margins():
    panel = simulated_types(80, rho=0.7, seed=3)
    found = []
    for e, part in enumerate(panel.parts):
        fit = gp4c.GP4C(effect="gamma", bursts=False, hyper="optimize").fit(part)
        counts = SubjectCounts.of(part, fit.count_law_, fit.effect_law_)
        found.append(Margin(fit.posterior_, counts, panel.place[e]))
    return found


def one_draw(margin):
    weights = np.zeros(margin.draws.size)
    weights[np.argmax(margin.draws.weights)] = 1.0
    return replace(margin, draws=margin.draws.reweighted(weights)[0])


def test_the_correlation_given_the_curves_is_that_of_a_grid(margins):
    """With one draw of each type only ρ is left: its posterior is a one-dimensional integral."""
    single = [one_draw(margin) for margin in margins]
    known = Dependence(single, 80)
    rho = np.linspace(-0.97, 0.97, 195)
    none = np.zeros((2, len(rho)), dtype=np.intp)
    log_density = known.log_ratio(none, np.stack([rho, np.ones_like(rho)]))
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    expected, gain = density @ rho, np.log(np.exp(log_density).mean() * 0.97)
    found = couple(single, 80, seed=1)
    drawn = found.loadings[0] * found.loadings[1]
    assert_allclose(drawn @ found.weights, expected, atol=0.01)
    assert_allclose(
        (drawn - expected) ** 2 @ found.weights, density @ (rho - expected) ** 2, rtol=0.1
    )
    assert_allclose(found.log_gain, gain, atol=0.05)
    assert found.effective > 1000


def test_correlated_types_are_found_and_the_same_seed_gives_the_same(margins):
    found, again = couple(margins, 80, seed=0), couple(margins, 80, seed=0)
    assert np.array_equal(found.who, again.who)
    assert np.array_equal(found.weights, again.weights)
    rho = found.loadings[0] * found.loadings[1]
    assert 0.3 < rho @ found.weights < 0.95
    assert found.log_gain > 1
    assert found.pareto_k < 0.7


def test_the_gain_is_an_evidence_whatever_the_seed(margins):
    gains = [couple(margins, 80, seed=seed).log_gain for seed in (1, 2)]
    assert_allclose(gains[0], gains[1], atol=0.15)


def test_three_types_have_a_loading_each(margins):
    third = couple([*margins, margins[1]], 80, seed=0, n_draws=600)
    twice = third.loadings[1] * third.loadings[2]
    assert twice @ third.weights > 0.6  # the same counts twice
    assert third.loadings.shape == (3, 600)


def test_a_type_without_effects_takes_no_part(margins):
    law, effect = gp4c.model.laws.LAWS["poisson"], gp4c.model.laws.EFFECTS[None]
    counts = margins[1].counts
    plain = replace(margins[1], counts=replace(counts, law=law, effect=effect))
    found = couple([margins[0], plain], 80)
    assert not found.loadings.any()
    assert_allclose(found.weights, found.weights[0])
    assert found.log_gain == 0.0
