r"""Goodness of fit of a rate with a formula: Pearson's statistic over classes of time.

.. math:: X^2 = \sum_c (O_c - E_c)^2 / E_c

Classes are runs of intervals in the order of their middles, each with 5 or more expected events.
Under the Poisson law X² is χ² with classes − (parameters of the rate) degrees of freedom. With
frailty or bursts counts vary more, and X² is compared with counts drawn from the fit, to each of
which the rate's parameters are fitted anew, those of the laws being held (docs/maths_growth.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc

from gp4c.classical.parametric.rate_fit import LawFit, RateData, climb
from gp4c.classical.visit_cells import Floats, Indices, group_sums
from gp4c.exceptions import PanelDataError
from gp4c.plain import p_words

if TYPE_CHECKING:
    import pandas as pd

#: least expected events of a class, and most classes
_LEAST, _MOST_CLASSES = 5.0, 20


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """Pearson's test of a curve.

    Attributes
    ----------
    statistic, p_value : float
    degrees : int
        Classes less parameters of the rate.
    method : str
        "chi-square", or "parametric bootstrap" where the law is not Poisson.
    table : pandas.DataFrame
        ``start``, ``stop`` (of the rows in the class), ``observed``, ``expected``.
    """

    statistic: float
    p_value: float
    degrees: int
    method: str
    table: pd.DataFrame

    def __str__(self) -> str:
        verdict = "speak against" if self.p_value < 0.05 else "are compatible with"
        return (
            f"The data {verdict} the curve: Pearson's X² = {self.statistic:.1f} over "
            f"{len(self.table)} classes of time, {p_words(self.p_value)} ({self.method})."
        )

    __repr__ = __str__


def pearson(data: RateData, fit: LawFit, n_bootstraps: int, random_state: int) -> GoodnessOfFit:
    """Test a fit; the law of the counts says how."""
    import pandas as pd

    rows, means = data.rows, data.means(fit.x)
    expected = np.exp(means.value)
    classes = _classes((rows.start + rows.stop) / 2.0, expected)
    n = int(classes.max()) + 1
    degrees = n - fit.n_rate
    if degrees < 1:
        raise PanelDataError(
            f"the panel has {n} classes of time with {_LEAST:g} expected events or more; a test "
            f"of this curve takes {fit.n_rate + 1}"
        )
    statistic = _statistic(classes, rows.count, expected)
    order = np.argsort(classes, kind="stable")
    first = np.searchsorted(classes[order], np.arange(n))
    table = pd.DataFrame(
        {
            "start": np.minimum.reduceat(rows.start[order], first),
            "stop": np.maximum.reduceat(rows.stop[order], first),
            "observed": group_sums(classes, rows.count, n),
            "expected": group_sums(classes, expected, n),
        }
    )
    if fit.law.one_by_one and not fit.effect.varies:
        p_value, method = float(chdtrc(degrees, statistic)), "chi-square"
    else:
        drawn = _drawn(data, fit, classes, n_bootstraps, np.random.default_rng(random_state))
        p_value = (1 + int((drawn >= statistic).sum())) / (1 + n_bootstraps)
        method = f"parametric bootstrap, {n_bootstraps} samples"
    return GoodnessOfFit(statistic, p_value, degrees, method, table)


def _classes(middle: Floats, expected: Floats) -> Indices:
    """The class of each row: rows of one middle stay together, whoever they belong to."""
    middles, place = np.unique(middle, return_inverse=True)
    each = group_sums(place, expected, len(middles))
    enough = max(_LEAST, each.sum() / _MOST_CLASSES)
    classes, so_far = np.zeros(len(middles), dtype=np.intp), 0.0
    for k, more in enumerate(each):
        if k:
            classes[k] = classes[k - 1] + (so_far >= enough)
        so_far = more if k and classes[k] > classes[k - 1] else so_far + more
    if so_far < _LEAST and classes[-1] > 0:  # too few at the end: with those before
        classes[classes == classes[-1]] -= 1
    return classes[place]


def _statistic(classes: Indices, count: Floats, expected: Floats) -> float:
    n = int(classes.max()) + 1
    e = group_sums(classes, expected, n)
    return float(((group_sums(classes, count, n) - e) ** 2 / e).sum())


def _drawn(
    data: RateData, fit: LawFit, classes: Indices, size: int, rng: np.random.Generator
) -> Floats:
    """Statistics of counts drawn from the fit, the rate fitted anew."""
    rows, expected = data.rows, np.exp(data.means(fit.x).value)
    nobody = np.zeros(rows.n_subjects)
    rate = np.arange(fit.n_rate)
    found = np.zeros(size)
    for k in range(size):
        effect = fit.effect.draw(fit.psi, nobody, nobody, rng)
        count = fit.law.draw(effect[rows.subject] * expected, fit.theta, rng).astype(float)
        if not count.any():
            continue
        again = replace(data, rows=replace(rows, count=count))
        refit = climb(again, fit.law, fit.effect, fit.x, 1e-6, rate)
        mean = np.exp(again.means(refit.x).value)
        found[k] = _statistic(classes, count, mean)
    return found
