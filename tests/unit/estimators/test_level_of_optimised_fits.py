"""With optimised hyper-parameters a flat curve is as uncertain as a constant rate."""

from __future__ import annotations

import numpy as np
import pytest

import gp4c


@pytest.mark.parametrize("name", ["GP4C", "GP3"])
def test_a_flat_curve_is_as_uncertain_as_a_constant_rate(name: str) -> None:
    panel, events = gp4c.simulate_panel(
        0.3, window=(0, 60), n_subjects=30, n_intervals=8, random_state=1
    )
    if name == "GP3":
        model = gp4c.GP3(hyper="optimize").fit(events)
    else:
        model = gp4c.GP4C(effect=None, bursts=False, hyper="optimize").fit(panel)
    yardstick = gp4c.HomogeneousPoisson().fit(panel)
    width, least = (np.ptp(m.cumulative_band(60.0)) for m in (model, yardstick))
    assert 0.9 * least < width < 1.2 * least
