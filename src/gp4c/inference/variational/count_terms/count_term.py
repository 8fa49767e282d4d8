"""What a count term says about itself, and the registry that it joins by being defined."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gp4c.model.kernels import Kernel
from gp4c.model.quadrature import IntervalIntegrals
from gp4c.model.sparse_prior import SparsePrior

if TYPE_CHECKING:
    from gp4c.inference.variational.count_terms.exact import Block

Floats = NDArray[np.float64]

#: every count term that can be asked for by name; a term joins by being defined
COUNT_TERMS: dict[str, CountTerm] = {}


class NodeTerm(NamedTuple):
    """A term of the bound that mean and variance of f at the nodes decide, and its derivatives.

    `constant` belongs to the term and depends on nothing that is learned; `value` is without it.
    """

    value: float
    by_mean: Floats
    by_variance: Floats
    constant: float = 0.0


#: the term of no data; one number stands for all nodes
NOTHING = NodeTerm(0.0, np.zeros(1), np.zeros(1))


class CountTerm(ABC):
    """Σ_j c_j E ln ∫_j f² or a bound on it. Subclasses with a `name` join `COUNT_TERMS`.

    A term overrides `at_nodes` if means and variances decide it, `blocks` if it needs
    covariances within intervals.

    Attributes
    ----------
    name : str
    words : str
        How it enters the bound, in a methods section; {b} is the share of the variance.
    remark : str
        What to beware of, in a summary.
    within : bool
        Whether it needs covariances within intervals.
    stand_in : str or None
        A cheaper term for first looks, and for more intervals than `most_intervals`.
    most_intervals : float
        Most intervals for which it is evaluated after a fit with another term.
    copies : float
        Arrays of (distinct intervals × inducing inputs) that a fit holds at once.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    remark: ClassVar[str] = ""
    within: ClassVar[bool] = False
    stand_in: ClassVar[str | None] = None
    most_intervals: ClassVar[float] = np.inf
    copies: ClassVar[float] = 18.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            COUNT_TERMS[cls.name] = cls()

    def at_nodes(
        self, integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats, b: float
    ) -> NodeTerm:
        """The term from mean and variance of f at the grid's nodes."""
        return NOTHING

    def interval_logs(
        self, integrals: IntervalIntegrals, mean: Floats, variance: Floats, b: float
    ) -> Floats:
        """E ln ∫_j f² of each interval, or the bound on it, where pointwise moments decide it.

        Its constant is included; a term that needs blocks leaves the numbers to them.
        """
        return np.full(integrals.size, np.nan)

    def blocks(
        self, start: Floats, stop: Floats, count: Floats, prior: SparsePrior, tol: float
    ) -> list[Block]:
        """Intervals with nodes of their own, for a term that needs covariances within them."""
        return []

    def numbers(self, length: Floats, kernel: Kernel) -> float:
        """Numbers held besides `copies`, for counted intervals of so many length-scales."""
        return 0.0


def count_term(name: str | None) -> CountTerm:
    """The term of that name; None is the tightest."""
    from gp4c.inference.variational.count_terms.exact import Exact

    wanted = Exact.name if name is None else name
    if wanted not in COUNT_TERMS:
        raise ValueError(f"count_term must be one of {', '.join(COUNT_TERMS)}, not {name!r}")
    return COUNT_TERMS[wanted]


def log_masses(count: Floats, mass: Floats) -> tuple[float, Floats]:
    """Σ c ln μ and c/μ; −∞, for every search to turn away from, where some μ is not positive.

    The interpolant of a positive function may dip below 0 on an interval far shorter than its
    panel, where f changes sign between the nodes.
    """
    if mass.min(initial=np.inf) <= 0.0:
        return -np.inf, np.zeros_like(mass)
    return float(count @ np.log(mass)), count / mass


def logs_of(mass: Floats) -> Floats:
    """ln μ; −∞ where μ is not positive."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(mass, 0.0))
