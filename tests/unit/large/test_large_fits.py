"""Whole fits by way of sums, and by an expansion, against fits to the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from large_panels import irregular_frame, irregular_panel

import gp4c
from gp4c.estimators.large_data import large_panels as in_memory
from gp4c.estimators.large_data.summed_fit import fit_large

TIMES = np.linspace(0.0, 60.0, 25)


def both_ways(effect: str | None) -> tuple[gp4c.GP4C, gp4c.GP4C]:
    frailty = None if effect is None else 0.8
    panel = irregular_panel(n_subjects=150, gaps=True, frailty=frailty)
    rows, sums = (gp4c.GP4C(effect=effect, bursts=False) for _ in range(2))
    rows.fit(panel)
    fit_large(sums, panel)
    assert rows.compression_ is None
    assert sums.compression_["method"] == "nodes"
    return rows, sums


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("effect", [None, "gamma"])
def test_fits_by_sums_are_fits_to_the_rows(effect: str | None) -> None:
    rows, sums = both_ways(effect)
    # both are importance estimates, of some thousand draws
    assert sums.objective_ == pytest.approx(rows.objective_, abs=0.1)
    assert sums.compression_["error"] < 1e-3
    np.testing.assert_allclose(sums.intensity(TIMES), rows.intensity(TIMES), rtol=0.03)
    for one, two in zip(sums.intensity_band(TIMES), rows.intensity_band(TIMES), strict=True):
        np.testing.assert_allclose(one, two, rtol=0.1, atol=0.01)
    known = {k: v for k, v in rows.data_summary_.items() if k != "observed_time"}  # sums forget it
    assert sums.data_summary_ == pytest.approx(known)
    assert list(sums.subjects_) == list(rows.subjects_)
    np.testing.assert_array_equal(sums.subject_totals_, rows.subject_totals_)
    if effect == "gamma":
        assert sums.frailty_shape_ == pytest.approx(rows.frailty_shape_, rel=0.03)
        np.testing.assert_allclose(sums.subject_effects_, rows.subject_effects_, rtol=0.03)
        np.testing.assert_allclose(sums.subject_expected_, rows.subject_expected_, rtol=0.03)


@pytest.mark.usefixtures("many")
def test_the_objective_of_many_rows_is_that_of_the_rows_to_seven_digits() -> None:
    frame = irregular_frame(14_000)
    model = gp4c.GP4C(effect=None).fit(gp4c.scan_panel([frame], window=(0, 60)))
    assert model.compression_["relative_error"] < 1e-7


@pytest.mark.parametrize("bursts", [True, False])
def test_an_expansion_at_the_mode_is_close_to_the_rows(
    monkeypatch: pytest.MonkeyPatch, bursts: bool
) -> None:
    frame, rng = irregular_frame(1200, frailty=1.0), np.random.default_rng(0)
    if bursts:
        frame["count"] = rng.poisson(2.0 * rng.gamma(frame["count"] / 2.0 + 1e-9))
    panel = gp4c.PanelCounts.from_frame(frame, window=(0.0, 60.0))
    rows = gp4c.GP4C(effect="gamma", bursts=bursts).fit(panel)
    monkeypatch.setattr("gp4c.estimators.engine_fit.ORDINARY", 0)
    for name in ("MOST_CELLS", "MOST_ROWS", "MOST_HARD_ROWS"):
        monkeypatch.setattr(in_memory, name, 0)
    quick = gp4c.GP4C(effect="gamma", bursts=bursts).fit(panel)
    assert quick.compression_["method"] == "expansion"
    assert quick.compression_["error"] < 1.0
    assert quick.log_evidence_ == pytest.approx(rows.log_evidence_, abs=0.5)
    low, high = rows.cumulative_band(TIMES[1:])
    tenth = 0.1 * (high - low)
    assert (abs(quick.cumulative(TIMES[1:]) - rows.cumulative(TIMES[1:])) < tenth).all()
    for one, two in zip(quick.cumulative_band(TIMES[1:]), (low, high), strict=True):
        assert (abs(one - two) < 2 * tenth).all()
    np.testing.assert_allclose(quick.subject_effects_, rows.subject_effects_, rtol=0.05)


def test_laws_that_are_far_behind_on_a_sample_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel = irregular_panel(n_subjects=1200, frailty=1.0)
    monkeypatch.setattr("gp4c.estimators.engine_fit.ORDINARY", 0)
    for name in ("MOST_CELLS", "MOST_ROWS", "MOST_HARD_ROWS"):
        monkeypatch.setattr(in_memory, name, 0)
    told: list[str] = []
    model = gp4c.GP4C().fit(panel, progress=told.append)
    assert model.effect_ == "gamma"
    assert set(model.evidences_) == {"bursts + gamma", "poisson + gamma", "bursts", "poisson"}
    assert any(text.startswith("on ") for text in told)


def test_a_fit_from_files_is_saved_summarised_and_forecasts(many: None, tmp_path: Path) -> None:
    irregular_frame(200, labels=True, frailty=1.0).to_parquet(tmp_path / "visits.parquet")
    source = gp4c.scan_panel(tmp_path, window=(0, 60), time_unit="weeks")
    model = gp4c.GP4C(effect="gamma").fit(source)
    assert model.time_unit_ == "weeks"
    assert model.compression_["n_rows"] == 1000
    assert "1,000" in str(model.summary())
    assert "bursts were not considered" in model.effect_choice_
    model.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    assert again.compression_ == model.compression_
    np.testing.assert_array_equal(again.intensity(TIMES), model.intensity(TIMES))
    named = model.forecast(50.0, 60.0, subjects=["unit 00007"])
    assert float(named.mean[0]) > 0


def test_what_needs_the_rows_says_so() -> None:
    source = gp4c.scan_panel([irregular_frame(4)])
    with pytest.raises(ValueError, match="needs the rows themselves"):
        gp4c.GP4C(method="mcmc").fit(source)
    with pytest.raises(ValueError, match="count_term needs the rows in memory; leave it at None"):
        gp4c.GP4C(count_term="pointwise").fit(source)
    with pytest.raises(ValueError, match="this needs the rows in memory"):
        gp4c.GP4C(effect="gamma", bursts=True).fit(source)
    with pytest.raises(ValueError, match="formula='subject' needs the rows"):
        gp4c.GP4C(formula="subject").fit(source)


def test_a_source_without_events_has_an_answer() -> None:
    frame = irregular_frame(40)
    frame["count"] = 0
    model = gp4c.GP4C(effect=None).fit(gp4c.scan_panel([frame]))
    assert model.data_summary_["n_events"] == 0
    assert 0 < model.cumulative(60.0 * 0.9) < 1


@pytest.mark.parametrize("estimator", [gp4c.HomogeneousPoisson, gp4c.NPMPLE, gp4c.LocalEM])
def test_estimators_that_need_the_rows_say_so(estimator: type) -> None:
    with pytest.raises(TypeError, match=f"{estimator.__name__} needs all rows in memory"):
        estimator().fit(gp4c.scan_panel([irregular_frame(4)]))


@pytest.mark.filterwarnings("default::gp4c.exceptions.OverdispersionWarning")
def test_overdispersion_is_seen_in_data_read_in_parts() -> None:
    frame = irregular_frame(100, frailty=0.3)
    model = gp4c.GP4C(effect=None, n_inducing=8)
    with pytest.warns(gp4c.exceptions.OverdispersionWarning, match="vary"):
        model.fit(gp4c.scan_panel([frame]))
