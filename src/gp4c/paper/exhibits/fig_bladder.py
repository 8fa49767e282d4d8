"""Figures of the bladder data: panel, intensities with bands, test likelihood per subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.paper.exhibits.fig_synthetic import draw_curve
from gp4c.paper.sections import NAMES, Found, Lines, Picture, Plan, Section, number, table
from gp4c.paper.sections import no_later as later
from gp4c.paper.store import Record, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gp4c.data.panel import PanelCounts

__all__ = ["NAME", "later", "render", "tasks"]

NAME = "fig-bladder"
CURVES = ("LocalEM", "GP4C", "GP4CW", "default")
SCORES = ("LocalEM", "GP4C", "GP4CW", "GP4CW honest", "default")


def tasks(plan: Plan) -> list[Task]:
    """One split."""
    return [Task.of("bladder-curves", seed=plan.seed)]


def render(plan: Plan, found: Found) -> Section:
    """Data, curves and scores of one split of Bladder A."""
    section = Section("Figures: Bladder A")
    record = found.get(tasks(plan)[0])
    if record is None:
        section.lines += ["No trials yet.", ""]
        return section
    section.lines += [
        f"One split of Bladder A into {len(record['train'])} training and {len(record['test'])} "
        f"test subjects: number {record['trial']} of our 2/3 to 1/3 splits, the first that holds "
        "out every count of 8 or more. The paper says of its split, which is not published, that "
        "the count 8 never occurs in the training set.", "",
    ]  # fmt: skip
    section.show(
        "fig-bladder-intensity",
        Picture(lambda figure: _draw_training(figure, record), (9.6, 4.4),
                "Left: the training subjects of Bladder A, one row each, rectangles coloured by "
                "count. Right: the estimated rates with bands."),
        "Left: the training set. Right: estimated rates; bands of GP4C, GP4CW and ours: dark 25% "
        "to 75%, what the paper calls 75%; light a true 75%. GP4CW's and ours are the rate of a "
        "subject of weight 1.",
    )  # fmt: skip
    section.show(
        "fig-bladder-subjects",
        Picture(lambda figure: _draw_test(figure, record), (9.6, 4.0),
                "Left: the test subjects. Right: the log-likelihood of each test subject under "
                "each method."),
        "Left: the test set. Right: log-likelihood of each test subject (Σ ln m! left out). GP4CW "
        "as the paper scores it uses the subject's own counts: not a prediction.",
    )  # fmt: skip
    section.lines += _verdict(record)
    return section


def _verdict(record: Record) -> Lines:
    """Where GP4C gains on LocalEM, as the paper says of two subjects with large counts."""
    scores = {name: np.array(record["scores"][name]) for name in SCORES}
    gain = scores["GP4C"] - scores["LocalEM"]
    top = np.argsort(-gain)[:2]
    events = np.array(record["test_events"], dtype=int)
    rows = [[NAMES[name], number(float(values.sum()))] for name, values in scores.items()]
    share = gain[top].sum() / gain.sum() if gain.sum() > 0 else np.nan
    who = " and ".join(f"{record['test'][k]} ({events[k]} events)" for k in top)
    return [
        *table(["Sum over test subjects", "log-likelihood"], rows),
        f"GP4C gains {number(float(gain.sum()))} nats on LocalEM; subjects {who} give "
        f"{number(100 * float(share), 0)}% of it. The paper sees the same: a wide posterior "
        "forgives subjects with many events, a point estimate does not. A frailty forgives them "
        "at less cost to the others.", "",
    ]  # fmt: skip


def _panel(record: Record, part: str) -> PanelCounts:
    """The subjects of one part of the split."""
    from gp4c.paper.studies.real import real_panel

    panel = real_panel("Bladder A")
    return panel[np.flatnonzero(np.isin(panel.subjects.astype(str), record[part]))]


def _halves(figure: Figure) -> tuple[Any, Any]:
    """Data on the left, results on the right."""
    parts: Any = figure.subfigures(1, 2, width_ratios=[1.05, 1.0])
    return parts[0], parts[1]


def _draw_training(figure: Figure, record: Record) -> None:
    from gp4c.reporting.figures.panel_picture import plot_panel
    from gp4c.reporting.figures.plot_style import plain_axes

    left, right = _halves(figure)
    plot_panel(_panel(record, "train"), left.subplots())
    axes = right.subplots(2, 2, sharex=True, sharey=True).ravel()
    for ax, name in zip(axes, CURVES, strict=True):
        draw_curve(ax, record, name)
        ax.set_title(NAMES[name], fontsize="medium")
        ax.set_xlim(record["times"][0], record["times"][-1])
        plain_axes(ax, "", "")
    top = max(np.max(record["curves"][n]["0.75"][1]) for n in ("GP4C", "default"))
    axes[0].set_ylim(0, 1.1 * float(top))
    for ax in axes[::2]:
        ax.set_ylabel("tumours per month")
    for ax in axes[2:]:
        ax.set_xlabel("time (months)")


def _draw_test(figure: Figure, record: Record) -> None:
    from gp4c.reporting.figures.panel_picture import plot_panel

    left, right = _halves(figure)
    plot_panel(_panel(record, "test"), left.subplots())
    _draw_scores(right.subplots(), record)


def _draw_scores(ax: Axes, record: Record) -> None:
    """Bars would hide each other: one mark per subject and method."""
    from gp4c.paper.exhibits.trends import LOOK
    from gp4c.reporting.figures.plot_style import legend, plain_axes, style

    marks = {"LocalEM": "s", "GP4C": "o", "GP4CW": "^", "GP4CW honest": "v", "default": "D"}
    row = np.arange(len(record["test"]))
    for place, name in enumerate(SCORES):
        ax.plot(
            record["scores"][name], row + 0.14 * (place - 2), linestyle="none",
            marker=marks[name], markersize=4.5, color=style(LOOK[name]).colour,
            fillstyle="none" if name == "GP4CW" else "full",
            label="GP4CW, no prediction" if name == "GP4CW" else NAMES[name],
        )  # fmt: skip
    ax.hlines(row[:-1] + 0.5, 0, 1, transform=ax.get_yaxis_transform(), color="#e3e3e3", lw=0.7)
    ax.set_yticks(row, record["test"], fontsize="small")
    ax.set_ylim(len(row) - 0.4, -0.6)
    ax.set_xscale("symlog", linthresh=10)
    ticks = [t for t in (-300, -100, -30, -10, -5, 0, 5, 10, 30) if _within(t, ax.get_xlim())]
    ax.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    plain_axes(ax, "log-likelihood of the subject", "")
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="#e3e3e3", linewidth=0.7)
    legend(ax, loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3, handlelength=1.2,
           columnspacing=1.2)  # fmt: skip


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= value <= limits[1]
