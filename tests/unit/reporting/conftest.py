"""Models that the tests of this folder look at: small, and fitted once."""

import pytest

import gp4c

QUICK = {"count_term": "pointwise", "hyper": "optimize", "n_inducing": 12}


@pytest.fixture(scope="session")
def visits():
    """Twenty subjects in two groups, months as unit."""
    panel, _ = gp4c.simulate_panel(
        lambda t: 0.4 + 0.3 * (t > 6),
        window=(0, 12),
        n_subjects=20,
        n_intervals=4,
        frailty=1.0,
        covariates={"arm": ["a", "b"] * 10},
        time_unit="months",
        random_state=4,
    )
    return panel


@pytest.fixture(scope="session")
def smooth(visits):
    return gp4c.GP4C(effect="gamma", **QUICK).fit(visits)


@pytest.fixture(scope="session")
def stepwise(visits):
    return gp4c.NPMLE().fit(visits).bootstrap(30, random_state=0)


@pytest.fixture(scope="session")
def arms(visits):
    return {arm: gp4c.GP4C(effect=None, **QUICK).fit(visits.where(arm=arm)) for arm in "ab"}
