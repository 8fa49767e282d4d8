r"""Effects of several types of events in one subject: the law of each stays, normal scores depend.

υ_e = F_e⁻¹(Φ(z_e)) has the law of effects F_e of its type whatever the dependence, and the scores
share one factor (docs/maths_types.md):

.. math:: z_e = l_e s + \sqrt{1 - l_e^2}\, w_e, \qquad s, w_e \sim \mathcal N(0, 1),

so that scores of the types e and f have the correlation l_e l_f; of two types one may be the factor
itself. With g_e(υ) the likelihood of a
subject's counts of type e given its effect, the counts of all types together have, relative to
independent effects, the probability

.. math::
    \int \varphi(s) \prod_e \frac{h_e(s)}{h_e^0}\, ds, \qquad
    h_e(s) = \int N(z; l_e s, 1 - l_e^2)\, g_e(\upsilon(z))\, dz, \qquad
    h_e^0 = \int \varphi(z)\, g_e(\upsilon(z))\, dz :

a one-dimensional integral of products of one-dimensional integrals, for any number of types. All
are trapezoid sums on one grid of scores; a subject whose score the counts pin down more closely
than the grid has a normal law of z instead, for which h_e/h_e⁰ is a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp4c.model.cells import Cells
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.effect_integral import EffectIntegral, EffectRows, Rule

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Singles = NDArray[np.float32]

#: nodes of scores, and their distance: kernels N(·; ls, 1 − l²) with l ≤ 0.98 are resolved
STEP = 0.3
NODES: Floats = STEP * np.arange(-20.0, 21.0)
PRIOR: Floats = STEP * np.exp(-(NODES**2) / 2) / np.sqrt(2 * np.pi)
#: largest loading: beyond it the grid is too coarse, and no data tell such correlations from 1
LARGEST = 0.98
#: deviation of a score, in steps, below which the law of z is taken as normal
_NARROW = 0.7
#: rule for the moments of such a score
_NEAR = Rule.stretched(0.8, -4.8, 4.8, 0.1)
#: numbers held at once
_CHUNK = 500_000


@dataclass(frozen=True)
class EffectScores:
    """What the counts of one type say of the scores of its K subjects, for S draws.

    Attributes
    ----------
    table : (S, N, K)
        g(υ(z)) at the nodes, each subject over its h⁰.
    narrow : (n,)
        Positions of the subjects whose law of z is normal.
    centre, width : (S, n)
        Mean and deviation of their z.
    """

    table: Singles
    narrow: Indices
    centre: Floats
    width: Floats

    def given_factor(self, loading: Floats) -> Singles:
        """h(s)/h⁰ at the nodes of s, (S, N, K), for loadings (S,)."""
        if np.all(loading == 1.0):  # the factor is the score itself
            return self.table.copy()
        kernel = transition(loading).astype(np.float32)
        result = np.asarray(kernel @ self.table)
        if len(self.narrow):
            result[:, :, self.narrow] = self._narrow_ratio(loading)
        return result

    def _narrow_ratio(self, loading: Floats) -> Floats:
        r"""∫ N(z; μ, τ²) N(z; ls, 1 − l²)/φ(z) dz in closed form, (S, N, n)."""
        rest = (1 - loading**2)[:, None, None]
        pull = loading[:, None, None] * NODES[None, :, None]
        mean, precision = self.centre[:, None, :], self.width[:, None, :] ** -2
        a = precision + 1 / rest - 1
        b = mean * precision + pull / rest
        exponent = b**2 / a - mean**2 * precision - pull**2 / rest
        return np.asarray(np.exp(exponent / 2) * np.sqrt(precision / (rest * a)))


def transition(loading: Floats) -> Floats:
    """N(z; l s, 1 − l²) times the step, (S, s, z), for loadings (S,)."""
    rest = (1 - loading**2)[:, None, None]
    away = NODES - loading[:, None, None] * NODES[:, None]
    return np.asarray(STEP * np.exp(-(away**2) / (2 * rest)) / np.sqrt(2 * np.pi * rest))


@dataclass(frozen=True)
class ScoredSubjects:
    """The counts of one type as functions of the subjects' scores.

    Attributes
    ----------
    cells : Cells
        One owner per subject.
    likelihood : CountLikelihood
    narrow : (n,)
        Subjects whose law of z is normal; see :meth:`resolved`.
    """

    cells: Cells
    likelihood: CountLikelihood
    narrow: Indices

    @classmethod
    def of(cls, likelihood: CountLikelihood) -> ScoredSubjects:
        """Every subject on the grid."""
        return cls(likelihood.cells, likelihood, np.zeros(0, dtype=np.intp))

    def resolved(self, row: Floats, owner: Floats, params: Floats) -> ScoredSubjects:
        """With the subjects that the grid does not resolve told from the others, by some draws."""
        found = self.scores(row, owner, params).table
        mass = found * PRIOR[:, None]
        mass = mass / mass.sum(axis=1, keepdims=True)
        mean = (mass * NODES[:, None]).sum(axis=1)
        spread = (mass * NODES[:, None] ** 2).sum(axis=1) - mean**2
        typical = np.sqrt(np.maximum(np.median(spread, axis=0), 0.0))
        return replace(self, narrow=np.flatnonzero(typical < _NARROW * STEP))

    def scores(self, row: Floats, owner: Floats, params: Floats) -> EffectScores:
        """r of the rows (J2, S), R of the subjects (K, S), parameters (P, S) → laws of scores."""
        psi, theta = self.likelihood.split(params)
        y = self.likelihood.effect.log_quantile(NODES, psi)
        log_g = self._log_likelihood(y, row, owner, theta)
        log_g -= (log_g + np.log(PRIOR).astype(np.float32)[:, None]).max(axis=1, keepdims=True)
        table = np.exp(log_g, out=log_g)
        weight = PRIOR.astype(np.float32)
        table /= (weight @ table)[:, None, :]
        if not len(self.narrow):
            none = np.zeros((owner.shape[1], 0))
            return EffectScores(table, self.narrow, none, none)
        return EffectScores(table, self.narrow, *self._normal(row, owner, params))

    def _log_likelihood(self, y: Floats, row: Floats, owner: Floats, theta: Floats) -> Singles:
        """ln g at υ = e^y: y (S, N) → (S, N, K)."""
        law, single = self.likelihood.law, np.float32
        exposure = (law.hazard(theta)[0] * owner).T.astype(single)
        power = self.cells.owner_power.astype(single)
        value = y.astype(single)[:, :, None] * power
        value -= np.exp(y).astype(single)[:, :, None] * exposure[:, None, :]
        if len(row):
            mean = np.maximum(np.exp(y) * row[:, :, None], 1e-300)  # (J2, S, N)
            rest = law.remainder_value(mean, self.cells.rows.count, theta[:, :, None])
            sums = self._integral.sums @ rest.reshape(len(rest), -1)
            value += sums.reshape(-1, *y.shape).transpose(1, 2, 0).astype(single)
        return np.asarray(value)

    def _normal(self, row: Floats, owner: Floats, params: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation of z of the narrow subjects, (S, n) each, from nodes of ln υ."""
        psi, theta = self.likelihood.split(params)
        some = np.isin(self._integral.row_subject, self.narrow)
        place = np.searchsorted(self.narrow, self._integral.row_subject[some])
        rows = EffectRows(self.cells.owner_power[self.narrow], self.cells.rows.count[some], place)
        integral = EffectIntegral(rows, self.likelihood.law, self.likelihood.effect)
        y, weight = integral.law_of_effect(row[some], owner[self.narrow], psi, theta, _NEAR)
        z = self.likelihood.effect.score(y, psi)
        mean = (weight * z).sum(axis=0)
        variance = (weight * (z - mean) ** 2).sum(axis=0)
        return mean.T, np.sqrt(np.maximum(variance, 1e-12)).T

    @cached_property
    def _integral(self) -> EffectIntegral:
        everybody = replace(self.cells, hard=np.arange(self.cells.n_owners))
        return EffectIntegral(EffectRows.of(everybody), self.likelihood.law, self.likelihood.effect)


def draws_at_once(n_subjects: int) -> int:
    """Draws whose tables fit the room."""
    return max(1, _CHUNK // (len(NODES) * max(n_subjects, 1)))


def joint_ratios(
    scores: list[EffectScores], places: list[Indices], loadings: Floats, n_subjects: int
) -> Floats:
    """ln of the counts' probability relative to independent effects, (n_subjects, S).

    Parameters
    ----------
    scores : list of EffectScores
        Of the types whose effects depend.
    places : list of (n_subjects,) arrays
        Position of each subject among those of a type, -1 where it was not counted.
    loadings : (T, S)
    """
    factor = factor_density(scores, places, loadings, n_subjects)
    return np.asarray(np.log(np.maximum(factor.sum(axis=1, dtype=np.float64), 1e-300)).T)


def factor_density(
    scores: list[EffectScores], places: list[Indices], loadings: Floats, n_subjects: int
) -> Singles:
    """φ(s) Π h_e(s)/h_e⁰ at the nodes of s times the step, (S, N, n_subjects)."""
    total: Singles | None = None
    for one, place, loading in zip(scores, places, loadings, strict=True):
        each = one.given_factor(loading)
        if each.shape[2] < n_subjects or np.any(np.diff(place) != 1):
            known = np.ones((*each.shape[:2], n_subjects), dtype=np.float32)
            known[:, :, place >= 0] = each[:, :, place[place >= 0]]
            each = known
        total = each if total is None else np.multiply(total, each, out=total)
    assert total is not None
    total *= PRIOR.astype(np.float32)[:, None]
    return total


def score_laws(
    scores: list[EffectScores], places: list[Indices], loadings: Floats, n_subjects: int
) -> list[Floats]:
    """Law of each type's scores at the nodes given the counts of all types, (S, N, K_e) each.

    A narrow law stays that of its own counts: those of the other types hardly move it.
    """
    whole = factor_density(scores, places, loadings, n_subjects)
    laws = []
    for one, place, loading in zip(scores, places, loadings, strict=True):
        seen = np.flatnonzero(place >= 0)[np.argsort(place[place >= 0])]
        others = whole[:, :, seen] / np.maximum(one.given_factor(loading), 1e-30)
        if np.all(loading == 1.0):
            law = others * one.table
        else:
            law = transition(loading).swapaxes(1, 2) @ others * one.table
        laws.append(np.asarray(law / law.sum(axis=1, keepdims=True)))
    return laws


def draw_scores(
    scores: list[EffectScores],
    places: list[Indices],
    loadings: Floats,
    n_subjects: int,
    rng: np.random.Generator,
    times: int = 1,
) -> Iterator[list[Floats]]:
    """Scores of the subjects given the counts of all types, jointly: (K_e, S) of each type.

    So often as asked for. First the factor, then each score given it. Values are nodes, at which
    sums are exact; narrow scores are normal.
    """
    ends = np.cumsum(factor_density(scores, places, loadings, n_subjects), axis=1)
    for _ in range(times):
        factor = _choose(ends, rng)  # (S, n_subjects) nodes of s
        yield _given_factor(scores, places, loadings, factor, rng)


def _given_factor(
    scores: list[EffectScores],
    places: list[Indices],
    loadings: Floats,
    factor: Indices,
    rng: np.random.Generator,
) -> list[Floats]:
    drawn = []
    for one, place, loading in zip(scores, places, loadings, strict=True):
        seen = np.flatnonzero(place >= 0)[np.argsort(place[place >= 0])]
        at = factor[:, seen]
        z = NODES[at] if np.all(loading == 1.0) else NODES[_given(one, loading, at, rng)]
        if len(one.narrow):
            z[:, one.narrow] = _narrow_draw(one, loading, NODES[at[:, one.narrow]], rng)
        drawn.append(z.T)
    return drawn


def _given(
    one: EffectScores, loading: Floats, factor: Indices, rng: np.random.Generator
) -> Indices:
    """Nodes of z given nodes of s, (S, K)."""
    kernel = transition(loading).astype(np.float32)  # (S, s, z)
    rows = np.take_along_axis(kernel, factor[:, :, None], axis=1)  # (S, K, z)
    return _choose(np.cumsum(rows.swapaxes(1, 2) * one.table, axis=1), rng)


def _narrow_draw(
    one: EffectScores, loading: Floats, factor: Floats, rng: np.random.Generator
) -> Floats:
    """z of narrow subjects given s, (S, n): normal times normal over φ."""
    if np.all(loading == 1.0):
        return factor
    rest = (1 - loading**2)[:, None]
    a = one.width**-2 + 1 / rest - 1
    b = one.centre * one.width**-2 + loading[:, None] * factor / rest
    return np.asarray(b / a + rng.standard_normal(b.shape) / np.sqrt(a))


def _choose(ends: Floats | Singles, rng: np.random.Generator) -> Indices:
    """One index along axis 1 for each of the others, by cumulative sums along it."""
    u = rng.random((ends.shape[0], 1, ends.shape[2]), dtype=np.float32) * ends[:, -1:]
    return np.asarray(np.minimum((ends < u).sum(axis=1), ends.shape[1] - 1))


def effects_at(y: Floats, z: Floats) -> Floats:
    """υ at scores z (K, S), from ln υ at the nodes (S, N): linear between them."""
    each = [np.interp(scores, NODES, one) for scores, one in zip(z.T, y, strict=True)]
    return np.asarray(np.exp(np.array(each).reshape(z.shape[::-1])).T)
