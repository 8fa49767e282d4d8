"""The exact likelihood of many paths f at once, and the prior they are drawn from.

Nothing is bounded or approximated by a Gaussian here: a path is f = g + √γ b(x)ᵀv at the nodes
of a grid, and its log-likelihood is that of the Poisson process. The residual of the sparse
prior is left out; `PathModel.unexplained` says how large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.special import gammaln, xlogy

from gp4c.design.kernels import Kernel
from gp4c.design.observations import Observations
from gp4c.design.quadrature import Grid, IntervalIntegrals
from gp4c.inference.hyper import (
    MAX_LENGTH_SCALE,
    MEAN_BOUNDS,
    SHAPE_BOUNDS,
    VARIANCE_BOUNDS,
    Problem,
)
from gp4c.inference.sparse_prior import Hyper, SparsePrior

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: log-density of hyper-parameter vectors (ln a, ln γ, g, ln α): (4, S) → (S,)
LogDensity = Callable[[Floats], Floats]

#: smallest integral of f² whose logarithm is taken
TINY = 1e-300
#: step of the table of ln a: far below any posterior's width, where the midpoint rule is exact
LOG_LENGTH_STEP = 0.05
#: shortest length-scale, in windows, that is sampled where no number of inducing inputs is given;
#: the weak prior has 0.1% of its mass below
SHORTEST = 0.016
#: nodes per gap between inducing inputs, narrower than 0.8 length-scales or wider: log-likelihoods
#: to 1e-6, far below Monte-Carlo error
FINE, COARSE = 8, 12


@dataclass(frozen=True)
class Frailty:
    """Who was seen where, for gamma effects: totals as distinct values with multiplicities."""

    by_subject: sparse.csr_array
    totals: Floats
    distinct_totals: Floats
    multiplicity: Floats

    @classmethod
    def of(cls, data: Observations) -> Frailty:
        """Collect what the negative multinomial likelihood needs."""
        values, times = np.unique(data.totals, return_counts=True)
        return cls(data.by_subject, data.totals, values, times.astype(float))

    def cost(self, inside: Floats, shape: Floats) -> Floats:
        """Σ_k (α + m_k) ln(1 + R_k/α) − ln[Γ(α + m_k) / (Γ(α) α^{m_k})], (J, S) → (S,)."""
        expected = self.by_subject @ inside
        spread = ((shape + self.totals[:, None]) * np.log1p(expected / shape)).sum(axis=0)
        rising = gammaln(shape + self.distinct_totals[:, None]) - gammaln(shape)
        rising -= self.distinct_totals[:, None] * np.log(shape)
        return np.asarray(spread - self.multiplicity @ rising)


@dataclass(frozen=True)
class PathLikelihood:
    """ln p(data | f) for paths given at the nodes of a grid; Σ ln m! left out.

    Σ_j c_j ln ∫_j f² + Σ_i ln f(t_i)² − exposure. The exposure is ∫ n f² without effects or with
    fixed weights; gamma effects are integrated out.

    Attributes
    ----------
    integrals : IntervalIntegrals
        Over the intervals with events or, with gamma effects, over all.
    counted, count
        Which of them have events, and how many.
    base_weights : (Q,)
        Exposure at the nodes; unused with a frailty.
    to_events : (N, Q) or None
        Interpolation to exact event times.
    """

    grid: Grid
    integrals: IntervalIntegrals
    counted: Indices
    count: Floats
    base_weights: Floats
    to_events: sparse.csr_array | None
    frailty: Frailty | None
    constant: float

    @classmethod
    def of(
        cls,
        data: Observations,
        grid: Grid,
        effect: str | None = None,
        weights: Floats | None = None,
    ) -> PathLikelihood:
        """Lay the observations on a grid.

        Parameters
        ----------
        effect : {None, "gamma", "weight"}
        weights : (K,), with ``effect="weight"``
            Fixed effects of the subjects.
        """
        everywhere = IntervalIntegrals(grid, data.start, data.stop)
        exposure, constant = data.exposure, data.constant
        if effect == "weight":
            if weights is None:
                raise ValueError('effect="weight" needs the subjects\' weights')
            exposure = data.by_subject.T @ weights
            constant += float(xlogy(data.totals, weights).sum())
        seen = np.flatnonzero(data.count > 0)
        gamma = effect == "gamma"
        few = IntervalIntegrals(grid, data.start[seen], data.stop[seen])
        return cls(
            grid=grid,
            integrals=everywhere if gamma else few,
            counted=seen if gamma else np.arange(len(seen)),
            count=data.count[seen],
            base_weights=everywhere.transpose(exposure),
            to_events=grid.interpolation(data.events) if len(data.events) else None,
            frailty=Frailty.of(data) if gamma else None,
            constant=constant,
        )

    def __call__(self, paths: Floats, shape: Floats) -> Floats:
        """Log-likelihood of each path, (S,).

        Parameters
        ----------
        paths : (Q, S)
            f at the nodes.
        shape : (S,)
            α of the gamma effects, unused without them.
        """
        squares = paths**2
        total = np.full(paths.shape[1], self.constant)
        inside = np.maximum(self.integrals.apply(squares), TINY)
        total += self.count @ np.log(inside[self.counted])
        if self.to_events is not None:
            at_events = np.maximum((self.to_events @ paths) ** 2, TINY)
            total += np.log(at_events).sum(axis=0)
        if self.frailty is not None:
            return np.asarray(total - self.frailty.cost(inside, shape))
        return np.asarray(total - self.base_weights @ squares)


@dataclass(frozen=True)
class PathModel:
    """Coordinates x = (v, free hyper-parameters) of paths, with prior and likelihood.

    v ~ N(0, I) whatever the hyper-parameters. The length-scale lives on an even table of ln a,
    so that its features are computed once and all paths with the same entry share one product.

    Attributes
    ----------
    likelihood : PathLikelihood
    kernel, inducing
        The sparse prior.
    table : (A,)
        Values that ln a may take; one if it is fixed.
    fixed : (4,)
        (ln a, ln γ, g, ln α) where they are not free.
    free : (d,)
        Positions of the free hyper-parameters, in that order.
    box : (d, 2)
        Their bounds; the prior's density counts inside only.
    log_prior : callable or None
        Log-density of (4, S) hyper-parameter vectors.
    """

    likelihood: PathLikelihood
    kernel: Kernel
    inducing: Floats
    table: Floats
    fixed: Floats
    free: Indices
    box: Floats
    log_prior: LogDensity | None

    @property
    def size(self) -> int:
        """M, the coordinates of v."""
        return len(self.inducing)

    @property
    def log_variance_row(self) -> int | None:
        """Row of x that holds ln γ, if it is free."""
        where = np.flatnonzero(self.free == 1)
        return self.size + int(where[0]) if len(where) else None

    @cached_property
    def features(self) -> Floats:
        """b at the nodes for each entry of the table, (A, Q, M)."""
        priors = (SparsePrior(self.kernel, self.inducing, float(np.exp(a))) for a in self.table)
        return np.array([p.features(self.likelihood.grid.nodes) for p in priors])

    def unexplained(self) -> float:
        """Largest share of the prior variance that the inducing inputs leave out, over a and x."""
        return float((1.0 - (self.features**2).sum(axis=2)).max())

    def entries(self, log_length: Floats) -> Indices:
        """Nearest entries of the table."""
        if len(self.table) == 1:
            return np.zeros(len(log_length), dtype=np.intp)
        position = (log_length - self.table[0]) / (self.table[1] - self.table[0])
        return np.asarray(np.clip(np.rint(position), 0, len(self.table) - 1), dtype=np.intp)

    def hyper(self, x: Floats) -> Floats:
        """(ln a, ln γ, g, ln α) of each column of x, (4, S), with ln a on the table."""
        theta = np.repeat(self.fixed[:, None], x.shape[1], axis=1)
        # outside the box the density is zero; the clip spares the likelihood an overflow
        theta[self.free] = np.clip(x[self.size :], self.box[:, :1], self.box[:, 1:])
        theta[0] = self.table[self.entries(theta[0])]
        return theta

    def evaluate(self, x: Floats) -> Floats:
        """Log-likelihood, and log prior density of the hyper-parameters, of each column: (2, S)."""
        theta = self.hyper(x)
        return np.array([self.log_likelihood(x[: self.size], theta), self.log_density(x)])

    def log_density(self, x: Floats) -> Floats:
        """Log prior density of the hyper-parameters of each column; −∞ outside their box."""
        if self.log_prior is None:
            return np.zeros(x.shape[1])
        free = x[self.size :]
        inside = np.all((free >= self.box[:, :1]) & (free <= self.box[:, 1:]), axis=0)
        result = np.full(x.shape[1], -np.inf)
        if inside.any():
            result[inside] = self.log_prior(self.hyper(x[:, inside]))
        return result

    def mirror(self, v: Floats) -> Floats:
        """v of the mirror image −f of each path, at fixed hyper-parameters.

        The constant 1 has the coefficients L⁻¹1, as far as the inducing inputs resolve it.
        """
        hyper = Hyper.from_vector(self.fixed)
        prior = SparsePrior(self.kernel, self.inducing, hyper.length_scale)
        constant = solve_triangular(prior.factor, np.ones(self.size), lower=True)
        return np.asarray(-v - 2 * hyper.mean / np.sqrt(hyper.variance) * constant[:, None])

    def log_likelihood(self, v: Floats, theta: Floats) -> Floats:
        """ln p(data | v, θ) of each column."""
        order = np.argsort(theta[0], kind="stable")
        v, theta = v[:, order], theta[:, order]
        entry = self.entries(theta[0])
        paths = np.empty((self.features.shape[1], v.shape[1]))
        ends = np.flatnonzero(np.diff(entry, prepend=-1, append=len(self.table)))
        for first, last in pairwise(ends):
            np.matmul(self.features[entry[first]], v[:, first:last], out=paths[:, first:last])
        paths *= np.exp(theta[1] / 2)
        paths += theta[2]
        result = np.empty(v.shape[1])
        result[order] = self.likelihood(paths, np.exp(theta[3]))
        return result


def path_model(
    problem: Problem,
    hyper: Hyper | None,
    *,
    log_prior: LogDensity | None = None,
    free: tuple[bool, bool, bool, bool] | None = None,
    weights: Floats | None = None,
    size: int | None = None,
) -> PathModel:
    """The model of a problem, with hyper-parameters fixed or under a prior.

    Parameters
    ----------
    hyper : Hyper or None
        Values of those that are fixed; may be None if none is.
    log_prior : callable, optional
        Log-density of the free ones, taking (4, S) vectors; without it all are fixed.
    free : four bools
        Which of (a, γ, g, α) are free; by default all, α with gamma effects only.
    weights : (K,)
        The subjects' effects where ``problem.effect`` is "weight".
    size : int
        Inducing inputs. By default enough for the length-scale, or for `SHORTEST` if it is free:
        shorter ones than the inducing inputs resolve are left out.
    """
    vector = hyper.to_vector() if hyper is not None else np.array([np.nan] * 3 + [np.inf])
    choice = free or (True, True, True, problem.effect == "gamma")
    loose = np.flatnonzero(choice) if log_prior is not None else np.zeros(0, dtype=np.intp)
    if np.isnan(np.delete(vector, loose)).any():
        raise ValueError("hyper-parameters that are not under a prior need values")
    if 0 in loose:
        size = size or problem.size_for(SHORTEST)
        shortest = 1.0 / (problem.kernel.spacing * (size - 1))
    else:
        shortest = float(np.exp(vector[0]))
        size = size or problem.size_for(shortest)
    low, high = np.log(shortest), np.log(max(MAX_LENGTH_SCALE, 1.1 * shortest))
    box = np.array([(low, high), np.log(VARIANCE_BOUNDS), MEAN_BOUNDS, np.log(SHAPE_BOUNDS)])
    cells = max(int(np.ceil((high - low) / LOG_LENGTH_STEP)), 2)
    table = low + (np.arange(cells) + 0.5) * (high - low) / cells
    gap = 1.0 / max(size - 1, 1)
    grid = Grid.on(np.linspace(0.0, 1.0, max(size, 2)), FINE if gap <= 0.8 * shortest else COARSE)
    poisson = problem.effect == "gamma" and 3 not in loose and np.isinf(vector[3])
    return PathModel(
        likelihood=PathLikelihood.of(
            problem.data, grid, None if poisson else problem.effect, weights
        ),
        kernel=problem.kernel,
        inducing=np.linspace(0.0, 1.0, size) if size > 1 else np.array([0.5]),
        table=table if 0 in loose else vector[:1],
        fixed=vector,
        free=loose,
        box=box[loose],
        log_prior=log_prior if len(loose) else None,
    )
