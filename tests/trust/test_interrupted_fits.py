"""Ctrl-C during a fit leaves the estimator as it was; an interrupted bootstrap goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest

import gp4c
from problems import visits_panel

PANEL = visits_panel(61, 7, 3, level=3.0, window=(0.0, 24.0), frailty=1.0)
OTHER = visits_panel(62, 5, 3, level=1.0, window=(0.0, 10.0))
QUICK: dict[str, Any] = {
    "n_inducing": 4, "tol": 1e-2, "count_term": "lemma2", "hyper": "optimize", "effect": None
}  # fmt: skip
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "gp4c": lambda: gp4c.GP4C(**QUICK),
    "covariates": lambda: gp4c.GP4C(formula="size", hyper="optimize", n_inducing=6),
    "local-em": lambda: gp4c.LocalEM(bandwidth=4.0),
    "npmle": lambda: gp4c.NPMLE(effect="gamma"),
    "npmple": gp4c.NPMPLE,
    "npmplgf": gp4c.NPMPLGF,
    "constant": lambda: gp4c.HomogeneousPoisson(effect="gamma"),
}
MOMENTS = 12


class Interrupter:
    """Counts calls of Python functions and raises KeyboardInterrupt at a chosen one.

    Their entry is where Python looks for signals. It never does between `__enter__` of a lock
    written in C and the block: raising there would leave the lock held for good.
    """

    def __init__(self, moment: int | None = None) -> None:
        self.seen, self.moment = 0, moment

    def __call__(self, frame: object, event: str, argument: object) -> None:
        self.seen += event == "call"
        if event == "call" and self.seen == self.moment:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupter:
        sys.setprofile(self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


def with_size(panel: Any) -> Any:
    frame = panel.to_frame()
    frame["size"] = np.arange(panel.n_subjects)[panel.subject_index] % 3
    return gp4c.PanelCounts.from_frame(frame, window=panel.window)


def calls_of(action: Callable[[], Any]) -> int:
    with Interrupter() as counter:
        action()
    return counter.seen


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.GP4CWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_interrupted_fit_keeps_the_earlier_one_or_none(name: str) -> None:
    panel, other = with_size(PANEL), with_size(OTHER)
    complete = ESTIMATORS[name]().fit(panel)
    total = calls_of(lambda: ESTIMATORS[name]().fit(panel))
    earlier = ESTIMATORS[name]().fit(other)
    untouched = 0
    for moment in np.linspace(2, total - 1, MOMENTS).astype(int):
        for model in (ESTIMATORS[name](), copy(earlier)):
            before = dict(vars(model))
            try:
                with Interrupter(int(moment)):
                    model.fit(panel)
            except KeyboardInterrupt:
                same = vars(model).keys() == before.keys()
                same = same and all(vars(model)[key] is value for key, value in before.items())
                untouched += same
                if not same:  # only warnings were left to say: the new fit is complete
                    assert vars(model).keys() == vars(complete).keys()
                    assert model.cumulative(5.0) == complete.cumulative(5.0)
    assert untouched > MOMENTS


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.GP4CWarning")
@pytest.mark.parametrize("name", ["npmle", "local-em", "npmplgf"])
def test_an_interrupted_bootstrap_resumes_to_the_same_bands(name: str) -> None:
    whole = ESTIMATORS[name]().fit(PANEL).bootstrap(24, random_state=5)
    total = calls_of(lambda: ESTIMATORS[name]().fit(PANEL).bootstrap(24, random_state=5))
    model, kept = ESTIMATORS[name]().fit(PANEL), []
    for moment in np.linspace(total // 6, total // 2, 4).astype(int):
        try:
            with Interrupter(int(moment)):
                model.bootstrap(24, random_state=5)
        except KeyboardInterrupt:
            pass
        kept.append(len(next(iter(getattr(model, "bootstrap_", {"": []}).values()))))
    assert kept == sorted(kept)
    assert kept[-1] > 0
    model.bootstrap(24, random_state=5)
    for key, draws in whole.bootstrap_.items():
        np.testing.assert_array_equal(model.bootstrap_[key], draws)


def test_a_refused_fit_keeps_the_earlier_one() -> None:
    model = gp4c.LocalEM(bandwidth=4.0).fit(PANEL)
    answer = model.cumulative(5.0)
    with pytest.raises(TypeError, match="takes a PanelCounts, not a str"):
        model.fit("no panel")
    assert model.cumulative(5.0) == answer
