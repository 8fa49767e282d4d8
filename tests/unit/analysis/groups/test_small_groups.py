"""Groups of one or two subjects: laws and level from everybody."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.groups.small_groups import informed, small_groups
from gp4c.analysis.words import comparison_words


@pytest.fixture(scope="module")
def panel():
    """The subject with most events beside others; they differ a lot."""
    frame = gp4c.simulate_panel(
        0.2, window=(0, 40), n_subjects=31, n_intervals=4, frailty=1.0, random_state=1
    )[0].to_frame()
    busiest = frame.groupby("subject")["count"].sum().idxmax()
    arm = np.where(frame["subject"] == busiest, "lone", "many")
    return gp4c.PanelCounts.from_frame(frame.assign(arm=arm), window=(0, 40))


def width(model):
    low, high = model.cumulative_band([40.0])
    return float(np.log(high / low).squeeze())


def test_a_lone_subject_learns_from_everybody_how_subjects_differ(panel):
    everybody = gp4c.GP4C(bursts=False).fit(panel)
    alone = gp4c.GP4C(bursts=False).fit(panel.where(arm="lone"))
    found = informed(alone, everybody, panel.where(arm="lone"))
    assert alone.effect_ is None
    assert found.effect_ == everybody.effect_ == "gamma"
    # one subject says next to nothing about the variance: it is everybody's
    assert_allclose(np.log(found.frailty_variance_), np.log(everybody.frailty_variance_), atol=0.2)
    # the events of one subject are known within a Poisson error, the mean of others like it is not
    assert width(found) > 1.5 * width(alone)
    assert found.effective_draws_ > 100
    assert alone.posterior_ is not found.posterior_


def test_nothing_is_learned_from_itself():
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    fit = gp4c.GP4C(effect=None, bursts=False).fit(panel)
    found = informed(fit, fit, panel)
    assert_allclose(found.posterior_.weights, fit.posterior_.weights / fit.posterior_.weights.sum())


def test_small_groups_are_those_of_one_or_two_subjects(panel):
    tested = PanelTest.of(panel, "arm", n_permutations=99)
    lone = tested.groups.levels.index("lone")
    assert small_groups(gp4c.GP4C(), tested) == [lone]
    falling = gp4c.GP4C(trend="loglinear")  # whose trend has no posterior to share
    assert small_groups(gp4c.GP3(), tested) == small_groups(falling, tested) == []
    found = SimpleNamespace(models={"lone": falling}, tested=tested)
    (said,) = comparison_words.small_group_words(found, "lone", 1)
    assert "its curve and band are about this subject" in said
    assert not list(comparison_words.small_group_words(found, "lone", 2))
