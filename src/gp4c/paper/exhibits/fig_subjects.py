"""Figure of Appendix E: Synthetic A with a share of the training subjects."""

from __future__ import annotations

import numpy as np

from gp4c.paper.exhibits.trends import Trend, collect, draw_trend, trend_table
from gp4c.paper.sections import NAMES, Found, Picture, Plan, Section, Target, number
from gp4c.paper.sections import no_later as later
from gp4c.paper.store import Task

__all__ = ["NAME", "later", "render", "tasks"]

NAME = "fig-subjects"
#: the paper's text does not name its ratios
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
METHODS = ("GP3", "LocalEM", "b=0.3", "exact")


def tasks(plan: Plan) -> list[Task]:
    """All shares on one trial together: the same test half, nested training subjects."""
    return [
        Task.of("subjects", trial=trial, seed=plan.seed, shares=SHARES, names=METHODS)
        for trial in range(plan.trials)
    ]


def render(plan: Plan, found: Found) -> Section:
    """Figure, its numbers, and whether all methods gain."""
    section = Section("Figure: share of training subjects (Synthetic A, Appendix E)")
    records = [found[task] for task in tasks(plan) if task in found]
    if not records:
        section.lines += ["No trials yet.", ""]
        return section
    keys = [str(share) for share in SHARES]
    values = {method: collect(records, keys, method) for method in METHODS}
    trend = Trend(SHARES, "share of training subjects", values, "b=0.3")
    section.show(
        "fig-subjects",
        Picture(lambda figure: draw_trend(figure, trend), (9.6, 3.4),
                "Three panels against the share of training subjects: test likelihood, "
                "integrated squared error and training time; all methods gain from more."),
        f"Synthetic A, {len(records)} trials, 10 to 50 training subjects, the same 50 test "
        "subjects. L_test relative to GP4C (b = 0.3) with all subjects on the same trial (mean ± "
        "standard error), MISE and training time (median and quartiles).",
    )  # fmt: skip
    section.lines += trend_table(trend)
    medians = {m: np.median(values[m]["mise"], axis=1) for m in METHODS}
    improves = all(m[0] > m[-1] for m in medians.values())
    growth = {
        m: float(np.median(values[m]["seconds"][-1]) / np.median(values[m]["seconds"][0]))
        for m in METHODS
    }
    section.lines += [
        "The paper finds that time grows linearly for GP3 and GP4C and faster for LocalEM. Here, "
        "five times the subjects take "
        + ", ".join(f"{number(growth[m])} times as long ({NAMES[m]})" for m in METHODS)
        + ": the work of a fit depends on nodes and inducing inputs more than on subjects.", "",
    ]  # fmt: skip
    section.targets.append(
        Target("all methods gain from more training subjects (MISE, 20% to 100%)",
               "yes" if improves else "no", improves)
    )  # fmt: skip
    return section
