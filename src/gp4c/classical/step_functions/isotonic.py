"""Isotonic regression and the pseudo-likelihood estimate it solves (NPMPLE)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]


def nondecreasing_fit(values: Floats, weights: Floats) -> Floats:
    r"""Weighted isotonic regression by pooling adjacent violators, O(L).

    It minimises :math:`\sum_l w_l (y_l - \Lambda_l)^2` and, with the same solution (Barlow et
    al. 1972), maximises the Poisson form :math:`\sum_l w_l (y_l \log \Lambda_l - \Lambda_l)`
    over :math:`\Lambda_1 \le \dots \le \Lambda_L`.

    Parameters
    ----------
    values, weights : (L,)
        Weights must be positive.

    Returns
    -------
    fitted : (L,)
    """
    if len(values) == 0:
        return np.zeros(0)
    return np.asarray(isotonic_regression(values, weights=weights).x, dtype=np.float64)


def fenchel_residual(gradient: Floats, fitted: Floats, scale: float) -> float:
    r"""Distance from the optimality conditions of a nondecreasing, non-negative fit.

    At the maximum of a differentiable function over :math:`0 \le \Lambda_1 \le \dots \le
    \Lambda_L` with gradient g: :math:`\sum_{l \ge k} g_l \le 0` for every k and
    :math:`\sum_l g_l \Lambda_l = 0`. Both are divided by `scale`, the number of events, so that
    the residual has no unit.
    """
    if len(gradient) == 0 or scale <= 0:
        return 0.0
    tails = np.cumsum(gradient[::-1])
    above = float(fitted.max()) * max(float(tails.max()), 0.0)
    return max(above, abs(float(gradient @ fitted))) / scale
