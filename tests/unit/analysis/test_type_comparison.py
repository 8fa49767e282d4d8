"""Groups compared in several types of events: the combined test, each type, and the messages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.analysis.groups.holm import holm
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.permutation import LabelledStatistics, combined_test
from gp4c.exceptions import PanelDataError
from typed_panels import simulated_types

QUICK = gp4c.GP4C(effect=None, bursts=False)


def labelled(values, chosen, parts=("level",)):
    """Statistics (J, P) of all labellings, one of which was given."""
    return LabelledStatistics(
        values[:, chosen], values, parts, (False,) * len(parts), True, np.array([[3, 3]])
    )


@pytest.fixture(scope="module")
def found():
    panel = simulated_types(60, rho=0.7, rates=(0.8, 0.3), seed=3)
    return gp4c.compare(panel, "arm", QUICK, n_permutations=199, bayes_factor=False)


@pytest.mark.parametrize("parts", [("level",), ("level", "curve")])
def test_the_combined_test_is_exact_whatever_the_dependence(parts):
    # over all labellings its p-value is uniform, here with two dependent tests
    rng = np.random.default_rng(1)
    first = rng.gamma(1.0, size=(len(parts), 60))
    second = first + rng.gamma(0.5, size=first.shape)
    p_values = [
        combined_test([labelled(first, k, parts), labelled(second, k, parts)]).p_value
        for k in range(60)
    ]
    for level in (0.05, 0.1, 0.5):
        assert np.mean(np.array(p_values) <= level + 1e-12) <= level + 1e-12
    if len(parts) == 1:
        assert_allclose(np.mean(p_values), 0.5, atol=0.02)


def test_a_test_combined_with_itself_is_itself():
    values = np.random.default_rng(2).gamma(1.0, size=(1, 50))
    for k in range(5):
        one = labelled(values, k)
        assert combined_test([one, one]).p_value == one.test().p_value


def test_each_type_is_compared_as_by_itself(found):
    for name in found.panel.event_types:
        alone = PanelTest.of(found.panel.of_type(name), "arm", n_permutations=199)
        assert found.of_type(name).p_value == alone.overall.p_value
        assert found.of_type(name).interval() == alone.interval(0.95, 0, 1)
    table = found.tests()
    assert_allclose(table["p_adjusted"], holm(table["p_value"].to_numpy()))
    outside = (table["low"] > 1) | (table["high"] < 1)
    assert ((table["p_adjusted"] <= 0.05) == outside).all()


def test_an_effect_on_one_type_is_found_by_both_tests():
    panel = simulated_types(80, rho=0.7, seed=4)
    frame = panel.to_frame()
    less = (frame["arm"] == "b") & (frame["event"] == "first")
    frame.loc[less, "count"] = 0
    panel = gp4c.PanelCounts.from_frame(frame, event="event", window=(0, 10))
    found = gp4c.compare(panel, "arm", QUICK, n_permutations=199, bayes_factor=False)
    assert found.p_value <= 0.01
    adjusted = found.tests().set_index("event")["p_adjusted"]
    assert adjusted["first"] <= 0.02 < adjusted["second"]


def test_the_words_and_the_table_have_the_same_numbers(found):
    text = str(found)
    assert f"p = {found.p_value:.4f}" in text
    assert "== first ==" in text
    assert found.table().rows[-1][2] == f"{found.p_value:.4f}"
    assert found.plot(event="second").get_xlabel() == "time"
    with pytest.raises(PanelDataError, match="no event type 'third'"):
        found.of_type("third")


def test_the_report_shows_the_types_and_the_comparison_in_each(found):
    joint = gp4c.GP4C(effect=None, bursts=False).fit(found.panel)
    report = gp4c.Report({"all": joint}, panel=found.panel, comparison=found)
    text = report.html()
    for words in ("type of event: second", "All types together", "ratio-cumulative-0-type-1"):
        assert words in text
    adjusted = found.tests()["p_adjusted"]
    for p_value in (f"p = {found.p_value:.4f}", *(f"adjusted {p:.4f}" for p in adjusted)):
        assert p_value in text
    with pytest.raises(PanelDataError, match="one fit to several types"):
        gp4c.Report({"a": joint, "b": joint}, panel=found.panel)
