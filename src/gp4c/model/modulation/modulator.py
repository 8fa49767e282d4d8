r"""Factors of the rate that change within an interval.

The rate of row j at time s is

.. math:: \lambda_j(s) = f(s)^2 \exp(x_j(s)^\top w), \qquad w \sim N(0, I),

where a part (a trend, a season, an effect over time) gives the features x. They depend on the time
s in windows and on a few numbers that the row brings, its inputs: where the calendar stands at its
time 0, or its covariates. A feature holds its own scale, so that every coefficient of w has the
same prior (docs/maths_modulation.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Modulator(ABC):
    """One factor of the rate, exp(x(s)ᵀw), with as many coefficients as it has features."""

    #: what the factor is called in tables of parameters
    name: ClassVar[str]
    #: prior probability that the curve beside this factor does not vary
    alone: ClassVar[float] = 0.0

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of features."""

    @property
    def method(self) -> str:
        """A sentence for methods sections; empty where another part of them says it."""
        return ""

    @property
    def new_words(self) -> str:
        """What a forecast says of this factor for a new subject; empty if nothing is to say."""
        return ""

    @property
    def neutral(self) -> Floats:
        """Inputs of nobody in particular; as many numbers as a row brings."""
        return np.zeros(0)

    @abstractmethod
    def features(self, x: Floats, inputs: Floats, goes_on: bool) -> Floats:
        """Features at times x, in windows, of a row with these inputs: (Q, size).

        Outside the window, [0, 1], a trend goes on or stays as it is at the nearer end.
        """

    @abstractmethod
    def over(self, window: tuple[float, float]) -> Self:
        """The same factor over another window, of the user's time."""

    def shown(self, x: Floats) -> Floats:
        """Times at which the rate is shown instead of x, where it is 0 or infinite at x itself."""
        return x

    def edges(self, low: float, high: float) -> Floats:
        """Where panels between low and high must end for polynomials to carry the factor."""
        return np.zeros(0)


@dataclass(frozen=True)
class Modulation:
    """Several factors of one rate.

    Attributes
    ----------
    parts : tuple of Modulator
    """

    parts: tuple[Modulator, ...]

    @property
    def size(self) -> int:
        """Features of all parts: the rows of w."""
        return sum(part.size for part in self.parts)

    @property
    def alone(self) -> float:
        """Prior probability that the curve beside the factors does not vary."""
        return max((part.alone for part in self.parts), default=0.0)

    @property
    def neutral(self) -> Floats:
        """Inputs of nobody in particular, (r,)."""
        return np.concatenate([part.neutral for part in self.parts])

    def features(self, x: Floats, inputs: Floats, goes_on: bool = True) -> Floats:
        """Features of all parts side by side, (Q, size); see :meth:`Modulator.features`."""
        ends = np.cumsum([len(part.neutral) for part in self.parts])[:-1]
        own = np.split(inputs, ends)
        columns = [p.features(x, i, goes_on) for p, i in zip(self.parts, own, strict=True)]
        return np.concatenate(columns, axis=1)

    def sheets(self, x: Floats, inputs: Floats, goes_on: bool = True) -> Floats:
        """Features for several sets of inputs (P, r), one after the other: (P · Q, size)."""
        return np.concatenate([self.features(x, one, goes_on) for one in inputs])

    def shown(self, x: Floats) -> Floats:
        """Times at which the rate is finite; see :meth:`Modulator.shown`."""
        for part in self.parts:
            x = part.shown(x)
        return x

    def refined(self, edges: Floats) -> Floats:
        """Edges of panels with those that the parts ask for."""
        asked = [part.edges(float(edges[0]), float(edges[-1])) for part in self.parts]
        return np.unique(np.concatenate([edges, *asked]))

    def over(self, window: tuple[float, float]) -> Modulation:
        """The same factors over another window, of the user's time."""
        return Modulation(tuple(part.over(window) for part in self.parts))

    def rows(self, part: Modulator) -> slice:
        """Where the coefficients of a part are in w."""
        first = sum(one.size for one in self.parts[: self.parts.index(part)])
        return slice(first, first + part.size)
