"""Numbers below curves count the subjects whose intervals hold a time."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import gp4c
from classical_panels import random_panel
from gp4c.reporting.figures import plots
from gp4c.reporting.figures.observed_numbers import (
    HEADING,
    n_observed,
    observed_numbers,
    size_with,
)


def below(ax):
    """Texts under the axis, from the top: lists of what stands in a line."""
    lines = {}
    for text in ax.texts:
        lines.setdefault(-text.xyann[1], []).append(text.get_text())
    return [lines[y] for y in sorted(lines)]


def test_a_subject_counts_where_one_of_its_intervals_holds_the_time():
    panel = random_panel(3, n_subjects=25, gaps=True)
    frame = panel.to_frame()
    times = np.unique(np.concatenate([panel.start, panel.stop, np.linspace(*panel.window, 30)]))
    found = n_observed(panel, times)
    for time, number in zip(times[times > panel.window[0]], found[times > panel.window[0]],
                            strict=True):  # fmt: skip
        inside = frame[(frame["start"] < time) & (time <= frame["stop"])]
        assert number == inside["subject"].nunique()
    first = frame[frame["start"] == panel.window[0]]["subject"].nunique()
    assert found[times == panel.window[0]] == first


def test_those_who_come_later_are_not_there_at_first():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1, 2], "start": [0, 3], "stop": [4, 8], "count": [0, 1]}
    )
    assert n_observed(panel, np.array([0.0, 3.0, 3.5, 4.0, 8.0])).tolist() == [1, 1, 2, 2, 1]


def test_the_numbers_stand_below_the_ticks_they_belong_to(arms, visits):
    ax = Figure(layout="constrained").subplots()
    parts = {arm: visits.where(arm=arm) for arm in "ab"}
    plots.plot_groups(arms, ax, observed=parts)
    expected = observed_numbers(parts)
    assert ax.get_xticks().tolist() == expected.times.tolist()
    heading, *rows = below(ax)
    assert heading == [HEADING]
    for row, (name, numbers) in zip(rows, expected.numbers.items(), strict=True):
        assert row == [name, *map(str, numbers)]
    ax.figure.canvas.draw()
    places = [text.xy[0] for text in ax.texts if text.get_text().isdigit()]
    assert places == 2 * expected.times.tolist()


def test_without_the_data_nothing_is_written(arms):
    ax = Figure().subplots()
    plots.plot_groups(arms, ax)
    assert len(ax.texts) == 0


def test_a_few_round_times_are_enough(visits):
    times = observed_numbers({"all": visits}).times
    assert 3 <= len(times) <= 8
    assert times.tolist() == [round(t, 6) for t in times]
    assert times[0] >= visits.window[0]
    assert times[-1] <= visits.window[1]


@pytest.mark.parametrize("n_groups", [2, 5])
def test_more_groups_get_more_room(n_groups):
    assert size_with(n_groups)[1] > size_with(n_groups - 1)[1] > size_with(0)[1]
