"""Figure "influences of b in Lemma 2": the bound against the true value, and its best b."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.paper import paper_numbers
from gp4c.paper.sections import (
    Floats,
    Found,
    Picture,
    Plan,
    Section,
    Target,
    no_later,
    number,
)
from gp4c.paper.store import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "fig-bound"
#: the paper's grids of φ = (μ/σ)² and of b
PHI = np.logspace(-6, 6, 5000)
B = np.linspace(0.0, 1.0, 50)

later = no_later


def tasks(plan: Plan) -> list[Task]:
    """Nothing to run."""
    return []


def true_value(phi: Floats) -> Floats:
    """−G(−φ/2) = E ln y² + C + ln 2 for y ~ N(√φ, 1), what ln(φ + b) bounds from below."""
    from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT
    from gp4c.inference.variational.expected_logs.log_square import expected_log_square

    value, _, _ = expected_log_square(np.sqrt(phi), np.ones_like(phi))
    return value + LEMMA2_CONSTANT


def variances(phi: Floats = PHI, b: Floats = B) -> Floats:
    """Variance over the grid of φ of h(φ, b), bound minus true value, for each b."""
    from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT, lemma2

    bound = lemma2(np.sqrt(phi), np.ones_like(phi), b[:, None])
    return np.asarray((bound + LEMMA2_CONSTANT - true_value(phi)).var(axis=1, ddof=1))


def render(plan: Plan, found: Found) -> Section:
    """Both panels, and the optimum."""
    section = Section("Figure: influences of b in Lemma 2")
    best = float(B[np.argmin(variances())])
    section.show(
        "fig-bound",
        Picture(_draw, (7.2, 3.2), "Left: the true curve and two lower bounds against φ. "
                "Right: variance of the difference against b, smallest near b = 0.31."),
        f"Left: E ln y² up to constants and two of its lower bounds, for y ~ N(μ, σ²) and φ = "
        f"(μ/σ)². Right: variance of h(φ, b), bound minus truth, on the paper's grids; smallest at "
        f"b = {best:.4f} (paper: {paper_numbers.BEST_B}).",
    )  # fmt: skip
    section.lines += [
        "The paper reads the true curve from a look-up table; here it is closed-form through "
        "Dawson's integral.", "",
    ]  # fmt: skip
    section.targets.append(
        Target(f"best b on the paper's grid: {paper_numbers.BEST_B}", number(best, 4),
               abs(best - paper_numbers.BEST_B) < 5e-5)
    )  # fmt: skip
    return section


def _draw(figure: Figure) -> None:
    from gp4c.reporting.figures.plot_style import legend, plain_axes, style

    left, right = figure.subplots(1, 2)
    phi = np.logspace(-3, 2, 400)
    lines = {"true value, −G(−φ/2)": true_value(phi)}
    lines |= {f"ln(φ + {b:g})": np.log(phi + b) for b in (0.3, 1.0)}
    for index, (label, values) in enumerate(lines.items()):
        look = style(index)
        left.plot(phi, values, color=look.colour, linestyle=look.dashes, label=label)
    left.set_xscale("log")
    legend(left)
    plain_axes(left, "φ = (μ/σ)²", "nats")
    values = variances()
    best = int(np.argmin(values))
    right.plot(B[1:], values[1:], color=style(0).colour)
    right.plot(B[best], values[best], "o", color="#c5221f", markersize=8, fillstyle="none")
    right.annotate(
        f"b = {B[best]:.4f}", (B[best], values[best]), (0, 14), textcoords="offset points",
        ha="center", color="#c5221f", fontsize="small",
    )  # fmt: skip
    right.set_xlim(0, 1)
    right.set_ylim(0, None)
    plain_axes(right, "b", "variance of h(φ, b)")
