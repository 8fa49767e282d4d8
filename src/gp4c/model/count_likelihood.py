r"""The likelihood of counts given the curve: for many draws at once, and with derivatives.

With I_j = ∫ f² over a counted cell, r_j the expected number of a row with a remainder, R_k that of
all that was seen of a subject, n_k its power and c the law's hazard (docs/maths.md, section on the
default engine),

.. math::
    \ln p = \sum_j n_j \ln I_j + s(\theta) + \sum_k \ln \int p(\upsilon)\, \upsilon^{n_k}
            e^{-c \upsilon R_k} \prod_j e^{q(\upsilon r_j)} \, d\upsilon .

Subjects without a remainder have a closed form if the law of effects is conjugate. The others need
one integral each, over y = ln υ, by the trapezoid rule around its mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gp4c.model.cells import Cells, Expansion
from gp4c.model.effect_integral import EffectIntegral, EffectRows
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.model.laws.effects import ClosedForm

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: integrals below this stand for cells where a curve is zero: their logarithms stay finite
TINY = 1e-30
#: f² below this has the derivatives of expansions there, which would be infinite at 0
SMALL = 1e-9


@dataclass(frozen=True)
class HardTerms:
    """How derivatives of the subjects' integrands vary with ln υ, and E ∂²/∂r∂R.

    Each is E φ_k(ln υ) · derivative, with the polynomials φ_k of `Nodes.polynomials`: the
    covariance of two derivatives is the sum over k of the products.

    Attributes
    ----------
    by_owner : (K, H, C)
    by_row : (K, J2, C)
    by_params : (K, P, H, C)
    row_and_owner : (J2, C)
        E ∂²/∂r∂R.
    """

    by_owner: Floats
    by_row: Floats
    by_params: Floats
    row_and_owner: Floats


@dataclass
class LikelihoodTerms:
    """ln p and its derivatives in I (J, C), r (J2, C), R (O, C) and the parameters (P, C).

    The Hessian in these is diagonal, but for `hard`, whose covariance over nodes is added.
    """

    value: Floats
    by_cell: Floats
    by_cell_twice: Floats
    by_row: Floats
    by_row_twice: Floats
    by_owner: Floats
    by_owner_twice: Floats
    by_params: Floats
    by_params_twice: Floats
    row_and_params: Floats
    owner_and_params: Floats
    hard: HardTerms | None = None
    dense: Floats | None = None  # (C, J + P, J + P): more of the Hessian in I and the parameters

    @classmethod
    def of_powers(
        cls, power: Floats, cell: Floats, row: Floats, owner: Floats, params: Floats
    ) -> Self:
        """Σ n ln I, to which the other terms are added."""
        cell, n = np.maximum(cell, TINY), power[:, None]
        return cls(
            value=power @ np.log(cell),
            by_cell=n / cell,
            by_cell_twice=-n / cell**2,
            by_row=np.zeros_like(row),
            by_row_twice=np.zeros_like(row),
            by_owner=np.zeros_like(owner),
            by_owner_twice=np.zeros_like(owner),
            by_params=np.zeros_like(params),
            by_params_twice=np.zeros((len(params), *params.shape)),
            row_and_params=np.zeros((len(params), *row.shape)),
            owner_and_params=np.zeros((len(params), *owner.shape)),
        )

    def add_expansion(self, expansion: Expansion, cell: Floats, params: Floats) -> None:
        """Add an expansion in functions of I and the parameters."""
        cell, n = np.maximum(cell, SMALL), len(cell)
        self.value = self.value + expansion(cell, params)
        each = [expansion.derivatives(*pair) for pair in zip(cell.T, params.T, strict=True)]
        gradient = np.array([first for first, _ in each]).T
        self.by_cell += gradient[:n]
        self.by_params += gradient[n:]
        self.dense = np.array([second for _, second in each])


@dataclass(frozen=True)
class CountLikelihood:
    """The likelihood of cells under a law of counts and a law of subject effects.

    Attributes
    ----------
    cells : Cells
    law : CountLaw
    effect : SubjectEffect
    owner_weight : (O,), optional
        Makes the sum over owners, one subject each, a weighted one. Sums that the cells hold
        already (`power`, `times`, `constant`) must have the same weights.
    """

    cells: Cells
    law: CountLaw
    effect: SubjectEffect
    owner_weight: Floats | None = None

    @property
    def n_params(self) -> int:
        """Parameters: those of the effects, then those of the law."""
        return len(self.effect.parameters) + len(self.law.parameters)

    def split(self, params: Floats) -> tuple[Floats, Floats]:
        """ψ of the effects and θ of the law."""
        n = len(self.effect.parameters)
        return params[:n], params[n:]

    def log_prior(self, params: Floats) -> Floats:
        """Log density of the parameters' priors, (S,)."""
        both = (*self.effect.parameters, *self.law.parameters)
        total = np.zeros(params.shape[1:])
        for parameter, value in zip(both, params, strict=True):
            total = total + parameter.log_density(value)
        return total

    # -- values -------------------------------------------------------------------------------

    def value(self, cell: Floats, row: Floats, owner: Floats, params: Floats) -> Floats:
        """ln p for every draw: I (J, S), r (J2, S), R (O, S), parameters (P, S) → (S,)."""
        cells, (psi, theta) = self.cells, self.split(params)
        if cells.expansion is not None:
            return cells.expansion(cell, params)
        c = self.law.hazard(theta)[0]
        total = cells.constant + self.law.static(cells.counts, cells.times, theta)[0]
        total = total + cells.power @ np.log(np.maximum(cell, TINY))
        if not self.effect.varies:
            total = total - c * self._total(owner)
            if len(row):
                total = total + self._row_weight @ self.law.remainder_value(
                    row, cells.rows.count, theta
                )
            return np.asarray(total)
        if len(self._easy):
            exposure = c * (owner if not len(cells.hard) else owner[self._easy])
            total = total + self.effect.closed_form(self._closed, exposure, psi)
        if len(cells.hard):
            each = self.integral.value(row, owner[cells.hard], psi, theta)
            total = total + self._hard_total(each)
        return np.asarray(total)

    def effect_terms(self, row: Floats, owner: Floats, params: Floats) -> Floats:
        """ln of each owner's integral over its effect, (O, S); owners that are one subject each."""
        cells, (psi, theta) = self.cells, self.split(params)
        exposure = self.law.hazard(theta)[0] * owner
        if not self.effect.varies:
            result = -exposure
            if len(row):
                q = self.law.remainder_value(row, cells.rows.count, theta)
                np.add.at(result, cells.row_owner, cells.weight[:, None] * q)
            return np.asarray(result)
        result, easy = np.empty_like(owner), self._easy
        result[easy] = self.effect.closed_form_each(cells.owner_power[easy], exposure[easy], psi)
        if len(cells.hard):
            result[cells.hard] = self.integral.value(row, owner[cells.hard], psi, theta)
        return result

    def effect_means(self, row: Floats, owner: Floats, params: Floats) -> Floats:
        """E υ of each owner given its counts, (O, S)."""
        cells, (psi, theta) = self.cells, self.split(params)
        if not self.effect.varies:
            return np.ones_like(owner)
        result = np.empty_like(owner)
        exposure = self.law.hazard(theta)[0] * owner[self._easy]
        power = (cells.owner_power / cells.number)[self._easy][:, None]
        result[self._easy] = self.effect.mean(psi, power, exposure)
        if len(cells.hard):
            result[cells.hard] = self.integral.mean(row, owner[cells.hard], psi, theta)
        return result

    def effect_draws(
        self,
        row: Floats,
        owner: Floats,
        params: Floats,
        rng: np.random.Generator,
        times: int = 1,
    ) -> Floats:
        """υ of each owner given its counts, `times` for every draw of the curve, (O, S · times)."""
        return self.effects(row, owner, params, rng, times)[0]

    def effects(
        self,
        row: Floats,
        owner: Floats,
        params: Floats,
        rng: np.random.Generator,
        times: int = 1,
    ) -> tuple[Floats, Floats]:
        """The same, and the means of the laws that they are drawn from, (O, S)."""
        cells, (psi, theta) = self.cells, self.split(params)
        drawn, mean = np.ones((len(owner), owner.shape[1] * times)), np.ones_like(owner)
        if not self.effect.varies:
            return drawn, mean
        exposure = self.law.hazard(theta)[0] * owner[self._easy]
        power = cells.owner_power[self._easy][:, None]
        mean[self._easy] = self.effect.mean(psi, power, exposure)
        every, each = np.repeat(psi, times, axis=1), np.repeat(exposure, times, axis=1)
        drawn[self._easy] = self.effect.draw(every, power, each, rng)
        if len(cells.hard):
            found = self.integral.draw(row, owner[cells.hard], psi, theta, rng, times)
            drawn[cells.hard], mean[cells.hard] = found
        return drawn, mean

    # -- derivatives ----------------------------------------------------------------------------

    def terms(
        self, cell: Floats, row: Floats, owner: Floats, params: Floats, *, curved: bool = True
    ) -> LikelihoodTerms:
        """ln p with derivatives at C points at once; the first ones only, unless `curved`."""
        cells, (psi, theta) = self.cells, self.split(params)
        total = LikelihoodTerms.of_powers(cells.power, cell, row, owner, params)
        if cells.expansion is not None:
            total.add_expansion(cells.expansion, cell, params)
            return total
        static, first, second = self.law.static(cells.counts, cells.times, theta)
        law = slice(len(psi), len(params))
        total.value = total.value + cells.constant + static
        total.by_params[law] += first
        total.by_params_twice[law, law] += second
        if not self.effect.varies:
            self._add_without_effects(total, row, owner, theta)
            return total
        if len(self._easy):
            self._add_closed_forms(total, owner[self._easy], params)
        if len(cells.hard):
            add = self._add_integrals if curved else self._add_integral_slopes
            add(total, row, owner[cells.hard], params)
        return total

    def _add_without_effects(
        self, total: LikelihoodTerms, row: Floats, owner: Floats, theta: Floats
    ) -> None:
        """Add −c R + Σ q(r)."""
        weight = self._row_weight
        c, c1, c2 = self.law.hazard(theta)
        exposed = self._total(owner)
        total.value = total.value - c * exposed
        total.by_owner[:] = -c
        total.by_params -= c1 * exposed
        total.by_params_twice -= c2 * exposed
        total.owner_and_params[:] = -c1[:, None]
        if self.owner_weight is not None:
            total.by_owner *= self.owner_weight[:, None]
            total.owner_and_params *= self.owner_weight[:, None]
        if len(row):
            q = self.law.remainder(row, self.cells.rows.count, theta)
            each = weight[:, None]
            total.value = total.value + weight @ q.value
            total.by_row[:] = each * q.slope / row
            total.by_row_twice[:] = each * (q.curve - q.slope) / row**2
            total.row_and_params[:] = each * q.cross / row
            total.by_params += np.einsum("j,pjc->pc", weight, q.theta)
            total.by_params_twice += np.einsum("j,pqjc->pqc", weight, q.theta_theta)

    def _add_closed_forms(self, total: LikelihoodTerms, owner: Floats, params: Floats) -> None:
        """Add ln ∫ p(υ) υⁿ e^{−Eυ} dυ; the law's θ enters through E = c(θ) R."""
        psi, theta = self.split(params)
        effect, law, easy = slice(0, len(psi)), slice(len(psi), len(params)), self._easy
        c, c1, c2 = self.law.hazard(theta)
        at = self.effect.closed_form_terms(self._closed, c * owner, psi)
        by_e, twice = at.by_exposure, at.by_exposure_twice
        total.value = total.value + at.value
        total.by_owner[easy] = c * by_e
        total.by_owner_twice[easy] = c**2 * twice
        total.by_params[effect] += at.by_psi
        total.by_params[law] += c1 * (by_e * owner).sum(axis=0)
        total.by_params_twice[effect, effect] += at.by_psi_twice
        total.by_params_twice[law, law] += c2 * (by_e * owner).sum(axis=0)
        total.by_params_twice[law, law] += c1[:, None] * c1 * (twice * owner**2).sum(axis=0)
        both = np.einsum("qc,poc,oc->pqc", c1, at.crossed, owner)
        total.by_params_twice[effect, law] += both
        total.by_params_twice[law, effect] += both.transpose(1, 0, 2)
        total.owner_and_params[effect, easy] = c * at.crossed
        total.owner_and_params[law, easy] = c1[:, None] * (by_e + c * owner * twice)

    def _add_integrals(
        self, total: LikelihoodTerms, row: Floats, owner: Floats, params: Floats
    ) -> None:
        """Add the numerical integrals over ln υ, with derivatives at fixed z = ln(υ R).

        Level and effect enter through their product alone, so that with z fixed derivatives along
        the level stay small (docs/maths.md, section on the default engine).
        """
        psi, theta = self.split(params)
        effect, law, hard = slice(0, len(psi)), slice(len(psi), len(params)), self.cells.hard
        psi_n, owner_n = psi[:, :, None], owner[:, :, None]
        power = self.cells.owner_power[hard][:, None, None]
        _, c1, c2 = self.law.hazard(theta)
        at = self.integral.at_nodes(row, owner, psi, theta)
        y, q, v = at.y, at.remainder, np.exp(at.y)
        number = None if self.owner_weight is None else self.owner_weight[hard]
        p = at.weight if number is None else at.weight * number[:, None, None]
        total.value = total.value + self._hard_total(at.log_value)
        # rows
        p_row = p[self.integral.row_subject]
        slope, curve = (p_row * q.slope).sum(axis=2), (p_row * q.curve).sum(axis=2)
        crossed = (p_row * q.cross).sum(axis=3)
        total.by_row += slope / row
        total.by_row_twice += (curve - slope) / row**2
        total.row_and_params[law] += crossed / row
        # what was seen of subjects
        first, second = self.effect.derivatives(y, psi_n)
        node_owner = -(first + power + self.integral.total(q.slope)) / owner_n
        total.by_owner[hard] = (p * node_owner).sum(axis=2)
        twice = (p * (first + second + power)).sum(axis=2) + self.integral.sums @ (slope + curve)
        total.by_owner_twice[hard] = twice / owner**2
        # parameters
        by_psi, by_psi_twice, y_and_psi = self.effect.parameter_derivatives(y, psi_n)
        exposed = owner_n * v
        by_theta = np.array([self.integral.total(t) for t in q.theta]).reshape(-1, *p.shape)
        node_params = np.concatenate([by_psi, by_theta - c1[:, None, :, None] * exposed])
        total.by_params += (p * node_params).sum(axis=(1, 3))
        total.by_params_twice[effect, effect] += (p * by_psi_twice).sum(axis=(2, 4))
        total.by_params_twice[law, law] += (p_row * q.theta_theta).sum(axis=(2, 4))
        total.by_params_twice[law, law] -= c2 * (p * exposed).sum(axis=(0, 2))
        total.owner_and_params[effect, hard] = -(p * y_and_psi).sum(axis=3) / owner
        by_subject = np.array([self.integral.sums @ x for x in crossed]).reshape(-1, *owner.shape)
        total.owner_and_params[law, hard] = -by_subject / owner
        along = (
            at.polynomials if number is None else at.polynomials * np.sqrt(number)[:, None, None]
        )
        subject = self.integral.row_subject
        by_row = [np.einsum("jcn,jcn->jc", each[subject], q.slope) / row for each in along]
        total.hard = HardTerms(
            by_owner=np.einsum("khcn,hcn->khc", along, node_owner),
            by_row=np.array(by_row),
            by_params=np.einsum("khcn,phcn->kphc", along, node_params),
            row_and_owner=-curve / (row * owner[subject]),
        )

    def _add_integral_slopes(
        self, total: LikelihoodTerms, row: Floats, owner: Floats, params: Floats
    ) -> None:
        """The same without second derivatives, at fixed υ: a small part of the work."""
        psi, theta = self.split(params)
        c, c1, _ = self.law.hazard(theta)
        at = self.integral.slopes(row, owner, psi, theta)
        total.value = total.value + at.log_value.sum(axis=0)
        total.by_row += at.by_row / row
        total.by_owner[self.cells.hard] = -c * at.effect
        total.by_params[: len(psi)] += at.by_psi.sum(axis=1)
        exposed = (owner * at.effect).sum(axis=0)
        total.by_params[len(psi) :] += at.by_theta.sum(axis=1) - c1 * exposed

    # -- what does not change -------------------------------------------------------------------

    @cached_property
    def _easy(self) -> Indices:
        """Owners with a closed form."""
        easy = np.ones(self.cells.n_owners, dtype=bool)
        easy[self.cells.hard] = False
        return np.flatnonzero(easy)

    @cached_property
    def _closed(self) -> ClosedForm:
        cells = self.cells
        if self.owner_weight is not None:
            weight, power = self.owner_weight[self._easy], cells.owner_power[self._easy]
            return ClosedForm(weight, weight * power, power, weight)
        return ClosedForm(
            cells.number[self._easy], cells.owner_power[self._easy], cells.powers,
            cells.power_times,
        )  # fmt: skip

    @cached_property
    def _row_weight(self) -> Floats:
        """Weights of the rows with a remainder."""
        weight = self.cells.weight
        own = self.owner_weight
        return weight if own is None else weight * own[self.cells.row_owner]

    def _total(self, owner: Floats) -> Floats:
        """Σ over owners of (O, S), weighted if they have weights."""
        return np.asarray(
            owner.sum(axis=0) if self.owner_weight is None else self.owner_weight @ owner
        )

    def _hard_total(self, each: Floats) -> Floats:
        """The same over hard subjects, of (H, S)."""
        weight = self.owner_weight
        return np.asarray(each.sum(axis=0) if weight is None else weight[self.cells.hard] @ each)

    @cached_property
    def integral(self) -> EffectIntegral:
        """The integrals over the effects of hard subjects."""
        return EffectIntegral(EffectRows.of(self.cells), self.law, self.effect)
