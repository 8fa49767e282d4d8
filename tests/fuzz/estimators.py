"""Every way to fit: an estimator of the registry, the data it takes, values of its parameters.

Values are drawn for each case, so that options meet each other. An estimator that joins the
registry without a way here, or a parameter that no way varies, fails test_fuzz.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import gp4c
from gp4c.inference.variational.count_terms import COUNT_TERMS
from gp4c.model.kernels import KERNELS
from gp4c.model.modulation import TRENDS

from .panels import event_histories, small_panels, smooth_panels
from .studies import Both, Parts, covariate_panels, panels_and_events, sources, typed_panels

#: parameters that say how long or how closely to search, not what is assumed
EFFORT = {"tol", "max_iter", "n_jobs", "random_state", "n_starts", "n_refits", "max_classes",
          "bandwidths", "n_splits", "folds", "stop", "missing"}  # fmt: skip
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Way:
    """One way to fit.

    Attributes
    ----------
    kind : type
        The estimator.
    data : SearchStrategy
        Legal data for it.
    fixed : mapping
        Arguments that are the same in every case.
    open : mapping
        Parameter -> the values that are drawn for it.
    batch : int
        Cases in one round of the campaign: dear fits come one at a time.
    climbs : bool
        Whether `history_` is an objective that never decreases.
    balances : callable
        Given the arguments, whether as many events are expected as were seen.
    repeats : float
        Share of the cases that are fitted once more, to the same rows in another guise.
    units : bool
        Whether another unit of time changes nothing but the unit of the answers.
    """

    kind: type[Any]
    data: st.SearchStrategy[Any]
    fixed: Values = field(default_factory=dict)
    open: Values = field(default_factory=dict)
    batch: int = 4
    climbs: bool = False
    balances: Callable[[Values], bool] = lambda arguments: False
    repeats: float = 0.25
    units: bool = True

    def arguments(self) -> st.SearchStrategy[dict[str, Any]]:
        """Values for all parameters that are given."""
        drawn = {name: st.sampled_from(list(values)) for name, values in self.open.items()}
        return st.fixed_dictionaries(drawn).map(lambda found: {**self.fixed, **found})

    def cases(self) -> st.SearchStrategy[Case]:
        """Data, arguments, and whether and how to fit once more."""
        odds = round(10 * self.repeats)
        again = ["same", *(["unit"] if self.units else [])]
        chosen = st.integers(1, 10).flatmap(
            lambda n: st.sampled_from(again) if n <= odds else st.none()
        )
        return st.builds(Case, self.data, self.arguments(), chosen)


@dataclass(frozen=True)
class Case:
    """Data, arguments of the estimator, and the guise in which it is fitted once more, if any."""

    data: Any
    arguments: Values
    again: str | None = None


def own_values(kind: type[Any], parameter: str) -> list[Any]:
    """What --effect or --bursts of an estimator stand for, each once."""
    options: Mapping[str, Any] = getattr(kind, f"{parameter}_options")
    return list(dict.fromkeys(options.values()))


def laws(kind: type[Any], **more: Any) -> Values:
    """Subject effects and laws of counts that an estimator takes; `more` are other parameters."""
    found = {"effect": own_values(kind, "effect"), "bursts": own_values(kind, "burst")}
    return {**found, **more}


ENGINE_EFFECTS = ["auto", None, "gamma"]  # a free weight belongs to the variational family
SHAPE = {"kernel": list(KERNELS), "mean": ["learn", "learn", 0.0, 0.5]}
BOUND = {"count_term": list(COUNT_TERMS), "b": [0.3, 0.0, 1.0], **SHAPE}
ANY_PANEL = st.one_of(small_panels, smooth_panels())
QUIET = smooth_panels(30)
#: of covariates, both constant and changing within a subject
FORMULAS = [None, "arm", "arm + log(dose)", "C(arm):dose", "load", "over_time(arm)"]

WAYS: dict[str, Way] = {
    "HomogeneousPoisson": Way(
        gp4c.HomogeneousPoisson, small_panels, open=laws(gp4c.HomogeneousPoisson), batch=25,
        climbs=True, balances=lambda a: a["effect"] is None and not a["bursts"],
    ),
    "PowerLaw": Way(
        gp4c.PowerLaw, st.one_of(small_panels, covariate_panels()), batch=8,
        open=laws(gp4c.PowerLaw, formula=[None]),
    ),
    "PowerLaw, formula": Way(
        gp4c.PowerLaw, covariate_panels(), open=laws(gp4c.PowerLaw, formula=FORMULAS[1:5])
    ),
    "LogLinear": Way(
        gp4c.LogLinear, st.one_of(small_panels, covariate_panels()), batch=8,
        open=laws(gp4c.LogLinear, formula=[None]),
    ),
    "LogLinear, formula": Way(
        gp4c.LogLinear, covariate_panels(), open=laws(gp4c.LogLinear, formula=FORMULAS[1:5])
    ),
    "NPMPLE": Way(gp4c.NPMPLE, small_panels, batch=25, climbs=True),
    "NPMPLGF": Way(gp4c.NPMPLGF, small_panels, batch=10, climbs=True),
    "NPMLE": Way(
        gp4c.NPMLE, small_panels, fixed={"effect": None}, batch=20, climbs=True,
        balances=lambda a: True,
    ),
    "NPMLE, other searches": Way(
        gp4c.NPMLE, small_panels, fixed={"tol": 1e-3}, open={"method": ["icm", "em"]}, batch=20,
        climbs=True,
    ),
    "NPMLE, gamma": Way(
        gp4c.NPMLE, small_panels, open={"effect": ["gamma"]}, batch=8, climbs=True
    ),
    "LocalEM": Way(gp4c.LocalEM, ANY_PANEL, open={"bandwidth": ["cv"]}),
    "LocalEM.paper": Way(
        gp4c.LocalEM, ANY_PANEL, units=False,
        fixed={"bandwidths": "paper", "folds": "contiguous", "stop": "squared-change",
               "max_iter": 100},
        open={"bandwidth": ["cv"]}
    ),
    "GP4C": Way(
        gp4c.GP4C, QUIET,
        open={"effect": ENGINE_EFFECTS, "bursts": own_values(gp4c.GP4C, "burst"),
              "hyper": ["integrate", "optimize"], "kernel": SHAPE["kernel"]},
    ),
    "GP4C, uneven counts": Way(
        gp4c.GP4C, small_panels,
        open={"effect": ENGINE_EFFECTS, "bursts": own_values(gp4c.GP4C, "burst"),
              "n_inducing": [None, 20]},
    ),
    "GP4C, given mean": Way(
        gp4c.GP4C, QUIET, fixed={"effect": None, "bursts": False}, open={"mean": [0.0, 0.5]},
        batch=1, units=False,
    ),
    "GP4C, formula": Way(
        gp4c.GP4C, covariate_panels(),
        open={"effect": ENGINE_EFFECTS, "bursts": [True, False], "formula": FORMULAS[1:]},
    ),
    "GP4C, factors": Way(
        gp4c.GP4C, covariate_panels(),
        open={"effect": [None, "gamma"], "bursts": [True, False], "formula": FORMULAS[:2],
              "trend": [None, *TRENDS, "auto"], "season": [None, 0.25, 0.7]},
    ),
    "GP4C, types": Way(
        gp4c.GP4C, typed_panels(), batch=2,
        open={"effect": ENGINE_EFFECTS, "bursts": [True, False], "formula": FORMULAS[:2]},
    ),
    "GP4C, exact times too": Way(
        gp4c.GP4C, panels_and_events(), open={"effect": ENGINE_EFFECTS, "bursts": [True, False]}
    ),
    "GP4C, in parts": Way(
        gp4c.GP4C, sources(), open={"effect": ENGINE_EFFECTS, "bursts": [True, False]},
        repeats=0.0,
    ),
    "GP4C, variational": Way(
        gp4c.GP4C, ANY_PANEL, fixed={"n_inducing": 6, "hyper": "optimize"}, climbs=True,
        open={**BOUND, "effect": [None, "gamma", "weight", "auto"]}, units=False,
    ),
    "GP4C.paper": Way(
        gp4c.GP4C, QUIET, batch=1, climbs=True, repeats=0.1, units=False,
        fixed={"n_inducing": 8, "effect": None, "hyper": "optimize", "count_term": "lemma2",
               "tol": 1e-4, "random_state": 0},
        open={"optimizer": ["vem"], "b": [0.3, 0.0]},
    ),
    "GP4C, sampled": Way(
        gp4c.GP4C, QUIET, fixed={"n_inducing": 6, "effect": None, "bursts": False},
        open={"method": ["mcmc"]}, batch=1, repeats=0.0,
    ),
    "GP4CW": Way(
        gp4c.GP4CW, ANY_PANEL, open={**BOUND, "hyper": ["optimize"], "optimizer": ["natural"]},
        fixed={"n_inducing": 6}, climbs=True, units=False,
    ),
    "GP4CMixture": Way(
        gp4c.GP4CMixture, QUIET, fixed={"n_starts": 2, "max_iter": 20, "n_inducing": 6},
        open={"n_bases": [1, 2, 3], **BOUND}, climbs=True, units=False,
    ),
    "GP4CClasses": Way(
        gp4c.GP4CClasses, covariate_panels(), batch=2, repeats=0.1,
        fixed={"n_refits": 0, "max_classes": 2},
        open={"n_classes": [1, 2, "auto"], "membership": [None, "arm"], "kernel": list(KERNELS),
              "n_inducing": [None, 12], "effect": [None, "gamma"], "bursts": [False, True]},
    ),
    "GP3": Way(
        gp4c.GP3, event_histories(), units=False,
        open={**laws(gp4c.GP3), **SHAPE, "n_inducing": [None, 12],
              "hyper": ["integrate", "optimize"]},
    ),
}  # fmt: skip


def forgotten() -> list[str]:
    """Estimators of the registry, or parameters of theirs, that no way varies."""
    from gp4c.parts import estimators

    found = []
    for kind in estimators():
        if not kind.__module__.startswith("gp4c."):
            continue  # another package's, or a test's
        ways = [way for way in WAYS.values() if way.kind is kind]
        varied = EFFORT.union(*(way.open for way in ways), *(way.fixed for way in ways))
        missing = set(inspect.signature(kind).parameters) - varied if ways else {"any way"}
        found += [f"{kind.__name__}: {name}" for name in sorted(missing)]
    return found


def fitted(way: Way, data: Any, arguments: Values) -> Any:
    """A fit to data; a season is drawn as a share of the window."""
    given = dict(arguments)
    if given.get("season") is not None:
        given["season"] = given["season"] * (data.window[1] - data.window[0])
    model = way.kind(**given)
    if isinstance(data, Both):
        return model.fit(data.panel, events=data.events)
    return model.fit(data.source() if isinstance(data, Parts) else data)
