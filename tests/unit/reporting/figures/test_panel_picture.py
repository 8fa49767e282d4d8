"""The panel picture, read back from what was drawn."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import gp4c
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.panel_picture import (
    ZERO_COLOUR,
    class_labels,
    count_classes,
    figure_size,
    label_step,
    plot_panel,
    save_panel_picture,
)


def panel_of(subjects, index, start, stop, count, **options):
    return gp4c.PanelCounts._from_arrays(
        np.asarray(subjects), np.asarray(index), start, stop, count, **options
    )


@pytest.fixture
def gapped():
    """Two subjects; the first has a gap between its intervals, the second enters late."""
    return panel_of(["a", "b"], [0, 0, 1], [0, 6, 4], [4, 10, 10], [0, 2, 1], time_unit="weeks")


def drawn(panel, **options):
    """Axes with the picture, laid out."""
    figure = Figure(figsize=figure_size(panel), layout="constrained")
    FigureCanvasAgg(figure)
    ax = plot_panel(panel, figure.subplots(), **options)
    figure.canvas.draw()
    return ax


def rectangles(ax):
    (found,) = (c for c in ax.collections if isinstance(c, PolyCollection))
    return found


def luminance(colour):
    linear = np.asarray(colour)[..., :3] ** 2.2
    return linear @ [0.2126, 0.7152, 0.0722]


def pixel(ax, x, y):
    column, row = ax.transData.transform((x, y))
    image = np.asarray(ax.figure.canvas.buffer_rgba())
    return image[image.shape[0] - 1 - round(row), round(column), :3]


def test_every_interval_is_a_rectangle_on_its_subjects_row():
    panel, _ = gp4c.simulate_panel("square_wave", n_subjects=7, dropout=0.02, random_state=1)
    corners = np.stack([p.vertices[:4] for p in rectangles(drawn(panel)).get_paths()])
    assert_allclose(corners[:, :, 0].min(axis=1), panel.start)
    assert_allclose(corners[:, :, 0].max(axis=1), panel.stop)
    assert_allclose(corners[:, :, 1].mean(axis=1), panel.subject_index)


def test_it_draws_on_the_axes_it_is_given_and_returns_them(gapped):
    ax = Figure().subplots()
    assert plot_panel(gapped, ax) is ax
    assert ax.get_xlabel() == "time (weeks)"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


def test_without_axes_it_makes_a_figure(gapped):
    mpl.use("agg")
    import matplotlib.pyplot as plt

    ax = plot_panel(gapped)
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


def test_gaps_stay_white_and_zero_counts_do_not(gapped):
    ax = drawn(gapped, colorbar=False)
    assert_array_equal(pixel(ax, 5, 0), [255, 255, 255])
    assert_array_equal(pixel(ax, 2, 1), [255, 255, 255])
    assert_array_equal(pixel(ax, 2, 0), np.round(np.multiply(to_rgb(ZERO_COLOUR), 255)))


@pytest.mark.parametrize("largest", [1, 5, 9, 40, 10**6])
def test_more_events_are_darker_and_zero_is_lightest_even_in_grey(largest):
    count = count_classes(largest)
    index = np.zeros(len(count), dtype=int)
    start = np.arange(len(count), dtype=float)
    ax = drawn(panel_of([1], index, start, start + 1, count))
    grey = luminance(rectangles(ax).to_rgba(rectangles(ax).get_array()))
    assert (np.diff(grey) < 0).all()
    assert grey[0] - grey[1] > 0.1


def test_a_panel_without_events_can_be_drawn():
    ax = drawn(panel_of([1], [0], [0.0], [1.0], [0]))
    assert_allclose(rectangles(ax).get_facecolor()[0, :3], to_rgb(ZERO_COLOUR))


@given(st.integers(0, 2**53))
def test_classes_cover_all_counts_in_few_colours(largest):
    classes = count_classes(largest)
    assert classes[0] == 0
    assert (np.diff(classes) > 0).all()
    assert classes[-1] <= largest
    assert len(classes) <= 11
    if largest >= 1:
        assert classes[1] == 1  # zero is alone


@pytest.mark.parametrize(
    ("largest", "labels"),
    [
        (0, ["0"]),
        (3, ["0", "1", "2", "3"]),
        (12, ["0", "1", "2–4", "5–9", "10–12"]),
        (1000, ["0", "1", "2–4", "5–9", "10–19", "20–49", "50–99", "100–199", "200–499"]),
    ],
)
def test_classes_are_named(largest, labels):
    assert class_labels(count_classes(largest), largest)[: len(labels)] == labels


def test_the_key_names_every_class():
    panel, _ = gp4c.simulate_panel("square_wave", n_subjects=5)
    figure = drawn(panel).figure
    key = figure.axes[1]
    largest = int(panel.count.max())
    expected = class_labels(count_classes(largest), largest)
    assert [t.get_text() for t in key.get_yticklabels()] == expected
    assert key.get_ylabel() == "events in the interval"


@pytest.mark.parametrize("n_subjects", [1, 5, 20, 85, 300, 2000])
def test_subject_labels_do_not_overlap(n_subjects):
    panel, _ = gp4c.simulate_panel(0.1, n_subjects=n_subjects, n_intervals=2)
    ax = drawn(panel)
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) >= min(n_subjects, 5)
    assert all(not a.overlaps(b) for a, b in pairwise(boxes))


def test_labels_are_thinned_in_round_steps():
    assert [label_step(n, 5.0) for n in (5, 29, 50, 100, 300, 3000)] == [1, 1, 2, 5, 20, 200]


def test_labels_are_shown_as_text():
    panel = panel_of(["$a_1$ & b", "x" * 40], [0, 1], [0.0, 0.0], [1.0, 1.0], [0, 1])
    first, second = (t.get_text() for t in drawn(panel).get_yticklabels())
    assert first == r"\$a_1\$ & b"
    assert second.endswith("…")
    assert len(second) < 20


@pytest.mark.parametrize(
    ("order", "expected"),
    [("label", [1, 2, 3]), ("follow_up", [3, 1, 2]), ("events", [2, 3, 1])],
)
def test_subjects_can_be_ordered(order, expected):
    panel = panel_of([1, 2, 3], [0, 1, 2], [0.0, 0.0, 2.0], [5.0, 3.0, 9.0], [1, 8, 2])
    ax = drawn(panel, order=order)
    assert [int(t.get_text()) for t in ax.get_yticklabels()] == expected


def test_an_unknown_order_is_refused(gapped):
    with pytest.raises(PanelDataError, match="'label', 'follow_up' or 'events'; it is 'age'"):
        drawn(gapped, order="age")


def test_many_reordered_subjects_are_not_labelled():
    panel, _ = gp4c.simulate_panel(0.1, n_subjects=300, n_intervals=2, dropout=0.01)
    ax = drawn(panel, order="follow_up")
    assert len(ax.get_yticks()) == 0
    assert ax.get_ylabel() == "subject (300), longest follow-up first"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_it_saves_to_a_file(gapped, tmp_path, suffix):
    path = tmp_path / f"panel.{suffix}"
    save_panel_picture(gapped, path)
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(magic)


def test_a_failed_save_leaves_nothing_behind(gapped, tmp_path):
    with pytest.raises(ValueError, match="not supported"):
        save_panel_picture(gapped, tmp_path / "panel.docx")
    assert list(tmp_path.iterdir()) == []
