"""Data sets with a known truth, each a pure function of its number.

Nothing here was tuned to the results: the ranges are those of the project's issue on calibration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.data.simulate.intensities import (
    PAPER_LENGTH_SCALE,
    PAPER_VARIANCE,
    SquaredGridIntensity,
    gp_squared,
)

#: the paper's window: its own optimiser stops at a point that depends on the unit of time
WINDOW = (0.0, 60.0)
LENGTH = WINDOW[1] - WINDOW[0]
#: log-uniform ranges of the prior study
LENGTH_SCALES, VARIATIONS, EVENTS = (0.03, 0.5), (0.1, 1.0), (0.3, 300.0)
#: ranges of the design, uniform on integers
SUBJECTS, INTERVALS = (20, 100), (3, 15)
SEED, PAPER_SEED = 4_2018, 4_2027
#: data sets before this number (and those of earlier paper seeds) were looked at while the
#: default's priors and its integration were chosen, so that they prove nothing about them: the
#: study starts here
FIRST = 2600


@dataclass(frozen=True)
class Case:
    """One data set, its true intensity, and what it was drawn from.

    Attributes
    ----------
    length_scale : float
        a, as a share of the window.
    variation : float
        Standard deviation of f relative to its mean; infinite for a zero mean.
    events_per_subject : float
        Expected over f as well as over the counts.
    """

    number: int
    length_scale: float
    variation: float
    events_per_subject: float
    n_subjects: int
    n_intervals: int
    truth: SquaredGridIntensity
    panel: PanelCounts

    def describe(self) -> dict[str, float]:
        """What a table of data sets shows of this one."""
        return {
            "number": self.number,
            "length_scale": self.length_scale,
            "variation": self.variation,
            "events_per_subject": self.events_per_subject,
            "n_subjects": self.n_subjects,
            "n_intervals": self.n_intervals,
            "n_events": int(self.panel.n_events),
        }


def prior_case(number: int) -> Case:
    """Data set of the prior study: (a, relative sd, level, design) and f all drawn anew."""
    rng = np.random.default_rng([SEED, number])
    length_scale, variation, events = (
        float(np.exp(rng.uniform(*np.log(bounds))))
        for bounds in (LENGTH_SCALES, VARIATIONS, EVENTS)
    )
    n_subjects = int(rng.integers(SUBJECTS[0], SUBJECTS[1] + 1))
    n_intervals = int(rng.integers(INTERVALS[0], INTERVALS[1] + 1))
    # E λ = g² + γ and √γ = variation · g
    mean_square = events / LENGTH / (1 + variation**2)
    truth = gp_squared(
        length_scale=length_scale * LENGTH,
        variance=variation**2 * mean_square,
        mean=float(np.sqrt(mean_square)),
        window=WINDOW,
        random_state=rng,
    )
    panel = _panel(truth, n_subjects, n_intervals, rng)
    return Case(number, length_scale, variation, events, n_subjects, n_intervals, truth, panel)


def paper_case(number: int) -> Case:
    """An intensity from the paper's prior of Synthetic B and C, seen in 50 × 10 intervals."""
    rng = np.random.default_rng([PAPER_SEED, number])
    truth = gp_squared(window=WINDOW, random_state=rng)
    panel = _panel(truth, 50, 10, rng)
    scale = PAPER_LENGTH_SCALE / LENGTH
    return Case(number, scale, float("inf"), PAPER_VARIANCE * LENGTH, 50, 10, truth, panel)


def _panel(
    truth: SquaredGridIntensity, n_subjects: int, n_intervals: int, rng: np.random.Generator
) -> PanelCounts:
    """Poisson counts between Dirichlet visits, no frailty."""
    return gp4c.simulate_panel(
        truth, window=WINDOW, n_subjects=n_subjects, n_intervals=n_intervals, random_state=rng
    )[0]
