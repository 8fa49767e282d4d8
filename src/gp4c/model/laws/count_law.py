"""What a law of counts must say about itself.

A cell is counted once: r events are expected there for a subject of effect 1, and m are seen.
Every law is written as

    ln p(m | υ, r, θ) = n ln(υ r) + q(υ r; m, θ) − c(θ) υ r + s(m, θ) − ln m!

with a power n and a remainder q. A count of 0 has ln p = −c(θ) υ r and nothing else, as divisible
laws have, so that time at risk can be summed up. Where q is zero, a gamma effect υ is integrated in
closed form;
where it is not, by one quadrature per subject (`gp4c.model.count_likelihood`). Anything else that
depends on the effect of a subject multiplies inside the same integral.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gp4c.model.hyper_priors import normal_log_density

Floats = NDArray[np.float64]

#: every law that can be asked for by name; a law joins by being defined
LAWS: dict[str, CountLaw] = {}

#: step of the differences that stand in for derivatives a law does not give
_STEP = 1e-4


@dataclass(frozen=True)
class Parameter:
    """A parameter of a law on the scale where its prior is normal.

    Attributes
    ----------
    name : str
        In exports of draws.
    mean, deviation : float
        Of the normal prior.
    natural : float
        Log-likelihoods of many rows are about quadratic in e^{natural · value}; in the value
        itself if this is 0. A law that ends in a simpler one has there a finite slope.
    """

    name: str
    mean: float
    deviation: float
    natural: float = 0.0

    def log_density(self, value: Floats) -> Floats:
        """Log density of the prior."""
        return normal_log_density(value, self.mean, self.deviation)


@dataclass(frozen=True)
class Remainder:
    """q and its derivatives in the logarithm of the mean and in θ; θ comes first in shapes.

    Attributes
    ----------
    value, slope, curve : (J, ...)
        q, ∂q/∂ln(mean), ∂²q/∂ln(mean)².
    theta, cross : (P, J, ...)
        ∂q/∂θ, ∂²q/∂ln(mean)∂θ.
    theta_theta : (P, P, J, ...)
    """

    value: Floats
    slope: Floats
    curve: Floats
    theta: Floats
    cross: Floats
    theta_theta: Floats


class CountLaw(ABC):
    """A law of counts. Subclasses with a `name` register themselves in `LAWS`.

    Attributes
    ----------
    name : str
    title, method : str
        What the counts do, in words: "events come one by one"; and as a sentence of a methods
        section.
    noun : str
        The same where laws are compared: "single events".
    parameters : tuple of Parameter
        θ, each with a normal prior.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    method: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    #: whether counts are Poisson given the effect: then their totals say all about it
    one_by_one: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            law = cls()
            law._check_zero()
            LAWS[cls.name] = law

    def _check_zero(self) -> None:
        """Rows without events are summed up as time at risk: ln p(0) must be −c(θ) · mean."""
        zero, theta = np.zeros(1), np.array([[one.mean] for one in self.parameters]).reshape(-1, 1)
        static = self.static(zero, np.ones(1), theta)[0]
        if self.power(zero)[0] or self.has_remainder(zero)[0] or np.any(static != 0.0):
            raise TypeError(
                f"the law {self.name!r} has more than -c(theta) * mean in ln p(0), as "
                "zero-inflated laws have; the engine cannot fit such laws"
            )

    # -- the density, part by part ------------------------------------------------------------

    @abstractmethod
    def power(self, count: Floats) -> Floats:
        """n for each count; 0 for a count of 0."""

    def has_remainder(self, count: Floats) -> NDArray[np.bool_]:
        """Which counts have a q that is not zero."""
        return np.zeros(len(count), dtype=bool)

    def remainder_value(self, mean: Floats, count: Floats, theta: Floats) -> Floats:
        """q for rows with a remainder, in the order of falling counts.

        Parameters
        ----------
        mean : (J, ...)
            υ r.
        count : (J,)
        theta : (P, ...)
            Broadcasts with `mean` after its first axis.
        """
        return np.zeros_like(mean)

    def at_points(self, count: Floats) -> float:
        """Σ q at mean 0, of exact event times shared by so many events; it must not depend on θ."""
        if self.has_remainder(count).any():
            raise ValueError(f"the law {self.name!r} does not say what exact event times tell")
        return 0.0

    def slopes(self, mean: Floats, count: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """∂q/∂ln(mean) and ∂²q/∂ln(mean)²."""
        found = self.remainder(mean, count, theta)
        return found.slope, found.curve

    def remainder(self, mean: Floats, count: Floats, theta: Floats) -> Remainder:
        """q with its derivatives; by differences unless a law knows better."""
        middle, first, second = _by_differences(
            lambda at: self.remainder_value(np.exp(at[0]), count, np.array(at[1:])),
            [np.log(mean), *theta],
        )
        return Remainder(middle, first[0], second[0, 0], first[1:], second[0, 1:], second[1:, 1:])

    def hazard_value(self, theta: Floats) -> Floats:
        """c(θ); the default is 1."""
        return np.ones(theta.shape[1:])

    def hazard(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """c(θ) with gradient (P, ...) and Hessian (P, P, ...); by differences."""
        if not len(theta):
            shape = theta.shape[1:]
            return self.hazard_value(theta), np.zeros((0, *shape)), np.zeros((0, 0, *shape))
        return _by_differences(lambda at: self.hazard_value(np.array(at)), list(theta))

    def static(self, count: Floats, weight: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Σ weight · s(m, θ) with gradient and Hessian; the default is 0."""
        shape = theta.shape[1:]
        p = len(self.parameters)
        return np.zeros(shape), np.zeros((p, *shape)), np.zeros((p, p, *shape))

    def log_probability(self, count: Floats, mean: Floats, theta: Floats) -> Floats:
        """ln p of counts (J,) with means (J, ...), Σ of all parts; θ (P, ...) as elsewhere."""
        order = np.argsort(-count, kind="stable")
        m, mu = count[order], np.maximum(mean[order], 1e-300)
        each = m.reshape((-1,) + (1,) * (mean.ndim - 1))
        value = self.power(each) * np.log(mu) - self.hazard(theta)[0] * mu - gammaln(each + 1.0)
        if len(theta):
            different, which = np.unique(m, return_inverse=True)
            parts = [self.static(one, np.ones(1), theta)[0] for one in different[:, None]]
            value = value + np.array(parts)[which]
        left = np.flatnonzero(self.has_remainder(m))
        if len(left):
            value[left] += self.remainder_value(mu[left], m[left], theta)
        result: Floats = np.empty_like(value)
        result[order] = value
        return result

    # -- counts to come -----------------------------------------------------------------------

    @abstractmethod
    def draw(self, mean: Floats, theta: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
        """Counts with these means; θ (P, ...) broadcasts with the mean."""

    @abstractmethod
    def cdf(self, count: Floats, mean: Floats, theta: Floats) -> Floats:
        """P(count or fewer), given the mean."""

    def dispersion(self, theta: Floats) -> Floats:
        """Variance of a count over its mean, given the effect of the subject."""
        return np.ones(theta.shape[1:])

    def burst_size(self, theta: Floats) -> float:
        """Mean number of events that come together, at one θ (P,)."""
        return 1.0

    def words(self, theta: Floats) -> str:
        """One sentence about the fitted law, from draws of θ (P, S) or one θ (P,)."""
        return self.title


def _by_differences(
    value: Callable[[list[Floats]], Floats], at: list[Floats]
) -> tuple[Floats, Floats, Floats]:
    """A function of several arguments with its first and second derivatives, by differences."""

    def moved(*shifts: tuple[int, float]) -> Floats:
        there = list(at)
        for index, step in shifts:
            there[index] = there[index] + step
        return value(there)

    size, middle = len(at), moved()
    first, second = np.empty((size, *middle.shape)), np.empty((size, size, *middle.shape))
    for i in range(size):
        up, down = moved((i, _STEP)), moved((i, -_STEP))
        first[i] = (up - down) / (2 * _STEP)
        second[i, i] = (up - 2 * middle + down) / _STEP**2
        for j in range(i):
            corners = (
                moved((i, _STEP), (j, _STEP)) - moved((i, _STEP), (j, -_STEP))
                - moved((i, -_STEP), (j, _STEP)) + moved((i, -_STEP), (j, -_STEP))
            )  # fmt: skip
            second[i, j] = second[j, i] = corners / (4 * _STEP**2)
    return middle, first, second
