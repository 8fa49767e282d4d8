"""What is assumed about a trial of two arms, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import check_choice, shown_number
from gp4c.exceptions import PanelDataError

Floats = NDArray[np.float64]

#: what the permutation test may look for
TESTS = ("level", "curve", "any")
#: the most subjects of an arm, visits of a subject and strata
MOST_SUBJECTS, MOST_VISITS, MOST_STRATA = 20_000, 1000, 100


@dataclass(frozen=True)
class TrialDesign:
    r"""A trial of two arms, whose subjects differ.

    Subject k of stratum s has events at the rate

    .. math:: \upsilon_k\, \kappa_s\, r^{z_k}\, \lambda(t), \qquad
              \upsilon_k \sim \mathrm{Gamma}(1/v, 1/v) ,

    z = 1 in the second arm; given υ a count has 1 + φ times the variance of a Poisson count.

    Attributes
    ----------
    times, cumulative : tuple of float
        Λ(t) of the first arm from the start of follow-up, linear between these times; the last
        one is the end of follow-up.
    visits : int
        Evenly spaced visits of a subject, the last at the end of follow-up.
    frailty_variance, dispersion : float
        v and 1 + φ.
    drop_out : float
        Share of subjects who leave, at times spread evenly over follow-up. They are counted up to
        their last visit.
    allocation : float
        Subjects of the second arm for each of the first.
    strata : tuple of float
        κ, equally many subjects each; (1.0,) without strata.
    jitter : float
        Visits but the last are up to this share of half a distance early or late.
    test : str
    n_permutations : int
    """

    times: tuple[float, ...]
    cumulative: tuple[float, ...]
    visits: int
    frailty_variance: float
    dispersion: float
    drop_out: float
    allocation: float
    strata: tuple[float, ...]
    jitter: float
    test: str
    n_permutations: int

    @property
    def follow_up(self) -> float:
        """Length of follow-up."""
        return self.times[-1]

    @property
    def rate(self) -> float:
        """Average rate of the first arm over follow-up."""
        return self.cumulative[-1] / self.follow_up

    @property
    def constant(self) -> bool:
        """Whether the rate is the same at all times."""
        return len(self.times) == 2

    @property
    def phi(self) -> float:
        """φ, the excess of the dispersion."""
        return self.dispersion - 1.0

    def visit_times(self) -> Floats:
        """The plan, (J,)."""
        times: Floats = np.linspace(0.0, self.follow_up, self.visits + 1)[1:]
        return times

    def expected(self, times: Floats) -> Floats:
        """Λ at times."""
        return np.asarray(np.interp(times, self.times, self.cumulative))

    def arms(self, n_per_arm: int) -> tuple[int, int]:
        """Subjects of the first and the second arm."""
        return n_per_arm, max(round(self.allocation * n_per_arm), 2)

    def stratum_sizes(self, n: int) -> NDArray[np.intp]:
        """Subjects of an arm in each stratum, as equal as can be."""
        each, more = divmod(n, len(self.strata))
        sizes = np.full(len(self.strata), each, dtype=np.intp)
        sizes[:more] += 1
        return sizes


def checked(design: TrialDesign) -> TrialDesign:
    """The design, if it obeys every rule."""
    _between("visits", design.visits, 1, MOST_VISITS, whole=True)
    _between("frailty_variance", design.frailty_variance, 0, 1e4)
    _between("dispersion", design.dispersion, 1, 1e4)
    _between("drop_out", design.drop_out, 0, 1)
    _between("allocation", design.allocation, 0.01, 100)
    _between("jitter", design.jitter, 0, 1)
    _between("n_permutations", design.n_permutations, 19, 99_999, whole=True)
    if not 1 <= len(design.strata) <= MOST_STRATA:
        raise PanelDataError(
            f"strata must be 1 to {MOST_STRATA} relative rates; there are {len(design.strata)}"
        )
    for rate in design.strata:
        _between("strata", rate, 1e-6, 1e6)
    check_choice("test", design.test, TESTS)
    return design


def constant_rate(rate: float, follow_up: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times and Λ of a rate that does not change."""
    _between("rate", rate, 1e-12, 1e12)
    _between("follow_up", follow_up, 1e-12, 1e12)
    return (0.0, float(follow_up)), (0.0, float(rate * follow_up))


def check_ratios(ratio: float | Sequence[float]) -> tuple[float, ...]:
    """One ratio or several, as numbers."""
    ratios = tuple(float(r) for r in np.atleast_1d(np.asarray(ratio, dtype=np.float64)))
    if not ratios:
        raise PanelDataError("ratio must be a number or several; there is none")
    for value in ratios:
        _between("ratio", value, 1e-3, 1e3)
    return ratios


def check_sizes(n_per_arm: int | Sequence[int], n_strata: int) -> tuple[int, ...]:
    """One number of subjects or several."""
    sizes = np.atleast_1d(np.asarray(n_per_arm))
    if not len(sizes):
        raise PanelDataError("n_per_arm must be a number or several; there is none")
    for value in sizes.tolist():
        _between("n_per_arm", value, 2, MOST_SUBJECTS, whole=True)
        if value < 2 * n_strata:
            raise PanelDataError(
                f"each arm needs at least 2 subjects per stratum; {value} subjects are too few "
                f"for {n_strata} strata"
            )
    return tuple(int(value) for value in sizes)


def check_share(name: str, value: float) -> None:
    """Raise unless a number lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise PanelDataError(f"{name} must be between 0 and 1; it is {value!r}")


def check_number(name: str, value: int, low: int, high: int) -> None:
    """Raise unless a whole number lies within its limits."""
    _between(name, value, low, high, whole=True)


def _between(name: str, value: float, low: float, high: float, *, whole: bool = False) -> None:
    """Raise unless a number, not a truth value, lies within its limits."""
    kinds = (int, np.integer) if whole else (int, float, np.number)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        shown = shown_number(value) if isinstance(value, int | float | np.number) else repr(value)
        raise PanelDataError(f"{name} must be {kind} from {low:g} to {high:g}; found {shown}")
