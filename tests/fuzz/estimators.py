"""Every estimator, by name, with how it is built for a panel and how dear a fit is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gp4c


@dataclass(frozen=True)
class Entry:
    """One way to fit.

    Attributes
    ----------
    build
        Takes the data, returns an unfitted estimator.
    cost : {"cheap", "fair", "dear"}
        Milliseconds, tenths of a second, or seconds.
    on : {"panel", "events"}
    climbs : bool
        Whether `history_` is an objective that never decreases.
    balanced : bool
        Whether the expected number of events over all rows equals the number seen.
    """

    build: Callable[[Any], Any]
    cost: str = "cheap"
    on: str = "panel"
    climbs: bool = True
    balanced: bool = False


def _length(data: Any) -> float:
    return float(data.window[1] - data.window[0])


def _quick(**options: Any) -> Callable[[Any], Any]:
    """GP4C with few inducing inputs and point estimates: a fit in tenths of a second."""
    return lambda data: gp4c.GP4C(**{"hyper": "optimize", "n_inducing": 6, **options})


CLASSICAL = {
    "HomogeneousPoisson": Entry(lambda data: gp4c.HomogeneousPoisson(), balanced=True),
    "HomogeneousPoisson(gamma)": Entry(lambda data: gp4c.HomogeneousPoisson(effect="gamma")),
    "NPMPLE": Entry(lambda data: gp4c.NPMPLE()),
    "NPMPLGF": Entry(lambda data: gp4c.NPMPLGF()),
    "NPMLE": Entry(lambda data: gp4c.NPMLE(), balanced=True),
    "NPMLE(icm)": Entry(lambda data: gp4c.NPMLE(method="icm", tol=1e-4)),
    "NPMLE(em)": Entry(lambda data: gp4c.NPMLE(method="em", tol=1e-3)),
    "NPMLE(gamma)": Entry(lambda data: gp4c.NPMLE(effect="gamma")),
    "LocalEM": Entry(lambda data: gp4c.LocalEM(), cost="fair", climbs=False),
    "LocalEM(fixed)": Entry(lambda data: gp4c.LocalEM(bandwidth=0.1 * _length(data)), climbs=False),
    "LocalEM.paper": Entry(
        lambda data: gp4c.LocalEM.paper().set_params(max_iter=100), cost="fair", climbs=False
    ),
}

GAUSSIAN = {
    "GP4C(lemma2)": Entry(_quick(count_term="lemma2", effect=None), "fair"),
    "GP4C(lemma2, b=0)": Entry(_quick(count_term="lemma2", b=0.0, effect=None), "fair"),
    "GP4C(pointwise)": Entry(_quick(count_term="pointwise", effect=None), "fair"),
    "GP4C(exact)": Entry(_quick(count_term="exact", effect=None), "fair"),
    "GP4C(pointwise, gamma)": Entry(_quick(count_term="pointwise", effect="gamma"), "fair"),
    "GP4C(exact, gamma)": Entry(_quick(count_term="exact", effect="gamma"), "fair"),
    "GP4C(pointwise, weight)": Entry(_quick(count_term="pointwise", effect="weight"), "fair"),
    "GP4C(pointwise, auto)": Entry(_quick(count_term="pointwise", effect="auto"), "fair"),
    "GP4C(matern32)": Entry(_quick(count_term="pointwise", effect=None, kernel="matern32"), "fair"),
    "GP4C(mean=0)": Entry(_quick(count_term="pointwise", effect=None, mean=0.0), "fair"),
    "GP4CW": Entry(lambda data: gp4c.GP4CW(n_inducing=6), "fair"),
    # evidences of laws and modes, not a climb, are their history
    "GP4C(single events)": Entry(
        lambda data: gp4c.GP4C(n_inducing=6, effect=None, bursts=False), "fair", climbs=False
    ),
    "GP4C()": Entry(lambda data: gp4c.GP4C(n_inducing=8), "dear", climbs=False),
    "GP4C.paper": Entry(lambda data: gp4c.GP4C.paper(n_inducing=8, random_state=0), "dear"),
}

TIMED = {
    "GP3": Entry(lambda data: gp4c.GP3(n_inducing=6), "fair", on="events", climbs=False),
    "GP3(gamma)": Entry(
        lambda data: gp4c.GP3(n_inducing=6, effect="gamma"), "fair", on="events", climbs=False
    ),
}

ESTIMATORS: dict[str, Entry] = {**CLASSICAL, **GAUSSIAN, **TIMED}
