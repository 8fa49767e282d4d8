"""Subject labels: any hashable, sorted, kept as given."""

from __future__ import annotations

import numpy as np
import pytest

import gp4c


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([10, 9, 2], [2, 9, 10]),
        (["10", "9", "2"], ["10", "2", "9"]),
        (["é", "E", "e"], ["E", "e", "é"]),
        ([(2, "a"), (1, "b"), (1, "a")], [(1, "a"), (1, "b"), (2, "a")]),
        (["x", 10, 9.5], [9.5, 10, "x"]),
        ([2.5, -1.0, 0.5], [-1.0, 0.5, 2.5]),
        ([True, "t", None.__class__], None),
    ],
)
def test_labels_are_any_hashable_and_are_sorted(labels, expected):
    panel = gp4c.PanelCounts.from_frame(
        {"subject": labels, "start": [0] * 3, "stop": [1] * 3, "count": [0, 1, 2]}
    )
    kept = dict(zip(panel.subjects.tolist(), panel.count[panel.subject_index], strict=True))
    assert kept == dict(zip(labels, [0, 1, 2], strict=True))
    if expected is not None:
        assert panel.subjects.tolist() == expected


def test_text_labels_stay_text():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": np.array(["01", "1"]), "start": [0, 0], "stop": [1, 1], "count": [0, 0]}
    )
    assert panel.subjects.tolist() == ["01", "1"]
    assert all(type(label) is str for label in panel.subjects)
