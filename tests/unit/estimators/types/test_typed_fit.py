"""GP4C on a panel with types: answers, saved models, scores and forecasts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import ModelFileError, PanelDataError
from typed_panels import simulated_types

TIMES = np.array([1.0, 5.0, 9.0])


@pytest.fixture(scope="module")
def panel():
    return simulated_types(60, rho=0.7, seed=5)


@pytest.fixture(scope="module")
def model(panel):
    return gp4c.GP4C(bursts=False).fit(panel)


def test_the_total_is_the_sum_of_the_types(model):
    assert model.event_types_ == ("first", "second")
    for ask in (model.intensity, model.cumulative):
        assert_allclose(ask(TIMES, event="first") + ask(TIMES, event="second"), ask(TIMES))
    each = [model.expected_counts(2.0, 7.0, event=name) for name in model.event_types_]
    assert_allclose(sum(each), model.expected_counts(2.0, 7.0))
    one = [model.cumulative(5.0, event=name, subjects=7) for name in model.event_types_]
    assert_allclose(sum(one), model.cumulative(5.0, subjects=7))


def test_bands_hold_the_curves_and_are_those_of_the_sum(model):
    for event in (None, "first", "second"):
        for ask, band in (
            (model.intensity, model.intensity_band),
            (model.cumulative, model.cumulative_band),
        ):
            low, high = band(TIMES, event=event)
            assert np.all((low < ask(TIMES, event=event)) & (ask(TIMES, event=event) < high))
    draws = model.sample_intensity(TIMES, 4000, random_state=1)
    low, high = model.intensity_band(TIMES, 0.9)
    assert_allclose(np.quantile(draws, [0.05, 0.95], axis=0), [low, high], rtol=0.03)
    wide = model.cumulative_band(TIMES, kind="simultaneous")
    assert np.all(wide[1] - wide[0] > np.subtract(*model.cumulative_band(TIMES)[::-1]))


def test_curves_are_near_those_of_the_types_by_themselves(panel, model):
    for name in panel.event_types:
        alone = gp4c.GP4C(bursts=False).fit(panel.of_type(name))
        assert_allclose(model.cumulative(9.0, event=name), alone.cumulative(9.0), rtol=0.1)


def test_the_correlation_and_its_interval(model):
    found = model.effect_correlation_
    low, high = found.interval()
    assert low < float(found) < high
    assert low > 0
    assert found.interval(0.5)[0] > low
    frame = found.to_frame()
    assert frame.loc[0, ["event", "other"]].tolist() == ["first", "second"]
    assert_allclose(found.matrix()[0, 1], float(found))
    assert "first and second" in str(found)
    with pytest.raises(ValueError, match="name two different types"):
        found.mean("first", "first")


def test_effects_know_of_both_types(panel, model):
    """Who has many events of the other type is expected to have more of this one."""
    alone = gp4c.GP4C(bursts=False).fit(panel.of_type("second"))
    totals = [np.bincount(p.subject_index, p.count, 60) for p in panel.parts]
    quiet = totals[1] == np.median(totals[1])
    change = model.of_type("second").subject_effects_ / alone.subject_effects_
    assert np.corrcoef(change[quiet], totals[0][quiet])[0, 1] > 0.5


def test_ratios_of_types(model):
    ratio, low, high = model.type_ratio(TIMES, "first", "second")
    assert np.all((low < ratio) & (ratio < high))
    assert_allclose(1 / np.asarray(model.type_ratio(TIMES, "second", "first")[0]), ratio, rtol=0.01)
    rates = model.type_ratio(5.0, "first", "second", cumulative=False)
    assert rates[1] < rates[0] < rates[2]


def test_a_saved_model_gives_the_same_answers(model, tmp_path):
    path = tmp_path / "fit.json"
    model.save(path)
    read = gp4c.load_model(path)
    assert read.event_types_ == model.event_types_
    assert read.cumulative_band(5.0) == model.cumulative_band(5.0)
    assert read.effect_correlation_.interval() == model.effect_correlation_.interval()
    assert np.array_equal(
        read.intensity(TIMES, event="first"), model.intensity(TIMES, event="first")
    )
    one, two = (m.forecast(9, 12, subjects=[3, 4], n_draws=200) for m in (read, model))
    assert np.array_equal(one.draws, two.draws)


def test_a_file_whose_parts_do_not_fit_together_is_refused(model, tmp_path):
    whole = vars(model)["loadings_"]
    try:
        model.loadings_ = whole[:, :-1]
        with pytest.raises(ModelFileError, match="do not fit together"):
            model.save(tmp_path / "fit.json")
    finally:
        model.loadings_ = whole


def test_forecasts_are_joint(model):
    found = model.forecast(0.0, 10.0, subjects=None, n_draws=4000)
    first, second = (found.by_type[name].draws for name in model.event_types_)
    assert np.array_equal(first + second, found.draws)
    assert np.corrcoef(first, second)[0, 1] > 0.2
    assert_allclose(found.mean, model.expected_counts(0.0, 10.0), rtol=0.1)
    frame = model.forecast(9, 12, subjects=[3, 4], n_draws=300).to_frame()
    assert frame.event.tolist() == ["first"] * 2 + ["second"] * 2 + ["total"] * 2
    one = model.forecast(9, 12, subjects="all", event="first", n_draws=300)
    assert one.mean == model.forecast(9, 12, subjects="all", n_draws=300).by_type["first"].mean
    assert "of them first" in str(model.forecast(9, 12, subjects=3, n_draws=300))


def test_forecasts_of_known_subjects_have_the_means_of_their_effects(model):
    one = model.of_type("first")
    expected = one.subject_effects_[[3, 4, 20]] * one.expected_counts(2.0, 8.0)
    found = model.forecast(2.0, 8.0, subjects=[3, 4, 20], event="first")
    assert_allclose(found.mean, expected, rtol=0.1)


def test_scores_are_of_all_types_together(panel, model):
    new = simulated_types(30, rho=0.7, seed=8)
    joint, error = model.score_with_error(new)
    assert error < 0.2
    by_draws = model.score_subjects(new)
    assert by_draws.shape == (30,)
    assert_allclose(joint, by_draws.sum(), atol=2.0)
    assert_allclose(model.score(new, constant=True), joint - new.log_factorials)
    with pytest.raises(PanelDataError, match="must have the same event types"):
        model.score(new.of_type("first"))


def test_what_belongs_to_a_type_is_asked_of_it(panel, model):
    for name in ("dispersion_", "frailty_variance_", "length_scale_", "law_", "count_law_"):
        with pytest.raises(PanelDataError, match=r"model\.of_type\('first'\)"):
            getattr(model, name)
    with pytest.raises(PanelDataError, match="no event type 'third'"):
        model.intensity(1.0, event="third")
    plain = gp4c.GP4C(bursts=False).fit(panel.of_type("first"))
    assert plain.effect_correlation_ is None
    with pytest.raises(PanelDataError, match="without event types"):
        plain.intensity(1.0, event="first")
    with pytest.raises(PanelDataError, match="fits one type of event"):
        gp4c.GP4C(count_term="exact").fit(panel)


def test_a_refit_without_types_forgets_them_and_back(panel):
    model = gp4c.GP4C(bursts=False, hyper="optimize")
    plain = model.fit(panel.of_type("first")).cumulative(5.0)
    model.fit(panel)
    assert model.event_types_
    model.fit(panel.of_type("first"))
    assert not model.event_types_
    assert model.cumulative(5.0) == plain
    assert model.frailty_variance_ > 0


def test_types_without_effects_stay_independent():
    panel = simulated_types(40, variances=(1.0, 0.0), seed=2)
    model = gp4c.GP4C(effect=None, bursts=False, hyper="optimize").fit(panel)
    assert model.effect_correlation_.event_types == ()
    assert "fewer than two types" in str(model.effect_correlation_)
    assert model.forecast(2, 8, subjects=3, n_draws=500).mean > 0


def test_row_order_and_labels_change_nothing(panel, model):
    frame = panel.to_frame().sample(frac=1, random_state=0)
    frame["subject"] = frame.subject.map(lambda k: f"s{k:03d}")
    other = gp4c.PanelCounts.from_frame(frame, event="event", window=(0, 10))
    again = gp4c.GP4C(bursts=False).fit(other)
    assert float(again.effect_correlation_) == float(model.effect_correlation_)
    assert again.cumulative(5.0) == model.cumulative(5.0)


def test_covariates_of_each_type():
    panel = simulated_types(60, seed=4)
    model = gp4c.GP4C(formula="arm", bursts=False)
    model.fit(panel)
    a, b = (model.cumulative(9.0, covariates={"arm": arm}) for arm in "ab")
    assert a != b
    each = [model.cumulative(9.0, event=e, covariates={"arm": "a"}) for e in panel.event_types]
    assert_allclose(sum(each), a)
    assert model.forecast(9, 12, subjects=3, n_draws=500).mean > 0
