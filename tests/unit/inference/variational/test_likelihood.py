"""Terms of the bound as functions of the moments at the nodes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from gp4c.data.events import RecurrentEvents
from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.observations import Observations, observe
from gp4c.model.quadrature import Grid
from problems import central_difference, observed, visits_panel
from tolerances import CLOSED_FORM, FINITE_DIFFERENCE, ROUNDING

GRID = Grid.on(np.linspace(0.0, 1.0, 5), 10)
MEAN = 0.9 + 0.4 * np.sin(4 * GRID.nodes)
VARIANCE = 0.08 + 0.05 * GRID.nodes


def mixed_data() -> Observations:
    """A panel, and two other subjects whose event times are known."""
    times = {"id": [1, 1, 1, 2], "t": [0.1, 0.35, 0.9, 0.6]}
    events = RecurrentEvents.from_frame(times, subject="id", time="t", window=(0.0, 1.0))
    return observe(visits_panel(1, 4, 3), events, (0.0, 1.0))


@pytest.mark.parametrize("effect", [None, "weight", "gamma"])
@pytest.mark.parametrize("count_term", ["lemma2", "pointwise", "exact"])
def test_derivatives_by_the_moments_at_the_nodes(count_term: str, effect: str | None) -> None:
    likelihood = Likelihood.of(mixed_data(), GRID, count_term, 0.4, effect)
    shape = 0.9 if effect == "gamma" else np.inf

    def value(mean: np.ndarray, variance: np.ndarray) -> float:
        logs = likelihood.counts(mean, variance).value + likelihood.events(mean, variance).value
        return logs - likelihood.exposure(mean**2 + variance, shape)[0]

    counts, events = likelihood.counts(MEAN, VARIANCE), likelihood.events(MEAN, VARIANCE)
    _, weight = likelihood.exposure(MEAN**2 + VARIANCE, shape)
    by_mean = central_difference(lambda m: value(m, VARIANCE), MEAN)
    by_variance = central_difference(lambda v: value(MEAN, v), VARIANCE)
    ours = counts.by_mean + events.by_mean - 2 * MEAN * weight
    assert_allclose(ours, by_mean, **FINITE_DIFFERENCE)
    ours = counts.by_variance + events.by_variance - weight
    assert_allclose(ours, by_variance, **FINITE_DIFFERENCE)


def test_events_contribute_their_expected_log_squares() -> None:
    data = mixed_data()
    ours = Likelihood.of(data, GRID, "lemma2", 0.3).events(MEAN, VARIANCE).value
    expected = 0.0
    for x in data.events:
        mean, deviation = 0.9 + 0.4 * np.sin(4 * x), np.sqrt(0.08 + 0.05 * x)

        def integrand(u: float, mean: float = mean, deviation: float = deviation) -> float:
            return float(np.log((mean + deviation * u) ** 2) * np.exp(-0.5 * u * u))

        pieces = [(-12.0, -mean / deviation), (-mean / deviation, 12.0)]
        expected += sum(quad(integrand, *p, epsabs=1e-12, limit=300)[0] for p in pieces)
    assert_allclose(ours, expected / np.sqrt(2 * np.pi), rtol=1e-8)


def test_intervals_without_events_enter_the_exposure_only() -> None:
    data = observed(visits_panel(7, 6, 4, level=0.3))
    empty = data.count == 0
    assert empty.any()
    likelihood = Likelihood.of(data, GRID, "lemma2", 0.3)
    assert len(likelihood.count) == np.count_nonzero(~empty)
    assert likelihood.count.sum() == data.total
    total, _ = likelihood.exposure(np.ones(len(GRID.nodes)), np.inf)
    assert_allclose(total, data.exposure @ (data.stop - data.start), **CLOSED_FORM)


def test_only_the_paper_bound_pays_its_constant_per_event() -> None:
    data = observed(visits_panel(1, 4, 3))
    loose, tight, exact = (
        Likelihood.of(data, GRID, term, 0.3).counts(MEAN, VARIANCE).constant
        for term in ("lemma2", "pointwise", "exact")
    )
    assert_allclose(loose, -LEMMA2_CONSTANT * data.total, **ROUNDING)
    assert tight == exact == 0.0
