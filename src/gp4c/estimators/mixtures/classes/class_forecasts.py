r"""Counts to come where subjects belong to classes.

A subject of whom something was seen is in class c with probability

.. math:: P(c \mid \text{seen}) \propto \pi_c L_c(\text{seen})

in every draw; its class is drawn with it, its effect given the class, and its counts given both. A
new subject's class has the shares as probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.estimators.forecasts.joint_counts import Asked, JointCounts
from gp4c.inference.classes.class_draws import ClassDraws
from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most numbers held at once, and most curves behind a forecast of known subjects
_CHUNK, _MOST_CURVES = 8_000_000, 1000


@dataclass(frozen=True)
class ClassCounts(JointCounts):
    """Counts to come of known and new subjects of several classes."""

    model: GP4CClasses

    @property
    def _totals_suffice(self) -> bool:
        """Where events were says which class it is."""
        return False

    @cached_property
    def _posterior(self) -> ClassDraws:
        posterior = self.model.posterior_
        assert isinstance(posterior, ClassDraws)
        return posterior

    def rates(
        self, asked: Asked, n_draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Means of the cells, some draws at a time; see :meth:`JointCounts.rates`."""
        counts, first = self._seen(), asked.windows[0]
        times = 1 if self.known is None else -(-n_draws // min(n_draws, _MOST_CURVES))
        wide = len(counts.start) + len(first) + times * (counts.n_subjects + 2 * asked.n_cells)
        size = max(1, _CHUNK // (wide * self._posterior.n_classes)) * times
        for k in range(0, n_draws, size):
            some = slice(k, min(k + size, n_draws))
            curves = -(-(some.stop - k) // times)
            parents = self._posterior.choose_parents(curves, rng)
            yield some, *self._means(asked, counts, parents, times, some.stop - k, rng)

    def _means(
        self,
        asked: Asked,
        counts: SubjectCounts,
        parents: Indices,
        times: int,
        n_draws: int,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats, Floats]:
        """Means of the cells given classes and effects, given the curves alone, and parameters."""
        posterior, (first, last, _) = self._posterior, asked.windows
        kept = np.repeat(np.arange(len(parents)), times)[:n_draws]
        every = [m[parents] for m in posterior.members]
        start, stop = np.append(counts.start, first), np.append(counts.stop, last)
        how = posterior.held_integrals if self.beyond == "hold" else posterior.integrals_of
        integrals = [how(start, stop, who, rng) for who in every]
        params, n_seen = posterior.params[:, every[0]], len(counts.start)
        seen = [values[:n_seen] for values in integrals]
        chance = self._chances(counts, seen, params, parents, asked.n_new)
        label = _drawn_labels(chance[:, :, kept], rng)
        drawn = average = np.zeros((asked.n_cells, n_draws))
        for c, values in enumerate(integrals):
            effect, mean = self._class_effects(counts, seen[c], params, times, asked.n_new, rng)
            inside = values[n_seen:][:, kept]
            drawn = drawn + asked.means(np.where(label == c, effect[:, :n_draws], 0.0), inside)
            average = average + asked.means((chance[c] * mean)[:, kept], inside)
        return drawn, average, params[:, kept]

    def _chances(
        self,
        counts: SubjectCounts,
        seen: list[Floats],
        params: Floats,
        parents: Indices,
        n_new: int,
    ) -> Floats:
        """P(c | seen) of known subjects, then shares for new ones, (C, K + new, S)."""
        posterior = self._posterior
        shares = np.array([posterior.share[m[parents]] for m in posterior.members])
        new = np.repeat(shares[:, None], n_new, axis=1)
        if self.known is None:
            return new
        joint = posterior.log_shares(self.model._design_of(self.known), parents)
        joint += np.array([counts.log_likelihoods(values, params) for values in seen])
        return np.concatenate([np.exp(joint - logsumexp(joint, axis=0)), new], axis=1)

    def _class_effects(
        self,
        counts: SubjectCounts,
        seen: Floats,
        params: Floats,
        times: int,
        n_new: int,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """υ of the subjects if they are in one class (K + new, S · times), and its mean (…, S)."""
        law, size = self.model.effect_law_, params.shape[1]
        psi = np.repeat(params[: len(law.parameters)], times, axis=1)
        effect = law.draw(psi, np.zeros((n_new, size * times)), np.zeros(1), rng)
        mean = np.ones((n_new, size))
        if self.known is None:
            return effect, mean
        own, average = counts.effects(seen, params, rng, times=times)
        return np.concatenate([own, effect]), np.concatenate([average, mean])

    def _closed_form(self, asked: Asked) -> Floats | None:
        """Only for new subjects: the population's curve."""
        return None if self.known is not None else super()._closed_form(asked)


def _drawn_labels(chance: Floats, rng: np.random.Generator) -> Indices:
    """A class of every subject in every draw, (K, S)."""
    ends = np.cumsum(chance, axis=0)
    u = rng.random(chance.shape[1:])
    return np.asarray(np.minimum((ends < u).sum(axis=0), len(chance) - 1))


def known_design(known: SubjectHistories, labels: list[object], design: Floats) -> Floats:
    """Covariates of membership of known subjects; those the fit has not seen are average."""
    place = {label: k for k, label in enumerate(labels)}
    average = np.zeros(design.shape[1])
    average[0] = 1.0
    rows = [place.get(label) for label in known.subjects.tolist()]
    return np.array([average if k is None else design[k] for k in rows])
