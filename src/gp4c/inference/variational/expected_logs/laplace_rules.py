"""Quadrature rules for integrals of Laplace transforms: ∫₀^∞ (e^(-t) − M(t)) dt/t and its kin.

M is the transform of a non-negative Q with E Q = 1. A rule is a pair of arrays (t, weight) with
the factor 1/t inside the weight: ∫ g(t) dt/t ≈ Σ weight · g(t). Derivation: docs/maths_exact.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gp4c.model.quadrature import gauss_legendre

FloatArray = NDArray[np.float64]

# Panels of the general rule in y = ln t, after the panel 0 <= t <= 1. The number of Gauss-Legendre
# nodes is base + slope * (decimal digits), fitted over 8000 spectra, among them sudden drops of M
# anywhere behind a slow decay (a mean in a direction of tiny variance); the adversarial study in
# benchmarks/log_quadratic.py confirms it on other spectra.
_PANELS = (
    # y from, y to, base, slope
    (0.0, 2.5, 1.5, 0.85),
    (2.5, 6.0, -1.5, 1.5),
    (6.0, 12.0, -3.3, 2.25),
    (12.0, 22.0, -10.3, 3.45),
    (22.0, 32.0, -14.0, 3.1),
)
_LAST_PANEL = (32.0, -66.0, 8.5)  # y from, base, slope; its end depends on the tolerance


class Rule(NamedTuple):
    """Nodes t (K,) and weights (K,) of ∫ g(t) dt/t."""

    t: FloatArray
    weight: FloatArray


@lru_cache(maxsize=32)
def panel_rules(tol: float) -> tuple[Rule, ...]:
    """Return consecutive panels covering (0, ∞) for any spectrum; stop when M is negligible.

    The first covers 0 < t < e^6, which every case needs: Gauss-Legendre on 0 <= t <= 1 in t itself,
    where (e^(-t) − M)/t is smooth, and then, like all others, in ln t. The last one ends where
    the slowest transform of all, t^(-1/2), leaves a tail below the tolerance.
    """
    digits = 0.6 - float(np.log10(tol))  # a quarter of the tolerance for each panel
    t, weight = _legendre(0.0, 1.0, digits - 1.0)
    panels = [Rule(t, weight / t)]
    for start, stop, base, slope in _PANELS:
        panels.append(_log_panel(start, stop, base + slope * digits))
    start, base, slope = _LAST_PANEL
    stop = 7.0 - 2.0 * float(np.log(tol))
    if stop > start:
        panels.append(_log_panel(start, stop, base + slope * digits))
    first = Rule(*(np.concatenate(parts) for parts in zip(*panels[:3], strict=True)))
    return (first, *panels[3:])


@lru_cache(maxsize=32)
def concentrated_rule(tol: float, shape: float = 10.0) -> Rule:
    """Return the Gauss-Jacobi rule for transforms close to that of a gamma variable.

    In s = t/(shape + t) the gamma transform (1 + t/shape)^(-shape) is (1 − s)^shape, so with
    weight (1 − s)^(shape − 1) what is left of the integrand is nearly a polynomial whenever
    Var Q is below about 1/shape; see ``concentration_limit``.
    """
    from scipy.special import roots_jacobi

    n_nodes = 14 + max(0, int(np.ceil(-8.0 - np.log10(tol))))
    node, weight = roots_jacobi(n_nodes, shape - 1.0, 0.0)
    s = 0.5 * (1.0 + node)
    # Jacobi's weight lives on (-1, 1): the map to (0, 1) divides by 2^shape.
    return Rule(shape * s / (1.0 - s), weight / (2.0 * (1.0 - s)) ** shape / s)


def concentration_limit(tol: float) -> float:
    """Return the smallest (E Q)²/Var Q for which ``concentrated_rule`` meets the tolerance.

    The rule misses the mass of Q near zero, at worst e^(-φ/2) ~ e^(-2 (E Q)²/Var Q) for the square
    of a single Gaussian.
    """
    return 13.0 + max(0.0, -8.0 - float(np.log10(tol)))


def _legendre(start: float, stop: float, n_nodes: float) -> tuple[FloatArray, FloatArray]:
    node, weight = gauss_legendre(max(3, int(np.ceil(n_nodes))))
    half = 0.5 * (stop - start)
    return start + half * (1.0 + node), half * weight


def _log_panel(start: float, stop: float, n_nodes: float) -> Rule:
    y, weight = _legendre(start, stop, n_nodes)
    return Rule(np.exp(y), weight)
