"""Power of a trial by simulation, and the search for the number of subjects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from gp4c.analysis.planning.pilot import Pilot, read_pilot
from gp4c.analysis.planning.power_plan import PowerPlan, PowerRow
from gp4c.analysis.planning.rate_ratio_formula import expected_events, formula_power, formula_size
from gp4c.analysis.planning.trial_design import (
    MOST_SUBJECTS,
    TrialDesign,
    check_number,
    check_ratios,
    check_share,
    check_sizes,
    checked,
    constant_rate,
)
from gp4c.analysis.planning.trial_runs import Progress, TrialRecords, run_trials
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import os

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: sizes that a search tries at most; sizes this share apart are not told apart
_MOST_SIZES, _SAME = 12, 0.01
#: sizes of which the curve around another one is learned
_NEAR = 1.6
_NORMAL = NormalDist()


def _silent(done: int, total: int, text: str) -> None:
    """Progress that nobody watches."""


def power(
    ratio: float | Sequence[float],
    *,
    rate: float | None = None,
    n_per_arm: int | Sequence[int] | None = None,
    follow_up: float | None = None,
    visits: int = 8,
    frailty_variance: float | None = None,
    dispersion: float | None = None,
    drop_out: float = 0.1,
    allocation: float = 1.0,
    strata: Sequence[float] | None = None,
    jitter: float = 0.0,
    test: str = "level",
    alpha: float = 0.05,
    target: float = 0.8,
    pilot: PanelCounts | PanelEstimator | None = None,
    n_trials: int = 1000,
    n_permutations: int = 999,
    time_unit: str | None = None,
    random_state: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = _silent,
) -> PowerPlan:
    r"""Power of a trial of two arms for a ratio of event rates, or the subjects that it needs.

    Trials are simulated and tested as :func:`gp4c.compare` will test the real one: no formula for
    the variance is trusted.

    Parameters
    ----------
    ratio : float or sequence of float
        Rate of the second arm over that of the first. 1 gives the size of the test.
    rate : float
        Events of the first arm per unit of time; the pilot's curve if absent.
    n_per_arm : int or sequence of int, optional
        Subjects of the first arm; the smallest number that reaches `target` if absent.
    follow_up : float
        Length of follow-up; the pilot's window if absent.
    visits : int
        Evenly spaced visits, the last at the end. Events are counted between them.
    frailty_variance : float, optional
        Variance of the subjects' gamma-distributed factors; the pilot's, else 1.
    dispersion : float, optional
        Variance of a count over its mean given the subject; more than 1: events come in bursts.
        The pilot's, else 1.
    drop_out : float
        Share of subjects who leave, at times spread evenly over follow-up; they are counted up
        to their last visit.
    allocation : float
        Subjects of the second arm for each of the first.
    strata : sequence of float, optional
        Relative rates of strata of equal size, each randomised and permuted by itself; `rate` is
        their average.
    jitter : float
        Visits but the last are early or late by up to this share of half their distance.
    test : {"level", "curve", "any"}
    alpha : float
        Two-sided level of the test.
    target : float
        Power to search a size for.
    pilot : fitted estimator or PanelCounts, optional
        Gives rate, follow-up, frailty variance and dispersion, unless they are given. To a panel
        a constant rate with both is fitted.
    n_trials, n_permutations : int
        Simulated trials of each size, and permutations in each trial.
    time_unit : str, optional
        For the words; the pilot's if absent.
    random_state : int
        Seed. The result does not depend on the number of workers.
    store : path, optional
        JSON file of finished trials: the same call goes on where it was interrupted.
    progress : callable, optional
        Told trials done, trials in all, and which size.

    Returns
    -------
    PowerPlan

    Notes
    -----
    Trials run where ``joblib.parallel_config`` says. The rates of a subject of stratum s in the
    arms are υ κ λ(t) and r υ κ λ(t); see :mod:`gp4c.analysis.planning.trial_design`.

    Examples
    --------
    >>> import gp4c
    >>> plan = gp4c.power(0.5, rate=0.2, n_per_arm=40, follow_up=24, n_trials=50)
    >>> 0.5 < plan.power < 1.0
    True
    """
    study = None if pilot is None else read_pilot(pilot)
    times, cumulative = _curve(rate, follow_up, study)
    design = checked(TrialDesign(
        times, cumulative, visits,
        _first(frailty_variance, study.frailty_variance if study else None),
        _first(dispersion, study.dispersion if study else None),
        drop_out, allocation, _relative(strata), jitter, test,
        n_permutations,
    ))  # fmt: skip
    ratios = check_ratios(ratio)
    _check_levels(alpha, target, n_trials, random_state)
    records = TrialRecords(None if store is None else Path(store))

    def simulate(n: int, r: float) -> PowerRow:
        p_values = run_trials(
            design, n, r, n_trials=n_trials, seed=random_state, records=records, progress=progress
        )
        rejected = sum(p <= alpha for p in p_values)
        return PowerRow(
            *design.arms(n), r, n_trials, rejected, formula_power(design, n, r, alpha),
            expected_events(design, n, r),
        )  # fmt: skip

    unit = time_unit or (study.time_unit if study else None)
    more = (alpha, random_state, unit, study.words if study else None)
    if n_per_arm is None:
        return _searched(design, ratios, target, simulate, more)
    sizes = check_sizes(n_per_arm, len(design.strata))
    rows = tuple(simulate(n, r) for r in ratios for n in sizes)
    return PowerPlan(design, rows, 0 if len(rows) == 1 else None, None, None, *more)


def _relative(strata: Sequence[float] | None) -> tuple[float, ...]:
    """Relative rates of strata with mean 1: the rate of a design is the average of subjects."""
    rates = tuple(float(s) for s in strata or (1.0,))
    mean = sum(rates) / len(rates)
    return tuple(rate / mean for rate in rates) if mean > 0 else rates


def _curve(
    rate: float | None, follow_up: float | None, study: Pilot | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times and Λ of the first arm."""
    if study is None:
        if rate is None or follow_up is None:
            raise PanelDataError("a trial needs a rate and a follow_up, or a pilot that has them")
        return constant_rate(rate, follow_up)
    end = study.times[-1] if follow_up is None else follow_up
    return study.up_to(end) if rate is None else constant_rate(rate, end)


def _first(given: float | None, pilot: float | None) -> float:
    """What was given, else the pilot's, else 1."""
    if given is not None:
        return given
    return 1.0 if pilot is None else pilot


def _check_levels(alpha: float, target: float, n_trials: int, seed: int) -> None:
    check_share("alpha", alpha)
    check_share("target", target)
    if target <= alpha:
        raise PanelDataError(f"target must be above alpha; found {target:g} and {alpha:g}")
    check_number("n_trials", n_trials, 1, 1_000_000)
    check_number("random_state", seed, 0, 2**63 - 1)


def _searched(
    design: TrialDesign,
    ratios: tuple[float, ...],
    target: float,
    simulate: Callable[[int, float], PowerRow],
    more: tuple[float, int, str | None, str | None],
) -> PowerPlan:
    """The smallest size that reaches the target, with all sizes that were tried."""
    if len(ratios) > 1:
        raise PanelDataError("a size is searched for one ratio; give one, or give n_per_arm")
    if ratios[0] == 1:
        raise PanelDataError("no number of subjects shows a ratio of 1; give another, or n_per_arm")
    alpha = more[0]
    guess = formula_size(design, ratios[0], alpha, target)
    if max(guess, guess * design.allocation) > MOST_SUBJECTS:
        raise PanelDataError(
            f"about {guess:,.0f} subjects would be needed in the first arm; the search ends at "
            f"{MOST_SUBJECTS:,} per arm"
        )
    least = 2 * len(design.strata)
    tried, chosen = search_size(lambda n: simulate(n, ratios[0]), guess, alpha, target, least)
    sizes = sorted(tried)
    rows = tuple(tried[n] for n in sizes)
    return PowerPlan(design, rows, sizes.index(chosen), target, guess, *more)


def search_size(
    simulate: Callable[[int], PowerRow], guess: float, alpha: float, target: float, least: int
) -> tuple[dict[int, PowerRow], int]:
    """Sizes that were tried, and the smallest of them from which on the target is reached.

    Power is about Φ(c √n − z) near a size; c is learned from the sizes tried around it, so that
    the noise of one of them does not decide. From the size that this gives the search goes up in
    small steps until the simulated power itself reaches the target.
    """
    n, tried = max(math.ceil(guess), least), dict[int, PowerRow]()
    while len(tried) < _MOST_SIZES // 2 and n not in tried:
        tried[n] = simulate(n)
        better = min(max(_next_size(tried, n, alpha, target), least), MOST_SUBJECTS)
        n = n if abs(better - n) <= _SAME * n else better
    if n not in tried:
        tried[n] = simulate(n)
    while len(tried) < _MOST_SIZES and tried[n].power < target and n < MOST_SUBJECTS:
        n = min(n + max(1, round(_SAME * n)), MOST_SUBJECTS)
        if n not in tried:
            tried[n] = simulate(n)
    reached = [size for size, row in tried.items() if size >= n and row.power >= target]
    return tried, min(reached, default=n)


def _next_size(tried: dict[int, PowerRow], around: int, alpha: float, target: float) -> int:
    """Where the curve through the sizes near one reaches the target."""
    critical = _NORMAL.inv_cdf(1 - alpha / 2)
    total = weights = 0.0
    for size, row in tried.items():
        if not around / _NEAR <= size <= around * _NEAR:
            continue
        share = (row.n_rejected + 0.5) / (row.n_trials + 1)
        normal = _NORMAL.inv_cdf(share)
        weight = row.n_trials * _NORMAL.pdf(normal) ** 2 / (share * (1 - share))
        total += weight * max(normal + critical, 0.1) * math.sqrt(size)
        weights += weight * size
    return math.ceil(((critical + _NORMAL.inv_cdf(target)) * weights / total) ** 2)
