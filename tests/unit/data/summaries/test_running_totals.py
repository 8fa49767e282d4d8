"""Remarks on counts that are totals, and on one subject that stretches the window."""

from itertools import permutations

import numpy as np
import pytest

import gp4c
from gp4c.data.summaries.panel_summary import lone_ends
from gp4c.data.summaries.running_totals import chance_of_order, totals_remark


def panel_of(counts):
    """Subjects with these counts, in intervals of length 1."""
    subjects, visits = counts.shape
    start = np.tile(np.arange(visits), subjects)
    return gp4c.PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(subjects), visits),
            "start": start,
            "stop": start + 1,
            "count": counts.ravel(),
        }
    )


@pytest.mark.parametrize("counts", [[0, 1, 2, 3], [0, 0, 1, 1, 2], [5, 5, 5], [0]])
def test_the_chance_of_counts_that_do_not_fall_is_the_share_of_their_orders(counts):
    orders = list(permutations(counts))
    share = np.mean([list(order) == sorted(order) for order in orders])
    found = chance_of_order(np.zeros(len(counts), dtype=int), np.array(counts))
    assert found == pytest.approx([share])


def test_totals_of_some_subjects_are_pointed_out():
    counts = np.random.default_rng(4).poisson(0.4, (120, 10))
    assert totals_remark(panel_of(counts)) == ()
    assert totals_remark(panel_of(counts.cumsum(axis=1)))
    mixed = counts.copy()
    mixed[:20] = counts[:20].cumsum(axis=1)
    (remark,) = panel_of(mixed).summary().remarks[-1:]
    assert "never fall from visit to visit" in remark
    assert "at a steady rate" in remark


@pytest.mark.parametrize("seed", range(20))
def test_new_events_are_not_taken_for_totals_though_subjects_differ_and_the_rate_triples(seed):
    panel, _ = gp4c.simulate_panel(
        ([0, 10], [0.2, 0.6]), n_subjects=150, n_intervals=10, window=(0, 10), frailty=1.0,
        random_state=seed,
    )  # fmt: skip
    assert totals_remark(panel) == ()


@pytest.mark.parametrize("name", gp4c.list_datasets())
def test_data_that_come_with_gp4c_have_neither_fault(name):
    panel = gp4c.load_dataset(name)
    parts = [panel.of_type(e) for e in panel.event_types] or [panel]
    assert [(*totals_remark(part), *lone_ends(part)) for part in parts] == [()] * len(parts)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ({"stop": 40}, "subject 3 alone was observed after 10 (to 40), for 75%"),
        ({"start": -30}, "subject 3 alone was observed before 0 (from -30), for 75%"),
    ],
)
def test_one_subject_that_stretches_the_window_is_named(moved, words):
    table = {"subject": list(range(6)), "start": [0] * 6, "stop": [10] * 6, "count": [1] * 6}
    assert lone_ends(gp4c.PanelCounts.from_frame(table)) == ()
    for role, value in moved.items():
        table[role][3] = value
    (remark,) = lone_ends(gp4c.PanelCounts.from_frame(table))
    assert remark.startswith(words)
