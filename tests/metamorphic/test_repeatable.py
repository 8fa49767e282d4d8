"""Random numbers are seeded: the same question has the same answer, and says which seed it had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from relations import CASES, QUICK, TIMES, baseline, panel_of, study

import gp4c
from tolerances import BIT_FOR_BIT

BOOTSTRAP = ["LocalEM", "NPMPLE", "NPMLE", "NPMLE gamma", "NPMPLGF", "HomogeneousPoisson gamma"]
SHUFFLED = study().sample(frac=1.0, random_state=2)


def same_bits(one: Any, two: Any) -> None:
    assert_allclose(np.asarray(one, float), np.asarray(two, float), **BIT_FOR_BIT)


@pytest.mark.parametrize("name", BOOTSTRAP)
def test_bootstraps(name: str) -> None:
    first, again, other = (
        CASES[name].make().fit(panel_of(table)).bootstrap(6, random_state=seed)
        for table, seed in ((study(), 1), (SHUFFLED, 1), (study(), 2))
    )
    times = TIMES[3:]
    same_bits(first.cumulative_band(times), again.cumulative_band(times))
    assert not np.allclose(first.cumulative_band(times), other.cumulative_band(times))


@pytest.mark.parametrize("name", CASES)
def test_forecasts(name: str) -> None:
    def ask(model: Any, seed: int) -> np.ndarray:
        found = model.forecast(2.0, 10.0, subjects="all", random_state=seed, n_draws=400)
        return np.asarray(found.draws)

    model = baseline(name)
    same_bits(ask(model, 3), ask(model, 3))
    assert np.any(ask(model, 3) != ask(model, 4))


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("GP")])
def test_draws_and_scores(name: str) -> None:
    model = baseline(name)
    draws = [model.sample_intensity(TIMES, 20, random_state=seed) for seed in (1, 1, 2)]
    same_bits(draws[0], draws[1])
    assert np.any(draws[0] != draws[2])
    panel = panel_of(study())
    assert model.score(panel, n_draws=50) == model.score(panel_of(SHUFFLED), n_draws=50)


def test_cross_validation() -> None:
    models = {
        "constant": gp4c.HomogeneousPoisson(effect="gamma"),
        "steps": gp4c.NPMPLE(),
        "smooth": gp4c.GP4C(count_term="pointwise", effect=None, **QUICK),
        "kernel": gp4c.LocalEM(bandwidth=2.0),
    }
    with pytest.warns(gp4c.exceptions.GP4CWarning, match="no mass"):  # steps, held out
        one, two, other = (
            gp4c.cross_validate(models, panel_of(table), n_splits=3, random_state=seed)
            for table, seed in ((study(), 1), (SHUFFLED, 1), (study(), 2))
        )
    same_bits(one, two)
    assert np.all(one.to_numpy() != other.to_numpy())
    # the order in which models are named changes nothing either
    backwards = {name: models[name] for name in ("kernel", "smooth", "constant")}
    again = gp4c.cross_validate(backwards, panel_of(study()), n_splits=3, random_state=1)
    same_bits(again["smooth"], one["smooth"])


def test_samplers() -> None:
    options = {"method": "mcmc", "effect": None, "bursts": False, **QUICK}
    one, two, other = (
        gp4c.GP4C(random_state=seed, **options).fit(panel_of(table)).cumulative(TIMES)
        for table, seed in ((study(), 1), (SHUFFLED, 1), (study(), 2))
    )
    same_bits(one, two)
    assert np.any(one != other)


def test_the_papers_random_start() -> None:
    one, two, other = (
        gp4c.GP4C.paper(n_inducing=8, random_state=seed).fit(panel_of(table)).cumulative(TIMES)
        for table, seed in ((study(), 1), (SHUFFLED, 1), (study(), 2))
    )
    same_bits(one, two)
    assert np.any(one != other)
