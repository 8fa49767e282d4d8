r"""Events that come in bursts: how often a burst comes, and how many events it has.

Bursts are a Poisson process, and their sizes follow Fisher's logarithmic law with parameter
p = φ/(1 + φ):

.. math:: P(S = s) = \frac{p^s}{s \ln(1 + \varphi)}, \qquad
          E S = \frac{\varphi}{\ln(1 + \varphi)} .

With ln(1 + φ)/φ bursts per event of the Poisson process that they replace, counts are negative
binomial with the same mean and 1 + φ times the variance (Quenouille 1949).
"""

from __future__ import annotations

import numpy as np

from gp4c.data.subjects import FloatArray, IndexArray
from gp4c.exceptions import PanelDataError

#: the largest φ: bursts of 5 million events on average, far beyond any panel, and within integers
_LARGEST = 1e8


def check_bursts(bursts: float | None) -> float:
    """φ as a number; 0 for None."""
    if bursts is None:
        return 0.0
    number = isinstance(bursts, int | float | np.number) and not isinstance(bursts, bool)
    if not number or not 0 <= bursts <= _LARGEST:
        raise PanelDataError(
            f"bursts must be φ, a number from 0 to {_LARGEST:g} (variance of a count over its "
            f"mean, less 1); it is {bursts!r}"
        )
    return float(bursts)


def bursts_per_event(phi: float) -> float:
    """ln(1 + φ)/φ; 1 without bursts."""
    return float(np.log1p(phi) / phi) if phi > 0 else 1.0


def spread_bursts(
    time: FloatArray, n_bursts: IndexArray, phi: float, rng: np.random.Generator
) -> tuple[FloatArray, IndexArray]:
    """Put as many events at the time of each burst as it has.

    Parameters
    ----------
    time : (n_total,)
        Times of bursts, sorted by subject, then time.
    n_bursts : (n_subjects,)
    phi : float
    rng : Generator

    Returns
    -------
    time : (n_events,)
        Times of events in the same order; those of a burst are equal.
    n_events : (n_subjects,)
    """
    size = rng.logseries(phi / (1 + phi), len(time))
    before = np.concatenate([[0], np.cumsum(size)])
    last = np.cumsum(n_bursts)
    return np.repeat(time, size), before[last] - before[last - n_bursts]
