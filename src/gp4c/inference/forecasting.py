"""Counts in windows to come: draws of the rate's integral, and count laws given them.

Given the curve f the count of a subject in a window is Poisson with mean υ e ∫λ. A gamma effect
υ ~ Gamma(α, α) of a subject of whom m events were seen where R(f) were expected has the
conditional law Gamma(α + m, α + R(f)), for every f: drawing f first and υ given f keeps the
dependence between the two, and the shared f that between subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaincc

from gp4c.data.events import RecurrentEvents
from gp4c.design.quadrature import IntervalIntegrals
from gp4c.inference.posterior import Component, Posterior
from gp4c.inference.sampled import SampledPosterior, systematic

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


# -- who was seen when -------------------------------------------------------------------------


@dataclass(frozen=True)
class SubjectHistories:
    """What a forecast needs to know of subjects: events so far, and when they were watched.

    Neighbouring intervals of equal exposure are one span, so that most subjects have one.

    Attributes
    ----------
    subjects : (K,)
        Labels.
    totals : (K,)
        Events of each.
    span_subject : (P,)
        Position of each span's subject.
    span_start, span_stop, span_exposure : (P,)
    mean_expected : (K,), optional
        Expected counts so far, where the spans were not kept: R is then its posterior mean and
        the effects are drawn independently of the curve.
    """

    subjects: NDArray[Any]
    totals: Floats
    span_subject: Indices
    span_start: Floats
    span_stop: Floats
    span_exposure: Floats
    mean_expected: Floats | None = None

    @classmethod
    def without_spans(
        cls, subjects: NDArray[Any], totals: Floats, expected: Floats
    ) -> SubjectHistories:
        """Histories of which only the totals and expected counts are left."""
        none = np.zeros(0)
        owner = np.zeros(0, dtype=np.intp)
        return cls(subjects, totals, owner, none, none, none, expected)

    @classmethod
    def of(cls, data: PanelCounts | RecurrentEvents) -> SubjectHistories:
        """Histories of all subjects of a panel, or of subjects with exact event times."""
        n_subjects = data.n_subjects
        if isinstance(data, RecurrentEvents):
            totals = np.bincount(data.subject_index, minlength=n_subjects).astype(np.float64)
            every, ones = np.arange(n_subjects), np.ones(n_subjects)
            return cls(data.subjects, totals, every, data.start, data.stop, ones)
        owner = data.subject_index
        totals = np.bincount(owner, data.count, n_subjects).astype(np.float64)
        goes_on = np.zeros(len(owner), dtype=bool)
        goes_on[1:] = (
            (owner[1:] == owner[:-1])
            & (data.start[1:] == data.stop[:-1])
            & (data.exposure[1:] == data.exposure[:-1])
        )
        first = np.flatnonzero(~goes_on)
        last = np.append(first[1:], len(owner)) - 1
        return cls(
            data.subjects, totals, owner[first], data.start[first], data.stop[last],
            data.exposure[first],
        )  # fmt: skip

    @classmethod
    def of_all(cls, *sources: PanelCounts | RecurrentEvents | None) -> SubjectHistories:
        """Histories of the subjects of several containers, one after the other."""
        parts = [cls.of(source) for source in sources if source is not None]
        sizes = np.cumsum([0, *(len(part.subjects) for part in parts)])
        labels = [np.asarray(part.subjects, dtype=object) for part in parts]
        return cls(
            labels[0] if len(parts) == 1 else np.concatenate(labels),
            np.concatenate([part.totals for part in parts]),
            np.concatenate([part.span_subject + n for part, n in zip(parts, sizes, strict=False)]),
            np.concatenate([part.span_start for part in parts]),
            np.concatenate([part.span_stop for part in parts]),
            np.concatenate([part.span_exposure for part in parts]),
        )

    def take(self, positions: Indices) -> SubjectHistories:
        """Those at the given positions, in the given order."""
        new = np.full(len(self.subjects), -1)
        new[positions] = np.arange(len(positions))
        owner = new[self.span_subject]
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        return SubjectHistories(
            self.subjects[positions], self.totals[positions], owner[order],
            self.span_start[order], self.span_stop[order], self.span_exposure[order],
            None if self.mean_expected is None else self.mean_expected[positions],
        )  # fmt: skip

    def positions(self, labels: list[Any]) -> Indices:
        """Positions of labels; an unknown label is a KeyError that names it."""
        where = {label: k for k, label in enumerate(self.subjects.tolist())}
        missing = [label for label in labels if label not in where]
        if missing:
            raise KeyError(f"no subject {missing[0]!r}; there are {_some(list(where))}")
        return np.array([where[label] for label in labels], dtype=np.intp)

    def expected(self, integrals: Floats) -> Floats:
        """R_k for each draw: integrals over the spans (S, P) → (S, K)."""
        if self.mean_expected is not None:
            return np.broadcast_to(self.mean_expected, (len(integrals), len(self.subjects)))
        starts = np.flatnonzero(np.diff(self.span_subject, prepend=-1))
        weighted = integrals * self.span_exposure
        result = np.zeros((len(integrals), len(self.subjects)))
        if len(starts):
            result[:, self.span_subject[starts]] = np.add.reduceat(weighted, starts, axis=1)
        return result


def _some(labels: list[Any], most: int = 5) -> str:
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown}, … ({len(labels)} in all)"


# -- the rate's integral -----------------------------------------------------------------------


def integral_draws(
    posterior: Any,
    start: Floats,
    stop: Floats,
    size: int,
    rng: np.random.Generator,
    beyond: str = "prior",
) -> Floats:
    """Joint draws of ∫λ over intervals inside or outside the window, shape (size, intervals).

    Parameters
    ----------
    posterior
        A :class:`Posterior`, or draws of a sampler.
    beyond : {"prior", "hold"}
        Outside the window f returns to its prior; or λ stays as it is at the window's end.
    """
    if beyond != "hold":
        return np.asarray(posterior.sample_integrals(start, stop, size, rng))
    if isinstance(posterior, SampledPosterior):
        who = rng.permutation(systematic(posterior.weights, size, rng))
        return _held(posterior, start, stop, posterior.integrals, posterior.intensities)[:, who].T
    low, high = posterior.unit(start), posterior.unit(stop)
    before = np.maximum(np.minimum(high, 0.0) - low, 0.0)
    after = np.maximum(high - np.maximum(low, 1.0), 0.0)
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    parts = []
    for component, share in _shares(posterior, size, rng):
        grid = component.grid(0.0, 1.0)
        squares = component.draw(np.append(grid.nodes, [0.0, 1.0]), share, rng) ** 2
        inside = np.maximum(IntervalIntegrals(grid, low, high).apply(squares[:-2]), 0.0)
        parts.append(inside + np.outer(before, squares[-2]) + np.outer(after, squares[-1]))
    return np.asarray(posterior.rate * np.concatenate(parts, axis=1).T)


def expected_integrals(
    posterior: Any, start: Floats, stop: Floats, beyond: str = "prior"
) -> Floats:
    """E ∫λ over intervals inside or outside the window, in closed form."""
    if beyond != "hold":
        return np.asarray(posterior.expected_integral(start, stop))
    return _held(posterior, start, stop, posterior.expected_integral, posterior.intensity)


def _held(
    posterior: Any,
    start: Floats,
    stop: Floats,
    integral: Callable[[Floats, Floats], Floats],
    rate: Callable[[Floats], Floats],
) -> Floats:
    """Integrals in the window, and beyond it the rate at its nearer end; for one curve or many."""
    low, high = posterior.window
    inside = integral(np.clip(start, low, high), np.clip(stop, low, high))
    first, last = rate(np.array([low, high]))
    before = np.maximum(np.minimum(stop, low) - start, 0.0)
    after = np.maximum(stop - np.maximum(start, high), 0.0)
    return np.asarray(inside + np.multiply.outer(before, first) + np.multiply.outer(after, last))


def _shares(
    posterior: Posterior, size: int, rng: np.random.Generator
) -> Iterator[tuple[Component, int]]:
    weights = posterior.weights
    counts = rng.multinomial(size, weights / weights.sum())
    return zip(posterior.components, counts.tolist(), strict=True)


def intensity_paths(
    posterior: Any, times: Floats, size: int, seed: np.random.SeedSequence
) -> Floats:
    """Draws of λ at times in the window, (size, times); a draw is the same path in every call.

    The inducing values of a draw depend on the seed alone, so that answers at one time do not
    depend on which other times are asked for. The small residual is one number per draw.
    """
    if not isinstance(posterior, Posterior):
        columns = [
            posterior.sample_intensity(times[k : k + 1], size, np.random.default_rng(seed))[:, 0]
            for k in range(len(times))
        ]
        return np.stack(columns, axis=1)
    rng, parts, x = np.random.default_rng(seed), [], posterior.unit(times)
    for component, share in _shares(posterior, size, rng):
        mean, variance = component.moments(x)
        G = np.sqrt(component.variance) * (component.prior.features(x) @ component.root)
        rest = np.sqrt(np.maximum(variance - (G**2).sum(axis=1), 0.0))
        paths = mean[:, None] + G @ rng.standard_normal((G.shape[1], share))
        parts.append(paths + np.outer(rest, rng.standard_normal(share)))
    return np.asarray(posterior.scale * np.concatenate(parts, axis=1).T ** 2)


# -- counts given the integral -----------------------------------------------------------------


def draw_effects(
    shape: float, totals: Floats, expected: Floats, rng: np.random.Generator
) -> Floats:
    """υ_k ~ Gamma(α + m_k, α + R_k) for each draw of R, (S, K); ones if α is infinite."""
    if not np.isfinite(shape):
        return np.ones_like(expected)
    return np.asarray(rng.standard_gamma(shape + totals, expected.shape) / (shape + expected))


def mean_effects(shape: float, totals: Floats, expected: Floats) -> Floats:
    """E υ_k given R, (S, K)."""
    if not np.isfinite(shape):
        return np.ones_like(expected)
    return np.asarray((shape + totals) / (shape + expected))


def count_cdf(
    count: Floats,
    mean: Floats,
    shape: float = np.inf,
    totals: Floats | float = 0.0,
    expected: Floats | float = 0.0,
) -> Floats:
    """P(N ≤ count) for a subject with an earlier history; 0 for negative counts.

    Poisson with mean `mean` if α is infinite; else negative binomial, the Poisson law with
    mean υ·`mean` averaged over υ ~ Gamma(α + totals, α + expected).
    """
    n = np.maximum(count, 0.0)
    if np.isfinite(shape):
        rate = shape + expected
        value = betainc(shape + totals, n + 1.0, rate / (rate + mean))
    else:
        value = gammaincc(n + 1.0, np.maximum(mean, 0.0))
    return np.asarray(np.where(np.asarray(count) < 0, 0.0, value))


def count_quantile(draws: NDArray[np.int64], p: float) -> NDArray[np.int64]:
    """Smallest count with at least probability p at or below it, over the first axis."""
    return np.asarray(np.quantile(draws, p, axis=0, method="inverted_cdf"))
