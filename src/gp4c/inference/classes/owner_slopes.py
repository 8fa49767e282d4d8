r"""First derivatives of the likelihood of single subjects.

A mixture of classes weighs subjects: it needs the slopes of each subject's own term,

.. math::
    \ln \int p(\upsilon)\, \upsilon^{n} e^{-c \upsilon R} \prod_j e^{q(\upsilon r_j)}\, d\upsilon ,

where other fits need sums over subjects only. Expectations given the counts are all it takes:
∂/∂R = −c E υ, ∂/∂ ln r_j = E ∂q/∂ ln(mean), and likewise for the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.count_likelihood import CountLikelihood

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OwnerSlopes:
    """Each owner's term at S points, by the rule for climbs, with its derivatives.

    Attributes
    ----------
    value : (O, S)
    by_row : (J2, S)
        In the expected number r of each row with a remainder.
    by_owner : (O, S)
        In R.
    by_params : (P, O, S)
        In the parameters of the effects and of the law.
    """

    value: Floats
    by_row: Floats
    by_owner: Floats
    by_params: Floats


def owner_slopes(
    likelihood: CountLikelihood, row: Floats, owner: Floats, params: Floats
) -> OwnerSlopes:
    """:meth:`CountLikelihood.effect_terms` with slopes: owners that are one subject each."""
    psi, theta = likelihood.split(params)
    c, c1, _ = likelihood.law.hazard(theta)
    found = OwnerSlopes(
        -c * owner, np.zeros_like(row), np.empty_like(owner),
        np.zeros((len(params), *owner.shape)),
    )  # fmt: skip
    mean = np.ones_like(owner)
    if likelihood.effect.varies:
        _add_easy(likelihood, found, mean, owner, c, psi)
        _add_hard(likelihood, found, mean, row, owner, params)
    elif len(row):
        cells = likelihood.cells
        q = likelihood.law.remainder(row, cells.rows.count, theta)
        each, sums = cells.weight[:, None], _by_owner(likelihood)
        found.by_row[:] = each * q.slope / row
        found.value[:] += sums @ (each * q.value)
        for i, slope in enumerate(q.theta):
            found.by_params[len(psi) + i] += sums @ (each * slope)
    found.by_owner[:] = -c * mean
    for i, slope in enumerate(c1):
        found.by_params[len(psi) + i] -= slope * owner * mean
    return found


def _add_easy(
    likelihood: CountLikelihood,
    found: OwnerSlopes,
    mean: Floats,
    owner: Floats,
    c: Floats,
    psi: Floats,
) -> None:
    """Subjects with a closed form: their means and slopes in ψ."""
    easy = np.ones(len(owner), dtype=bool)
    easy[likelihood.cells.hard] = False
    if not easy.any():
        return
    power = likelihood.cells.owner_power[easy]
    for s in range(owner.shape[1]):
        at = likelihood.effect.subject_terms(power, c[s] * owner[easy, s], psi[:, s])
        found.value[easy, s], mean[easy, s] = at.value, -at.by_exposure
        found.by_params[: len(psi), easy, s] = at.by_psi


def _add_hard(
    likelihood: CountLikelihood,
    found: OwnerSlopes,
    mean: Floats,
    row: Floats,
    owner: Floats,
    params: Floats,
) -> None:
    """Subjects that are integrated numerically."""
    hard, (psi, theta) = likelihood.cells.hard, likelihood.split(params)
    if not len(hard):
        return
    at = likelihood.integral.slopes(row, owner[hard], psi, theta)
    found.value[hard], mean[hard] = at.log_value, at.effect
    found.by_row[:] = at.by_row / row
    found.by_params[: len(psi), hard] = at.by_psi
    for i, slope in enumerate(at.by_theta):
        found.by_params[len(psi) + i, hard] = likelihood.integral.sums @ slope


def _by_owner(likelihood: CountLikelihood) -> sparse.csr_array:
    """Rows with a remainder, summed by owner."""
    owner = likelihood.cells.row_owner
    n, shape = len(owner), (likelihood.cells.n_owners, len(owner))
    return sparse.csr_array((np.ones(n), (owner, np.arange(n))), shape=shape)
