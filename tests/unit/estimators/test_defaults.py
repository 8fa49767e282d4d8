"""Defaults are part of the answer: who changes one changes results of users, and says so."""

from __future__ import annotations

import inspect

import pytest

import gp4c

#: as documented; a change belongs into CHANGELOG.md too
DEFAULTS = {
    "GP4C": {
        "n_inducing": None, "count_term": None, "b": 0.3, "kernel": "se", "mean": "learn",
        "effect": "auto", "bursts": "auto", "formula": None, "missing": "error", "method": "vi",
        "hyper": "integrate", "optimizer": "natural", "tol": 1e-6, "max_iter": 200,
        "n_jobs": None, "random_state": None, "trend": None, "season": None,
    },
    "GP4CW": {
        "n_inducing": None, "count_term": "lemma2", "b": 0.3, "kernel": "se", "mean": "learn",
        "hyper": "optimize", "optimizer": "natural", "tol": 1e-6, "max_iter": 200,
        "random_state": None,
    },
    "GP3": {
        "n_inducing": None, "kernel": "se", "mean": "learn", "effect": None, "bursts": "auto",
        "hyper": "integrate", "random_state": None,
    },
    "LocalEM": {
        "bandwidth": "cv", "bandwidths": None, "n_splits": 5, "folds": "shuffled",
        "stop": "fixed-point", "tol": 1e-9, "max_iter": 5000, "random_state": 0,
    },
    "NPMLE": {"effect": None, "method": "newton", "tol": 1e-9, "max_iter": None},
    "NPMPLE": {},
    "NPMPLGF": {"tol": 1e-9, "max_iter": 200},
    "HomogeneousPoisson": {"effect": None, "bursts": False},
}  # fmt: skip
#: of methods that all estimators share: the level of bands and forecasts, and their window
OF_METHODS = {
    "intensity_band": {"level": 0.95, "kind": "pointwise", "extrapolate": False},
    "cumulative_band": {"level": 0.95, "kind": "pointwise", "extrapolate": False},
    "forecast": {"subjects": "auto", "level": 0.9},
    "cumulative": {"extrapolate": False},
}


def defaults_of(function: object) -> dict[str, object]:
    found = inspect.signature(function).parameters
    return {n: p.default for n, p in found.items() if p.default is not inspect.Parameter.empty}


@pytest.mark.parametrize("name", DEFAULTS)
def test_parameters_of_estimators(name: str) -> None:
    estimator = getattr(gp4c, name)
    assert defaults_of(estimator.__init__) == DEFAULTS[name]
    assert estimator().get_params() == DEFAULTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_arguments_of_methods(name: str) -> None:
    estimator = getattr(gp4c, name)
    for method, expected in OF_METHODS.items():
        assert defaults_of(getattr(estimator, method)).items() >= expected.items(), method


def test_the_paper_s_estimators() -> None:
    paper = {"n_inducing": 30, "count_term": "lemma2", "hyper": "optimize", "optimizer": "vem",
             "tol": 1e-4}  # fmt: skip
    plain = gp4c.GP4C.paper()
    assert type(plain) is gp4c.GP4C
    assert plain.get_params() == DEFAULTS["GP4C"] | paper | {"effect": None}
    weighted = gp4c.GP4CW.paper()
    assert type(weighted) is gp4c.GP4CW  # with weights, not GP4C's
    assert weighted.get_params() == DEFAULTS["GP4CW"] | paper
    assert weighted.effect == "weight"
    chosen = {"b": 0.1, "n_inducing": 12, "random_state": 5}
    for estimator in (gp4c.GP4C, gp4c.GP4CW):
        assert estimator.paper(**chosen).get_params().items() >= chosen.items()
    grid = {"bandwidths": "paper", "folds": "contiguous", "stop": "squared-change"}
    assert gp4c.LocalEM.paper().get_params() == DEFAULTS["LocalEM"] | grid
