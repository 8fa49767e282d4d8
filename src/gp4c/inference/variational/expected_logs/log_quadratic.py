r"""Exact expectation of the logarithm of a quadratic form in Gaussians, with gradients.

.. math::
    Q = |d + A^{1/2}\xi|^2, \quad \xi \sim N(0, I), \qquad
    E \ln Q = \int_0^\infty (e^{-t} - M(t))\,\frac{dt}{t}, \quad
    M(t) = E e^{-tQ} = |I + 2tA|^{-1/2} e^{-t\,d^T R d}, \quad R = (I + 2tA)^{-1}.

The number returned is the expectation itself, to the stated tolerance, not a bound. Derivation,
error terms and the choice of nodes: docs/maths_exact.md.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gp4c.inference.variational.expected_logs.laplace_rules import (
    FloatArray,
    Rule,
    concentrated_rule,
    concentration_limit,
    panel_rules,
)

# Largest Frobenius norm of A / E Q for which the Chebyshev series in A beats the eigensystem.
_SERIES_NORM = 0.05
# Cases are worked through in blocks whose arrays stay in cache.
_BLOCK_CASES = 250
# Weight of the gradient in null directions of A in the decision where to truncate the integral.
_NULL_SHARE = 0.01
_FINEST_TOL, _COARSEST_TOL = 1e-12, 1e-4


class _Transformed(NamedTuple):
    """∫(e^(-t) − M)dt/t and its derivatives, for cases scaled to E Q = 1."""

    value: FloatArray  # (J,)
    by_mean: FloatArray  # (J, n)
    by_covariance: FloatArray  # (J, n, n)


def expected_log_quadratic(
    d: ArrayLike, A: ArrayLike, tol: float = 1e-8
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""E ln Q of J independent forms Q = |d + A^½ ξ|² and its gradients.

    Parameters
    ----------
    d : array (J, n)
        Means; for an interval √w·E f at its quadrature nodes, w their weights.
    A : array (J, n, n)
        Covariances, symmetric and positive semi-definite: √w·Cov f·√w.
    tol : float, default=1e-8
        Absolute error allowed in each value, between 1e-12 and 1e-4. The gradients are those of
        the quadrature sum that is returned, so a line search sees a consistent function.

    Returns
    -------
    value : array (J,)
        E ln Q; ``-inf`` where d and A are both zero (gradients there are ``nan``).
    grad_d : array (J, n)
        ∂ E ln Q / ∂d.
    grad_A : array (J, n, n)
        The symmetric derivative: dE = Σ grad_A[i, j] dA[i, j] for symmetric dA. It is infinite in
        the null directions of an A of rank one or two when d = 0, and then merely large here.

    Notes
    -----
    Cases with a small relative variance of Q (the usual ones) need no eigenvalues and are about
    five times cheaper than diffuse ones. With d = 0 and rank one the problem is ill-conditioned:
    a relative change ε of A, rounding included, moves E ln Q by about √ε.

    Examples
    --------
    >>> import numpy as np
    >>> value, _, _ = expected_log_quadratic(np.zeros((1, 2)), np.eye(2)[None])
    >>> round(float(value[0]), 8)  # chi-square on two degrees of freedom: ln 2 - Euler's constant
    0.11593152
    """
    d = np.asarray(d, dtype=np.float64)
    A = np.asarray(A, dtype=np.float64)
    tol = float(np.clip(tol, _FINEST_TOL, _COARSEST_TOL))
    n_cases, n = d.shape
    value, grad_d, grad_A = np.empty(n_cases), np.empty((n_cases, n)), np.empty((n_cases, n, n))
    for first in range(0, n_cases, _BLOCK_CASES):
        block = slice(first, first + _BLOCK_CASES)
        value[block], grad_d[block], grad_A[block] = _block(d[block], A[block], tol)
    return value, grad_d, grad_A


def _block(d: FloatArray, A: FloatArray, tol: float) -> _Transformed:
    """Scale to E Q = 1, transform, scale back."""
    mean = np.einsum("jii->j", A) + np.einsum("ji,ji->j", d, d)  # E Q
    empty = mean <= 0.0
    mean = np.where(empty, 1.0, mean)
    root = np.sqrt(mean)[:, None]
    e, B = d / root, A / mean[:, None, None]
    value, grad_e, grad_B = _transform(e, B, tol)
    # E ln Q grows by dc/c when Q is multiplied by 1 + dc/c; what the quadrature sum lacks of that
    # comes from its dependence on the scale, which makes the gradient exactly that of the sum.
    lack = 1.0 - np.einsum("jik,jik->j", grad_B, B) - 0.5 * np.einsum("ji,ji->j", grad_e, e)
    grad_d = (grad_e + 2.0 * lack[:, None] * e) / root
    np.einsum("jii->ji", grad_B)[...] += lack[:, None]
    grad_A = grad_B / mean[:, None, None]
    value += np.log(mean)
    if empty.any():
        value[empty], grad_d[empty], grad_A[empty] = -np.inf, np.nan, np.nan
    return _Transformed(value, grad_d, grad_A)


def _transform(e: FloatArray, B: FloatArray, tol: float) -> _Transformed:
    """Send each case to the cheaper of the two ways that meets the tolerance."""
    norm2 = np.einsum("jik,jik->j", B, B)
    Be = (B @ e[:, :, None])[:, :, 0]
    variance = 2.0 * norm2 + 4.0 * np.einsum("ji,ji->j", e, Be)  # Var Q / (E Q)²
    concentrated = (variance <= 1.0 / concentration_limit(tol)) & (norm2 <= _SERIES_NORM**2)
    if concentrated.all():
        return _by_series(e, B, float(np.sqrt(norm2.max(initial=0.0))), tol)
    if not concentrated.any():
        return _by_eigenvalues(e, B, tol)
    out = _Transformed(np.empty(len(e)), np.empty_like(e), np.empty_like(B))
    near, far = np.flatnonzero(concentrated), np.flatnonzero(~concentrated)
    near_part = _by_series(e[near], B[near], float(np.sqrt(norm2[near].max())), tol)
    far_part = _by_eigenvalues(e[far], B[far], tol)
    for whole, near_rows, far_rows in zip(out, near_part, far_part, strict=True):
        whole[near], whole[far] = near_rows, far_rows
    return out


def _by_eigenvalues(e: FloatArray, B: FloatArray, tol: float) -> _Transformed:
    """Any spectrum: B = V diag(λ) Vᵀ, in whose basis R is diagonal, with the panel rules."""
    lam, V = np.linalg.eigh(B)
    np.maximum(lam, 0.0, out=lam)
    c = (e[:, None, :] @ V)[:, 0, :]
    value, first, second = _panel_integrals(lam, c * c, tol)
    # ∂/∂B = V (diag first − 2 c cᵀ∘second) Vᵀ
    inner = second
    inner *= -2.0 * c[:, :, None]
    inner *= c[:, None, :]
    np.einsum("jii->ji", inner)[...] += first
    Vt = np.ascontiguousarray(V.transpose(0, 2, 1))
    return _Transformed(value, (2.0 * (first * c)[:, None, :] @ Vt)[:, 0, :], V @ inner @ Vt)


def _panel_integrals(
    lam: FloatArray, c2: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """∫(e^(-t) − M)dt/t, ∫ M ρ_i dt and ∫ t M ρ_i ρ_k dt, ρ_i = 1/(1 + 2tλ_i), over the panels.

    A case leaves when M is negligible, and nearly so t M max ρ, the slowest gradient integrand.
    """
    n_cases, n = lam.shape
    value, first, second = np.zeros(n_cases), np.zeros((n_cases, n)), np.zeros((n_cases, n, n))
    rules = panel_rules(tol)
    # Two large arrays are used again in each panel: fresh ones would cost as much as the sums.
    space = np.empty((2, n * n_cases * max(rule.t.size for rule in rules)))
    rows = np.arange(n_cases)
    for rule in rules:
        shape = (n, rows.size, rule.t.size)
        rho, scaled = (flat[: prod(shape)].reshape(shape) for flat in space)
        M = _eigen_transform(lam[rows], c2[rows], rule.t, rho)
        value[rows] += (np.exp(-rule.t) - M) @ rule.weight
        weighted = M * (rule.weight * rule.t)
        first[rows] += (rho.transpose(1, 0, 2) @ weighted[:, :, None])[:, :, 0]
        weighted *= rule.t
        np.multiply(rho, weighted, out=scaled)
        second[rows] += scaled.transpose(1, 0, 2) @ rho.transpose(1, 2, 0)
        steepest = np.maximum(1.0, _NULL_SHARE * rule.t[-1] * rho[0, :, -1])  # λ ascends
        rows = rows[M[:, -1] * steepest > 0.05 * tol]
        if rows.size == 0:
            break
    return value, first, second


def _eigen_transform(lam: FloatArray, c2: FloatArray, t: FloatArray, rho: FloatArray) -> FloatArray:
    """M (J, K) at the nodes t (K,); ρ = 1/(1 + 2tλ) is written to rho (n, J, K)."""
    one_and_lam = np.stack([np.ones_like(lam.T), lam.T], axis=-1)
    np.matmul(one_and_lam, np.stack([np.ones_like(t), 2.0 * t]), out=rho)  # 1 + 2tλ, fast
    with np.errstate(over="ignore"):  # an infinite determinant is a transform of zero
        determinant = np.multiply.reduce(rho, axis=0)
    np.reciprocal(rho, out=rho)
    exponent = (c2[:, None, :] @ rho.transpose(1, 0, 2))[:, 0, :]
    exponent *= -t
    M: FloatArray = np.exp(exponent) / np.sqrt(determinant)
    return M


def _by_series(e: FloatArray, B: FloatArray, top: float, tol: float) -> _Transformed:
    """Concentrated Q, eigenvalues of B in [0, top]: ln|I+2tB| and R as Chebyshev series in B."""
    rule = concentrated_rule(tol)
    n = e.shape[1]
    top = 2.0 ** np.ceil(np.log2(max(top, 1e-100)))  # few different ones, so that series are kept
    series = _resolvent_series(top, n, tol)
    T = _chebyshev_matrices(B, top, series.resolvent.shape[1])
    u = (T @ e[:, :, None])[..., 0].transpose(1, 0, 2)  # T_m(X) e: (J, D+1, n)
    trace = np.einsum("mjii->jm", T)
    log_det = trace @ series.log_det.T  # (J, K)
    Re = series.resolvent @ u  # (J, K, n)
    quadratic = (Re @ e[:, :, None])[:, :, 0]
    M = np.exp(-0.5 * log_det - rule.t * quadratic)
    value = (np.exp(-rule.t) - M) @ rule.weight
    weighted = M * (rule.weight * rule.t)
    grad_e = 2.0 * (weighted[:, None, :] @ Re)[:, 0, :]
    # ∫ M R dt as one series, then the rank-one part −2 ∫ t M R e eᵀR dt
    grad_B = np.einsum("jm,mjik->jik", weighted @ series.resolvent, T)
    weighted *= -2.0 * rule.t
    grad_B += (Re * weighted[:, :, None]).transpose(0, 2, 1) @ Re
    return _Transformed(value, grad_e, grad_B)


class _Series(NamedTuple):
    """Coefficients (K, D+1) of T_m(X), X = 2B/top − I, at the nodes of a rule."""

    log_det: FloatArray
    resolvent: FloatArray


@lru_cache(maxsize=1024)
def _resolvent_series(top: float, n: int, tol: float) -> _Series:
    """Chebyshev coefficients of ln(1 + 2tλ) and 1/(1 + 2tλ) on 0 <= λ <= top.

    With p + q x = 1 + 2tλ, x = 2λ/top − 1 and κ = (p − √(p² − q²))/q the coefficients are the
    geometric 2(−κ)^m/√(p² − q²) and −2(−κ)^m/m.
    """
    rule = concentrated_rule(tol)
    q = rule.t * top
    root = np.sqrt(1.0 + 2.0 * q)  # √(p² − q²), p = 1 + q
    kappa = q / (1.0 + q + root)
    degree = _series_degree(rule, kappa, top, n, tol)
    m = np.arange(1, degree + 1)
    powers = 2.0 * (-kappa[:, None]) ** m
    constant = np.log(0.5 * (1.0 + q + root))
    return _Series(
        log_det=np.column_stack([constant, -powers / m]),
        resolvent=np.column_stack([np.ones_like(q), powers]) / root[:, None],
    )


def _series_degree(rule: Rule, kappa: FloatArray, top: float, n: int, tol: float) -> int:
    """Smallest degree whose remainder changes the value by less than a tenth of the tolerance."""
    shape = 2.0 * concentration_limit(tol) - 1.0
    phi = shape + np.sqrt(shape * (shape + 1.0))
    # Two ceilings of M: from the largest eigenvalue, and the square of a single Gaussian with the
    # largest variance admitted, whose transform is the slowest to decay.
    lam = 1.0 / (1.0 + phi)
    single = np.exp(-rule.t * phi * lam / (1.0 + 2.0 * rule.t * lam))
    ceiling = np.minimum(np.exp(-rule.t / (1.0 + 2.0 * rule.t * top)), single)
    scale = rule.weight * ceiling / (1.0 - kappa)
    degree = 1
    while np.sum(scale * kappa ** (degree + 1) * (n / (degree + 1) + 2.0 * rule.t)) > 0.1 * tol:
        degree += 1
    return degree


def _chebyshev_matrices(B: FloatArray, top: float, n_terms: int) -> FloatArray:
    """T_m(2B/top − I), m = 0 … n_terms − 1: (n_terms, J, n, n)."""
    T = np.empty((n_terms, *B.shape))
    T[0] = np.eye(B.shape[1])
    np.multiply(B, 2.0 / top, out=T[1])
    T[1] -= T[0]
    twice = 2.0 * T[1]
    for m in range(2, n_terms):
        np.matmul(twice, T[m - 1], out=T[m])
        T[m] -= T[m - 2]
    return T
