"""Simulated panels, and how a peer's curve is judged.

50 subjects have 10 irregular intervals each. Rates wave with a random period and phase, or grow as
a power of time; subjects are alike, differ by a gamma frailty, or differ and have bursts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from scipy.stats import nbinom, poisson

import gp4c

Floats = NDArray[np.float64]

END, N_SUBJECTS, N_INTERVALS = 60.0, 50, 10
TIMES = np.linspace(0.0, END, 301)
#: variance of the subjects' effects and φ of the bursts
LAWS: dict[str, tuple[float, float]] = {
    "none": (0.0, 0.0), "frailty": (1.0, 0.0), "both": (1.0, 2.0),
}  # fmt: skip
#: exponent of the mean number of events in time where rates grow
GROWTH = 1.5


class Cell(NamedTuple):
    """One kind of panel: shape of the rate, law of the counts, expected events of a subject."""

    rate: str
    law: str
    events: float


CELLS = (
    *(Cell("wavy", law, level) for law in LAWS for level in (6.0, 30.0)),
    Cell("growing", "none", 30.0),
)


@dataclass(frozen=True)
class Trial:
    """A panel, its exact event times, fresh subjects of the same kind, and the rate at `TIMES`."""

    panel: gp4c.PanelCounts
    events: gp4c.RecurrentEvents
    fresh: gp4c.PanelCounts
    rate: Floats

    def save(self, folder: Path, number: int) -> None:
        """The tables that peers read."""
        counts, fresh = self.panel.to_frame(), self.fresh.to_frame()
        label = np.asarray(self.events.subjects)[self.events.subject_index]
        times = pd.DataFrame({"subject": label, "time": self.events.time})
        for name, table in {"panel": counts, "fresh": fresh, "events": times}.items():
            table.to_csv(folder / f"{name}{number:04d}.csv", index=False)


def wavy(rng: np.random.Generator) -> Floats:
    """A rate at `TIMES` that waves."""
    period, phase = rng.uniform(10.0, 30.0), rng.uniform(0.0, 2 * np.pi)
    return np.asarray(1 + 0.8 * np.sin(2 * np.pi * TIMES / period + phase))


def growing(_: np.random.Generator) -> Floats:
    """A rate at `TIMES` that grows as a power of time."""
    return np.asarray(TIMES ** (GROWTH - 1))


RATES = {"wavy": wavy, "growing": growing}


def simulate(cell: Cell, seed: int) -> Trial:
    """The trial of a number."""
    key = [seed, int(cell.events), list(LAWS).index(cell.law)]
    rng = np.random.default_rng(key)
    rate = RATES[cell.rate](rng)
    rate = rate * cell.events / np.trapezoid(rate, TIMES)
    panel, events = _draw(rate, cell.law, rng)
    fresh, _ = _draw(rate, cell.law, np.random.default_rng([*key, 1]))
    return Trial(panel, events, fresh, rate)


def _draw(
    rate: Floats, law: str, rng: np.random.Generator
) -> tuple[gp4c.PanelCounts, gp4c.RecurrentEvents]:
    frailty, phi = LAWS[law]
    return gp4c.simulate_panel(
        lambda t: np.interp(t, TIMES, rate), window=(0.0, END), n_subjects=N_SUBJECTS,
        n_intervals=N_INTERVALS, frailty=frailty or None, bursts=phi or None, random_state=rng,
    )  # fmt: skip


# -- judging -------------------------------------------------------------------------------------


def cumulative(rate: ArrayLike) -> Floats:
    """∫ of a rate at `TIMES`, by trapezoids."""
    rate = np.asarray(rate, dtype=float)
    steps = np.diff(TIMES) * (rate[1:] + rate[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def judged(curve: Mapping[str, ArrayLike], truth: Floats) -> dict[str, float]:
    """Integrated squared error and coverage of the bands of λ and Λ; NaN for what is not there.

    A peer that gives a rate and no mean number is judged by the integral of its rate.
    """
    curves = {name: np.asarray(values, dtype=float) for name, values in curve.items()}
    if "sum" not in curves:
        curves["sum"] = cumulative(curves["rate"])
    found = {}
    for name, true in (("rate", truth), ("sum", cumulative(truth))):
        error = coverage = np.nan
        if name in curves:
            error = np.trapezoid((curves[name] - true) ** 2, TIMES)
        if f"{name}_low" in curves:
            inside = (curves[f"{name}_low"] <= true) & (true <= curves[f"{name}_high"])
            coverage = inside[true > 0].mean()
        found |= {f"{name}_error": float(error), f"{name}_coverage": float(coverage)}
    return found


def nearer(curve: Mapping[str, ArrayLike], spread: float, truth: Floats) -> dict[str, float]:
    """The typical subject's curve or the mean over subjects, whichever is nearer to the truth.

    With normal effects of deviation s the mean is e^{s²/2} times the typical subject's rate.
    """
    factors = (1.0, float(np.exp(spread**2 / 2))) if spread > 0 else (1.0,)
    each = [
        judged({name: factor * np.asarray(v) for name, v in curve.items()}, truth)
        for factor in factors
    ]
    return min(each, key=lambda found: found["rate_error"])


def plug_in_score(
    fresh: pd.DataFrame, expected: Floats, family: str, dispersion: float, spread: float
) -> float:
    """Log-likelihood of fresh subjects' counts with estimated parameters.

    Effects are normal on the log scale with deviation `spread`. The variance of a count of mean m
    is m ("poisson"), m(1 + dispersion) ("nb1") or m + dispersion · m² ("nb2").
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60 if spread > 0 else 1)
    mean = np.asarray(expected)[:, None] * np.exp(spread * nodes)
    count = fresh["count"].to_numpy()[:, None]
    each = pd.DataFrame(_log_pmf(count, mean, family, dispersion))
    subjects = each.groupby(fresh["subject"].to_numpy()).sum().to_numpy()
    return float(logsumexp(subjects + np.log(weights / weights.sum()), axis=1).sum())


def _log_pmf(count: NDArray[np.int64], mean: Floats, family: str, dispersion: float) -> Floats:
    if family == "poisson" or dispersion < 1e-8:
        return np.asarray(poisson.logpmf(count, mean))
    size = mean / dispersion if family == "nb1" else np.full_like(mean, 1 / dispersion)
    return np.asarray(nbinom.logpmf(count, size, size / (size + mean)))
