"""Simpler laws judged by the draws of the richest one, against fits of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import gp4c
from gp4c.estimators.engine_fit import EngineData, candidates
from gp4c.inference.engine.posterior_fit import fit_posterior
from gp4c.model.effect_integral import EffectIntegral, EffectRows
from gp4c.model.laws import EFFECTS, LAWS


def fits(panel):
    """The evidences that one fit of all laws reports, and those of a fit for each law."""
    data = EngineData(panel, None, panel.window)
    laws = candidates("auto", "auto", data)
    together = fit_posterior(data.cells, laws).evidences
    alone = {}
    for pair in laws:
        found = fit_posterior(data.cells, [pair])
        alone[pair[0].name, pair[1].name] = found.weighted.log_evidence
    return together, alone


@pytest.mark.parametrize("frailty", [None, 0.5])
def test_evidences_of_plausible_laws_agree_with_fits_of_their_own(frailty):
    panel, _ = gp4c.simulate_panel(
        lambda t: 0.15 + 0.1 * np.sin(t / 6), window=(0, 40), n_subjects=40, n_intervals=6,
        frailty=frailty, random_state=3,
    )  # fmt: skip
    together, alone = fits(panel)
    top = max(alone.values())
    plausible = [names for names, value in alone.items() if value > top - 8]
    assert len(plausible) >= 2
    assert_allclose([together[n] for n in plausible], [alone[n] for n in plausible], atol=0.4)


def test_laws_that_are_far_behind_stay_behind():
    together, alone = fits(gp4c.load_dataset("bladder").where(treatment="placebo"))
    best = max(alone, key=alone.get)
    assert best == max(together, key=together.get) == ("bursts", "gamma")
    for names in set(alone) - {best}:
        assert alone[names] < alone[best] - 10
        assert together[names] < together[best] - 10


@pytest.mark.parametrize("log_shape", [-2.0, 0.0, 2.0])
@pytest.mark.parametrize("log_excess", [-1.5, 1.0, 3.0])
@pytest.mark.parametrize("counts", [[2], [40, 2], [9, 5, 4, 3, 2, 2, 2]])
def test_the_rule_for_effects_agrees_with_adaptive_quadrature(log_shape, log_excess, counts):
    law, effect = LAWS["bursts"], EFFECTS["gamma"]
    count, power = np.array(counts, dtype=float), len(counts) + 1.0
    rows = EffectRows(np.array([power]), count, np.zeros(len(count), dtype=np.intp))
    psi, theta = np.array([[log_shape]]), np.array([[log_excess]])
    row, owner = 0.7 * count[:, None], np.array([[0.9 * count.sum()]])
    found = EffectIntegral(rows, law, effect).value(row, owner, psi, theta)[0, 0]
    hazard = law.hazard(theta)[0][0]

    def log_integrand(y):
        at = effect.log_density(np.array([[y]]), psi)[0, 0] + power * y
        at -= hazard * owner[0, 0] * np.exp(y)
        return at + law.remainder_value(np.exp(y) * row, count, theta).sum()

    grid = np.linspace(-30, 8, 2000)
    top = max(log_integrand(y) for y in grid)
    peak = grid[np.argmax([log_integrand(y) for y in grid])]
    mass = quad(lambda y: np.exp(log_integrand(y) - top), -60, 12, points=[peak], limit=500)[0]
    assert found == pytest.approx(top + np.log(mass), abs=0.006)
