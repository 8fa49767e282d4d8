"""Every estimator, one small study, and what of an answer can be compared after a change.

Times are multiples of 1/8, so that moving the origin and changing the unit are exact in floating
point: whatever differs afterwards is the estimator's doing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.events import RecurrentEvents
from gp4c.data.panel import PanelCounts
from gp4c.posterior.draws import CurveDraws
from tolerances import SAME_DRAWS, SAME_FIT

WINDOW = (0.0, 16.0)
TIMES = np.array([0.0, 0.5, 2.0, 3.25, 5.0, 8.0, 9.5, 12.0, 15.0, 16.0])
LEVEL = 0.9


def study(base: float = 1.0) -> pd.DataFrame:
    """Eleven subjects seen from 0 on without gaps, uneven and with zeros; two groups.

    Follow-up differs and two subjects share their visits. The rate goes as base + sin: it
    touches zero, so that f may cross it and draws come from tempering, unless base is larger.
    """
    rng = np.random.default_rng(10)
    rows = []
    for k in range(11):
        visits = np.sort(rng.choice(np.arange(2, 127), 4, replace=False)) / 8.0
        ends = np.concatenate([[0.0], visits, [WINDOW[1]] if k % 3 else []])
        frailty = rng.gamma(1.5) / 1.5
        rate = 0.35 * frailty * (2.0 if k % 2 else 1.0)
        for start, stop in pairwise(ends):
            mean = rate * (stop - start) * (base + np.sin((start + stop) / 5.0))
            rows.append((f"s{k:02d}", start, stop, int(rng.poisson(mean)), "ab"[k % 2]))
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count", "group"])
    # two subjects with the same visits
    twin = table[table["subject"] == "s01"].assign(subject="s11", count=[1, 0, 2, 0, 1])
    return pd.concat([table, twin], ignore_index=True)


def histories() -> pd.DataFrame:
    """Event times of five uneven subjects, frequent around times 4 and 14."""
    rng = np.random.default_rng(3)
    grid = np.arange(1, 128) / 8.0
    rate = 1.1 + np.sin(2.0 * np.pi * (grid - 1.5) / 10.0)
    times = np.sort(rng.choice(grid, 50, replace=False, p=rate / rate.sum()))
    return pd.DataFrame({"subject": rng.choice(list("vvvvwwxyz"), 50), "time": times})


def panel_of(table: pd.DataFrame, window: tuple[float, float] = WINDOW, **options: Any) -> Any:
    return PanelCounts.from_frame(table, window=window, **options)


def events_of(table: pd.DataFrame, window: tuple[float, float] = WINDOW) -> RecurrentEvents:
    return RecurrentEvents.from_frame(table, window=window)


@dataclass(frozen=True)
class Case:
    """An estimator, the data it takes, and the relations it is not made for, with the reason."""

    make: Callable[[], Any]
    events: bool = False
    n_bootstrap: int = 4
    exempt: dict[str, str] = field(default_factory=dict)

    def table(self) -> pd.DataFrame:
        return histories() if self.events else study()

    def fit(self, table: pd.DataFrame, window: tuple[float, float] = WINDOW) -> Any:
        model = self.make()
        if self.events:
            return model.fit(events_of(table, window))
        model.fit(panel_of(table, window))
        if hasattr(model, "bootstrap") and not model.band_text():
            model.bootstrap(self.n_bootstrap, random_state=5)
        return model


QUICK = {"n_inducing": 8, "hyper": "optimize"}
_PSEUDO = "each visit adds the total so far as an observation of its own"
_CELLS = "events are spread over cells between visit times, and smoothed from those cells"
_UNITS = "the published stopping rule looks at numbers with units"
_CENTRED = "the prior's level is that of average covariates, over subjects of whom there are fewer"
_SHAPELESS = "without events nothing tells how a rate changes: the fit refuses"
_FRAILTY = "a frailty belongs to a subject: two subjects are not one"

# one fit of the default suffices here: test_default_engine.py has the laws with everything
# integrated out
CASES: dict[str, Case] = {
    "GP4C": Case(
        gp4c.GP4C,
        exempt={"merging": _FRAILTY, "copies": "test_default_engine.py has them for all laws"},
    ),
    "GP4C single events": Case(lambda: gp4c.GP4C(effect=None, bursts=False, hyper="optimize")),
    "GP4C bursts": Case(
        lambda: gp4c.GP4C(effect=None, bursts=True, hyper="optimize"),
        exempt={"merging": "an interval with bursts of two subjects is not one of either"},
    ),
    "GP4C optimised": Case(
        lambda: gp4c.GP4C(effect="gamma", bursts=True, hyper="optimize"),
        exempt={"merging": _FRAILTY},
    ),
    "GP4C exact": Case(lambda: gp4c.GP4C(count_term="exact", effect=None, **QUICK)),
    "GP4C pointwise": Case(lambda: gp4c.GP4C(count_term="pointwise", effect=None, **QUICK)),
    "GP4C lemma2": Case(lambda: gp4c.GP4C(count_term="lemma2", effect=None, **QUICK)),
    "GP4C gamma": Case(
        lambda: gp4c.GP4C(count_term="pointwise", effect="gamma", **QUICK),
        exempt={"merging": _FRAILTY},
    ),
    "GP4C given mean": Case(
        lambda: gp4c.GP4C(effect=None, bursts=False, mean=0.6),
        exempt={"unit": "a fixed mean is a number with a unit"},
    ),
    "GP4C formula": Case(
        lambda: gp4c.GP4C(formula="group", hyper="optimize"),
        exempt={"merging": _FRAILTY, "copies": "copies make another length-scale most probable"},
    ),
    "GP4C formula, single events": Case(
        lambda: gp4c.GP4C(effect=None, bursts=False, formula="group", hyper="optimize"),
        exempt={"merging": _CENTRED},
    ),
    "GP4CW": Case(
        lambda: gp4c.GP4CW(n_inducing=8),
        exempt={"merging": "weights have mean 1 over subjects, of which there are fewer"},
    ),
    "GP4C.paper": Case(
        lambda: gp4c.GP4C.paper(n_inducing=8, random_state=2),
        exempt={
            "unit": _UNITS,
            "merging": "its prior mean is an average over subjects",
            "splitting": "it stops early, on a path that rounding can turn",
        },
    ),
    "GP3": Case(
        gp4c.GP3,
        events=True,
        exempt={
            "splitting": "there are no intervals",
            "merging": "event times have no exposure",
        },
    ),
    "GP3 gamma": Case(
        lambda: gp4c.GP3(effect="gamma"),
        events=True,
        exempt={"splitting": "there are no intervals", "merging": _FRAILTY},
    ),
    "LocalEM": Case(lambda: gp4c.LocalEM(bandwidths=(0.8, 2.4)), exempt={"splitting": _CELLS}),
    "LocalEM.paper": Case(
        gp4c.LocalEM.paper,
        n_bootstrap=2,
        exempt={
            "splitting": _CELLS,
            "unit": _UNITS,
            "labels": "its folds are blocks of subjects in the order of their labels",
            "merging": "its folds are blocks of subjects",
        },
    ),
    "NPMPLE": Case(gp4c.NPMPLE, exempt={"splitting": _PSEUDO}),
    "NPMLE": Case(gp4c.NPMLE),
    "NPMLE gamma": Case(lambda: gp4c.NPMLE(effect="gamma"), exempt={"merging": _FRAILTY}),
    "NPMPLGF": Case(gp4c.NPMPLGF, exempt={"splitting": _PSEUDO, "merging": _FRAILTY}),
    "HomogeneousPoisson": Case(gp4c.HomogeneousPoisson),
    "HomogeneousPoisson gamma": Case(
        lambda: gp4c.HomogeneousPoisson(effect="gamma"), exempt={"merging": _FRAILTY}
    ),
    "PowerLaw": Case(
        gp4c.PowerLaw, exempt={"origin": "its clock begins at time 0", "no events": _SHAPELESS}
    ),
    "LogLinear formula": Case(
        lambda: gp4c.LogLinear(effect="gamma", bursts=True, formula="group"),
        exempt={"merging": _FRAILTY, "no events": _SHAPELESS},
    ),
}


def names(relation: str) -> list[str]:
    """The estimators that a relation is promised for."""
    return [name for name, case in CASES.items() if relation not in case.exempt]


def tolerance(name: str) -> dict[str, float]:
    """How closely an estimator answers a question that was only asked in other words."""
    by_draws = isinstance(getattr(baseline(name), "posterior_", None), CurveDraws)
    return SAME_DRAWS if by_draws else SAME_FIT


def answers(model: Any, times: np.ndarray, unit: float = 1.0) -> dict[str, np.ndarray]:
    """Curves and bands at the times and the parameters, rates per `unit` of time."""
    found = {
        "cumulative": model.cumulative(times),
        "cumulative band": np.array(model.cumulative_band(times, LEVEL)),
        "expected counts": model.expected_counts(times[:-1], times[1:]),
        "frailty": np.array(1.0 / model.frailty_shape_),
    }
    if not hasattr(model, "times_"):  # a step function has no intensity
        found["intensity"] = unit * model.intensity(times)
        found["intensity band"] = unit * np.array(model.intensity_band(times, LEVEL))
    if getattr(model, "subject_effects_", None) is not None:
        found["subject effects"] = np.asarray(model.subject_effects_)
    if getattr(model, "coefficients_", None) is not None:
        found["covariates"] = model.effects_[["coefficient", "se", "robust_se"]].to_numpy()
    return found


@cache
def baseline(name: str) -> Any:
    """The estimator fitted to the study as it is."""
    return CASES[name].fit(CASES[name].table())


def assert_same(
    found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: dict[str, float]
) -> None:
    """All answers agree; the message says which one does not."""
    assert found.keys() == expected.keys()
    for what, value in expected.items():
        assert_allclose(found[what], value, **tolerance, err_msg=what)
