"""GP3 and mixed data: exact event times in the same model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.events import RecurrentEvents


def truth(t: np.ndarray) -> np.ndarray:
    return 2.0 + np.sin(t / 3.0)


@pytest.fixture(scope="module")
def data() -> tuple[gp4c.PanelCounts, RecurrentEvents]:
    return gp4c.simulate_panel(truth, window=(0, 20), n_subjects=40, n_intervals=6, random_state=3)


def test_a_constant_rate_has_the_evidence_of_a_gamma_integral() -> None:
    """Where f hardly varies, the evidence is ∫ p(λ) λⁿ e^{−λT} dλ over the level alone.

    Checked through its dependence on the data: halving all times at equal events multiplies the
    density of the times by 2ⁿ, whatever the prior, since the prior has the unit of the data.
    """
    rng = np.random.default_rng(4)
    times = np.sort(rng.uniform(0.0, 8.0, 60))
    one, half = (
        gp4c.GP3(bursts=False).fit(
            RecurrentEvents.from_frame(
                {"subject": np.zeros(60, dtype=int), "time": c * times}, window=(0.0, 8.0 * c)
            )
        )
        for c in (1.0, 0.5)
    )
    assert_allclose(half.log_evidence_ - one.log_evidence_, 60 * np.log(2.0), rtol=1e-6)
    assert_allclose(one.cumulative(8.0), 60.0, rtol=0.1)


def test_exact_times_give_a_better_curve_than_counts(
    data: tuple[gp4c.PanelCounts, RecurrentEvents],
) -> None:
    panel, events = data
    t = np.linspace(0, 20, 201)
    fast = {"effect": None}
    errors = [
        np.mean((model.intensity(t) - truth(t)) ** 2)
        for model in (gp4c.GP3().fit(events), gp4c.GP4C(**fast).fit(panel))
    ]
    assert errors[0] < 0.05
    assert errors[0] < errors[1]


def test_mixed_data_lie_between(data: tuple[gp4c.PanelCounts, RecurrentEvents]) -> None:
    panel, events = data
    half = np.arange(20)
    fast = {"effect": None}
    mixed = gp4c.GP4C(**fast).fit(panel[half], events=events[half + 20])
    assert mixed.data_summary_["n_subjects"] == 40
    assert_allclose(mixed.cumulative(20.0), data[0].n_events / 40, rtol=0.05)
    # exact times tell more than counts: the band is narrower than that of the counts alone
    counts = gp4c.GP4C(**fast).fit(panel[half])
    t = np.linspace(1, 19, 30)
    widths = [np.ptp(m.intensity_band(t), axis=0).mean() for m in (mixed, counts)]
    assert widths[0] < 0.9 * widths[1]


def test_save_and_load(data: tuple[gp4c.PanelCounts, RecurrentEvents], tmp_path: object) -> None:
    model = gp4c.GP3(n_inducing=10, effect="gamma").fit(data[1])
    path = f"{tmp_path}/gp3.json"
    model.save(path)
    again = gp4c.load_model(path)
    t = np.linspace(0, 20, 7)
    assert np.array_equal(model.intensity(t), again.intensity(t))
    assert model.score(data[0]) == again.score(data[0])  # from the draws, which the file has
