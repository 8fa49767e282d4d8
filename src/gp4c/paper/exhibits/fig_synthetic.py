"""Figures of the synthetic sets: intensities with bands on A (b = 1 against 0.3), B and C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.paper.exhibits.trends import LOOK
from gp4c.paper.sections import NAMES, Found, Picture, Plan, Section, number
from gp4c.paper.store import Record, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "fig-synthetic"
#: curves on each set; B and C as in the paper with LocalEM, and ours
A_NAMES, BC_NAMES = ("b=1", "b=0.3", "default"), ("LocalEM", "b=0.3", "default")


def tasks(plan: Plan) -> list[Task]:
    """Trials of A, among which the best is shown, and the first trials of B1 and C1."""
    trials = [
        Task.of("choices", set="A", draw=1, trial=trial, seed=plan.seed)
        for trial in range(plan.trials)
    ]
    return [*trials, _curves("B", 0, plan), _curves("C", 0, plan)]


def later(plan: Plan, found: Found) -> list[Task]:
    """The best trial of A, known when all trials of Table 1 are there."""
    best = best_trial(plan, found)
    return [] if best is None else [_curves("A", best, plan)]


def best_trial(plan: Plan, found: Found) -> int | None:
    """Trial in which GP4C (b = 1) has its smallest MISE: at its best its band is too wide."""
    mise = {
        task.settings["trial"]: found[task]["methods"]["b=1"]["mise"]
        for task in tasks(plan)
        if task.study == "choices" and task in found
    }
    return min(mise, key=lambda trial: (mise[trial], trial)) if mise else None


def _curves(name: str, trial: int, plan: Plan) -> Task:
    names = A_NAMES if name == "A" else BC_NAMES
    return Task.of("synthetic-curves", set=name, draw=1, trial=trial, seed=plan.seed, names=names)


def render(plan: Plan, found: Found) -> Section:
    """Two figures."""
    section = Section("Figures: intensities on Synthetic A, B and C")
    best = best_trial(plan, found)
    a = None if best is None else found.get(_curves("A", best, plan))
    if a is None:
        section.lines += ["Synthetic A: no trials yet.", ""]
    else:
        section.show(
            "fig-synthetic-a",
            Picture(lambda figure: _draw_a(figure, a), (9.6, 3.4),
                    "The square wave and three estimates with bands; the band of b = 1 is "
                    "several times as wide as the others."),
            f"Synthetic A, trial {best} (of {plan.trials}, the best MISE of b = 1, as in the "
            "paper). Dark band: 25% to 75% quantile, what the paper calls a 75% credible "
            "interval; light band: a true 75% interval. Black: the true rate.",
        )  # fmt: skip
        section.lines += [_ratio_of_widths(a), ""]
    bc = {name: found.get(_curves(name, 0, plan)) for name in ("B", "C")}
    there = {name: record for name, record in bc.items() if record is not None}
    if len(there) < 2:
        section.lines += ["Synthetic B and C: no trials yet.", ""]
        return section
    section.show(
        "fig-synthetic-bc",
        Picture(lambda figure: _draw_bc(figure, there), (9.6, 6.0),
                "Two drawn intensities with estimates by LocalEM, GP4C and ours with bands."),
        "Synthetic B (above) and C (below), our first intensity of each, first trial. Bands as "
        "before; LocalEM has none.",
    )  # fmt: skip
    return section


def _ratio_of_widths(record: Record) -> str:
    width = {
        name: float(np.mean(np.subtract(*record["curves"][name]["0.5"][::-1])))
        for name in ("b=1", "b=0.3")
    }
    ratio = number(width["b=1"] / width["b=0.3"])
    return f"Here the 50% band of b = 1 is {ratio} times as wide as that of b = 0.3, on average."


def _draw_a(figure: Figure, record: Record) -> None:
    from gp4c.reporting.figures.plot_style import plain_axes

    # the wave rises again at the very end of the window, where nothing is seen of it
    record = record | {"truth": [*record["truth"][:-1], record["truth"][-2]]}
    panels = figure.subplots(1, len(A_NAMES), sharey=True)
    for ax, name in zip(panels, A_NAMES, strict=True):
        draw_truth(ax, record)
        draw_curve(ax, record, name)
        ax.set_title(NAMES[name], fontsize="medium")
        plain_axes(ax, "time", "rate" if name == A_NAMES[0] else "")
    panels[0].set_ylim(0, 20)


def _draw_bc(figure: Figure, records: dict[str, Record]) -> None:
    from gp4c.reporting.figures.plot_style import plain_axes

    rows = figure.subplots(len(records), len(BC_NAMES), sharey="row", sharex=True)
    for row, (name, record) in zip(rows, records.items(), strict=True):
        for ax, method in zip(row, BC_NAMES, strict=True):
            draw_truth(ax, record)
            draw_curve(ax, record, method)
            plain_axes(ax, "", f"rate, Synthetic {name}" if method == BC_NAMES[0] else "")
        bands = [np.max(record["curves"][m]["0.75"][1]) for m in BC_NAMES if m != "LocalEM"]
        row[0].set_ylim(0, 1.05 * max(*bands, *record["truth"]))
    for ax, method in zip(rows[0], BC_NAMES, strict=True):
        ax.set_title(NAMES[method], fontsize="medium")
    for ax in rows[-1]:
        ax.set_xlabel("time")


def draw_truth(ax: Axes, record: Record) -> None:
    """Draw the true rate in black."""
    ax.plot(record["times"], record["truth"], color="#202020", linewidth=1)
    ax.set_xlim(record["times"][0], record["times"][-1])


def draw_curve(ax: Axes, record: Record, name: str, label: str | None = None) -> None:
    """Draw an estimate with its 50% (dark) and 75% (light) bands where it has them."""
    from gp4c.reporting.figures.plot_style import style, tint

    look, found = style(LOOK[name]), record["curves"][name]
    for level, share in (("0.75", 0.22), ("0.5", 0.45)):
        if level in found:
            ax.fill_between(
                record["times"], *found[level], color=tint(look.colour, share), linewidth=0,
                zorder=1.5,
            )  # fmt: skip
    ax.plot(
        record["times"], found["rate"], color=look.colour, linewidth=1.8, label=label, zorder=3
    )  # fmt: skip
