"""The log density of very many subjects at one length-scale, some of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.landscape import Derivatives, Landscape, split_level
from gp4c.inference.engine.posterior_fit import Laws, task_for

if TYPE_CHECKING:
    from gp4c.large.expanded_cells import ManyRows

Floats = NDArray[np.float64]

#: rows whose maps to nodes are kept for the next step of a climb: 0.1 GB
_MOST_KEPT = 250_000


@dataclass(frozen=True)
class ManyLandscape(Landscape):
    """The log density of very many subjects: derivatives are summed over parts of them."""

    many: ManyRows = field(kw_only=True)
    laws: Laws = field(kw_only=True)

    @classmethod
    def of(cls, many: ManyRows, laws: Laws, log_length: float) -> ManyLandscape:
        """At one length-scale."""
        first = task_for(next(many.chunks(laws, 1)), *laws, **many.settings)
        land = first.landscape(log_length)
        return cls(first, log_length, land.prior, land.nodes, many=many, laws=laws)

    def derivatives(self, x: Floats, u: Floats) -> Derivatives:
        """Value, gradient and Hessian at points (D, C), the prior counted once."""
        prior = of_prior(self, x, u)
        total = Derivatives(*(np.copy(part) for part in prior))
        for one in self._kept_parts or self._parts():
            found = one.derivatives(x, u)
            for sums, part, again in zip(parts_of(total), parts_of(found), prior, strict=True):
                sums += part - again
        return total

    def _parts(self) -> Iterator[Landscape]:
        """The landscapes of some subjects at a time."""
        for cells in self.many.chunks(self.laws):
            yield task_for(cells, *self.laws, **self.many.settings).landscape(self.log_length)

    @cached_property
    def _kept_parts(self) -> list[Landscape]:
        """All of them, where a climb over a sample comes back to them; none where they are many."""
        return list(self._parts()) if len(self.many.rows.start) <= _MOST_KEPT else []


@dataclass(frozen=True)
class SketchedLandscape(ManyLandscape):
    """The same with the Hessian of a sample: slopes are a third of the work.

    Attributes
    ----------
    sample : ManyLandscape
        Some of the subjects, at the same length-scale.
    """

    sample: ManyLandscape = field(kw_only=True)

    def derivatives(self, x: Floats, u: Floats) -> Derivatives:
        """Value and gradient of all subjects, and a Hessian that the sample stands for."""
        value, gradient, _ = of_prior(self, x, u)
        for one in self._parts():
            more, slopes = slopes_of(one, x, u)
            value, gradient = value + more, gradient + slopes
        times = self.many.n_subjects / self.sample.many.n_subjects
        of_sample, prior = self.sample.derivatives(x, u).hessian, of_prior(self.sample, x, u)[2]
        return Derivatives(value, gradient, prior + times * (of_sample - prior))


def with_curvature_of(land: ManyLandscape, sample: ManyRows) -> SketchedLandscape:
    """The landscape with the Hessian of a sample of its subjects."""
    return SketchedLandscape(
        land.task, land.log_length, land.prior, land.nodes, many=land.many, laws=land.laws,
        sample=ManyLandscape.of(sample, land.laws, land.log_length),
    )  # fmt: skip


def slopes_of(land: Landscape, x: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Value and gradient of the log-likelihood alone, (C,) and (C, D), without covariates.

    With bursts and effects the gradient is 1% off: what is next to it is visited once more.
    """
    _, _, params, beta = land.parts(x)
    h = land.curve(x, u)
    scale, square = land.scaled(h, x)
    cell, row, owner, _ = land._expected(land.nodes.apply(square), beta)
    at = land.task.likelihood.terms(cell, row, owner, params, curved=False)
    slope = scale[:, None] * land.nodes.adjoint(land._linear_weights(at, beta).T) * h.T
    by_v = 2 * split_level(u)[0][:, None] * (slope @ land.features)
    by_level = (slope * h.T).sum(axis=1)
    return at.value, np.concatenate([by_v, by_level[:, None], at.by_params.T], axis=1)


def of_prior(land: Landscape, x: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Value, gradient and Hessian of the prior alone."""
    n, d = x.shape[1], land.dimension
    gradient, hessian = np.zeros((n, d)), np.zeros((n, d, d))
    land._add_prior(x, u, gradient, hessian)
    return land.log_prior(x, u), gradient, hessian


def parts_of(of: Derivatives) -> tuple[Floats, Floats, Floats]:
    """Value, gradient and Hessian."""
    return of.value, of.gradient, of.hessian
