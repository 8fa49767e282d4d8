r"""Variational EM for a mixture of basis intensities, λ_k = Σ_l w_kl f_l².

Jensen's inequality over the bases splits the count term of a row: with shares r_l that sum to 1

.. math:: E \ln \sum_l w_l \int f_l^2 \ge \sum_l r_l (E \ln \int f_l^2 + \ln w_l - \ln r_l) .

At the best shares the right side is ln Σ_l w_l exp(E ln ∫ f_l²). Given the shares every basis is a
fit of GP4CW to r_l m events, and the machinery of the one curve does it. No step lowers the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.bases.basis_weights import (
    SMALLEST_SHARE,
    EventRows,
    Shared,
    best_weights,
)
from gp4c.inference.variational.bases.coarse_starts import coarse_starts
from gp4c.inference.variational.bound import Bound
from gp4c.inference.variational.estep import e_step
from gp4c.inference.variational.exposure import SMALLEST_WEIGHT
from gp4c.inference.variational.hyper import (
    SKETCH,
    Climb,
    Optimum,
    Problem,
    free_coordinates,
    solve_q,
)

Floats = NDArray[np.float64]

#: rounds over shares, weights and bases between two steps of the hyper-parameters
ROUNDS = 5
#: evaluations of a basis in a round, and steps over its hyper-parameters in a cycle of rounds
EVALUATIONS, HYPER_STEPS = 10, 3
#: starts that are carried on from the coarse model, and the gain in nats of a cycle below which
#: they are compared
FINALISTS, COMPARED = 4, 0.5
#: nats within which the start with all events in one basis wins: equal curves share no events
TIE = 0.1


@dataclass(frozen=True)
class Bases:
    """Bases with their weights (K, L) and shares of the rows (N, L).

    `path` is the bound after each cycle; `ends` are the bounds that the starts had reached when
    they were compared, best first.
    """

    bases: tuple[Optimum, ...]
    shared: Shared
    bound: Bound
    path: tuple[float, ...] = ()
    converged: bool = False
    ends: tuple[float, ...] = ()

    @property
    def expected(self) -> Floats:
        """R of each subject and basis, (K, L)."""
        return _expected(self.bases)


def fit_bases(
    problem: Problem,
    rows: EventRows,
    first: Optimum,
    n_bases: int,
    *,
    mean: float | None,
    tol: float,
    max_iter: int,
    n_starts: int,
    rng: np.random.Generator,
    say: Callable[[str], None] = lambda text: None,
) -> Bases:
    """Fit `n_bases` bases, from several starts.

    Parameters
    ----------
    first : Optimum
        The fit with one basis: where the hyper-parameters begin, and the answer for one basis.
    mean : float, optional
        g where it is fixed.
    tol : float
        Stop when a cycle gains fewer nats.
    max_iter : int
        Most cycles.
    n_starts : int
        Random starts of the coarse model.
    """
    if n_bases == 1:
        begin = _begin(problem, rows, np.ones((len(rows.count), 1)), (first,))
        return _climb(problem, rows, begin, mean, tol, max_iter)
    scout, ends = problem.scout(), []
    found = coarse_starts(problem.data, rows, n_bases, n_starts, rng)[:FINALISTS]
    starts = [_all_in_one(rows, n_bases), *(start.shares for start in found)]
    for number, shares in enumerate(starts, start=1):
        say(f"bases: start {number} of {len(starts)}")
        begin = _begin(scout, rows, shares, (first,) * n_bases)
        ends.append(_climb(scout, rows, begin, mean, COMPARED, max_iter))
    say("bases: finishing the best start")
    best = max(ends, key=lambda end: end.bound.total)
    if ends[0].bound.total > best.bound.total - TIE:
        best = ends[0]
    if scout is not problem:
        best = _judged(problem, best, rows)
    end = _climb(problem, rows, best, mean, tol, max_iter)
    return replace(end, ends=tuple(sorted((one.bound.total for one in ends), reverse=True)))


def _all_in_one(rows: EventRows, n_bases: int) -> Floats:
    """All events in the first basis: the fit with one basis is among those with more."""
    shares = np.full((len(rows.count), n_bases), SMALLEST_SHARE)
    shares[:, 0] = 1.0
    return shares


def _begin(problem: Problem, rows: EventRows, shares: Floats, first: tuple[Optimum, ...]) -> Bases:
    """Each basis fitted to its shares of the events, at the hyper-parameters of `first`."""
    bases = []
    for share, one in zip(shares.T, first, strict=True):
        part = _part(problem, rows, share, one.work.size)
        work = part.workspace(one.hyper.length_scale, one.work.size)
        near = one.estep if shares.shape[1] == 1 else None
        bases.append(replace(one, work=work, estep=solve_q(work, one.hyper, near, COMPARED)))
    events = np.stack([rows.by_subject(share) for share in shares.T], axis=1)
    weights = np.maximum(SMALLEST_WEIGHT, events / _expected(tuple(bases)))
    return _shared(rows, tuple(bases), weights)


def _judged(problem: Problem, found: Bases, rows: EventRows) -> Bases:
    """The bases of a cheap count term under the problem's own."""
    bases = []
    for share, one in zip(found.shared.shares.T, found.bases, strict=True):
        part = _part(problem, rows, share, one.work.size)
        work = part.workspace(one.hyper.length_scale, one.work.size)
        bases.append(
            replace(one, work=work, estep=e_step(work, one.hyper, one.estep.q, COMPARED, 5))
        )
    return _shared(rows, tuple(bases), found.shared.weights)


def _climb(
    problem: Problem, rows: EventRows, here: Bases, mean: float | None, tol: float, max_iter: int
) -> Bases:
    """Cycles of rounds until one gains less than `tol`."""
    path = [here.bound.total]
    for _ in range(max_iter):
        for number in range(ROUNDS):
            fine = number == ROUNDS - 1
            bases = tuple(
                _improved(problem, rows, one, share, mean, tol, with_hyper=fine)
                for one, share in zip(here.bases, here.shared.shares.T, strict=True)
            )
            here = _shared(rows, bases, here.shared.weights)
        path.append(here.bound.total)
        if path[-1] - path[-2] < tol:
            return replace(here, path=tuple(path), converged=True)
    return replace(here, path=tuple(path))


def _improved(
    problem: Problem, rows: EventRows, one: Optimum, share: Floats, mean: float | None,
    tol: float, with_hyper: bool,
) -> Optimum:  # fmt: skip
    """A basis after some steps on its share of the events."""
    if not with_hyper:
        work = one.work.with_counts(rows.by_interval(share), rows.by_subject(share))
        return replace(
            one, work=work, estep=e_step(work, one.hyper, one.estep.q, tol / 10, EVALUATIONS)
        )
    size = max(one.work.size, problem.size_for(one.hyper.length_scale))
    part = _part(problem, rows, share, size)
    free = free_coordinates(part, mean)
    climb = Climb(part, one.hyper, free=free, near=one.estep, size=size)
    return climb.to(max(tol / 10, SKETCH) if tol >= SKETCH else tol / 10, HYPER_STEPS)


def _part(problem: Problem, rows: EventRows, share: Floats, size: int) -> Problem:
    """The problem of one basis; its grid of `size` inducing inputs is made once for all."""
    problem.likelihood(size)
    return problem.with_counts(rows.by_interval(share), rows.by_subject(share))


def _shared(rows: EventRows, bases: tuple[Optimum, ...], weights: Floats) -> Bases:
    """The best weights and shares for these bases, and the bound with them."""
    logs = np.stack([b.work.interval_logs(b.hyper, b.estep.q) for b in bases], axis=1)
    expected = _expected(bases)
    shared = best_weights(rows, logs, expected, weights)
    exposure = float((shared.weights * expected).sum())
    kl = sum(one.estep.q.kl() for one in bases)
    given_away = sum(one.estep.evaluation.given_away for one in bases)  # whatever the shares
    constant = bases[0].work.likelihood.units + given_away
    counts = shared.value + exposure - given_away
    return Bases(bases, shared, Bound(counts, 0.0, exposure, kl, constant))


def _expected(bases: tuple[Optimum, ...]) -> Floats:
    moments = ((one, one.estep.evaluation) for one in bases)
    return np.stack(
        [b.work.likelihood.exposure.expected(at.mean**2 + at.variance) for b, at in moments], axis=1
    )
