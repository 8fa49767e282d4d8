"""One trial of a design, drawn and tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.permutation import permutation_test, subject_scores
from gp4c.analysis.planning.trial_design import TrialDesign

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Trial:
    """Counts of a trial, one row per subject and interval that was observed.

    Attributes
    ----------
    start, stop, count : (N,)
    subject : (N,)
    second, stratum : (K,)
        Who is in the second arm, and each subject's stratum.
    """

    start: Floats
    stop: Floats
    count: Floats
    subject: Indices
    second: NDArray[np.bool_]
    stratum: Indices


def draw_trial(
    design: TrialDesign, n_per_arm: int, ratio: float, rng: np.random.Generator
) -> Trial:
    """Draw subjects, visits, drop-out and counts."""
    sizes = [design.stratum_sizes(n) for n in design.arms(n_per_arm)]
    stratum = np.concatenate([np.repeat(np.arange(len(s)), s) for s in sizes])
    second = np.arange(len(stratum)) >= sizes[0].sum()
    n = len(stratum)
    effect = np.asarray(design.strata)[stratum] * np.where(second, ratio, 1.0)
    if design.frailty_variance > 0:
        shape = 1.0 / design.frailty_variance
        effect = effect * rng.gamma(shape, 1.0 / shape, n)
    stop = _visits(design, n, rng)
    start = np.hstack([np.zeros((n, 1)), stop[:, :-1]])
    mean = effect[:, None] * (design.expected(stop) - design.expected(start))
    if design.phi > 0:  # negative binomial: Poisson with a gamma-distributed mean
        mean = design.phi * rng.gamma(mean / design.phi)
    count = rng.poisson(mean).astype(np.float64)
    seen = stop <= _ends(design, n, rng)[:, None]
    subject = np.broadcast_to(np.arange(n)[:, None], seen.shape)[seen]
    return Trial(start[seen], stop[seen], count[seen], subject, second, stratum)


def _visits(design: TrialDesign, n: int, rng: np.random.Generator) -> Floats:
    """Times of visits, (n, J)."""
    times = np.tile(design.visit_times(), (n, 1))
    if design.jitter > 0:
        half = design.follow_up / design.visits / 2
        times[:, :-1] += design.jitter * half * rng.uniform(-1.0, 1.0, (n, design.visits - 1))
    return times


def _ends(design: TrialDesign, n: int, rng: np.random.Generator) -> Floats:
    """When subjects leave; never, for those who stay."""
    leaves = rng.random(n) < design.drop_out
    return np.where(leaves, rng.uniform(0.0, design.follow_up, n), np.inf)


def trial_p_value(
    design: TrialDesign, n_per_arm: int, ratio: float, seed: int, number: int
) -> float:
    """Draw trial `number` and test it as :func:`gp4c.compare` would, within strata.

    The trial depends on the arguments alone, whoever runs it and in whatever order.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    trial = draw_trial(design, n_per_arm, ratio, rng)
    seen = np.bincount(trial.subject, minlength=len(trial.stratum)) > 0
    groups = trial.second[seen].astype(np.intp)
    if not 0 < groups.sum() < len(groups):
        return 1.0
    place = np.cumsum(seen) - 1
    strata = np.unique(trial.stratum[seen], return_inverse=True)[1]
    scores = subject_scores(
        trial.start, trial.stop, trial.count, np.ones(len(trial.start)), place[trial.subject],
        int(seen.sum()), strata,
    )  # fmt: skip
    return permutation_test(
        scores, groups, kind=design.test, n_permutations=design.n_permutations, rng=rng
    ).p_value
