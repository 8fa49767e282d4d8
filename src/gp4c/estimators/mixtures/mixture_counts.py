r"""Counts to come under a mixture of bases.

The mean of a cell of a forecast is Σ_l Σ_(k, w) e_k w_kl ∫_w f_l². The weights of a new subject are
drawn from the law of weights, those of a known one from that law given its counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from gp4c.estimators.forecasts.joint_counts import Asked, JointCounts
from gp4c.posterior.forecasting import expected_integrals, integral_draws
from gp4c.posterior.sparse_posterior import Posterior

if TYPE_CHECKING:
    from gp4c.estimators.mixtures.fitted_mixture import FittedMixture

Floats = NDArray[np.float64]

#: most numbers held at once
_CHUNK = 12_000_000


@dataclass(frozen=True)
class MixtureCounts(JointCounts):
    """Counts to come of known and new subjects under a mixture of bases."""

    model: FittedMixture

    def rates(
        self, asked: Asked, n_draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Means of the cells, some draws at a time; see :class:`JointCounts`."""
        law, parts, (start, stop, _) = self.model.weight_law, self._parts, asked.windows
        chances = self._chances(asked.n_new)
        mean = chances @ law.weights
        size = max(1, _CHUNK // (len(start) + len(chances) + 2 * asked.n_cells))
        for first in range(0, n_draws, size):
            some = slice(first, min(first + size, n_draws))
            n = some.stop - first
            chosen = _drawn(chances, n, rng)
            drawn = average = np.zeros((asked.n_cells, n))
            for number, part in enumerate(parts):
                inside = integral_draws(part, start, stop, n, rng, self.beyond).T
                drawn = drawn + asked.means(law.weights[chosen, number], inside)
                average = average + asked.means(
                    np.broadcast_to(mean[:, number, None], chosen.shape), inside
                )
            yield some, drawn, average, np.zeros((0, n))

    @property
    def _parts(self) -> tuple[Posterior, ...]:
        return self.model.posterior_.parts

    def _chances(self, n_new: int) -> Floats:
        """Probabilities of the points of the law, (known and new subjects, A)."""
        law = self.model.weight_law
        new = np.broadcast_to(law.masses, (n_new, len(law.masses)))
        return new if self.known is None else np.concatenate([self._given_counts, new])

    @cached_property
    def _given_counts(self) -> Floats:
        """Probabilities given what was seen of the known subjects, (K, A)."""
        known, law = self.known, self.model.weight_law
        assert known is not None
        size, posterior = len(known.subjects), self.model.posterior_
        rows = law.weights @ posterior.expected_integrals(known.row_start, known.row_stop)
        spans = law.weights @ posterior.expected_integrals(known.span_start, known.span_stop)
        logs = xlogy(known.row_count, known.row_exposure * rows)
        cost = known.span_exposure * spans
        each = [
            np.bincount(known.row_subject, a, size) - np.bincount(known.span_subject, b, size)
            for a, b in zip(logs, cost, strict=True)
        ]
        return law.given(np.array(each)).T

    def _closed_form(self, asked: Asked) -> Floats:
        """Means with the curves averaged out exactly."""
        start, stop, _ = asked.windows
        mean = self._chances(asked.n_new) @ self.model.weight_law.weights
        total = np.zeros(asked.n_cells)
        for number, part in enumerate(self._parts):
            expected = expected_integrals(part, start, stop, self.beyond)
            total += asked.means(mean[:, number, None], expected[:, None])[:, 0]
        return total


def _drawn(chances: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Points by their probabilities, (subjects, size): (subjects, A) inverted."""
    ends = np.cumsum(chances, axis=1)
    ends[:, -1] = np.inf
    return np.array([np.searchsorted(row, rng.random(size)) for row in ends], dtype=np.intp)
