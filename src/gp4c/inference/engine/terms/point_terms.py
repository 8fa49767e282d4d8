"""What one point adds to gradient and Hessian beyond the curvature of f² itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.count_likelihood import HardTerms, LikelihoodTerms

if TYPE_CHECKING:
    from gp4c.inference.engine.landscape import Landscape

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most numbers of a dense matrix of sums; a sparse one takes longer to make than to multiply
_DENSE = 100_000


@dataclass(frozen=True)
class PointTerms:
    """One of the points: its Jacobian, and what it adds to gradient and Hessian."""

    landscape: Landscape
    at: LikelihoodTerms
    index: int
    linear: Floats  # integrals of ∂f²/∂(v, l, w)
    cell: Floats
    row: Floats
    parts: Floats
    beta: Floats

    def add_to(self, gradient: Floats, hessian: Floats) -> None:
        """Add JᵀCJ, what parameters and coefficients share with the curve, and the hard parts."""
        at, c, land = self.at, self.index, self.landscape
        cells, nodes = land.task.likelihood.cells, land.nodes
        m, n_params = land.size, land.task.n_params
        curve = land.curve_rows
        by_cell, by_part = self.linear[: nodes.n_cells], self.linear[nodes.n_cells :]
        rows = RowJacobian(by_cell, cells.row_cell, cells.rows.factor)
        if len(self.beta):
            rows, by_part = self._with_coefficients(rows.whole(), by_part, gradient, hessian)
        by_owner = nodes.owners @ by_part if nodes.by_span else by_part
        first = m + 1 + n_params
        where = np.concatenate([curve, np.arange(first, first + len(self.beta))])
        if rows.base is by_cell:  # both in one product
            block = rows.weighted(at.by_row_twice[:, c], at.by_cell_twice[:, c])
        else:
            block = rows.weighted(at.by_row_twice[:, c])
            hessian[np.ix_(curve, curve)] += _weighted(by_cell, at.by_cell_twice[:, c])
        if at.by_owner_twice[:, c].any():
            block += _weighted(by_owner, at.by_owner_twice[:, c])
        for i in range(n_params):
            shared = at.owner_and_params[i, :, c] @ by_owner
            shared = shared + rows.sum(at.row_and_params[i, :, c])
            hessian[m + 1 + i, where] += shared
            hessian[where, m + 1 + i] += shared
        if at.dense is not None:
            n = nodes.n_cells
            jacobian = np.zeros((n + n_params, land.dimension))
            jacobian[:n, curve] = by_cell
            jacobian[n + np.arange(n_params), m + 1 + np.arange(n_params)] = 1.0
            hessian += jacobian.T @ at.dense[c] @ jacobian
        if at.hard is not None:
            self._add_hard(at.hard, rows, by_owner[cells.hard], where, block, hessian)
        hessian[np.ix_(where, where)] += block

    def _with_coefficients(
        self, by_row: Floats, by_part: Floats, gradient: Floats, hessian: Floats
    ) -> tuple[RowJacobian, Floats]:
        """Jacobians of r and of the parts of R in (v, l, β), and the second derivatives in β.

        ∂r/∂β = r z, ∂²r/∂β∂β = r z zᵀ and ∂²r/∂β∂v = z ∂r/∂v.
        """
        land, at, c = self.landscape, self.at, self.index
        cells, nodes, m = land.task.likelihood.cells, land.nodes, land.size
        beta = self.beta[:, c]
        z_row, z_part = cells.rows.z, land._part_z
        by_row = by_row * np.exp(z_row @ beta)[:, None]
        by_part = by_part * np.exp(z_part @ beta)[:, None]
        weight_row = at.by_row[:, c]
        weight_part = at.by_owner[:, c]
        if nodes.by_span:
            weight_part = nodes.owners.T @ weight_part
        row, part = self.row[:, c] * weight_row, self.parts[:, c] * weight_part
        first, curve = m + 1 + land.task.n_params, land.curve_rows
        b = slice(first, first + len(beta))
        gradient[b] += z_row.T @ row + z_part.T @ part + cells.power_z
        hessian[b, b] += z_row.T @ (row[:, None] * z_row) + z_part.T @ (part[:, None] * z_part)
        shared = z_row.T @ (weight_row[:, None] * by_row)
        shared += z_part.T @ (weight_part[:, None] * by_part)
        rows = np.arange(first, first + len(beta))
        hessian[np.ix_(rows, curve)] += shared
        hessian[np.ix_(curve, rows)] += shared.T
        by_row = np.hstack([by_row, self.row[:, c, None] * z_row])
        by_part = np.hstack([by_part, self.parts[:, c, None] * z_part])
        return RowJacobian(by_row, np.arange(len(by_row)), np.ones(len(by_row))), by_part

    def _add_hard(
        self,
        hard: HardTerms,
        rows: RowJacobian,
        by_owner: Floats,
        where: Indices,
        block: Floats,
        hessian: Floats,
    ) -> None:
        """Covariance over the subjects' effects: Var(∂ ln p)."""
        land, c = self.landscape, self.index
        likelihood, m = land.task.likelihood, land.size
        subject = likelihood.integral.row_subject
        crossed = by_owner.T @ rows.sums(hard.row_and_owner[:, c, None], subject, len(by_owner))[0]
        block += crossed + crossed.T
        size = by_owner.shape[1]
        scores = np.empty((*hard.by_owner.shape[:2], size + land.task.n_params))
        np.multiply(hard.by_owner[:, :, c, None], by_owner, out=scores[:, :, :size])
        scores[:, :, :size] += rows.sums(hard.by_row[:, :, c].T, subject, len(by_owner))
        scores[:, :, size:] = hard.by_params[:, :, :, c].transpose(0, 2, 1)
        flat = scores.reshape(-1, scores.shape[2])
        every = np.concatenate([where, m + 1 + np.arange(land.task.n_params)])
        hessian[np.ix_(every, every)] += flat.T @ flat


@dataclass(frozen=True)
class RowJacobian:
    """The Jacobian of the expected numbers of the rows, as far as possible that of their cells.

    Attributes
    ----------
    base : (J, D)
    place : (J2,)
        The line of `base` of each row.
    factor : (J2,)
        What it is multiplied by.
    """

    base: Floats
    place: Indices
    factor: Floats

    def whole(self) -> Floats:
        """Line by line, (J2, D)."""
        return np.asarray(self.factor[:, None] * self.base[self.place])

    def sum(self, weight: Floats) -> Floats:
        """Σ weight · line, (D,)."""
        return np.asarray(self._gathered(self.factor * weight) @ self.base)

    def weighted(self, weight: Floats, of_base: Floats | float = 0.0) -> Floats:
        """Jᵀ diag(weight) J; `of_base` are more weights, of the lines of `base` (J,)."""
        if len(self.place):
            of_base = of_base + self._gathered(self.factor**2 * weight)
        return _weighted(self.base, np.broadcast_to(of_base, len(self.base)))

    def sums(self, weights: Floats, subject: Indices, n_subjects: int) -> Floats:
        """Σ weight · line over the rows of each subject, for weights (J2, N): (N, H, D)."""
        n_rows, n_sets = weights.shape
        scaled = (self.factor[:, None] * weights).T
        if n_sets * n_subjects * n_rows <= _DENSE:
            spread = np.zeros((n_sets, n_subjects, n_rows))
            spread[:, subject, np.arange(n_rows)] = scaled
            return np.asarray(spread @ self.base[self.place])
        target = (np.arange(n_sets)[:, None] * n_subjects + subject).ravel()
        places = (target, np.tile(self.place, n_sets))
        shape = (n_sets * n_subjects, len(self.base))
        found = sparse.coo_array((scaled.ravel(), places), shape=shape).tocsr() @ self.base
        return np.asarray(found).reshape(n_sets, n_subjects, -1)

    def _gathered(self, values: Floats) -> Floats:
        """Values of the rows, summed by line of `base`."""
        return np.bincount(self.place, values, len(self.base)).astype(float)


def _weighted(jacobian: Floats, weight: Floats) -> Floats:
    """Jᵀ diag(w) J, as products of a matrix with itself, which take half the time of others."""
    result = np.zeros((jacobian.shape[1], jacobian.shape[1]))
    for sign in (1.0, -1.0):
        some = sign * weight > 0
        if some.any():
            part, size = (jacobian, weight) if some.all() else (jacobian[some], weight[some])
            scaled = np.sqrt(sign * size)[:, None] * part
            result += sign * (scaled.T @ scaled)
    return result
