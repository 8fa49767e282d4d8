"""Landscapes of many length-scales with the same inducing inputs, and draws that move among them.

Every length-scale has the same number of inducing values, so that a draw keeps its coordinates
when its length-scale changes, and all draws share the nodes: their likelihood is evaluated at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import Landscape, Task, split_level
from gp4c.model.hyper_priors import LEVEL, STEADY, VARIATION
from gp4c.model.laws.count_law import Parameter

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: inducing inputs suit this length-scale; shorter ones, to which the prior gives little, are
#: carried a little less well
_CARRIED = 0.02
#: nodes between two inducing inputs: most curves are longer than what these inputs suit
_ORDER = 4
#: most numbers at once while many draws are evaluated
_CHUNK = 2_000_000
#: singular values of a matrix that are left out, relative to the largest: no draw is long enough
#: for them to matter
_NOTHING = 1e-9
#: multiplications that take as long as a row or a subject of a numerical integral (measured)
_HARD = 1000
#: the same for an exponential of a modulated rate
_EXPONENTIAL = 10


@dataclass(frozen=True)
class Draws:
    """Draws: their length-scale and u as places on a grid, their x, and ln likelihood.

    Attributes
    ----------
    row, column : (S,)
        Places of ln a and of u.
    x : (D, S)
    value : (S,)
    """

    row: Indices
    column: Indices
    x: Floats
    value: Floats

    @property
    def size(self) -> int:
        """S."""
        return len(self.row)

    def take(self, who: Indices) -> Draws:
        """Some of the draws, possibly more than once."""
        return Draws(self.row[who], self.column[who], self.x[:, who], self.value[who])

    def accept(self, other: Draws, accepted: NDArray[np.bool_]) -> Draws:
        """The other draws where they were accepted."""
        return Draws(
            np.where(accepted, other.row, self.row),
            np.where(accepted, other.column, self.column),
            np.where(accepted, other.x, self.x),
            np.where(accepted, other.value, self.value),
        )


@dataclass(frozen=True)
class Product:
    """A matrix as the product of two thin ones: long length-scales have few directions.

    Attributes
    ----------
    left : (n, r)
    right : (r, m)
    """

    left: Floats
    right: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Product | Floats:
        """The product, where it is less work than the matrix."""
        left, spectrum, right = np.linalg.svd(matrix, full_matrices=False)
        rank = int((spectrum > _NOTHING * spectrum[0]).sum())
        if rank * sum(matrix.shape) >= matrix.size:
            return matrix
        return cls(left[:, :rank] * spectrum[:rank], np.ascontiguousarray(right[:rank]))

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix."""
        return len(self.left), self.right.shape[1]

    @property
    def T(self) -> Product:  # noqa: N802 (as of an array)
        """The transpose."""
        return Product(np.ascontiguousarray(self.right.T), np.ascontiguousarray(self.left.T))

    def __matmul__(self, values: Floats) -> Floats:
        return np.asarray(self.left @ (self.right @ values))


Matrix: TypeAlias = Floats | Product


@dataclass(frozen=True)
class Terrain:
    """Landscapes at evenly spaced ln a, and evenly spaced u.

    Where the curve may be steady, the u of that stands before the others.

    Attributes
    ----------
    landscapes : list of Landscape
    u : (J,)
    steps : (step of ln a, step of u)
    """

    landscapes: list[Landscape]
    u: Floats
    steps: tuple[float, float]

    @classmethod
    def over(cls, task: Task, log_lengths: Floats, u: Floats) -> Terrain:
        """Landscapes with as many inducing inputs as their shortest length-scale needs."""
        size = task.size_for(max(float(np.exp(log_lengths.min())), _CARRIED))
        same = replace(task, n_inducing=size)
        steps = (_step(log_lengths), _step(u))
        u = np.concatenate([[STEADY], u]) if task.steady else u
        return cls([same.landscape(float(place), _ORDER) for place in log_lengths], u, steps)

    @property
    def task(self) -> Task:
        """What is fitted."""
        return self.landscapes[0].task

    @property
    def size(self) -> int:
        """M, inducing values; the level is the row after them."""
        return self.landscapes[0].size

    @property
    def work(self) -> int:
        """Multiplications of one draw's likelihood, about."""
        nodes, cells = self.landscapes[0].nodes, self.task.likelihood.cells
        hard = (len(cells.weight) + len(cells.hard)) if len(cells.hard) else 0
        at_nodes = len(nodes.nodes) * (self.size + nodes.n_cells + nodes.n_parts)
        return at_nodes + _EXPONENTIAL * self.landscapes[0].n_factors + _HARD * hard

    @cached_property
    def log_prior_row(self) -> Floats:
        """ln (prior density of ln a · step)."""
        density = [land.log_prior_length for land in self.landscapes]
        return np.asarray(np.log(self.steps[0]) + np.array(density))

    @cached_property
    def log_prior_column(self) -> Floats:
        """ln (prior density of u · step); of a steady curve its probability, over all rows."""
        z = (self.u - VARIATION[0]) / VARIATION[1]
        scale = self.steps[1] / (np.sqrt(2 * np.pi) * VARIATION[1])
        found, steady = np.log(scale) - 0.5 * z * z, self.task.steady
        if steady:
            found += np.log1p(-steady)
            found[0] = np.log(steady) - logsumexp(self.log_prior_row)
        return np.asarray(found)

    @cached_property
    def centre(self) -> Floats:
        """Prior means of (l, parameters, β), as a column."""
        means = [LEVEL[0], *(q.mean for q in self._parameters), *self._zeros]
        return np.asarray(np.array(means, dtype=float)[:, None])

    @cached_property
    def scale(self) -> Floats:
        """Prior deviations of (l, parameters, β), as a column."""
        ones = 1.0 + self._zeros
        deviations = [LEVEL[1], *(q.deviation for q in self._parameters), *ones]
        return np.asarray(np.array(deviations, dtype=float)[:, None])

    def from_prior(self, n: int, rng: np.random.Generator) -> Draws:
        """Independent draws of the prior on this grid."""
        row = _chosen(self.log_prior_row, n, rng)
        column = rng.permutation(_chosen(self.log_prior_column, n, rng))
        v = rng.standard_normal((self.size, n))
        rest = self.centre + self.scale * rng.standard_normal((len(self.scale), n))
        return self.evaluated(row, column, np.concatenate([v, rest]))

    def by_row(self, matrices: Sequence[Matrix], row: Indices, values: Floats) -> Floats:
        """matrices[row] @ value, draw by draw: (M, S) → (·, S)."""
        order = np.argsort(row, kind="stable")
        ends = np.searchsorted(row[order], np.arange(len(matrices) + 1))
        by_draw = values.T[order]
        products = np.empty((len(row), matrices[0].shape[0]))
        for matrix, first, last in zip(matrices, ends[:-1], ends[1:], strict=True):
            if first < last:
                products[first:last] = (matrix @ by_draw[first:last].T).T
        return np.ascontiguousarray(products[np.argsort(order)].T)

    def rates_at_inputs(self, draws: Draws) -> Floats:
        """f² at the inducing inputs, (M, S)."""
        k, mean = split_level(self.u[draws.column])
        h = mean + k * self.by_row(self.factors, draws.row, draws.x[: self.size])
        return np.asarray(np.exp(draws.x[self.size]) * h * h)

    # -- likelihood -----------------------------------------------------------------------------

    def evaluated(self, row: Indices, column: Indices, x: Floats) -> Draws:
        """Draws with their likelihood; −∞ where it overflows."""
        value = np.empty(len(row))
        for some in self._chunks(len(row)):
            _, _, params, beta = self._parts(x[:, some])
            land = self.landscapes[0]
            square = land.squares(self._curve(row[some], column[some], x[:, some]), x[:, some])
            with np.errstate(all="ignore"):
                cell, rows, owner, _ = land._expected(land.nodes.apply(square), beta)
                value[some] = self.task.likelihood.value(cell, rows, owner, params)
            value[some] += self.task.likelihood.cells.power_z @ beta
        return Draws(row, column, x, np.where(np.isfinite(value), value, -np.inf))

    def slopes(self, row: Indices, column: Indices, x: Floats) -> tuple[Floats, Floats]:
        """Log likelihood (S,) and its gradient (D, S); zero where it overflows."""
        value, gradient = np.empty(len(row)), np.empty_like(x)
        for some in self._chunks(len(row)):
            with np.errstate(all="ignore"):
                value[some], gradient[:, some] = self._slopes(row[some], column[some], x[:, some])
        bad = ~np.isfinite(value) | ~np.isfinite(gradient).all(axis=0)
        gradient[:, bad] = 0.0
        return np.where(bad, -np.inf, value), gradient

    def _slopes(self, row: Indices, column: Indices, x: Floats) -> tuple[Floats, Floats]:
        land, cells = self.landscapes[0], self.task.likelihood.cells
        m, k, params, beta = self._parts(x, column)
        h = self._curve(row, column, x)
        scale, square = land.scaled(h, x)
        cell, rows, owner, parts = land._expected(land.nodes.apply(square), beta)
        at = self.task.likelihood.terms(cell, rows, owner, params, curved=False)
        weights = scale * land.nodes.adjoint(land._linear_weights(at, beta).T).T
        gradient = np.empty_like(x)
        h = land.spread(h)
        slope = weights * h
        gradient[:m] = 2 * k * self.by_row(self._features_t, row, land.fold(slope))
        gradient[m] = (slope * h).sum(axis=0)
        first = m + 1 + len(params)
        gradient[first + len(beta) :] = land.slopes_of_factors(slope * h)
        gradient[m + 1 : m + 1 + len(params)] = at.by_params
        if len(beta):
            by_part = land.nodes.owners.T @ at.by_owner if land.nodes.by_span else at.by_owner
            by_beta = cells.rows.z.T @ (rows * at.by_row) + land._part_z.T @ (parts * by_part)
            gradient[first : first + len(beta)] = by_beta + cells.power_z[:, None]
        return at.value + cells.power_z @ beta, gradient

    def _parts(
        self, x: Floats, column: Indices | None = None
    ) -> tuple[int, Floats, Floats, Floats]:
        """M, k, parameters, β."""
        _, _, params, beta = self.landscapes[0].parts(x)
        k = np.zeros(0) if column is None else split_level(self.u[column])[0]
        return self.size, k, params, beta

    def _curve(self, row: Indices, column: Indices, x: Floats) -> Floats:
        k, mean = split_level(self.u[column])
        return mean + k * self.by_row(self._features, row, x[: self.size])

    def _chunks(self, n: int) -> Iterator[slice]:
        cells, nodes = self.task.likelihood.cells, self.landscapes[0].nodes
        n_nodes = len(nodes.nodes) * nodes.n_sheets
        widest = max(nodes.n_cells + nodes.n_parts, len(cells.weight), n_nodes)
        step = int(np.clip(_CHUNK // max(widest, 1), 8, 1000))
        for first in range(0, n, step):
            yield slice(first, min(first + step, n))

    @cached_property
    def _features(self) -> list[Matrix]:
        return [Product.of(land.features) for land in self.landscapes]

    @cached_property
    def _features_t(self) -> list[Matrix]:
        return [features.T for features in self._features]

    @cached_property
    def factors(self) -> list[Floats]:
        """L of every length-scale: h at the inducing inputs is m₀ + k L v."""
        return [land.prior.factor for land in self.landscapes]

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        likelihood = self.task.likelihood
        return (*likelihood.effect.parameters, *likelihood.law.parameters)

    @property
    def _zeros(self) -> Floats:
        return np.zeros(self.task.n_beta)


def _chosen(log_share: Floats, n: int, rng: np.random.Generator) -> Indices:
    """Places drawn in proportion, with as little chance as possible."""
    ends = np.cumsum(np.exp(log_share - log_share.max()))
    return np.asarray(np.searchsorted(ends, (np.arange(n) + rng.random()) / n * ends[-1]))


def _step(places: Floats) -> float:
    return float(places[1] - places[0]) if len(places) > 1 else 1.0
