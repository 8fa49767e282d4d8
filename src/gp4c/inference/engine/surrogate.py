r"""Moves that hold surrogate data fixed: of hyper-parameters, and of the signs of f.

f² does not know the sign of f, so that a posterior has many modes, one for each pattern of signs,
and each of them is narrow. Around a draw, noisy values of f at the inducing inputs are made up,

.. math:: G = S^{-1/2} f(z) + \varepsilon, \quad \varepsilon \sim N(0, I),

as precise as the data at hand (a count of events knows √r with variance ¼ whatever r is). Given G
the prior of v is a Gaussian of about the posterior's width, v = mean(G) + root · η. Moves change
hyper-parameters with (G, η) fixed (Murray and Adams 2010), or the signs of G and η on a stretch of
time, which leads to the other modes; p(G) and the likelihood decide. No mode need be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.landscape import split_level
from gp4c.inference.engine.terrain import Draws, Terrain

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: precision of the surrogate data relative to that of events seen one by one
PRECISION = 0.5
#: a turn is tried where |G| is small, in proportion to exp(−|G|·this)
_NEAR_ZERO = 0.5
#: share of turns that have two ends; the others go to the end of the window
_TWO_ENDS = 0.5
#: proposals of hyper-parameters have 2^N(this, 1) of the population's deviations; each of them
#: changes with a chance, by at least about a place of the grids
_LOG2_SCALE, _ACTIVE = -0.5, 0.67
_LEAST_STEPS = np.array([[1.0], [1.0], [1e-3]])


@dataclass(frozen=True)
class Surrogate:
    """S^{-1/2} at likelihood^β, and S^{-1/2} L = A diag(s) Uᵀ of every length-scale."""

    terrain: Terrain
    root: Floats
    left: list[Floats]  # Aᵀ
    spectrum: Floats  # s, (rows, M)
    right: list[Floats]  # U
    right_t: list[Floats]

    @classmethod
    def of(cls, terrain: Terrain) -> Surrogate:
        """For the whole likelihood, β = 1."""
        root = np.sqrt(4 * PRECISION * _exposure(terrain))
        parts = [np.linalg.svd(root[:, None] * factor) for factor in terrain.factors]
        return cls(
            terrain,
            root[:, None],
            [np.ascontiguousarray(a.T) for a, _, _ in parts],
            np.array([s for _, s, _ in parts]),
            [np.ascontiguousarray(u.T) for _, _, u in parts],
            [u for _, _, u in parts],
        )

    def widths(self, draws: Draws, beta: float) -> tuple[Floats, Floats]:
        """σ = s √(γβ) of every draw, (M, S), and √(1 + σ²): the root precision of Uᵀv."""
        k, _ = split_level(self.terrain.u[draws.column])
        level = draws.x[self.terrain.size]
        sigma = np.sqrt(beta) * self.spectrum[draws.row].T * (k * np.exp(level / 2))
        return sigma, np.sqrt(1 + sigma * sigma)

    def imagine(self, draws: Draws, beta: float, rng: np.random.Generator) -> Floats:
        """G of every draw, (M, S)."""
        t = self.terrain
        k, mean = split_level(t.u[draws.column])
        h = mean + k * t.by_row(t.factors, draws.row, draws.x[: t.size])
        f = np.exp(draws.x[t.size] / 2) * h
        return np.asarray(np.sqrt(beta) * self.root * f + rng.standard_normal(h.shape))

    def seen(self, data: Floats, draws: Draws, beta: float) -> tuple[Floats, Floats]:
        """Mean of Uᵀv given G, and ln p(G | hyper-parameters)."""
        t = self.terrain
        _, mean = split_level(t.u[draws.column])
        level = np.exp(draws.x[t.size] / 2) * mean
        d = t.by_row(self.left, draws.row, data - np.sqrt(beta) * self.root * level)
        sigma, root = self.widths(draws, beta)
        log_density = -np.log(root).sum(axis=0) - 0.5 * ((d / root) ** 2).sum(axis=0)
        return sigma * d / root**2, log_density

    def residual(self, draws: Draws, mean: Floats, beta: float) -> Floats:
        """η of v."""
        t = self.terrain
        _, root = self.widths(draws, beta)
        w = t.by_row(self.right_t, draws.row, draws.x[: t.size])
        return t.by_row(self.right, draws.row, (w - mean) * root)

    def values(self, eta: Floats, draws: Draws, mean: Floats, beta: float) -> Floats:
        """v of η: the inverse of :meth:`residual`."""
        t = self.terrain
        _, root = self.widths(draws, beta)
        return t.by_row(self.right, draws.row, mean + t.by_row(self.right_t, draws.row, eta) / root)

    # -- moves ----------------------------------------------------------------------------------

    def shift(
        self, draws: Draws, beta: float, rng: np.random.Generator, bias: Floats
    ) -> tuple[Draws, float]:
        """Propose other (ln a, u, l) with (G, η) fixed; also gives the accepted share.

        `bias`, (rows,), is added to the log prior of the length-scales.
        """
        data = self.imagine(draws, beta, rng)
        mean, log_data = self.seen(data, draws, beta)
        eta = self.residual(draws, mean, beta)
        moved, inside = self._elsewhere(draws, rng)
        new, ratio = self._proposed(data, eta, moved, beta)
        ratio += beta * (new.value - draws.value) - log_data
        ratio += self._log_prior(new) - self._log_prior(draws)
        ratio += bias[new.row] - bias[draws.row]
        accepted = inside & (np.log(rng.random(draws.size)) < ratio)
        return draws.accept(new, accepted), float(accepted.mean())

    def turn(self, draws: Draws, beta: float, rng: np.random.Generator) -> tuple[Draws, float]:
        """Propose other signs of f on a stretch that ends where f is small."""
        data = self.imagine(draws, beta, rng)
        mean, log_data = self.seen(data, draws, beta)
        eta = self.residual(draws, mean, beta)
        sign = _stretches(np.abs(data), rng)
        new, ratio = self._proposed(sign * data, sign * eta, draws, beta)
        ratio += beta * (new.value - draws.value) - log_data
        accepted = np.log(rng.random(draws.size)) < ratio
        return draws.accept(new, accepted), float(accepted.mean())

    def _elsewhere(self, draws: Draws, rng: np.random.Generator) -> tuple[Draws, NDArray[np.bool_]]:
        """Other (ln a, u, l), in steps of the population's size; which are on the grid."""
        t, n = self.terrain, draws.size
        now = np.array([draws.row, draws.column, draws.x[t.size]], dtype=float)
        spread = np.maximum(now.std(axis=1, keepdims=True), _LEAST_STEPS)
        step = spread * 2.0 ** rng.normal(_LOG2_SCALE, 1.0, n) * rng.standard_normal((3, n))
        step *= rng.random((3, n)) < _ACTIVE
        row, column = (np.rint(now + step)[:2]).astype(np.intp)
        inside = (row >= 0) & (row < len(t.landscapes)) & (column >= 0) & (column < len(t.u))
        x = draws.x.copy()
        x[t.size] += step[2]
        row, column = np.where(inside, row, draws.row), np.where(inside, column, draws.column)
        return Draws(row, column, x, draws.value), inside

    def _proposed(self, data: Floats, eta: Floats, at: Draws, beta: float) -> tuple[Draws, Floats]:
        """Draws with this G and η, and ln p(G)."""
        mean, log_data = self.seen(data, at, beta)
        x = at.x.copy()
        x[: self.terrain.size] = self.values(eta, at, mean, beta)
        return self.terrain.evaluated(at.row, at.column, x), log_data

    def _log_prior(self, draws: Draws) -> Floats:
        """Of (ln a, u, l)."""
        t = self.terrain
        z = (draws.x[t.size] - t.centre[0]) / t.scale[0]
        return np.asarray(t.log_prior_row[draws.row] + t.log_prior_column[draws.column] - z * z / 2)


def _exposure(terrain: Terrain) -> Floats:
    """Expected events, at rate 1, that are nearest to each inducing input."""
    land = terrain.landscapes[0]
    nodes = land.nodes
    weights = np.zeros((1, nodes.n_cells + nodes.n_parts))
    weights[:, nodes.n_cells :] = _numbers(terrain)
    at_nodes = land.fold(nodes.adjoint(weights).T)[:, 0]
    nearest = np.rint(nodes.nodes * (terrain.size - 1)).astype(np.intp)
    return np.maximum(np.bincount(nearest, at_nodes, terrain.size), 0.0)


def _numbers(terrain: Terrain) -> Floats:
    """Subjects that the parts of the times at risk stand for."""
    likelihood, nodes = terrain.task.likelihood, terrain.landscapes[0].nodes
    if not likelihood.effect.varies:
        return np.ones(nodes.n_parts)
    number = likelihood.cells.number
    return np.asarray(nodes.owners.T @ number) if nodes.by_span else number


def _stretches(size: Floats, rng: np.random.Generator) -> Floats:
    """−1 on the stretch whose signs change, +1 elsewhere, (M, S).

    The ends depend on |G| alone, which a turn leaves as it is.
    """
    m, n = size.shape
    between = np.minimum(size[1:], size[:-1])
    chance = np.exp(-_NEAR_ZERO * (between - between.min(axis=0)))
    chance = np.concatenate([np.full((1, n), chance.sum(axis=0) / m), chance])  # 0: from the start
    ends = np.cumsum(chance, axis=0)
    first, second = ((ends < rng.random(n) * ends[-1]).sum(axis=0) for _ in range(2))
    second = np.where(rng.random(n) < _TWO_ENDS, second, m)
    low, high = np.minimum(first, second), np.maximum(first, second)
    place = np.arange(m)[:, None]
    return np.where((place >= low) & (place < high), -1.0, 1.0)
