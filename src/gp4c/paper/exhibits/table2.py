"""Table 2: statistics of the real data sets."""

from __future__ import annotations

import numpy as np

from gp4c.paper import paper_numbers
from gp4c.paper.sections import Found, Plan, Section, Target, no_later, table
from gp4c.paper.store import Task

NAME = "table2"
_REASONS = {
    "Skin A": "the published program counts keys rounded to 32-bit integers, on which different "
    "intervals coincide",
    "Skin C": "as for Skin A",
}

later = no_later


def tasks(plan: Plan) -> list[Task]:
    """Nothing to run: the data are at hand."""
    return []


def statistics(name: str) -> paper_numbers.SetRow:
    """End of the window, subjects, different end points and intervals of a set."""
    from gp4c.paper.studies.real import real_panel

    panel = real_panel(name)
    points = np.unique(np.concatenate([panel.start, panel.stop]))
    intervals = len(panel.distinct().start)
    return paper_numbers.SetRow(panel.window[1], panel.n_subjects, len(points), intervals)


def render(plan: Plan, found: Found) -> Section:
    """The paper's statistics and ours."""
    section = Section("Table 2: the real data sets")
    head = ["Set", "window, paper", "here", "subjects, paper", "here", "end points, paper", "here",
            "different intervals, paper", "here", "reason"]  # fmt: skip
    rows, different = [], []
    for name, published in paper_numbers.TABLE2.items():
        ours = statistics(name)
        row = [
            _title(name),
            f"[0, {published.window_end:g}]",
            f"[0, {round(ours.window_end, 2):g}]",
        ]
        for theirs, own in zip(published[1:], ours[1:], strict=True):
            row += [f"{theirs:,}", f"{own:,}"]
            if theirs != own:
                different.append(name)
        rows.append([*row, _REASONS.get(name, "") if name in different else ""])
    section.lines += [
        *table(head, rows)
    ]  # fmt: skip
    unexplained = [name for name in different if name not in _REASONS]
    section.targets.append(
        Target("Table 2: every difference explained",
               f"{len(set(different))} sets differ, {len(set(unexplained))} without a reason",
               not unexplained)
    )  # fmt: skip
    return section


def _title(name: str) -> str:
    return {"Skin A": "Skin A and B", "Skin C": "Skin C and D"}.get(name, name)
