r"""Regression coefficients of a rate: exp(βᵀz) multiplies the intensity of a row.

Row r of subject k has the expected count υ_k μ_r, μ_r = e_r exp(βᵀz_r) ρ ∫E f² over its interval.
Given the integrals the objective is that of a Poisson or negative multinomial regression,

.. math::  \sum_r m_r \beta^T z_r - \sum_k \mathrm{cost}_k(R_k), \qquad R_k = \sum_{r \in k} \mu_r,

concave in β. The curve is estimated along with β; near the optimum ln ∫f² is linear in the level
and the shape of f, so that all together are one penalised regression (docs/maths_covariates.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri

from gp4c.design.observations import Observations
from gp4c.inference.exposure import GammaFrailty

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_FRAILTY = GammaFrailty()
#: normal scores at which :func:`product_quantiles` wants the quantiles of a curve
PRODUCT_SCORES = np.linspace(-4.0, 4.0, 61)
#: information per event and unit variance of a covariate below which there is no finite estimate
NO_INFORMATION = 1e-7


@dataclass(frozen=True)
class RegressionRows:
    """Rows of a panel with their covariates.

    Attributes
    ----------
    design : (N, p)
        Centred covariates z_r.
    count, exposure : (N,)
    subject, interval : (N,)
        Position of the row's subject, and of its interval among the distinct ones.
    n_subjects : int
    """

    design: Floats
    count: Floats
    exposure: Floats
    subject: Indices
    interval: Indices
    n_subjects: int

    @property
    def totals(self) -> Floats:
        """m_k."""
        return self.by_subject(self.count)

    def by_subject(self, values: Floats) -> Floats:
        """Sums over the rows of each subject, (N,) → (K,) or (N, p) → (K, p)."""
        if values.ndim == 1:
            return np.bincount(self.subject, values, self.n_subjects).astype(np.float64)
        columns = [np.bincount(self.subject, column, self.n_subjects) for column in values.T]
        return np.stack(columns, axis=1).astype(np.float64)

    def multiplied(self, beta: Floats) -> Floats:
        """e_r exp(βᵀz_r)."""
        return np.asarray(self.exposure * np.exp(self.design @ beta))


@dataclass(frozen=True)
class Collapsed:
    """The part of the objective that knows β, at fixed integrals of f².

    `mean` are the μ_r, `effect` the υ_k, `value` and `score` the objective and its gradient.
    """

    value: float
    score: Floats
    mean: Floats
    effect: Floats
    expected: Floats


def collapsed(rows: RegressionRows, beta: Floats, mass: Floats, shape: float) -> Collapsed:
    """Evaluate at coefficients β.

    Parameters
    ----------
    mass : (J,)
        ρ ∫E f² over the distinct intervals.
    shape : float
        α of the gamma frailty; infinite without one.
    """
    mean = rows.multiplied(beta) * mass[rows.interval]
    expected, totals = rows.by_subject(mean), rows.totals
    effect = _FRAILTY.weight(totals, expected, shape)
    value = rows.count @ (rows.design @ beta) - _FRAILTY.cost(totals, expected, shape).sum()
    residual = rows.count - effect[rows.subject] * mean
    return Collapsed(float(value), rows.design.T @ residual, mean, effect, expected)


def information(rows: RegressionRows, at: Collapsed, shape: float) -> Floats:
    """−∂²/∂β∂βᵀ of the collapsed objective, with f as it is."""
    weighted = at.effect[rows.subject] * at.mean
    full = rows.design.T @ (weighted[:, None] * rows.design)
    return np.asarray(full - _between(rows.by_subject(at.mean[:, None] * rows.design), at, shape))


def _between(sums: Floats, at: Collapsed, shape: float, other: Floats | None = None) -> Floats:
    """Σ_k υ_k S_k S_kᵀ / (α + R_k): what is not learned since υ_k is unknown."""
    right = sums if other is None else other
    if not np.isfinite(shape):
        return np.zeros((sums.shape[1], right.shape[1]))
    return np.asarray(sums.T @ ((at.effect / (shape + at.expected))[:, None] * right))


def newton(
    rows: RegressionRows, mass: Floats, shape: float, beta: Floats, tol: float = 1e-10
) -> Floats:
    """Coefficients that maximise the concave collapsed objective; steps down are halved."""
    here = collapsed(rows, beta, mass, shape)
    for _ in range(100):
        step = np.linalg.solve(_ridged(information(rows, here, shape)), here.score)
        gain = float(here.score @ step) / 2
        if gain < tol:
            break
        share = 1.0
        while share > 1e-6:
            there = collapsed(rows, beta + share * step, mass, shape)
            if there.value >= here.value:
                break
            share /= 2
        else:
            break
        beta, here = beta + share * step, there
    return beta


def _ridged(matrix: Floats) -> Floats:
    """The matrix, made safely invertible where a coefficient runs off to infinity."""
    return np.asarray(matrix + 1e-12 * np.trace(matrix) * np.eye(len(matrix)))


def reweighted(data: Observations, rows: RegressionRows, beta: Floats, rate: float) -> Observations:
    """Observations in which exp(βᵀz) multiplies the rows' exposure, with the unit rate given.

    ``data`` are those without covariates; distinct intervals stay distinct, as exp(βᵀz) only
    changes what they weigh, and Σ m βᵀz is a constant.
    """
    weight = rate * rows.multiplied(beta)
    shape = (rows.n_subjects, len(data.start))
    total = float(rows.count.sum())
    constant = data.constant + total * np.log(rate / data.rate)
    return replace(
        data,
        exposure=np.bincount(rows.interval, weight, len(data.start)).astype(np.float64),
        by_subject=sparse.csr_array((weight, (rows.subject, rows.interval)), shape),
        rate=rate,
        constant=float(constant + rows.count @ (rows.design @ beta)),
    )


def pooled_start(rows: RegressionRows, length: Floats) -> tuple[Floats, float]:
    """First coefficients, and the unit rate, from a rate that is constant over time.

    Parameters
    ----------
    length : (J,)
        Lengths of the distinct intervals, in windows.
    """
    level = np.ones((len(rows.design), 1))
    both = replace(rows, design=np.concatenate([level, rows.design], axis=1))
    start = np.zeros(both.design.shape[1])
    start[0] = np.log(rows.count.sum() / (rows.exposure @ length[rows.interval]))
    found = newton(both, length, np.inf, start)
    return found[1:], float(np.exp(found[0]))


def weakest(rows: RegressionRows, mean: Floats) -> tuple[float, int]:
    """Least information per event about standardised covariates, and the one it is about.

    Where events occur on one side of a covariate only, the estimate runs off to infinity and the
    expected counts of the other side vanish, the information with them.
    """
    z = rows.design / np.maximum(rows.design.std(axis=0), 1e-300)
    share = mean / mean.sum()
    z = z - share @ z
    values, vectors = np.linalg.eigh(z.T @ (share[:, None] * z))
    return float(values[0]), int(np.argmax(np.abs(vectors[:, 0])))


# -- uncertainty ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nuisance:
    """Directions in which the curve can move while β does.

    Attributes
    ----------
    slopes : (J, q)
        ∂ ln ∫f² over the distinct intervals, by each direction.
    penalty : (q,)
        Prior precision of each; 0 for the level, which is free.
    """

    slopes: Floats
    penalty: Floats


@dataclass(frozen=True)
class Efficient:
    """Information about β with the curve re-estimated, and what each subject contributes.

    Attributes
    ----------
    information : (p, p)
    scores : (K, p)
        Subjects' scores with their effect on the curve taken off.
    shares : (K, p, p)
        Subjects' parts of the information.
    """

    information: Floats
    scores: Floats
    shares: Floats

    @property
    def covariance(self) -> Floats:
        """Model-based covariance of β̂."""
        return np.asarray(np.linalg.inv(self.information))

    @property
    def robust_covariance(self) -> Floats:
        """Sandwich over subjects, times K / (K − p − 1): valid whatever the counts' variance."""
        n, p = self.scores.shape
        bread = self.covariance
        middle = self.scores.T @ self.scores
        return np.asarray(bread @ middle @ bread * (n / max(n - p - 1, 1)))

    @property
    def influence(self) -> Floats:
        """How far β̂ moves with each subject: (I − I_k)⁻¹ ψ_k, one step of the jackknife, (K, p)."""
        without = self.information - self.shares
        return np.asarray(np.linalg.solve(without, self.scores[:, :, None])[:, :, 0])

    @property
    def jackknife_covariance(self) -> Floats:
        """Sum of squared influences: larger than the sandwich where few subjects decide."""
        return np.asarray(self.influence.T @ self.influence)


def efficient(rows: RegressionRows, at: Collapsed, nuisance: Nuisance, shape: float) -> Efficient:
    """Project the score of β on what the curve cannot explain.

    The blocks are those of a penalised regression on (z_r, slopes of the row's interval).
    """
    D, n_intervals = nuisance.slopes, len(nuisance.slopes)
    where = (rows.subject, rows.interval)
    size = (rows.n_subjects, n_intervals)
    weighted = at.effect[rows.subject] * at.mean
    residual = rows.count - weighted
    own = rows.by_subject(at.mean[:, None] * rows.design)
    curve = np.asarray(sparse.csr_array((at.mean, where), size) @ D)

    per_interval = np.bincount(rows.interval, weighted, n_intervals)
    shared = D.T @ (per_interval[:, None] * D) - _between(curve, at, shape)
    shared = shared + np.diag(nuisance.penalty)
    columns = [
        np.bincount(rows.interval, weighted * column, n_intervals) for column in rows.design.T
    ]
    cross = np.stack(columns, axis=1).T @ D - _between(own, at, shape, curve)

    projection = np.linalg.solve(_ridged(shared), cross.T)  # (q, p)
    # what the curve cannot explain of z_r
    rest = rows.design - (D @ projection)[rows.interval]
    scores = rows.by_subject(residual[:, None] * rest)
    return Efficient(
        information(rows, at, shape) - cross @ projection, scores, _shares(rows, at, rest, shape)
    )


def _shares(rows: RegressionRows, at: Collapsed, rest: Floats, shape: float) -> Floats:
    """Each subject's part of the efficient information, (K, p, p)."""
    p = rest.shape[1]
    squares = at.mean[:, None] * (rest[:, :, None] * rest[:, None, :]).reshape(-1, p * p)
    parts = rows.by_subject(squares).reshape(-1, p, p)
    if np.isfinite(shape):
        sums = rows.by_subject(at.mean[:, None] * rest)
        known = (shape + at.expected)[:, None, None]
        parts = parts - sums[:, :, None] * sums[:, None, :] / known
    return np.asarray(at.effect[:, None, None] * parts)


# -- curves at covariates ------------------------------------------------------------------------


def product_quantiles(curve: Floats, deviation: float, levels: Floats) -> Floats:
    """Quantiles of Y e^{σξ}, ξ ~ N(0, 1), from those of positive, independent variables Y.

    P(Y e^{σξ} ≤ y) = E Φ(s(ln y − σξ)), s the normal score of ln Y, by Gauss and Hermite's rule;
    inverted on a grid of ln y, where scores are nearly straight lines.

    Parameters
    ----------
    curve : (61, T)
        Quantiles of each Y at the scores PRODUCT_SCORES.
    deviation : float
        σ.
    levels : (L,)

    Returns
    -------
    (L, T)
    """
    nodes, shares = np.polynomial.hermite_e.hermegauss(21)
    shares = shares / shares.sum()
    logs = np.log(np.maximum(curve, 1e-300))
    found = np.empty((len(levels), curve.shape[1]))
    for k, points in enumerate(logs.T):
        reach = 5 * deviation
        grid = np.linspace(points[0] - reach, points[-1] + reach, 600)
        shifted = grid[:, None] - deviation * nodes
        scores = np.interp(shifted, points, PRODUCT_SCORES, left=-9.0, right=9.0)
        mixed = np.clip(ndtr(scores) @ shares, 1e-15, 1 - 1e-15)
        found[:, k] = np.exp(np.interp(ndtri(levels), ndtri(mixed), grid))
    return found
