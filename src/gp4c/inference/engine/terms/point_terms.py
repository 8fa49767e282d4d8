"""What one point adds to gradient and Hessian beyond the curvature of f² itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.model.count_likelihood import HardTerms, LikelihoodTerms

if TYPE_CHECKING:
    from gp4c.inference.engine.landscape import Landscape

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


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
        by_row = cells.rows.factor[:, None] * by_cell[cells.row_cell]
        if len(self.beta):
            by_row, by_part = self._with_coefficients(by_row, by_part, gradient, hessian)
        by_owner = nodes.owners @ by_part if nodes.by_span else by_part
        hessian[np.ix_(curve, curve)] += _weighted(by_cell, at.by_cell_twice[:, c])
        first = m + 1 + n_params
        where = np.concatenate([curve, np.arange(first, first + len(self.beta))])
        block = np.zeros((len(where), len(where)))
        if len(by_row):
            block += _weighted(by_row, at.by_row_twice[:, c])
        if at.by_owner_twice[:, c].any():
            block += _weighted(by_owner, at.by_owner_twice[:, c])
        for i in range(n_params):
            shared = at.owner_and_params[i, :, c] @ by_owner
            if len(by_row):
                shared = shared + at.row_and_params[i, :, c] @ by_row
            hessian[m + 1 + i, where] += shared
            hessian[where, m + 1 + i] += shared
        if at.dense is not None:
            n = nodes.n_cells
            jacobian = np.zeros((n + n_params, land.dimension))
            jacobian[:n, curve] = by_cell
            jacobian[n + np.arange(n_params), m + 1 + np.arange(n_params)] = 1.0
            hessian += jacobian.T @ at.dense[c] @ jacobian
        if at.hard is not None:
            self._add_hard(at.hard, by_row, by_owner[cells.hard], where, block, hessian)
        hessian[np.ix_(where, where)] += block

    def _with_coefficients(
        self, by_row: Floats, by_part: Floats, gradient: Floats, hessian: Floats
    ) -> tuple[Floats, Floats]:
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
        return by_row, by_part

    def _add_hard(
        self,
        hard: HardTerms,
        by_row: Floats,
        by_owner: Floats,
        where: Indices,
        block: Floats,
        hessian: Floats,
    ) -> None:
        """Covariance over the nodes of the subjects' integrals: Var(∂ ln p)."""
        land, c = self.landscape, self.index
        likelihood, m = land.task.likelihood, land.size
        n_params, n_nodes = land.task.n_params, hard.weight.shape[2]
        sums = likelihood.integral.sums
        crossed = by_owner.T @ (sums @ (hard.row_and_owner[:, c, None] * by_row))
        block += crossed + crossed.T
        root = np.sqrt(hard.weight[:, c])  # (H, N)
        if hard.number is not None:
            root = root * np.sqrt(hard.number)[:, None]
        scores = np.empty((len(root), n_nodes, len(where) + n_params))
        scores[:, :, : len(where)] = hard.by_owner[:, c, :, None] * by_owner[:, None]
        for n in range(n_nodes):
            scores[:, n, : len(where)] += sums @ (hard.by_row[:, c, n, None] * by_row)
        scores[:, :, len(where) :] = hard.by_params[:, :, c].transpose(1, 2, 0)
        mean = np.einsum("hn,hnd->hd", hard.weight[:, c], scores)
        scores -= mean[:, None]
        scores *= root[:, :, None]
        flat = scores.reshape(-1, scores.shape[2])
        every = np.concatenate([where, m + 1 + np.arange(n_params)])
        hessian[np.ix_(every, every)] += flat.T @ flat


def _weighted(jacobian: Floats, weight: Floats) -> Floats:
    """Jᵀ diag(w) J."""
    return np.asarray(jacobian.T @ (weight[:, None] * jacobian))
