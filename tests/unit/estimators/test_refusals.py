"""Options that do not go together, and arguments out of range, are refused before any work."""

import numpy as np
import pytest

import gp4c
from gp4c.classical.parametric import homogeneous
from gp4c.exceptions import ConvergenceWarning, GP4CWarning, PanelDataError


@pytest.fixture(scope="module")
def panel():
    return gp4c.simulate_panel(0.5, window=(0, 10), n_subjects=8, n_intervals=3, random_state=3)[0]


@pytest.fixture(scope="module")
def model(panel):
    return gp4c.GP4C(effect=None, hyper="optimize", n_inducing=4).fit(panel)


@pytest.fixture
def events(panel):
    return gp4c.RecurrentEvents.from_frame(
        {"id": [1, 2], "t": [3.0, 4.0]}, subject="id", time="t", window=panel.window
    )


def test_the_paper_s_optimiser_needs_a_bound(panel):
    with pytest.raises(ValueError, match="maximises a bound: choose a count_term"):
        gp4c.GP4C(optimizer="vem").fit(panel)


def test_a_formula_has_no_place_for_exact_times(panel, events):
    with pytest.raises(ValueError, match="formula= and events= do not go together"):
        gp4c.GP4C(formula="age").fit(panel, events=events)


def test_events_go_with_a_panel_in_memory(panel, events):
    with pytest.raises(ValueError, match="events= goes with a PanelCounts in memory"):
        gp4c.GP4C().fit(gp4c.scan_panel([panel.to_frame()]), events=events)


def test_bands_are_pointwise_or_simultaneous(model):
    with pytest.raises(ValueError, match="kind must be 'pointwise' or 'simultaneous'"):
        model.intensity_band(1.0, kind="both")


@pytest.mark.parametrize("p", [0, 1, -0.5, 2])
def test_quantiles_of_a_forecast_lie_inside(model, p):
    with pytest.raises(ValueError, match="p must be between 0 and 1"):
        model.forecast(5.0, 10.0).quantile(p)


def test_a_forecast_of_several_subjects_prints_as_a_table(model, panel):
    found = model.forecast(5.0, 12.0, subjects=panel.subjects[:2].tolist())
    text = str(found)
    assert text.count("\n") >= 2
    assert all(f"{mean:.4g}" in text for mean in np.ravel(found.mean))
    assert found.note
    assert found.note in text


def test_levels_of_effects_lie_inside(panel):
    frame = panel.to_frame().assign(arm=lambda f: f["subject"] % 2)
    fitted = gp4c.GP4C(formula="arm", effect=None, hyper="optimize", n_inducing=4).fit(
        gp4c.PanelCounts.from_frame(frame)
    )
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        fitted.effect_table(level=1.0)


def test_more_groups_than_a_picture_can_hold_are_not_compared():
    frame = {"subject": np.arange(21), "start": np.zeros(21), "stop": np.ones(21),
             "count": np.ones(21, dtype=int), "arm": [f"arm {k}" for k in range(21)]}  # fmt: skip
    with pytest.raises(PanelDataError, match="21 levels; at most 20 groups"):
        gp4c.compare(gp4c.PanelCounts.from_frame(frame), by="arm")


def test_a_rate_that_still_moves_is_reported(panel, monkeypatch):
    monkeypatch.setattr(homogeneous, "_TOL", -1.0)
    with pytest.warns(ConvergenceWarning, match=r"still moved after \d+ rounds"):
        found = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    assert not found.converged_


def test_one_subject_cannot_be_cross_validated(panel):
    with pytest.warns(GP4CWarning, match="one subject cannot be cross-validated"):
        found = gp4c.LocalEM().fit(panel[:1])
    assert np.isfinite(found.intensity(5.0))


def test_a_bootstrap_of_nothing_changes_nothing(panel):
    found = gp4c.NPMLE().fit(panel).bootstrap(5, random_state=1)
    before = {name: draws.copy() for name, draws in found.bootstrap_.items()}
    found._keep([], seed=2)
    assert found.bootstrap_seed_ == 1
    for name, draws in before.items():
        np.testing.assert_array_equal(found.bootstrap_[name], draws)


FITTED_TO_PANELS = ("HomogeneousPoisson", "NPMPLE", "NPMLE", "NPMPLGF", "LocalEM")


@pytest.mark.parametrize("name", FITTED_TO_PANELS)
def test_what_is_no_panel_is_named_with_what_makes_one(name, panel, events):
    for data, kind in ((panel.to_frame(), "a DataFrame"), (None, "None"), ([1, 2], "a list")):
        with pytest.raises(TypeError, match=f"{name}.fit takes a PanelCounts, not {kind};"):
            getattr(gp4c, name)().fit(data)
    with pytest.raises(TypeError, match=f"{name}.fit takes counts, not event times; GP3 fits"):
        getattr(gp4c, name)().fit(events)


@pytest.mark.parametrize("name", ["GP4C", "GP4CW"])
def test_event_times_are_no_counts(name, events):
    with pytest.raises(TypeError, match=f"{name}.fit takes counts, not event times"):
        getattr(gp4c, name)().fit(events)


def test_counts_are_no_event_times(panel):
    for data, kind in ((panel, "a PanelCounts"), (None, "None")):
        with pytest.raises(TypeError, match=f"GP3.fit takes RecurrentEvents, not {kind};"):
            gp4c.GP3().fit(data)


def test_a_refused_fit_leaves_the_one_before(panel):
    model = gp4c.NPMLE().fit(panel)
    before = model.cumulative(5.0)
    with pytest.raises(TypeError):
        model.fit(None)
    assert model.cumulative(5.0) == before
