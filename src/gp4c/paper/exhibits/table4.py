"""Table 4: GP4C with individual weights (GP4CW), scored as the paper did and honestly."""

from __future__ import annotations

import numpy as np

from gp4c.paper import paper_numbers
from gp4c.paper.exhibits.real_study import (
    deviation,
    difference,
    for_each_ratio,
    split_tasks,
    splits,
)
from gp4c.paper.sections import (
    Found,
    Lines,
    Plan,
    Section,
    column,
    no_later,
    number,
    plus_minus,
    spread,
    table,
)

NAME = "table4"

later = no_later
#: shared with Table 3
tasks = split_tasks


def render(plan: Plan, found: Found) -> Section:
    """One table per ratio."""
    section = Section("Table 4: GP4CW, one weight per subject")
    section.lines += _introduction()
    section.lines += for_each_ratio(found, "GP4CW, {}", _rows)
    return section


def _introduction() -> Lines:
    return [
        "GP4CW multiplies the rate of each subject by a weight of its own. The paper scores "
        "held-out subjects with weights **estimated from those same subjects' counts**: the "
        "column *as the paper scores* does so too. It is **not a prediction** and cannot be "
        "compared with the other rows; it says what is gained by knowing how many events a "
        "subject will have. Scored *honestly*, the weight of a new subject is unknown and "
        "averaged over those of the training subjects. *Ours* is `GP4C()` with its gamma "
        "frailty, integrated out for new subjects.", "",
        "LocalEM and GP4C are the rows of Table 3.", "",
    ]  # fmt: skip


def _rows(found: Found, ratio: str, names: list[str]) -> Lines:
    head = [
        "L_test", "GP4CW, paper", "as the paper scores ± sd", "difference", "z",
        "GP4CW, honestly", "ours", "ours − GP4CW honestly", "T, paper", "T, here",
    ]  # fmt: skip
    rows = []
    for name in names:
        records = splits(found, name, ratio)
        theirs = paper_numbers.TABLE4[name]["GP4CW"]
        own = column(records, "GP4CW", "l_test_50")
        honest = float(column(records, "GP4CW honest", "l_test").mean())
        seconds = float(np.median(column(records, "GP4CW", "seconds")))
        rows.append(
            [
                name, number(theirs.l_test), plus_minus(float(own.mean()), spread(own)),
                number(float(own.mean()) - theirs.l_test, 1, True),
                number(deviation(records, "GP4CW", name), 1, True), number(honest),
                number(float(column(records, "default", "l_test").mean())),
                plus_minus(*difference(records, "default", "GP4CW honest"), 1, True),
                number(theirs.seconds), number(seconds, 2),
            ]
        )  # fmt: skip
    return table(head, rows)
