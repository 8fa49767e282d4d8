"""The power curve shows what was simulated, with its error, beside the formula."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import gp4c

QUICK = {"rate": 0.2, "follow_up": 24.0, "n_permutations": 19, "n_trials": 25, "visits": 2}


@pytest.fixture
def ax():
    return Figure().subplots()


def points(ax):
    return [container.lines[0].get_xydata() for container in ax.containers]


def test_sizes_are_on_the_axis_and_each_ratio_has_its_points(ax):
    plan = gp4c.power([0.4, 0.7], n_per_arm=[10, 20], **QUICK)
    assert plan.plot(ax) is ax
    assert [found[:, 0].tolist() for found in points(ax)] == [[10, 20], [10, 20]]
    assert np.concatenate(points(ax))[:, 1].tolist() == plan.power.tolist()
    assert ax.get_xlabel() == "subjects per arm"


def test_ratios_are_on_the_axis_where_there_is_one_size(ax):
    plan = gp4c.power([0.4, 0.7], n_per_arm=10, **QUICK)
    plan.plot(ax)
    assert points(ax)[0][:, 0].tolist() == [0.4, 0.7]
    assert ax.get_xlabel() == "ratio of event rates"


def test_a_search_shows_its_target_and_its_answer(ax):
    plan = gp4c.power(0.3, **QUICK)
    plan.plot(ax)
    heights = [line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 2]
    assert any(np.all(np.asarray(y) == 0.8) for y in heights)
    places = [line.get_xdata() for line in ax.get_lines() if len(line.get_xdata()) == 2]
    assert any(np.all(np.asarray(x) == plan.n_per_arm) for x in places)


def test_bars_stay_between_0_and_1(ax):
    gp4c.power(0.02, n_per_arm=30, **QUICK).plot(ax)
    (bars,) = (container.lines[2][0] for container in ax.containers)
    assert np.all(np.array(bars.get_segments())[..., 1] <= 1.0)
