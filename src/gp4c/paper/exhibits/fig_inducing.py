"""Figure "number of the pseudo inputs": Synthetic A with 10 to 40 inducing inputs."""

from __future__ import annotations

from gp4c.paper import paper_numbers
from gp4c.paper.exhibits.trends import Trend, collect, draw_trend, trend_table
from gp4c.paper.sections import (
    Found,
    Picture,
    Plan,
    Section,
    Target,
    column,
    number,
)
from gp4c.paper.sections import no_later as later
from gp4c.paper.store import Task

__all__ = ["NAME", "later", "render", "tasks"]

NAME = "fig-inducing"
#: the paper's text does not name its numbers
NUMBERS = (10, 15, 20, 25, 30, 35, 40)
METHODS = ("GP3", "b=0.3", "exact")
#: the paper's spread of MISE for GP4C (b = 0.3)
_SPREAD = paper_numbers.TABLE1["A"]["b=0.3"].mise_sd


def tasks(plan: Plan) -> list[Task]:
    """All numbers on one trial together; LocalEM, which has none, is that of Table 1."""
    own = [
        Task.of("inducing", trial=trial, seed=plan.seed, numbers=NUMBERS, names=METHODS)
        for trial in range(plan.trials)
    ]
    table1 = [
        Task.of("choices", set="A", draw=1, trial=trial, seed=plan.seed)
        for trial in range(plan.trials)
    ]
    return own + table1


def trend_of(plan: Plan, found: Found) -> Trend | None:
    """Trials that both studies have."""
    both = []
    for inducing, choices in zip(
        tasks(plan)[: plan.trials], tasks(plan)[plan.trials :], strict=True
    ):
        if inducing in found and choices in found:
            both.append((found[inducing], found[choices]))
    if not both:
        return None
    own, table1 = [a for a, _ in both], [b for _, b in both]
    values = {m: collect(own, [str(n) for n in NUMBERS], m) for m in METHODS}
    values["LocalEM"] = {
        metric: column(table1, "LocalEM", metric)[None] for metric in ("l_test", "mise", "seconds")
    }
    return Trend(NUMBERS, "inducing inputs", values, "LocalEM")


def render(plan: Plan, found: Found) -> Section:
    """Figure, its numbers, and whether the curves are as stable as the paper says."""
    section = Section("Figure: number of inducing inputs (Synthetic A)")
    trend = trend_of(plan, found)
    if trend is None:
        section.lines += ["No trials yet.", ""]
        return section
    n = trend.values["GP3"]["mise"].shape[1]
    section.show(
        "fig-inducing",
        Picture(lambda figure: draw_trend(figure, trend), (9.6, 3.4),
                "Three panels against the number of inducing inputs: test likelihood relative to "
                "LocalEM, integrated squared error, training time."),
        f"Synthetic A, {n} trials. L_test relative to LocalEM on the same trial (mean ± standard "
        "error; the paper shows levels), MISE and training time (median and quartiles).",
    )  # fmt: skip
    section.lines += trend_table(trend)
    last = {m: trend.values[m]["mise"][3:].mean(axis=1) for m in ("GP3", "b=0.3")}
    change = max(float(v.max() - v.min()) for v in last.values())
    stable = change <= _SPREAD
    section.lines += [
        "The paper finds GP3 and GP4C relatively stable; it does not say from which number on. "
        f"From {NUMBERS[3]} on, their mean MISE moves by {number(change)} here"
        + (", within the spread over trials. " if stable else ", more than the paper's spread. ")
        + f"{NUMBERS[0]} inducing inputs are {number(60 / (NUMBERS[0] - 1))} apart and cannot "
        "follow the short length-scale that the jumps ask for (see Table 1).", "",
    ]  # fmt: skip
    section.targets.append(
        Target("MISE of GP3 and GP4C stable from 25 inducing inputs on (within the paper's sd)",
               number(change), stable)
    )  # fmt: skip
    return section
