r"""E ln y² of a Gaussian y in closed form: the logarithm's expectation at one point.

With w = |mean| / √(2 variance) and D Dawson's integral,

.. math::
    E \ln y^2 = \ln(2 v) + \psi(1/2) + 4\int_0^w D(z)\,dz,

the confluent form of the paper's Lemma 1. Derivation: docs/maths_exact.md.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_PSI_HALF = -float(np.euler_gamma) - 2.0 * float(np.log(2.0))  # digamma(1/2)
_FAR = 8.0  # w beyond which the asymptotic series has an error below 1e-16
_CELLS_PER_UNIT = 2  # cells of the piecewise polynomial of ∫D on 0 <= w <= _FAR
_DEGREE = 14
_TERMS = 14  # of the asymptotic series: (2k-1)!! / 128^k < 1e-15 of the leading term at k = 14


def expected_log_square(
    mean: ArrayLike, variance: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E ln y² for y ~ N(mean, variance), elementwise, with its derivatives.

    Parameters
    ----------
    mean, variance : array
        Broadcast together; variance >= 0, and 0 gives ln mean².

    Returns
    -------
    value, d_mean, d_variance : arrays of the common shape
        E ln y² and its derivatives by the mean and the variance, to about 1e-14. Where both are
        zero: ``-inf``, 0 and ``inf``, the limits for mean 0.

    Examples
    --------
    >>> value, d_mean, d_variance = expected_log_square([0.0, 3.0], [1.0, 0.0])
    >>> value.round(6).tolist()  # -Euler's constant - ln 2, and ln 9
    [-1.270363, 2.197225]
    """
    mean, variance = np.broadcast_arrays(
        np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    )
    shape = mean.shape
    mean, sd = mean.ravel(), np.sqrt(variance).ravel()
    far = np.abs(mean) > _FAR * np.sqrt(2.0) * sd
    value, d_mean, d_variance = _near(np.where(far, 0.0, mean), np.where(far, 1.0, sd))
    if far.any():
        value[far], d_mean[far], d_variance[far] = _far(mean[far], sd[far])
    return value.reshape(shape), d_mean.reshape(shape), d_variance.reshape(shape)


def _near(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Dawson's form, for w <= 8."""
    from scipy.special import dawsn

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # 1/sd² may be infinite
        w = np.abs(mean) / (np.sqrt(2.0) * sd)
        w = np.where(sd > 0.0, w, 0.0)  # here mean = sd = 0
        dawson = dawsn(w)
        value = 2.0 * np.log(sd) + (np.log(2.0) + _PSI_HALF) + 4.0 * _dawson_integral(w)
        d_mean = np.where(w > 0.0, np.sign(mean) * np.sqrt(8.0) * dawson / sd, 0.0)
        d_variance = (1.0 - 2.0 * w * dawson) / sd / sd  # Dawson's equation: D' = 1 − 2wD
    return value, d_mean, d_variance


def _far(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Asymptotic series in z = variance/mean²: ln mean² − Σ (2k−1)!! zᵏ/k, for w > 8."""
    z = np.square(sd / mean)
    k = np.arange(1, _TERMS + 1)
    odd_factorial = np.cumprod(2.0 * k - 1.0)  # (2k−1)!!
    slope = np.polynomial.polynomial.polyval(z, odd_factorial)  # Σ (2k−1)!! z^(k−1)
    tail = z * np.polynomial.polynomial.polyval(z, odd_factorial / k)
    with np.errstate(over="ignore"):  # 1/mean² may exceed the largest float
        d_mean, d_variance = 2.0 * (1.0 + z * slope) / mean, -slope / mean / mean
    return 2.0 * np.log(np.abs(mean)) - tail, d_mean, d_variance


def _dawson_integral(w: FloatArray) -> FloatArray:
    """∫₀^w D(z) dz for 0 <= w <= 8."""
    table = _dawson_table()
    position = w * _CELLS_PER_UNIT
    cell = np.minimum(position.astype(np.intp), table.shape[1] - 1)
    local = 2.0 * (position - cell) - 1.0
    total: FloatArray = table[-1][cell]
    for coefficients in table[-2::-1]:
        total *= local
        total += coefficients[cell]
    return total


@lru_cache(maxsize=1)
def _dawson_table() -> FloatArray:
    """Power coefficients (degree + 1, cells) of ∫D on each cell mapped to [-1, 1].

    Chebyshev interpolation of D, integrated: the coefficients fall below 1e-17 before _DEGREE.
    """
    from numpy.polynomial import chebyshev
    from scipy.special import dawsn

    half = 0.5 / _CELLS_PER_UNIT
    n_cells = int(_FAR * _CELLS_PER_UNIT)
    points = chebyshev.chebpts1(_DEGREE)
    to_series = np.linalg.inv(chebyshev.chebvander(points, _DEGREE - 1))
    table = np.zeros((_DEGREE + 1, n_cells))
    total = 0.0
    for cell in range(n_cells):
        series = to_series @ dawsn((2 * cell + 1 + points) * half)
        integral = half * chebyshev.chebint(series, lbnd=-1.0)
        integral[0] += total
        powers = chebyshev.cheb2poly(integral)  # drops a leading zero
        table[: powers.size, cell] = powers
        total = float(chebyshev.chebval(1.0, integral))
    return table
