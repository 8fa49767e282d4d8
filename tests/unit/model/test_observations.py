"""Scaling to unit time and unit rate: the log-likelihood of the data comes back exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.data.events import RecurrentEvents
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import PanelDataError
from gp4c.model.observations import Observations, observe
from problems import visits_panel
from tolerances import ROUNDING

WINDOW = (3.0, 53.0)
LENGTH = WINDOW[1] - WINDOW[0]


def rate(t: np.ndarray) -> np.ndarray:
    """An intensity in user time with the primitive below."""
    return 0.05 + 0.002 * t


def mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return 0.05 * (high - low) + 0.001 * (high**2 - low**2)


def poisson_log_likelihood(panel: PanelCounts) -> float:
    """Row by row in the user's units, Σ ln m! left out."""
    mean = panel.exposure * mass(panel.start, panel.stop)
    return float(panel.count @ np.log(mean) - mean.sum())


def scaled_log_likelihood(data: Observations) -> float:
    """The same from the scaled data: f² = rate · length / data.rate."""
    user_low, user_high = (WINDOW[0] + LENGTH * x for x in (data.start, data.stop))
    unit_mass = mass(user_low, user_high) / data.rate
    counted = data.count > 0
    value = data.count[counted] @ np.log(unit_mass[counted]) - data.exposure @ unit_mass
    squared = rate(WINDOW[0] + LENGTH * data.events) * LENGTH / data.rate
    return float(value + np.log(squared).sum() + data.constant)


def event_histories() -> RecurrentEvents:
    import pandas as pd

    frame = pd.DataFrame({"id": [1, 1, 2], "t": [10.0, 33.5, 50.0]})
    return RecurrentEvents.from_frame(frame, subject="id", time="t", window=WINDOW)


@pytest.mark.parametrize("with_exposure", [False, True])
def test_scaling_keeps_the_poisson_likelihood(with_exposure: bool) -> None:
    panel = visits_panel(3, 8, 4, window=WINDOW, with_exposure=with_exposure)
    data = observe(panel, None, WINDOW)
    assert_allclose(scaled_log_likelihood(data), poisson_log_likelihood(panel), **ROUNDING)


def test_exact_events_add_their_log_intensities() -> None:
    panel, events = visits_panel(4, 5, 3, window=WINDOW), event_histories()
    data = observe(panel, events, WINDOW)
    at_risk = mass(events.start, events.stop).sum()
    expected = poisson_log_likelihood(panel) + np.log(rate(events.time)).sum() - at_risk
    assert_allclose(scaled_log_likelihood(data), expected, **ROUNDING)
    assert data.total == panel.n_events + 3
    assert data.by_subject.shape[0] == panel.n_subjects + 2


def test_events_alone_need_no_panel() -> None:
    events = event_histories()
    data = observe(None, events, WINDOW)
    expected = np.log(rate(events.time)).sum() - mass(events.start, events.stop).sum()
    assert_allclose(scaled_log_likelihood(data), expected, **ROUNDING)
    assert not data.count.any()


def test_the_unit_rate_is_the_observed_rate() -> None:
    panel = visits_panel(5, 7, 3, window=WINDOW, with_exposure=True)
    data = observe(panel, None, WINDOW)
    assert_allclose(data.exposure @ (data.stop - data.start), panel.n_events, **ROUNDING)


def test_subjects_and_intervals_share_the_exposure() -> None:
    panel = visits_panel(6, 7, 3, window=WINDOW, with_exposure=True)
    data = observe(panel, None, WINDOW)
    assert_allclose(np.asarray(data.by_subject.sum(axis=0)).ravel(), data.exposure, **ROUNDING)
    each = [panel.count[panel.subject_index == k].sum() for k in range(panel.n_subjects)]
    assert data.totals.tolist() == each
    assert data.count.sum() == data.total == panel.n_events


def test_without_events_the_unit_rate_is_one_event_in_the_whole_exposure() -> None:
    frame = {"subject": [1, 2], "start": [3.0, 3.0], "stop": [53.0, 28.0], "count": [0, 0]}
    panel = PanelCounts.from_frame(frame, window=WINDOW)
    data = observe(panel, None, WINDOW)
    assert_allclose(data.exposure @ (data.stop - data.start), 1.0, **ROUNDING)
    assert data.constant == 0.0


def test_more_events_than_the_bound_can_resolve_are_refused() -> None:
    """The search over length-scales came back empty or did not end; found by the fuzz campaign."""
    table = {"subject": [1, 2], "start": [0.0, 0.0], "stop": [1.0, 2.0], "count": [2**53, 0]}
    panel = PanelCounts.from_frame(table)
    with pytest.raises(PanelDataError, match=r"at most 1e\+10 events; found 9.0072e\+15"):
        observe(panel, None, panel.window)
