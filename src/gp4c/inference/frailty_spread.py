r"""How much wider the posterior of f is because the subjects' effects are uncertain.

The variational posterior q(f) q(υ) takes the effects as known while it looks at f: with few
subjects that differ a lot, q(f) is far too sure of the level. Given f the effects integrate out
exactly, and the log-likelihood −Σ (α + m_k) ln(α + R_k(f)) is less curved than the linear term
that q sees, by

.. math::  \sum_k \frac{\alpha + m_k}{(\alpha + R_k)^2} h_k h_k^\top , \qquad
           h_k = \partial R_k / \partial m ,

in the inducing values. Taking this off the precision of q is the linear-response correction of
mean-field variational inference (Giordano, Broderick and Jordan 2018), here in closed form. In
the direction of the level it turns the variance 1/N of N Poisson events into 1/N + 1/(Kα), that
of K gamma frailties as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gp4c.design.quadrature import IntervalIntegrals
from gp4c.inference.forecasting import SubjectHistories
from gp4c.inference.posterior import Component, Posterior

Floats = NDArray[np.float64]

#: largest share of the precision in any direction that may be taken off: the variance then grows
#: twentyfold, as it would if frailties told twenty times less than Poisson counts
MOST = 0.95


def spread_by_frailty(posterior: Posterior, histories: SubjectHistories, shape: float) -> Posterior:
    """The posterior of f with the uncertainty of gamma effects, means as before.

    Parameters
    ----------
    posterior : Posterior
        Fitted with ``effect="gamma"``.
    histories : SubjectHistories
        Of the subjects of the fit, with spans.
    shape : float
        α; an infinite one changes nothing.
    """
    if not np.isfinite(shape):
        return posterior
    wider = tuple(_spread(c, posterior, histories, shape) for c in posterior.components)
    return replace(posterior, components=wider)


def _spread(
    component: Component, posterior: Posterior, histories: SubjectHistories, shape: float
) -> Component:
    """S⁻¹ − HᵀWH with S = RRᵀ is inverted as R (I − RᵀHᵀWHR)⁻¹ Rᵀ."""
    expected, slopes = _expected_and_slopes(component, posterior, histories)
    weights = (shape + histories.totals) / (shape + expected) ** 2
    scaled = np.sqrt(weights)[:, None] * (slopes @ component.root)
    lost, directions = np.linalg.eigh(scaled.T @ scaled)
    stretch = 1.0 / np.sqrt(1.0 - np.clip(lost, 0.0, MOST))
    return replace(component, root=component.root @ (directions * stretch))


def _expected_and_slopes(
    component: Component, posterior: Posterior, histories: SubjectHistories
) -> tuple[Floats, Floats]:
    """R_k (K,) and its derivatives by the mean of the inducing values, (K, M).

    R = e · rate · ∫ E f², so that ∂R/∂m = e · rate · 2√γ ∫ E f · b.
    """
    low, high = posterior.unit(histories.span_start), posterior.unit(histories.span_stop)
    grid = component.grid(0.0, 1.0)
    integrals = IntervalIntegrals(grid, low, high)
    mean, variance = component.moments(grid.nodes)
    expected = posterior.rate * integrals.apply(mean**2 + variance)
    features = component.prior.features(grid.nodes)
    slopes = integrals.apply(mean[:, None] * features)
    slopes = 2 * posterior.rate * np.sqrt(component.variance) * slopes
    return histories.expected(expected[None])[0], histories.expected(slopes.T).T
