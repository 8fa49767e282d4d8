r"""What the sampler moves at one length-scale and one u: curve, level, parameters, coefficients.

A state has the rows of a :class:`~gp4c.inference.engine.landscape.Landscape`, x = (v, l, parameters
of the laws, β). The sampler sees

.. math::
    N(v; 0, I)\, p(l, \theta, \beta)\, L(x)^{\tau} ,

τ from 0 to 1, so that prior and likelihood are those of the default engine, and only the way to the
posterior differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.landscape import Landscape, Task
from gp4c.inference.sampler.elliptical import Population, population_slice
from gp4c.inference.sampler.tempered import temper
from gp4c.model.hyper_priors import VARIATION
from gp4c.threads import one_blas_thread

Floats = NDArray[np.float64]

#: columns evaluated at once
_CHUNK = 250


@dataclass(frozen=True)
class CurveTarget:
    """The joint density of curves, levels, parameters and coefficients at fixed (a, u)."""

    landscape: Landscape
    u: float

    @property
    def size(self) -> int:
        """M, the coordinates of v."""
        return self.landscape.size

    def evaluate(self, x: Floats) -> Floats:
        """Log-likelihood, and log prior density of all but v, of each column: (2, S)."""
        return np.array([self.log_likelihood(x), self.log_prior(x)])

    def log_likelihood(self, x: Floats) -> Floats:
        """ln p(counts) of each column, Σ ln m! left out; −∞ where it overflows."""
        result = np.empty(x.shape[1])
        with np.errstate(all="ignore"):
            for first in range(0, x.shape[1], _CHUNK):
                some = slice(first, first + _CHUNK)
                curve = self.landscape.curve(x[:, some], np.array(self.u))
                result[some] = self.landscape.log_likelihood(curve, x[:, some])
        return np.where(np.isfinite(result), result, -np.inf)

    def log_prior(self, x: Floats) -> Floats:
        """ln p(l, parameters, β) of each column."""
        mean, deviation = self._normals[:, self.size :, None]
        z = (x[self.size :] - mean) / deviation
        constant = np.log(deviation).sum() + 0.5 * len(z) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (z * z).sum(axis=0) - constant)

    def draw_prior(self, n: int, rng: np.random.Generator) -> Population:
        """Independent draws of everything from its prior."""
        mean, deviation = self._normals[:, :, None]
        x = mean + deviation * rng.standard_normal((self.landscape.dimension, n))
        return Population(x, self.evaluate(x), evaluations=n)

    def log_prior_at(self, *, length_scale: bool, u: bool) -> float:
        """ln p(ln a) and ln p(u), each where it is asked for."""
        z = (self.u - VARIATION[0]) / VARIATION[1]
        log_normal = -0.5 * z * z - np.log(VARIATION[1]) - 0.5 * np.log(2 * np.pi)
        return float(length_scale and self.landscape.log_prior_length) + float(u and log_normal)

    @cached_property
    def _normals(self) -> Floats:
        """Means and deviations of all rows, which are independent and normal, (2, D)."""
        task = self.landscape.task
        laws = (*task.likelihood.effect.parameters, *task.likelihood.law.parameters)
        centre, deviation = task.level_prior(np.array(self.u))
        rows = [(0.0, 1.0)] * self.size + [(float(centre), deviation)]
        rows += [(law.mean, law.deviation) for law in laws] + [(0.0, 1.0)] * task.n_beta
        return np.array(rows).T


@dataclass(frozen=True)
class PointRun:
    """One tempered population at one length-scale and one u.

    Attributes
    ----------
    log_length, u : float
    x : (D, S)
    log_likelihood : (S,)
    log_evidence : float
        ln p(counts | a, u), plus what the caller adds for the hyper-parameters.
    evaluations, updates, n_steps : int
        Work done, and steps from the prior to the posterior.
    """

    log_length: float
    u: float
    x: Floats
    log_likelihood: Floats
    log_evidence: float
    evaluations: int
    updates: int
    n_steps: int


@dataclass(frozen=True)
class Settings:
    """What is sampled, and which hyper-parameters are free: their priors join the evidence."""

    task: Task
    free_length: bool
    free_u: bool
    correlation: float

    def run(self, log_length: float, u: float, n: int, seed: np.random.SeedSequence) -> PointRun:
        """A population of n draws at (a, u)."""
        with one_blas_thread():  # in whatever process joblib chose
            rng = np.random.default_rng(seed)
            target = CurveTarget(self.task.landscape(log_length), u)

            def move(draws: Population, tau: float, rng: np.random.Generator) -> Population:
                return population_slice(target, draws, tau, rng)

            run = temper(target.draw_prior(n, rng), move, rng, correlation=self.correlation)
        prior = target.log_prior_at(length_scale=self.free_length, u=self.free_u)
        last = run.population
        return PointRun(
            log_length, u, last.x, last.terms[0], run.log_evidence + prior, last.evaluations,
            last.updates, len(run.betas) - 1,
        )  # fmt: skip
