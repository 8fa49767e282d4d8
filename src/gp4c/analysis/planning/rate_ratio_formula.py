r"""Sample size for a ratio of rates by the negative-binomial formula: the first guess.

A subject with μ expected events has a total of variance μ(1 + φ) + vμ². The best weights give the
logarithm of an arm's rate the information

.. math::  I = n\, \mathrm E\Bigl[\frac{\mu^2}{\mu (1 + \varphi) + v \mu^2}\Bigr]
             = n\, \mathrm E\Bigl[\frac{\mu}{1 + \varphi + v \mu}\Bigr] ,

the mean being over lengths of follow-up; if all are equal, 1/I = ((1 + φ)/μ + v)/n. The log ratio
has variance 1/I₁ + 1/I₂, and a Wald test of it has the power

.. math::  \Phi\bigl(|\ln r| / \sqrt V - z_{1-\alpha/2}\bigr)
         + \Phi\bigl(-|\ln r| / \sqrt V - z_{1-\alpha/2}\bigr) .

Strata are combined with inverse variances. Derivation: ``docs/maths_power.md``.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.planning.trial_design import TrialDesign

Floats = NDArray[np.float64]
_NORMAL = NormalDist()


def formula_power(design: TrialDesign, n_per_arm: float, ratio: float, alpha: float) -> float:
    """Power of the Wald test with `n_per_arm` subjects in the first arm."""
    critical = _NORMAL.inv_cdf(1 - alpha / 2)
    away = abs(math.log(ratio)) / math.sqrt(_unit_variance(design, ratio) / n_per_arm)
    return _NORMAL.cdf(away - critical) + _NORMAL.cdf(-away - critical)


def formula_size(design: TrialDesign, ratio: float, alpha: float, target: float) -> float:
    """Subjects of the first arm for the power `target`, not rounded; the other tail is ignored."""
    reach = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(target)
    return _unit_variance(design, ratio) * (reach / math.log(ratio)) ** 2


def expected_events(design: TrialDesign, n_per_arm: int, ratio: float) -> float:
    """Events that a trial is expected to count."""
    first, second = design.arms(n_per_arm)
    chance, reached = observed_means(design)
    level = float(np.mean(design.strata))
    return float(chance @ reached) * level * (first + ratio * second)


def observed_means(design: TrialDesign) -> tuple[Floats, Floats]:
    """Chance of each last visit, the first being none at all, and Λ up to it."""
    chance = np.full(design.visits + 1, design.drop_out / design.visits)
    chance[-1] = 1.0 - design.drop_out
    return chance, np.append(0.0, design.expected(design.visit_times()))


def _unit_variance(design: TrialDesign, ratio: float) -> float:
    """Variance of the log ratio with one subject in the first arm."""
    chance, reached = observed_means(design)
    share = 1.0 / len(design.strata)
    together = 0.0
    for level in design.strata:
        means = np.outer([1.0, ratio], level * reached)
        inside = means / (1.0 + design.phi + design.frailty_variance * means)
        first, second = inside @ chance * share
        together += 1.0 / (1.0 / first + 1.0 / (design.allocation * second))
    return float(1.0 / together)
