"""Whole fits by way of sums against fits to the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from large_panels import irregular_frame, irregular_panel

import gp4c
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference import importance
from gp4c.inference.hyper import Problem
from gp4c.inference.sparse_prior import Hyper
from gp4c.models import big
from gp4c.models.big import fit_large
from gp4c.models.size import is_large

TIMES = np.linspace(0.0, 60.0, 25)


def both_ways(many: None, **options: object) -> tuple[gp4c.GP4C, gp4c.GP4C]:
    frailty = None if options["effect"] is None else 0.8
    panel = irregular_panel(n_subjects=150, gaps=True, frailty=frailty)
    rows, sums = gp4c.GP4C(**options).fit(panel), gp4c.GP4C(**options)
    fit_large(sums, panel)
    assert rows.compression_ is None
    assert sums.compression_["method"] == "nodes"
    return rows, sums


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_fits_by_sums_are_fits_to_the_rows(many: None, effect: str | None) -> None:
    rows, sums = both_ways(many, effect=effect, hyper="optimize")
    assert sums.objective_ == pytest.approx(rows.objective_, abs=1e-4)
    assert sums.compression_["relative_error"] < 1e-7
    np.testing.assert_allclose(sums.intensity(TIMES), rows.intensity(TIMES), rtol=2e-3)
    for one, two in zip(sums.intensity_band(TIMES), rows.intensity_band(TIMES), strict=True):
        np.testing.assert_allclose(one, two, rtol=5e-3)
    known = {k: v for k, v in rows.data_summary_.items() if k != "observed_time"}  # sums forget it
    assert sums.data_summary_ == pytest.approx(known)
    assert list(sums.subjects_) == list(rows.subjects_)
    np.testing.assert_array_equal(sums.subject_totals_, rows.subject_totals_)
    if effect == "gamma":
        assert sums.frailty_shape_ == pytest.approx(rows.frailty_shape_, rel=1e-3)
        np.testing.assert_allclose(sums.subject_effects_, rows.subject_effects_, rtol=5e-3)
        np.testing.assert_allclose(sums.subject_expected_, rows.subject_expected_, rtol=5e-3)


def test_free_weights_have_mean_one_over_subjects(many: None) -> None:
    rows, sums = both_ways(many, effect="weight", count_term="lemma2", hyper="optimize")
    assert np.mean(sums.subject_effects_) == pytest.approx(1.0, abs=1e-6)
    assert sums.objective_ == pytest.approx(rows.objective_, abs=1e-3)
    np.testing.assert_allclose(sums.cumulative(TIMES), rows.cumulative(TIMES), rtol=1e-2, atol=1e-9)


def test_where_the_exact_term_takes_too_long_the_result_says_what_stands_in(
    many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(big, "MOST_WORK", 0.0)
    panel = irregular_panel(n_subjects=100)
    model = gp4c.GP4C(effect=None, hyper="optimize")
    fit_large(model, panel)
    assert model.compression_["count_term"] == "pointwise"
    assert model.count_term == "exact"
    # the sample is all rows here, so that the gap is that of the whole bound
    gap = model.elbo_ - model.objective_
    assert 0 < gap == pytest.approx(model.compression_["below_exact"], rel=1e-4)


def test_a_fit_from_files_is_saved_summarised_and_forecasts(many: None, tmp_path: Path) -> None:
    irregular_frame(200, labels=True, frailty=1.0).to_parquet(tmp_path / "visits.parquet")
    source = gp4c.scan_panel(tmp_path, window=(0, 60), time_unit="weeks")
    model = gp4c.GP4C(effect="gamma", hyper="optimize", count_term="pointwise").fit(source)
    assert model.time_unit_ == "weeks"
    assert model.compression_["n_rows"] == 1000
    assert "1,000" in str(model.summary())
    model.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    assert again.compression_ == model.compression_
    np.testing.assert_array_equal(again.intensity(TIMES), model.intensity(TIMES))
    named = model.forecast(50.0, 60.0, subjects=["unit 00007"])
    assert float(named.mean[0]) > 0


def test_what_needs_the_rows_says_so() -> None:
    source = gp4c.scan_panel([irregular_frame(4)])
    for options in ({"method": "mcmc"}, {"optimizer": "vem", "hyper": "optimize"}):
        with pytest.raises(ValueError, match="needs the rows themselves"):
            gp4c.GP4C(**options).fit(source)
    with pytest.raises(ValueError, match="formula='subject' needs the rows"):
        gp4c.GP4C(formula="subject").fit(source)


def test_small_panels_go_their_usual_way() -> None:
    few, some, many = (irregular_panel(n_subjects=n) for n in (990, 1010, 2100))
    default, needs_rows = gp4c.GP4C(), gp4c.GP4C.paper()
    assert [is_large(default, panel) for panel in (few, some, many)] == [False, True, True]
    assert [is_large(needs_rows, panel) for panel in (few, some, many)] == [False, False, True]


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
    model = gp4c.GP4C(effect=None, hyper="optimize", count_term="pointwise", n_inducing=8)
    with pytest.warns(gp4c.exceptions.OverdispersionWarning, match="vary"):
        model.fit(gp4c.scan_panel([frame]))


def test_draws_of_many_subjects_are_treated_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = irregular_panel(n_subjects=30, frailty=1.0)
    problem = Problem(observe(panel, None, panel.window), KERNELS["se"], "pointwise", 0.3, "gamma")
    work, hyper = problem.workspace(0.3), Hyper(0.3, 0.1, 1.0, 0.9)
    draws = np.random.default_rng(0).normal(size=(work.size, 40))
    together = importance.log_likelihood(work, hyper, draws)
    monkeypatch.setattr(importance, "_MOST_NUMBERS", 7 * work.likelihood.largest)
    np.testing.assert_allclose(importance.log_likelihood(work, hyper, draws), together, rtol=1e-13)
