"""How subjects differ: laws of the effect υ that multiplies a subject's rate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import (
    digamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    ndtr,
    ndtri,
    zeta,
)

from gp4c.model.gamma_frailty import log_marginal
from gp4c.model.laws.count_law import Parameter

Floats = NDArray[np.float64]

#: grid of ln υ on which a law without quantiles of its own is summed up
_SCORED = (-60.0, 12.0, 7201)
#: every law of effects that can be asked for by name; a law joins by being defined
EFFECTS: dict[str | None, SubjectEffect] = {}


@dataclass(frozen=True)
class ClosedForm:
    """Subjects without a remainder, pooled where they were seen over the same time.

    Attributes
    ----------
    number, power : (O,)
        Subjects that an owner stands for, and their powers n, summed.
    powers, times : (n,)
        Different powers of single subjects, and how many subjects have them.
    """

    number: Floats
    power: Floats
    powers: Floats
    times: Floats


@dataclass(frozen=True)
class ClosedFormTerms:
    """Σ ln ∫ p(υ) υⁿ e^{−Eυ} dυ with its derivatives: (S,), (O, S), and ψ first in shapes."""

    value: Floats
    by_exposure: Floats
    by_exposure_twice: Floats
    by_psi: Floats
    by_psi_twice: Floats
    crossed: Floats


class SubjectEffect(ABC):
    """A law of υ with mean 1. Subclasses with a `name` register themselves in `EFFECTS`.

    Attributes
    ----------
    name : str or None
    title, noun : str
        What it says of subjects, in a row of a summary and in the middle of a sentence.
    method, caution : str
        A sentence for a methods section, and what a reader should know before relying on it.
    parameters : tuple of Parameter
        ψ, each with a normal prior.
    conjugate : bool
        Whether `closed_form` integrates the effect of subjects without a remainder.
    is_free : bool
        Whether the effect of each subject is a parameter of its own, fitted to its counts.
    """

    name: ClassVar[str | None]
    title: ClassVar[str]
    method: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    caution: ClassVar[str] = ""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    conjugate: ClassVar[bool] = False
    is_free: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            EFFECTS[cls.name] = cls()

    @property
    def varies(self) -> bool:
        """Whether subjects differ at all."""
        return True

    @abstractmethod
    def log_density(self, y: Floats, psi: Floats) -> Floats:
        """Log density of y = ln υ."""

    @abstractmethod
    def derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats]:
        """∂/∂y and ∂²/∂y² of the log density."""

    @abstractmethod
    def parameter_derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats, Floats]:
        """∂/∂ψ (P, ...), ∂²/∂ψ∂ψ (P, P, ...) and ∂²/∂y∂ψ (P, ...) of the log density."""

    def closed_form(self, subjects: ClosedForm, exposure: Floats, psi: Floats) -> Floats:
        """Σ ln ∫ p(υ) υⁿ e^{−Eυ} dυ; only of conjugate laws."""
        raise NotImplementedError

    def closed_form_each(self, power: Floats, exposure: Floats, psi: Floats) -> Floats:
        """The same for single subjects, (K, S)."""
        raise NotImplementedError

    def closed_form_terms(
        self, subjects: ClosedForm, exposure: Floats, psi: Floats
    ) -> ClosedFormTerms:
        """The sum with derivatives."""
        raise NotImplementedError

    def subject_terms(self, power: Floats, exposure: Floats, psi: Floats) -> ClosedFormTerms:
        """The integral of each of K subjects with derivatives, at one ψ (P,): (K,) and (P, K)."""
        raise NotImplementedError

    @abstractmethod
    def draw(
        self, psi: Floats, power: Floats, exposure: Floats, rng: np.random.Generator
    ) -> Floats:
        """υ given n and c R of a subject without a remainder: density ∝ p(υ) υⁿ e^{−cRυ}."""

    @abstractmethod
    def variance(self, psi: Floats) -> Floats:
        """Variance of υ."""

    def mean(self, psi: Floats, power: Floats, exposure: Floats) -> Floats:
        """E υ of the same law; only of conjugate laws."""
        raise NotImplementedError

    # -- normal scores: Φ(z) = P(effect ≤ υ) ------------------------------------------------------

    def log_quantile(self, z: Floats, psi: Floats) -> Floats:
        """ln υ at scores (N,), for every draw of ψ (P, S): (S, N); by summing the density."""
        y, below, above = self._tails(psi)
        scores = np.where(below < above, ndtri(below), -ndtri(above))
        return np.array([np.interp(z, one, y) for one in scores.T])

    def score(self, y: Floats, psi: Floats) -> Floats:
        """z at ln υ, (..., S) each."""
        at, below, above = self._tails(psi)
        scores = np.where(below < above, ndtri(below), -ndtri(above))
        each = [np.interp(y[..., s], at, scores[:, s]) for s in range(psi.shape[1])]
        return np.stack(each, axis=-1)

    def _tails(self, psi: Floats) -> tuple[Floats, Floats, Floats]:
        """P(ln υ ≤ y) and P(ln υ > y) on a grid of y: (G,), (G, S), (G, S)."""
        y = np.linspace(*_SCORED)
        mass = np.exp(self.log_density(y[:, None], psi)) * (y[1] - y[0])
        below, above = np.cumsum(mass, axis=0), np.cumsum(mass[::-1], axis=0)[::-1]
        whole = mass.sum(axis=0)
        ends = [np.clip((side - mass / 2) / whole, 1e-300, 1.0) for side in (below, above)]
        return y, ends[0], ends[1]


class NoEffect(SubjectEffect):
    """υ = 1 for everybody: nothing to integrate."""

    name: ClassVar[str | None] = None
    title = "all subjects have the same rate"
    method = "All subjects were taken to have the same rate."
    noun = "without subject effects"

    @property
    def varies(self) -> bool:
        """Subjects do not differ."""
        return False

    def log_density(self, y: Floats, psi: Floats) -> Floats:
        """All mass is at y = 0."""
        return np.zeros_like(y)

    def derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats]:
        """None."""
        return np.zeros_like(y), np.zeros_like(y)

    def parameter_derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats, Floats]:
        """None."""
        return np.zeros((0, *y.shape)), np.zeros((0, 0, *y.shape)), np.zeros((0, *y.shape))

    def subject_terms(self, power: Floats, exposure: Floats, psi: Floats) -> ClosedFormTerms:
        """−E."""
        none, k = np.zeros_like(exposure), len(exposure)
        nothing = np.zeros((0, k))
        return ClosedFormTerms(-exposure, none - 1.0, none, nothing, np.zeros((0, 0, k)), nothing)

    def draw(
        self, psi: Floats, power: Floats, exposure: Floats, rng: np.random.Generator
    ) -> Floats:
        """Ones."""
        return np.ones(np.broadcast_shapes(np.shape(power), np.shape(exposure)))

    def variance(self, psi: Floats) -> Floats:
        """0."""
        return np.zeros(psi.shape[1:])


class GammaEffect(SubjectEffect):
    """υ ~ Gamma(α, α), the gamma frailty: mean 1, variance 1/α; ψ = ln α.

    It is conjugate to laws without a remainder:
    ∫ p(υ) υⁿ e^{−Eυ} dυ = α^α Γ(α + n) / (Γ(α) (α + E)^{α + n}).
    """

    name = "gamma"
    title = "subjects differ (gamma frailty)"
    method = "Differences between subjects were modelled as gamma frailties with mean 1."
    noun = "with subject effects"
    conjugate = True
    parameters = (Parameter("log_shape", 0.0, 2.0),)

    def log_density(self, y: Floats, psi: Floats) -> Floats:
        """α ln α − ln Γ(α) + α (y − e^y)."""
        alpha = np.exp(psi[0])
        return np.asarray(alpha * psi[0] - gammaln(alpha) + alpha * (y - np.exp(y)))

    def derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats]:
        """α (1 − υ) and −α υ."""
        alpha = np.exp(psi[0])
        alpha_v = alpha * np.exp(y)
        return alpha - alpha_v, -alpha_v

    def parameter_derivatives(self, y: Floats, psi: Floats) -> tuple[Floats, Floats, Floats]:
        """α (ln α + 1 − ψ(α) + y − υ), the same + α − α² ψ′(α), and α (1 − υ)."""
        alpha = np.exp(psi[0])
        effect = np.exp(y)
        first = alpha * (psi[0] + 1.0 - digamma(alpha) + y - effect)
        second = first + alpha - alpha**2 * zeta(2.0, alpha)
        return first[None], second[None, None], (alpha * (1.0 - effect))[None]

    def closed_form(self, subjects: ClosedForm, exposure: Floats, psi: Floats) -> Floats:
        """Σ_k ln ∫ p(υ) υ^{n_k} e^{−E_k υ} dυ, E (O, S) and ψ (1, S) given."""
        alpha = np.exp(psi[0])
        log_rate = np.log(alpha + exposure)
        each = gammaln(alpha + subjects.powers[:, None])
        constants = subjects.times.sum() * (alpha * psi[0] - gammaln(alpha))
        return np.asarray(
            constants + subjects.times @ each
            - alpha * (subjects.number @ log_rate) - subjects.power @ log_rate
        )  # fmt: skip

    def closed_form_each(self, power: Floats, exposure: Floats, psi: Floats) -> Floats:
        """ln ∫ p(υ) υⁿ e^{−Eυ} dυ of single subjects, (K, S)."""
        alpha = np.exp(psi[0])
        shape = alpha + power[:, None]
        constant = alpha * psi[0] - gammaln(alpha)
        return np.asarray(constant + gammaln(shape) - shape * np.log(alpha + exposure))

    def closed_form_terms(
        self, subjects: ClosedForm, exposure: Floats, psi: Floats
    ) -> ClosedFormTerms:
        """The same with derivatives in E and ψ = ln α."""
        alpha = np.exp(psi[0])
        number, power = subjects.number[:, None], subjects.power[:, None]
        n_subjects = subjects.times.sum()
        rate = 1.0 / (alpha + exposure)
        shape = alpha * number + power
        mean = shape * rate
        shifted = alpha + subjects.powers[:, None]
        first = n_subjects * (psi[0] + 1.0 - digamma(alpha)) + subjects.times @ digamma(shifted)
        first = first + (number * np.log(rate) - mean).sum(axis=0)
        second = n_subjects * (1.0 / alpha - zeta(2.0, alpha)) + subjects.times @ zeta(2.0, shifted)
        second = second - ((2.0 * number - mean) * rate).sum(axis=0)
        return ClosedFormTerms(
            value=self.closed_form(subjects, exposure, psi),
            by_exposure=-mean,
            by_exposure_twice=mean * rate,
            by_psi=(alpha * first)[None],
            by_psi_twice=(alpha * first + alpha**2 * second)[None, None],
            crossed=(alpha * (mean - number) * rate)[None],
        )

    def subject_terms(self, power: Floats, exposure: Floats, psi: Floats) -> ClosedFormTerms:
        """Given the counts υ ~ Gamma(α + n, α + E); keeps its digits as α → ∞."""
        alpha = float(np.exp(psi[0]))
        shape, rate = alpha + power, alpha + exposure
        mean = shape / rate
        by_psi = alpha * (psi[0] + 1.0 - digamma(alpha) + digamma(shape) - np.log(rate) - mean)
        curve = alpha - alpha**2 * (zeta(2.0, alpha) - zeta(2.0, shape))
        return ClosedFormTerms(
            value=log_marginal(1.0 / alpha, power, exposure),
            by_exposure=-mean,
            by_exposure_twice=mean / rate,
            by_psi=by_psi[None],
            by_psi_twice=(by_psi + curve - alpha**2 * (2.0 - mean) / rate)[None, None],
            crossed=(alpha * (mean - 1.0) / rate)[None],
        )

    def draw(
        self, psi: Floats, power: Floats, exposure: Floats, rng: np.random.Generator
    ) -> Floats:
        """Gamma(α + n, α + E)."""
        alpha = np.exp(psi[0])
        return np.asarray(rng.standard_gamma(alpha + power) / (alpha + exposure))

    def mean(self, psi: Floats, power: Floats, exposure: Floats) -> Floats:
        """(α + n)/(α + E)."""
        alpha = np.exp(psi[0])
        return np.asarray((alpha + power) / (alpha + exposure))

    def variance(self, psi: Floats) -> Floats:
        """1/α."""
        return np.asarray(np.exp(-psi[0]))

    def log_quantile(self, z: Floats, psi: Floats) -> Floats:
        """The quantile of Gamma(α, α) at Φ(z), from the nearer tail."""
        alpha = np.exp(psi[0])[:, None]
        tail = np.broadcast_to(ndtr(-np.abs(z)), (psi.shape[1], len(z)))
        low = z <= 0
        value = np.empty(tail.shape)
        value[:, low] = gammaincinv(alpha, tail[:, low])
        value[:, ~low] = gammainccinv(alpha, tail[:, ~low])
        return np.asarray(np.log(np.maximum(value, 1e-300)) - psi[0][:, None])

    def score(self, y: Floats, psi: Floats) -> Floats:
        """Φ⁻¹ of the distribution function of Gamma(α, α), from the nearer tail."""
        alpha = np.exp(psi[0])
        x = alpha * np.exp(y)
        below, above = gammainc(alpha, x), gammaincc(alpha, x)
        least = np.maximum(np.minimum(below, above), 1e-300)
        return np.asarray(np.where(below < above, 1.0, -1.0) * ndtri(least))
