r"""The log density of C class curves, their shares and the laws, with derivatives.

Subject k belongs to class c with probability π_kc = softmax_c(z_kᵀ η_c). Given its class its
counts have the likelihood L_kc of a single curve, so that

.. math::
    \ln p = \sum_k \ln \sum_c \pi_{kc} L_{kc} + \ln \text{prior} .

The classes share length-scale, relative variation u and the laws' parameters; each has a curve, a
level and coefficients η of its own. A point has one block (v, l, η) per class and then the
parameters. The prior is the same for every class, so that a permutation of the blocks changes
nothing (docs/maths_classes.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from gp4c.inference.classes.owner_slopes import OwnerSlopes, owner_slopes
from gp4c.inference.engine.landscape import Landscape, Task, split_level
from gp4c.model.cells import CountedRows
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.hyper_priors import LEVEL, VARIATION, normal_log_density
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.posterior.subject_counts import SubjectCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: prior deviation of the coefficients η: with two classes the share of each is nearly even
#: between 0 and 1 (a logistic variable has the deviation 1.81, and here √2 · 1.28)
SHARE_DEVIATION = 1.28
#: most numbers at once while many draws are evaluated
_CHUNK = 2_000_000


@dataclass(frozen=True)
class ClassData:
    """Counts in unit time and unit rate, one owner per subject, and covariates of membership.

    Attributes
    ----------
    counts : SubjectCounts
    window : (t0, t1)
    rate : float
        Events per window and unit of exposure that the unit rate stands for.
    design : (K, q)
        Covariates of membership; the first column is one.
    """

    counts: SubjectCounts
    window: tuple[float, float]
    rate: float
    design: Floats

    @classmethod
    def of(
        cls,
        rows: CountedRows,
        spans: CountedRows,
        law: CountLaw,
        effect: SubjectEffect,
        *,
        window: tuple[float, float],
        rate: float,
        design: Floats,
    ) -> ClassData:
        """Rows and times at risk in unit time; their factors are exposures."""
        seen = rows.take(rows.count > 0)
        counts = SubjectCounts(
            replace(seen, factor=rate * seen.factor), replace(spans, factor=rate * spans.factor),
            len(design), law, effect,
        )  # fmt: skip
        return cls(counts, window, rate, design)

    @property
    def n_subjects(self) -> int:
        """K."""
        return len(self.design)

    @property
    def laws(self) -> tuple[str, str | None]:
        """Names of the law of counts and of that of effects."""
        return self.counts.law.name, self.counts.effect.name

    def under(self, law: CountLaw, effect: SubjectEffect) -> ClassData:
        """The same data under other laws."""
        return replace(self, counts=replace(self.counts, law=law, effect=effect))

    def weighted(self, weight: Floats) -> CountLikelihood:
        """Σ_k weight_k ln L_k as one likelihood."""
        counts, cells = self.counts, self.counts.cells
        seen = counts.seen
        different, which = np.unique(seen.count, return_inverse=True)
        known = replace(
            cells, power=counts.power.T @ weight, counts=different,
            times=np.bincount(which, weight[seen.subject], len(different)).astype(float),
        )  # fmt: skip
        return CountLikelihood(known, counts.law, counts.effect, weight)

    def take(self, subjects: Indices) -> ClassData:
        """Some of the subjects, in the same units."""
        place = np.full(self.n_subjects, -1, dtype=np.intp)
        place[subjects] = np.arange(len(subjects))

        def kept(rows: CountedRows) -> CountedRows:
            some = rows.take(place[rows.subject] >= 0)
            return replace(some, subject=place[some.subject])

        counts = replace(
            self.counts, seen=kept(self.counts.seen), spans=kept(self.counts.spans),
            n_subjects=len(subjects),
        )  # fmt: skip
        return replace(self, counts=counts, design=self.design[subjects])

    def task(self, kernel: str, n_inducing: int | None) -> Task:
        """What a single class is fitted with."""
        return Task(self.counts.likelihood, KERNELS[kernel], n_inducing)


@dataclass(frozen=True)
class ClassPoint:
    """One class at a point: the curve, each subject's ln L (K,), and its slopes."""

    curve: Floats  # h at the nodes, (Q, 1)
    cell: Floats
    log_likelihood: Floats
    slopes: OwnerSlopes


@dataclass(frozen=True)
class Derivative:
    """Value, gradient (D,) and Hessian (D, D) at one point, and memberships (K, C)."""

    value: float
    gradient: Floats
    hessian: Floats
    membership: Floats


@dataclass(frozen=True)
class ClassLandscape:
    """The density of C classes at one length-scale and one u."""

    data: ClassData
    land: Landscape
    u: float
    n_classes: int

    # -- the layout of a point ------------------------------------------------------------------

    @property
    def size(self) -> int:
        """M, inducing values of a curve."""
        return self.land.size

    @property
    def n_shares(self) -> int:
        """Coefficients of membership of one class; none if there is only one."""
        return self.data.design.shape[1] if self.n_classes > 1 else 0

    @property
    def block(self) -> int:
        """Rows of one class: v, l, η."""
        return self.size + 1 + self.n_shares

    @property
    def n_params(self) -> int:
        """Parameters of the laws, shared by the classes."""
        return self.land.task.n_params

    @property
    def dimension(self) -> int:
        """D."""
        return self.n_classes * self.block + self.n_params

    @cached_property
    def curve_rows(self) -> Indices:
        """Rows of the inducing values of all classes."""
        return np.concatenate([c * self.block + np.arange(self.size) for c in self.labels])

    @cached_property
    def tail_rows(self) -> Indices:
        """Rows of levels, shares and parameters."""
        return np.setdiff1d(np.arange(self.dimension), self.curve_rows)

    @property
    def labels(self) -> range:
        """0 to C − 1."""
        return range(self.n_classes)

    def levels(self) -> Indices:
        """Rows of the levels."""
        return np.arange(self.n_classes) * self.block + self.size

    def permuted(self) -> Iterator[Indices]:
        """Rows of a point whose classes have changed their labels, in every way."""
        shared = np.arange(self.n_classes * self.block, self.dimension)
        for order in permutations(self.labels):
            blocks = [c * self.block + np.arange(self.block) for c in order]
            yield np.concatenate([*blocks, shared])

    def single(self, x: Floats, label: int) -> Floats:
        """The point of one class as its landscape has it: v, l, parameters."""
        first = label * self.block
        own = x[first : first + self.size + 1]
        return np.concatenate([own, x[self.n_classes * self.block :]])

    def _single_rows(self, label: int) -> Indices:
        """Rows of v, l of a class, and of the parameters."""
        first = label * self.block
        shared = np.arange(self.n_classes * self.block, self.dimension)
        return np.concatenate([first + np.arange(self.size + 1), shared])

    def _share_rows(self, label: int) -> Indices:
        return label * self.block + self.size + 1 + np.arange(self.n_shares)

    # -- values -----------------------------------------------------------------------------------

    def log_shares(self, x: Floats) -> Floats:
        """ln π_kc, (C, K, S)."""
        if self.n_classes == 1:
            return np.zeros((1, self.data.n_subjects, x.shape[1]))
        scores = np.array([self.data.design @ x[self._share_rows(c)] for c in self.labels])
        return np.asarray(scores - logsumexp(scores, axis=0))

    def log_prior(self, x: Floats) -> Floats:
        """ln p(curves, levels, shares, parameters, ln a, u), (S,)."""
        v, levels = x[self.curve_rows], x[self.levels()]
        total = self.land.log_prior_length + normal_log_density(np.array(self.u), *VARIATION)
        total = total + normal_log_density(v, 0.0, 1.0).sum(axis=0)
        total = total + normal_log_density(levels, *LEVEL).sum(axis=0)
        for c in self.labels if self.n_shares else ():
            shares = x[self._share_rows(c)]
            total = total + normal_log_density(shares, 0.0, SHARE_DEVIATION).sum(axis=0)
        return np.asarray(
            total + self.land.task.likelihood.log_prior(x[self.n_classes * self.block :])
        )

    def _expected(self, one: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """h at the nodes, I of the cells, r of the rows, R of the subjects: of one class."""
        land, u = self.land, np.full(one.shape[1], self.u)
        h = land.curve(one, u)
        linear = land.nodes.apply(np.exp(one[self.size]) * h * h)
        cells, n = self.data.counts.cells, land.nodes.n_cells
        row = cells.rows.factor[:, None] * linear[:n][cells.row_cell]
        return h, linear[:n], np.maximum(row, 1e-30), linear[n:]

    def class_log_likelihoods(self, x: Floats) -> Floats:
        """ln L_kc of draws, (C, K, S)."""
        found = np.empty((self.n_classes, self.data.n_subjects, x.shape[1]))
        cells = self.data.counts.cells
        widest = max(len(cells.start) + cells.n_owners, len(cells.rows.count), 1)
        step = int(np.clip(_CHUNK // widest, 8, 1000))
        for c in self.labels:
            one = self.single(x, c)
            for first in range(0, x.shape[1], step):
                some = slice(first, first + step)
                _, cell, row, owner = self._expected(one[:, some])
                params = one[self.size + 1 :, some]
                found[c][:, some] = self.data.counts.log_likelihoods_at(cell, row, owner, params)
        return found

    def log_joint(self, x: Floats) -> Floats:
        """ln π_kc L_kc of draws, (C, K, S)."""
        return self.log_shares(x) + self.class_log_likelihoods(x)

    def log_density(self, x: Floats) -> Floats:
        """ln prior + ln likelihood of draws (D, S); −∞ where it overflows."""
        with np.errstate(all="ignore"):
            total = logsumexp(self.log_joint(x), axis=0).sum(axis=0) + self.log_prior(x)
        return np.where(np.isfinite(total), total, -np.inf)

    # -- derivatives ------------------------------------------------------------------------------

    def _class_point(self, one: Floats) -> ClassPoint:
        """One class at one point (v, l, parameters)."""
        h, cell, row, owner = self._expected(one[:, None])
        params = one[self.size + 1 :, None]
        counts = self.data.counts
        slopes = owner_slopes(counts.likelihood, row, owner, params)
        rest, by_theta = counts.outside_effects(cell, params)
        n = len(by_theta)
        if n:
            slopes.by_params[-n:] += by_theta
        return ClassPoint(h, cell, (slopes.value + rest)[:, 0], slopes)

    def _subject_gradients(self, one: Floats, at: ClassPoint) -> Floats:
        """∂ ln L_k / ∂(v, l, parameters) of every subject at one point, (K, M+1+P)."""
        land, counts, cells = self.land, self.data.counts, self.data.counts.cells
        k, _ = split_level(np.array(self.u))
        h, scale = at.curve, np.exp(one[self.size])
        bend = np.concatenate([2 * k * scale * h * land.features, scale * h * h], axis=1)
        linear = land.nodes.apply(bend)
        n = land.nodes.n_cells
        by_cell = counts.power.multiply(1.0 / np.maximum(at.cell[:, 0], 1e-30)).tocsr()
        rows = cells.rows.factor * at.slopes.by_row[:, 0]
        shape = (self.data.n_subjects, n)
        by_cell = by_cell + sparse.csr_array((rows, (cells.row_owner, cells.row_cell)), shape=shape)
        curve = by_cell @ linear[:n] + at.slopes.by_owner * linear[n:]
        return np.concatenate([curve, at.slopes.by_params[:, :, 0].T], axis=1)

    def _class_hessian(self, one: Floats, weight: Floats) -> Floats:
        """∂² of Σ_k weight_k ln L_k in (v, l, parameters)."""
        task = replace(self.land.task, likelihood=self.data.weighted(weight))
        land = replace(self.land, task=task)
        at = land.derivatives(one[:, None], np.array([self.u]))
        hessian = at.hessian[0].copy()
        both = (*task.likelihood.effect.parameters, *task.likelihood.law.parameters)
        scales = np.array([*(1.0,) * self.size, LEVEL[1], *(q.deviation for q in both)])
        hessian[np.diag_indices(len(one))] += scales**-2.0  # priors are added once for all classes
        return np.asarray(hessian)

    def derivatives(self, x: Floats, *, given: Floats | None = None) -> Derivative:
        r"""Value, gradient and Hessian at one point.

        With s_kc the score of a subject that is known to be in class c and r_kc its membership,

        .. math::
            \nabla = \sum_k \sum_c r_{kc} s_{kc}, \qquad
            H = \sum_{k, c} r_{kc} (H_{kc} + s_{kc} s_{kc}^\top) - \sum_k g_k g_k^\top ,

        g_k = Σ_c r_kc s_kc: what is not known of memberships widens the posterior.

        Parameters
        ----------
        given : (K, C), optional
            Memberships to hold fixed, as in the M-step of EM: then the value is Σ r ln(π L), and
            the last two terms of H are left out.
        """
        points = [self._class_point(self.single(x, c)) for c in self.labels]
        shares = self.log_shares(x[:, None])[:, :, 0]
        joint = shares + np.array([point.log_likelihood for point in points])
        shares = np.exp(shares)
        each = logsumexp(joint, axis=0)
        r = np.exp(joint - each) if given is None else given.T
        value = each.sum() if given is None else float((r * joint).sum())
        value = value + float(self.log_prior(x[:, None])[0])
        gradient, hessian = np.zeros(self.dimension), np.zeros((self.dimension, self.dimension))
        mean = np.zeros((self.data.n_subjects, self.dimension))
        for c in self.labels:
            score = self._score(x, c, shares, points[c])
            mean += r[c][:, None] * score
            if given is None:
                hessian += score.T @ (r[c][:, None] * score)
            rows = self._single_rows(c)
            hessian[np.ix_(rows, rows)] += self._class_hessian(self.single(x, c), r[c])
        gradient += mean.sum(axis=0)
        if given is None:
            hessian -= mean.T @ mean
        self._add_shares(shares, hessian)
        self._add_prior(x, gradient, hessian)
        return Derivative(float(value), gradient, hessian, r.T)

    def _score(self, x: Floats, label: int, shares: Floats, at: ClassPoint) -> Floats:
        """∂ ln π_kc L_kc of every subject, (K, D)."""
        score = np.zeros((self.data.n_subjects, self.dimension))
        score[:, self._single_rows(label)] = self._subject_gradients(self.single(x, label), at)
        for c in self.labels if self.n_shares else ():
            known = (c == label) - shares[c]
            score[:, self._share_rows(c)] = known[:, None] * self.data.design
        return score

    def _add_shares(self, shares: Floats, hessian: Floats) -> None:
        """Add ∂² Σ_k ln π_kc, the same whatever the class: −(diag π − ππᵀ) ⊗ zzᵀ."""
        z = self.data.design
        for c in self.labels if self.n_shares else ():
            for d in self.labels:
                weight = shares[c] * ((c == d) - shares[d])
                block = np.ix_(self._share_rows(c), self._share_rows(d))
                hessian[block] -= z.T @ (weight[:, None] * z)

    def _add_prior(self, x: Floats, gradient: Floats, hessian: Floats) -> None:
        """Add the derivatives of the normal priors, all diagonal."""
        likelihood = self.land.task.likelihood
        both = (*likelihood.effect.parameters, *likelihood.law.parameters)
        own = [(0.0, 1.0)] * self.size + [LEVEL] + [(0.0, SHARE_DEVIATION)] * self.n_shares
        priors = own * self.n_classes + [(q.mean, q.deviation) for q in both]
        means, deviations = np.array(priors).T
        gradient -= (x - means) / deviations**2
        every = np.arange(self.dimension)
        hessian[every, every] -= deviations**-2.0
