"""Fits by way of sums do not depend on the origin and the unit of time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.large import cluster

FACTOR, ORIGIN = 7.0, 100.0
QUICK = {"n_inducing": 8}


def visits(n_subjects: int, factor: float = 1.0, origin: float = 0.0) -> pd.DataFrame:
    """Three irregular intervals per subject within (0, 10]."""
    rng = np.random.default_rng(11)
    cuts = np.sort(rng.uniform(0.0, 10.0, (n_subjects, 4)), axis=1)
    effect = rng.gamma(1.0, 1.0, n_subjects)[:, None]
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n_subjects), 3),
            "start": cuts[:, :-1].ravel(),
            "stop": cuts[:, 1:].ravel(),
            "count": rng.poisson(effect * 2.0 * np.diff(cuts, axis=1)).ravel(),
        }
    )
    frame[["start", "stop"]] = frame[["start", "stop"]] * factor + origin
    return frame


def fitted(factor: float = 1.0, origin: float = 0.0) -> gp4c.GP4C:
    window = (origin, origin + 10.0 * factor)
    source = gp4c.scan_panel([visits(60, factor, origin)], window=window)
    return gp4c.GP4C(effect="gamma", **QUICK).fit(source)


@pytest.fixture(scope="module")
def both() -> tuple[gp4c.GP4C, gp4c.GP4C]:
    return fitted(), fitted(FACTOR, ORIGIN)


def test_another_clock_gives_the_same_curve(both: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    here, there = both
    times = np.linspace(0.0, 10.0, 9)
    moved = ORIGIN + FACTOR * times
    assert_allclose(there.cumulative(moved), here.cumulative(times), rtol=1e-5, atol=1e-12)
    assert_allclose(there.intensity(moved) * FACTOR, here.intensity(times), rtol=1e-5)
    assert there.length_scale_ == pytest.approx(FACTOR * here.length_scale_, rel=1e-4)
    assert there.variance_ == pytest.approx(here.variance_ / FACTOR, rel=1e-4)


def test_another_clock_gives_the_same_subjects(both: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    here, there = both
    # averages over 200 draws, of which rounding may choose others
    assert_allclose(there.subject_effects_, here.subject_effects_, rtol=0.03)
    assert_allclose(there.subject_expected_, here.subject_expected_, rtol=0.03)
    assert_allclose(there.histories_.span_start, ORIGIN + FACTOR * here.histories_.span_start)
    assert_allclose(there.histories_.span_stop, ORIGIN + FACTOR * here.histories_.span_stop)


def test_what_is_said_of_the_data_has_their_unit(both: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    frame = visits(60)
    at_risk = (frame["stop"] - frame["start"]).sum()
    for model, factor in zip(both, (1.0, FACTOR), strict=True):
        assert model.data_summary_ == pytest.approx(
            {"n_subjects": 60, "n_intervals": 180, "n_events": frame["count"].sum(),
             "exposure_time": factor * at_risk}
        )  # fmt: skip
    scales = [model.compression_["resolution"] for model in both]
    assert scales[1] == pytest.approx(FACTOR * scales[0])


def test_effects_and_expected_counts_are_those_of_gamma_frailty(
    both: tuple[gp4c.GP4C, gp4c.GP4C],
) -> None:
    # (α + N) / (α + R), R the expected count at effect 1 of the fitted curve
    model, frame = both[0], visits(60)
    mass = model.cumulative(frame["stop"]) - model.cumulative(frame["start"])
    expected = np.bincount(frame["subject"], mass)
    # the fit averages over 200 draws, whose level is known to about 2%; this is at their means
    assert_allclose(model.subject_expected_, expected, rtol=0.06)
    shape, totals = model.frailty_shape_, np.bincount(frame["subject"], frame["count"])
    assert_allclose(model.subject_effects_, (shape + totals) / (shape + expected), rtol=0.08)


def test_few_subjects_are_looked_for_in_other_partitions() -> None:
    """About one in 64, by a hash of the key, so that the same ones are chosen everywhere."""
    source = gp4c.scan_panel([visits(2000)])
    reader, window = source.reader, (0.0, 10.0)
    found = cluster._sum_frame(visits(2000), 0, reader, window, "gamma", None)
    assert 2000 / 64 / 2 < len(found.keys) < 2000 / 64 * 2
    half = cluster._sum_frame(visits(2000)[:3000], 0, reader, window, "gamma", None)
    assert set(half.keys.tolist()) <= set(found.keys.tolist())
    without = cluster._sum_frame(visits(2000), 0, reader, window, None, None)
    assert without.sums is not None
