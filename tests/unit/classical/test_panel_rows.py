"""Rows of a panel in the order of their content, breaks and cumulative counts."""

import numpy as np
from numpy.testing import assert_array_equal

from classical_panels import panel_of, random_rows
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.step_functions.pseudo import CumulativeCounts


def test_labels_and_order_of_rows_leave_every_array_as_it_is():
    rows = random_rows(3, gaps=True, exposure=True)
    rng = np.random.default_rng(1)
    names = {k: f"subject {rng.integers(10**9)}" for k in {row[0] for row in rows}}
    other = [(names[row[0]], *row[1:]) for row in rng.permutation(np.array(rows, dtype=object))]
    first, second = (PanelRows.of(panel_of(r)) for r in (rows, other))
    for name in ("subject", "interval", "start", "stop", "count", "exposure"):
        assert_array_equal(getattr(first, name), getattr(second, name))


def test_values_return_to_the_order_of_the_panel():
    panel = panel_of(random_rows(5))
    rows = PanelRows.of(panel)
    events = rows.in_panel_order(rows.by_subject(rows.count))
    assert_array_equal(events, np.bincount(panel.subject_index, panel.count))
    assert_array_equal(rows.time_at_risk().sum(), (panel.stop - panel.start).sum())


def breaks_of(rows):
    panel = panel_of(rows)
    prepared = PanelRows.of(panel)
    known = prepared.unbroken()
    cumulative = prepared.cumulative_count()
    found = {}
    for k in range(len(known)):
        label = panel.subjects[prepared.order[prepared.subject[k]]]
        found[label, prepared.stop[k]] = (bool(known[k]), cumulative[k])
    return found


def test_gaps_late_entries_and_changes_of_exposure_end_a_cumulative_count():
    found = breaks_of(
        [
            ("whole", 0.0, 1.0, 2, 1.0),
            ("whole", 1.0, 4.0, 3, 1.0),
            ("gap", 0.0, 2.0, 1, 1.0),
            ("gap", 3.0, 4.0, 5, 1.0),
            ("gap", 4.0, 5.0, 1, 1.0),
            ("late", 1.0, 2.0, 4, 1.0),
            ("late", 2.0, 3.0, 4, 1.0),
            ("more", 0.0, 1.0, 7, 2.0),
            ("more", 1.0, 2.0, 1, 3.0),
        ]
    )
    assert found["whole", 1.0] == (True, 2.0)
    assert found["whole", 4.0] == (True, 5.0)
    assert found["gap", 2.0] == (True, 1.0)
    assert not found["gap", 4.0][0]
    assert not found["gap", 5.0][0]
    assert not found["late", 2.0][0]
    assert not found["late", 3.0][0]
    assert found["more", 1.0] == (True, 7.0)
    assert not found["more", 2.0][0]


def test_cumulative_counts_at_visits():
    rows = [("a", 0.0, 1.0, 2, 1.0), ("a", 1.0, 3.0, 1, 1.0), ("b", 0.0, 3.0, 5, 2.0)]
    data = CumulativeCounts.of(PanelRows.of(panel_of(rows)))
    assert_array_equal(data.times, [1.0, 3.0])
    assert_array_equal(data.by_visit(data.count), [2.0, 8.0])
    assert_array_equal(data.by_visit(data.exposure), [1.0, 3.0])
    assert sorted(data.by_subject(data.count)) == [5.0, 5.0]
