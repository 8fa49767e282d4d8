"""Memory told before a fit: what it depends on, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gp4c
from gp4c.estimators.large_data import footprint
from gp4c.estimators.large_data.footprint import expected_peak
from gp4c.exceptions import NotEnoughMemoryError
from peaks import traced_peak
from problems import visits_panel

MODELS = [
    gp4c.GP4C(),
    gp4c.GP4C(n_inducing=20),
    gp4c.GP4C(count_term="pointwise", effect=None),
    gp4c.GP4C(method="mcmc"),
    gp4c.GP4C.paper(),
    gp4c.GP4CW(),
    gp4c.LocalEM(),
    gp4c.NPMLE(),
    gp4c.NPMPLGF(),
    gp4c.NPMPLE(),
    gp4c.HomogeneousPoisson(),
]


def data(n_subjects: int = 20, window: tuple[float, float] = (0.0, 1.0)) -> gp4c.PanelCounts:
    return visits_panel(4, n_subjects, 5, level=3.0, window=window)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_origin_and_unit_of_time_take_no_memory(model: Any) -> None:
    here = expected_peak(model, data())
    assert here > 3e6
    for window in ((0.0, 365.0), (2000.0, 2001.0), (-5.0, -4.0)):
        assert expected_peak(model, data(window=window)) == pytest.approx(here, rel=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_more_rows_take_more(model: Any) -> None:
    few, many = (expected_peak(model, data(n)) for n in (20, 200))
    assert many > few


def test_what_grows_with_the_square_of_the_visit_times_and_what_does_not() -> None:
    def growth(model: Any) -> float:
        base = expected_peak(model, data(1))
        some, twice = (expected_peak(model, data(n)) - base for n in (200, 400))
        return float(np.log2(twice / some))

    for model in (gp4c.NPMLE(), gp4c.NPMPLGF()):
        assert growth(model) == pytest.approx(2.0, abs=0.15), model
    for model in (gp4c.NPMPLE(), gp4c.HomogeneousPoisson(), gp4c.GP4C.paper()):
        assert growth(model) == pytest.approx(1.0, abs=0.05), model
    assert 1.0 < growth(gp4c.LocalEM()) < 2.0  # its matrix of intervals by cells is sparse


def consecutive_visits(n_visits: int, n_subjects: int = 3) -> gp4c.PanelCounts:
    """Few subjects who are seen very often, so that visit times decide and not intervals."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.uniform(0.0, 10.0, (n_subjects, n_visits + 1)), axis=1)
    return gp4c.PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(n_subjects), n_visits),
            "start": cuts[:, :-1].ravel(),
            "stop": cuts[:, 1:].ravel(),
            "count": rng.poisson(0.02, n_subjects * n_visits),
        }
    )


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_visits", [80, 700])
def test_local_em_takes_what_was_foreseen_of_subjects_who_are_seen_often(n_visits: int) -> None:
    model = gp4c.LocalEM(n_splits=2, max_iter=2)
    model.fit(consecutive_visits(10))  # imports and caches are not the fit's
    panel = consecutive_visits(n_visits)
    peak = traced_peak(lambda: model.fit(panel))
    assert peak / 1.5 < expected_peak(model, panel) < 1.5 * peak


def test_what_is_asked_for_costs() -> None:
    panel = data(100)

    def peak(**options: Any) -> float:
        return expected_peak(gp4c.GP4C(**options), panel)

    assert peak(n_inducing=60) > peak(n_inducing=20)
    exact = {"count_term": "exact"}
    assert peak(effect="gamma", **exact) > peak(effect=None, **exact)
    assert peak(effect=None, **exact) > peak(effect=None, count_term="lemma2")
    assert peak(effect="weight") == peak(effect="weight", **exact)  # weights ask for a bound


def test_other_data_than_panels_are_not_judged() -> None:
    assert expected_peak(gp4c.GP4C(), None) == 0.0


def test_an_estimator_of_ones_own_needs_what_its_class_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Renamed(gp4c.NPMLE):
        """Inherits its needs, whatever it is called."""

    class Greedy(gp4c.NPMPLE):
        """Says its own."""

        _memory_remedy = "ask for less"

        def _fit_bytes(self, panel: gp4c.PanelCounts) -> float:
            return 5e6 * panel.n_subjects

    panel = data(200)
    assert expected_peak(Renamed(), panel) == expected_peak(gp4c.NPMLE(), panel)
    assert expected_peak(Greedy(), panel) - expected_peak(Greedy(), data(100)) == 5e8
    monkeypatch.setattr(footprint, "available_memory", lambda: 10_000_000)
    with pytest.raises(NotEnoughMemoryError, match=r"Greedy .* 1\.0 GB .*: ask for less"):
        Greedy().fit(panel)
