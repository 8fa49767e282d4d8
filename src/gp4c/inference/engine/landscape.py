r"""The log density of curve, level and parameters at one length-scale, with derivatives.

With whitened inducing values v ~ N(0, I), u = ln(√γ/g), l = ln(g² + γ),

.. math::
    f = e^{l/2} h, \quad h = m_0 + k\, b^\top v, \quad
    k = e^u/\sqrt{1 + e^{2u}}, \quad m_0 = 1/\sqrt{1 + e^{2u}} .

A point has the rows (v, l, parameters of the laws, β). Points at several u go side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.inference.engine.terms.point_terms import PointTerms
from gp4c.model.cells import NodeMap
from gp4c.model.count_likelihood import CountLikelihood, LikelihoodTerms
from gp4c.model.hyper_priors import (
    LENGTH_SCALE,
    LEVEL,
    VARIATION,
    normal_log_density,
    soft_uniform_log_density,
)
from gp4c.model.kernels import Kernel
from gp4c.model.sparse_prior import SparsePrior

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: inducing inputs are this many of the kernel's spacings apart: 0.85 length-scales for the
#: squared exponential. Importance weights are exact for the curves that these inputs carry
SPARSER = 1.2
#: nodes per gap between inducing inputs: log-likelihoods of posterior draws to 1e-3; more of them
#: for more events than these, which err by 1e-9 per event
ORDER, MANY_EVENTS, CLOSE_ORDER = 6, 100_000, 8
#: numbers of inducing inputs that occur, so that maps to nodes are shared between length-scales
SIZES = (6, 8, 11, 15, 20, 27, 36, 48, 64, 86, 115, 150)
#: deviation of the level around the one that a given mean asks for
_GIVEN_LEVEL = 0.01
#: u that a search may reach, and the u that stands for a mean of zero
_VARIATIONS, _ZERO_MEAN = (-5.0, 3.2), 6.0
#: root mean square of the inducing values where a search begins
_ROUGH_SIZE = 1.0
#: the same where it begins at the point of an expansion
_LONGEST_START = 3.0
#: most numbers at once while many draws are evaluated
_CHUNK = 2_000_000


@dataclass(frozen=True)
class Derivatives:
    """Value (C,), gradient (C, D) and Hessian (C, D, D) at C points."""

    value: Floats
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True)
class Task:
    """What is fitted: a likelihood and a kernel. Coefficients have standard normal priors.

    Attributes
    ----------
    mean : float, optional
        The prior mean g of f in unit rate, where it is given and not learned.
    """

    likelihood: CountLikelihood
    kernel: Kernel
    n_inducing: int | None = None
    mean: float | None = None

    def level_prior(self, u: Floats) -> tuple[Floats, float]:
        """Mean and deviation of l at each u; a given mean g ≠ 0 leaves no level: l = ln(g² + γ)."""
        if not self.mean:
            return np.full_like(u, LEVEL[0]), LEVEL[1]
        return 2 * np.log(abs(self.mean)) + np.log1p(np.exp(2 * u)), _GIVEN_LEVEL

    @property
    def variations(self) -> tuple[float, float]:
        """u that a search may reach; a zero mean is a single, very large one."""
        return _VARIATIONS if self.mean is None or self.mean else (_ZERO_MEAN, _ZERO_MEAN)

    @property
    def steady(self) -> float:
        """Prior probability that the curve does not vary; 0 where the mean of f is given."""
        modulation = self.likelihood.cells.modulation
        return 0.0 if modulation is None or self.mean is not None else modulation.alone

    @property
    def first_variation(self) -> float:
        """u where a search begins."""
        low, high = self.variations
        return min(max(VARIATION[0], low), high)

    @property
    def n_params(self) -> int:
        """Parameters of the laws."""
        return self.likelihood.n_params

    @property
    def n_beta(self) -> int:
        """Coefficients of covariates and of a modulation."""
        return self.likelihood.cells.n_covariates + self.likelihood.cells.n_modulating

    def size_for(self, length_scale: float) -> int:
        """Inducing inputs that carry curves of this length-scale."""
        if self.n_inducing is not None:
            return self.n_inducing
        needed = 1.0 / (SPARSER * self.kernel.spacing * length_scale) + 1.0
        return next((size for size in SIZES if size >= needed), SIZES[-1])

    def landscape(self, log_length: float, order: int | None = None) -> Landscape:
        """The density at one length-scale; nodes between two inducing inputs, if not as usual."""
        length_scale = float(np.exp(log_length))
        size = self.size_for(length_scale)
        cells = self.likelihood.cells
        if order is None:
            order = ORDER if cells.n_events <= MANY_EVENTS else CLOSE_ORDER
        if self.n_inducing is not None:
            order = max(order, 24 // max(size - 1, 1))
        inducing = np.linspace(0.0, 1.0, size) if size > 1 else np.array([0.5])
        prior = SparsePrior(self.kernel, inducing, length_scale)
        nodes = cells.on_nodes(max(size - 1, 1), order)
        if cells.modulation is None:
            return Landscape(self, log_length, prior, nodes)
        from gp4c.inference.engine.terms.modulated import ModulatedLandscape  # which builds on this

        return ModulatedLandscape(self, log_length, prior, nodes)


def split_level(u: Floats) -> tuple[Floats, Floats]:
    """k and m₀, the shares of deviation and mean in a curve of unit level."""
    mean = 1.0 / np.sqrt(1.0 + np.exp(2 * u))
    return np.exp(u) * mean, mean


@dataclass(frozen=True)
class Landscape:
    """ln prior + ln likelihood at one length-scale."""

    task: Task
    log_length: float
    prior: SparsePrior
    nodes: NodeMap

    @property
    def size(self) -> int:
        """M, inducing values; the level is the row after them."""
        return len(self.prior.inducing)

    @property
    def dimension(self) -> int:
        """D."""
        return self.size + 1 + self.task.n_params + self.task.n_beta

    @cached_property
    def features(self) -> Floats:
        """b at the nodes, (Q, M)."""
        return self.prior.features(self.nodes.nodes)

    @cached_property
    def whitened_one(self) -> Floats:
        """L⁻¹ 1: the inducing values that lift a curve by a constant."""
        return np.asarray(self.prior.inverse_factor.sum(axis=1))

    @cached_property
    def log_prior_length(self) -> float:
        """Log prior density of ln a."""
        return soft_uniform_log_density(self.log_length, *LENGTH_SCALE)

    def constants(self, u: Floats) -> Floats:
        """The same amount of a constant curve in v, (m₀/k) L⁻¹1, for each u: (M, C)."""
        k, mean = split_level(u)
        return np.asarray(np.outer(self.whitened_one, mean / k))

    def parts(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """v, l, parameters, β of the covariates; a modulation has the rows behind them."""
        m, p = self.size, self.task.n_params
        n = self.task.likelihood.cells.n_covariates
        return x[:m], x[m], x[m + 1 : m + 1 + p], x[m + 1 + p : m + 1 + p + n]

    def curve(self, x: Floats, u: Floats) -> Floats:
        """h at the nodes, (Q, C)."""
        k, mean = split_level(u)
        return np.asarray(mean + k * (self.features @ x[: self.size]))

    def curve_at(self, times: Floats, x: Floats, u: Floats) -> Floats:
        """h at any unit times, (T, C)."""
        k, mean = split_level(u)
        return np.asarray(mean + k * (self.prior.features(times) @ x[: self.size]))

    @cached_property
    def _at_risk(self) -> Floats:
        """Expected events of a unit rate at the nodes, (Q,); ones where none are at risk."""
        nodes, likelihood = self.nodes, self.task.likelihood
        weights = np.zeros((1, nodes.n_cells + nodes.n_parts))
        # without effects one owner has the time of all subjects, with them each its own
        alone = nodes.by_span or not likelihood.effect.varies
        weights[0, nodes.n_cells :] = 1.0 if alone else likelihood.cells.number
        found = self.fold(nodes.adjoint(weights).T)[:, 0]
        return found if found.sum() > 0 else np.ones_like(found)

    def height_slopes(self, x: Floats, u: Floats) -> Floats:
        """∂/∂v of the log number of expected events at fixed l, (C, M)."""
        h = self.curve(x, u)
        k, _ = split_level(u)
        total = np.maximum(self._at_risk @ (h * h), 1e-300)
        slopes = self.features.T @ (self._at_risk[:, None] * h)
        return np.asarray((2 * k / total * slopes).T)

    def rough_start(self, u: float) -> Floats:
        """A point near the data: the root of a crude rate, smoothed over a length-scale.

        Events are spread evenly over their cells, and divided by the time at risk.
        """
        cells, nodes = self.task.likelihood.cells, self.nodes
        x = np.zeros(self.dimension)
        if not len(cells.start):
            return x
        if cells.expansion is not None:
            return self._expanded_start(u)
        ones = self.spread(np.ones((len(nodes.nodes), 1)))
        sizes = np.maximum(nodes.apply(ones)[: nodes.n_cells, 0], 1e-300)
        weights = np.zeros((1, nodes.n_cells + nodes.n_parts))
        weights[0, : nodes.n_cells] = cells.power / sizes
        events, at_risk = self.fold(nodes.adjoint(weights).T)[:, 0], self._at_risk
        smooth = self.prior.covariance(self.prior.inducing, nodes.nodes)
        crude = (smooth @ events) / np.maximum(smooth @ at_risk, 1e-300)
        height = np.sqrt(crude * at_risk.sum() / max(events.sum(), 1e-300))
        k, mean = split_level(np.array(u))
        x[: self.size] = self.prior.inverse_factor @ ((height - mean) / k)
        size = float(np.sqrt((x[: self.size] ** 2).mean()))
        x[: self.size] *= min(1.0, _ROUGH_SIZE / max(size, 1e-300))
        if not self.task.mean and cells.n_events > 0:  # 0 in units of the data's own rate
            x[self.size] = np.log(cells.n_events / at_risk.sum())
        return x

    def _expanded_start(self, u: float) -> Floats:
        """The point of an expansion, its curve drawn through its points by straight lines."""
        cells, x = self.task.likelihood.cells, np.zeros(self.dimension)
        assert cells.expansion is not None
        square, params = cells.expansion.point
        level = float(np.log(square.mean()))
        height = np.sqrt(np.interp(self.prior.inducing, cells.start, square)) * np.exp(-level / 2)
        k, mean = split_level(np.array(u))
        x[: self.size] = self.prior.inverse_factor @ ((height - mean) / k)
        size = float(np.sqrt((x[: self.size] ** 2).mean()))
        x[: self.size] *= min(1.0, _LONGEST_START / max(size, 1e-300))
        x[self.size], x[self.size + 1 : self.size + 1 + len(params)] = level, params
        return x

    # -- values -------------------------------------------------------------------------------

    def log_prior(self, x: Floats, u: Floats) -> Floats:
        """ln p(v, l, parameters, β, ln a, u), (S,)."""
        v, level, params, _ = self.parts(x)
        beta = x[self.dimension - self.task.n_beta :]
        total = self.log_prior_length - 0.5 * (v * v).sum(axis=0)
        total = total - 0.5 * len(v) * np.log(2 * np.pi)
        total = (
            total
            + normal_log_density(u, *VARIATION)
            + normal_log_density(level, *self.task.level_prior(u))
        )
        total = total + self.task.likelihood.log_prior(params)
        total = total - 0.5 * (beta * beta).sum(axis=0) - 0.5 * len(beta) * np.log(2 * np.pi)
        return np.asarray(total)

    def log_density(self, x: Floats, u: Floats) -> Floats:
        """ln prior + ln likelihood of draws (D, S) at their u (S,); −∞ where it overflows."""
        total = np.empty(x.shape[1])
        cells = self.task.likelihood.cells
        n_nodes = len(self.features) * self.nodes.n_sheets
        widest = max(self.nodes.n_cells + self.nodes.n_parts, len(cells.weight), n_nodes)
        step = int(np.clip(_CHUNK // max(widest, 1), 8, 1000))
        with np.errstate(all="ignore"):
            for first in range(0, x.shape[1], step):
                some = slice(first, first + step)
                total[some] = self.log_likelihood(self.curve(x[:, some], u[some]), x[:, some])
            total += self.log_prior(x, u)
        return np.where(np.isfinite(total), total, -np.inf)

    def log_likelihood(self, curve: Floats, x: Floats) -> Floats:
        """ln p(counts) of curves h at the nodes (Q, S), with all but v taken from x (D, S)."""
        _, _, params, beta = self.parts(x)
        square = self.squares(curve, x)
        cell, row, owner, _ = self._expected(self.nodes.apply(square), beta)
        value = self.task.likelihood.value(cell, row, owner, params)
        return value + self.task.likelihood.cells.power_z @ beta

    def _expected(self, linear: Floats, beta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """I, r, R, and the parts of R before they are summed by owner."""
        cells, n = self.task.likelihood.cells, self.nodes.n_cells
        cell, parts = linear[:n], linear[n:]
        row = cells.rows.factor[:, None] * cell[cells.row_cell]
        if len(beta):
            row = row * np.exp(cells.rows.z @ beta)
            parts = parts * np.exp(self._part_z @ beta)
        owner = self.nodes.owners @ parts if self.nodes.by_span else parts
        return cell, np.maximum(row, 1e-30), np.asarray(owner), parts

    @cached_property
    def _part_z(self) -> Floats:
        """Covariates of the parts of R: one part per span, or one per owner."""
        cells = self.task.likelihood.cells
        if self.nodes.by_span:
            return cells.span_z
        z = np.empty((cells.n_owners, cells.n_covariates))
        z[cells.span_owner] = cells.span_z
        return z

    # -- what a modulation changes ----------------------------------------------------------------

    @property
    def curve_rows(self) -> Indices:
        """Rows of a point on which integrals of the rate depend, covariates aside."""
        return np.arange(self.size + 1)

    def spread(self, values: Floats) -> Floats:
        """Values at the nodes (Q, S) on every sheet of the map, (N, S)."""
        return values

    def fold(self, values: Floats) -> Floats:
        """The adjoint of :meth:`spread`."""
        return values

    def squares(self, curve: Floats, x: Floats) -> Floats:
        """f² and its factors on the sheets of the map, (N, S)."""
        return np.asarray(np.exp(x[self.size]) * curve**2)

    def scaled(self, h: Floats, x: Floats) -> tuple[Floats, Floats]:
        """What multiplies h², (C,) or (N, C), and the product, (N, C)."""
        scale = np.exp(x[self.size])
        return scale, scale * h * h

    @property
    def n_factors(self) -> int:
        """Exponentials that one draw of the factors takes."""
        return 0

    def slopes_of_factors(self, weights: Floats) -> Floats:
        """Σ weights (N, S) · features of the factors, (r, S)."""
        return np.zeros((0, weights.shape[1]))

    # -- derivatives ----------------------------------------------------------------------------

    def derivatives(self, x: Floats, u: Floats) -> Derivatives:
        """Value, gradient and Hessian of the log density at points (D, C)."""
        m, n_points = self.size, x.shape[1]
        _, _, params, beta = self.parts(x)
        k, _ = split_level(u)
        h = self.curve(x, u)
        scale, square = self.scaled(h, x)
        cell, row, owner, parts = self._expected(self.nodes.apply(square), beta)
        at = self.task.likelihood.terms(cell, row, owner, params)
        power_z = self.task.likelihood.cells.power_z
        value = at.value + power_z @ beta + self.log_prior(x, u)
        weights = scale[:, None] if scale.ndim == 1 else scale.T
        weights = weights * self.nodes.adjoint(self._linear_weights(at, beta).T)
        gradient = np.zeros((n_points, self.dimension))
        hessian = np.zeros((n_points, self.dimension, self.dimension))
        self._add_curve(k, h, weights, gradient, hessian)
        p = slice(m + 1, m + 1 + len(params))
        gradient[:, p] = at.by_params.T
        hessian[:, p, p] = at.by_params_twice.transpose(2, 0, 1)
        for c in range(n_points):
            linear = self._jacobian(k[c], h[:, c], scale[..., c], square[:, c])
            one = PointTerms(self, at, c, linear, cell, row, parts, beta)
            one.add_to(gradient[c], hessian[c])
        self._add_prior(x, u, gradient, hessian)
        return _finite(value, gradient, hessian)

    def _add_curve(
        self, k: Floats, h: Floats, weights: Floats, gradient: Floats, hessian: Floats
    ) -> None:
        """Add Σ weights · derivatives of h² in (v, l) at the nodes; weights are (C, Q)."""
        m = self.size
        slope = weights * h.T
        gradient[:, :m] = 2 * k[:, None] * (slope @ self.features)
        gradient[:, m] = (slope * h.T).sum(axis=1)
        each = (2 * k**2)[:, None, None]
        hessian[:, :m, :m] = each * (self.features.T @ (weights[:, :, None] * self.features))
        hessian[:, :m, m] = hessian[:, m, :m] = gradient[:, :m]
        hessian[:, m, m] = gradient[:, m]

    def _jacobian(self, k: float, h: Floats, scale: Floats, square: Floats) -> Floats:
        """Integrals of ∂f²/∂(`curve_rows`) at one point, (J + parts, M + 1)."""
        m = self.size
        bend = np.empty((len(self.features), m + 1))
        bend[:, :m] = (2 * k * scale * h)[:, None] * self.features
        bend[:, m] = square
        return self.nodes.apply(bend)

    def _linear_weights(self, at: LikelihoodTerms, beta: Floats) -> Floats:
        """∂ ln p / ∂ (integrals over cells and times at risk), (J + parts, C)."""
        cells = self.task.likelihood.cells
        by_row = cells.rows.factor[:, None] * at.by_row
        by_part = self.nodes.owners.T @ at.by_owner if self.nodes.by_span else at.by_owner
        if len(beta):
            by_row = by_row * np.exp(cells.rows.z @ beta)
            by_part = by_part * np.exp(self._part_z @ beta)
        by_cell = at.by_cell
        if len(by_row):
            by_cell = by_cell + self._row_cells @ by_row
        return np.concatenate([by_cell, by_part])

    @cached_property
    def _row_cells(self) -> sparse.csr_array:
        """Rows with a remainder, summed by cell."""
        cells = self.task.likelihood.cells
        n = len(cells.row_cell)
        shape = (self.nodes.n_cells, n)
        return sparse.csr_array((np.ones(n), (cells.row_cell, np.arange(n))), shape=shape)

    def _add_prior(self, x: Floats, u: Floats, gradient: Floats, hessian: Floats) -> None:
        """Add the derivatives of the normal priors, all diagonal."""
        m = self.size
        likelihood = self.task.likelihood
        both = (*likelihood.effect.parameters, *likelihood.law.parameters)
        level, level_scale = self.task.level_prior(u)
        means = np.array([*(q.mean for q in both), *(0.0,) * self.task.n_beta])
        scales = np.array([level_scale, *(q.deviation for q in both), *(1.0,) * self.task.n_beta])
        gradient[:, :m] -= x[:m].T
        gradient[:, m] -= (x[m] - level) / level_scale**2
        gradient[:, m + 1 :] -= (x[m + 1 :].T - means) / scales[1:] ** 2
        every = np.arange(self.dimension)
        hessian[:, every, every] -= np.concatenate([np.ones(m), scales**-2.0])


def _finite(value: Floats, gradient: Floats, hessian: Floats) -> Derivatives:
    """Points that overflow have value −∞ and a harmless Hessian."""
    bad = ~np.isfinite(value) | ~np.isfinite(hessian).all(axis=(1, 2))
    bad |= ~np.isfinite(gradient).all(axis=1)
    if bad.any():
        value = np.where(bad, -np.inf, value)
        gradient[bad] = 0.0
        hessian[bad] = -np.eye(hessian.shape[1])
    return Derivatives(value, gradient, hessian)
