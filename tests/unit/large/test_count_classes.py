"""Classes of rows stand for the rows exactly, under any law without subject effects."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.engine.posterior_fit import task_for
from gp4c.large import interval_sums
from gp4c.large.count_classes import CountClasses
from gp4c.large.interval_sums import IntervalStream, Rows
from gp4c.large.summed_cells import cells_of_classes
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells


def monthly_frame(n_subjects=400, excess=2.0, exposures=False, seed=0):
    """Visits at months, negative-binomial counts."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    stop = np.sort(np.argsort(rng.random((n_subjects, 24)), axis=1)[:, :4] + 1.0, axis=1)
    start = np.concatenate([np.zeros((n_subjects, 1)), stop[:, :-1]], axis=1)
    exposure = rng.choice([1.0, 0.5, 2.0], (n_subjects, 1)) if exposures else 1.0
    mean = (exposure * 0.3 * (stop - start)).ravel()
    count = rng.poisson(rng.gamma(mean / excess) * excess if excess else mean)
    return pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n_subjects), 4), "start": start.ravel(),
            "stop": stop.ravel(), "count": count,
            "exposure": np.broadcast_to(exposure, start.shape).ravel(),
        }
    )  # fmt: skip


def rows_of(frame):
    columns = (frame[name].to_numpy(dtype=float) for name in ("start", "stop", "count", "exposure"))
    start, stop, count, exposure = columns
    return Rows(start / 24, stop / 24, count, exposure)


@pytest.mark.parametrize("exposures", [False, True])
@pytest.mark.parametrize("law", ["poisson", "bursts"])
def test_density_and_derivatives_are_those_of_the_rows(law, exposures):
    frame = monthly_frame(exposures=exposures)
    panel = gp4c.PanelCounts.from_frame(frame, window=(0, 24), exposure="exposure")
    stream = IntervalStream()
    for part in np.array_split(np.arange(len(frame)), 3):
        stream.add(rows_of(frame.iloc[part]))
    laws = LAWS[law], EFFECTS[None]
    by_class = cells_of_classes(stream.finish(), panel.window, LAWS[law])
    by_row = observe_cells(panel, None, panel.window, *laws)
    assert len(by_class.weight) < len(frame)
    one, two = (task_for(cells, *laws).landscape(np.log(0.2)) for cells in (by_class, by_row))
    x = 0.5 * np.random.default_rng(1).standard_normal((one.dimension, 3))
    u = np.array([-1.0, -0.5, 0.3])
    at, other = one.derivatives(x, u), two.derivatives(x, u)
    assert_allclose(at.value, other.value, rtol=1e-11)
    assert_allclose(at.gradient, other.gradient, rtol=1e-8, atol=1e-8)
    assert_allclose(at.hessian, other.hessian, rtol=1e-8, atol=1e-7)


def test_sums_of_parts_have_the_classes_of_the_whole():
    frame = monthly_frame(exposures=True)
    streams = [IntervalStream() for _ in range(3)]
    half = len(frame) // 2
    for stream, part in zip(streams, (frame, frame.iloc[:half], frame.iloc[half:]), strict=True):
        stream.add(rows_of(part))
    whole, first, second = (stream.finish() for stream in streams)
    together = (first + second).classes
    for name in ("start", "stop", "exposure", "count", "number"):
        assert_allclose(getattr(together, name), getattr(whole.classes, name))
    assert whole.classes.number.sum() == (frame["count"] > 0).sum()


def test_table_and_sort_group_alike(monkeypatch):
    rows = rows_of(monthly_frame(exposures=True))
    given = rows.start, rows.stop, rows.exposure, rows.count
    by_table = CountClasses.of(*given)
    monkeypatch.setattr("gp4c.large.count_classes._TABLE", 0)
    by_sort = CountClasses.of(*given)
    assert_allclose(by_table.number, by_sort.number)
    assert_allclose(by_table.count, by_sort.count)


def test_streams_find_bursts_as_fits_in_memory_do():
    frame = monthly_frame(n_subjects=700)
    options = {"effect": None, "random_state": 0}
    rows = gp4c.GP4C(**options).fit(gp4c.PanelCounts.from_frame(frame, window=(0, 24)))
    stream = gp4c.GP4C(**options).fit(gp4c.scan_panel([frame], window=(0, 24)))
    assert stream.law_ == rows.law_ == "bursts"
    assert stream.log_evidence_ == pytest.approx(rows.log_evidence_, abs=0.02)
    times = np.linspace(1, 24, 8)
    assert_allclose(stream.cumulative(times), rows.cumulative(times), rtol=0.01)
    assert stream.dispersion_ == pytest.approx(rows.dispersion_, rel=0.02)


def test_what_is_left_out_is_said(monkeypatch):
    frame = monthly_frame(n_subjects=300)
    source = gp4c.scan_panel([frame], window=(0, 24))
    both = gp4c.GP4C().fit(source)
    assert set(both.evidences_) == {"poisson + gamma", "poisson", "bursts"}
    assert "together with subject effects were not considered" in both.effect_choice_
    assert gp4c.GP4C(effect=None, bursts=True).fit(source).law_ == "bursts"
    monkeypatch.setattr(interval_sums, "MOST_CLASSES", 10)
    few = gp4c.GP4C().fit(source)
    assert "bursts were not considered" in few.effect_choice_
    with pytest.raises(ValueError, match="needs the rows in memory"):
        gp4c.GP4C(effect=None, bursts=True).fit(source)
