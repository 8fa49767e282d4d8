"""Parts from outside the package, written from the recipes of CONTRIBUTING.md."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import nbinom, norm

from gp4c.classical.plug_in import PlugInEstimator
from gp4c.files import kinds
from gp4c.model.kernels import Kernel
from gp4c.model.laws import CountLaw, Parameter, SubjectEffect


class NegativeBinomial(CountLaw):
    """The law with bursts once more, with nothing but its probability: derivatives by differences.

    The test compares it with the one of the package.
    """

    name = "toy_bursts"
    title = "events come in bursts (a toy)"
    parameters = (Parameter("log_excess", float(np.log(0.5)), 2.0),)

    def power(self, count):
        return np.asarray((count > 0).astype(float))

    def has_remainder(self, count):
        return count > 0

    def remainder_value(self, mean, count, theta):
        phi = np.exp(theta[0])
        m = count.reshape((-1,) + (1,) * (mean.ndim - 1))
        full = nbinom.logpmf(m, mean / phi, 1 / (1 + phi)) + gammaln(m + 1)
        return full - np.log(mean) + np.log1p(phi) / phi * mean

    def hazard_value(self, theta):
        phi = np.exp(theta[0])
        return np.log1p(phi) / phi

    def draw(self, mean, theta, rng):
        phi = np.exp(theta[0])
        return rng.poisson(rng.standard_gamma(mean / phi) * phi)

    def cdf(self, count, mean, theta):
        phi = np.exp(theta[0])
        return nbinom.cdf(count, mean / phi, 1 / (1 + phi))

    def dispersion(self, theta):
        return 1 + np.exp(theta[0])


class ShiftedBursts(NegativeBinomial):
    """The same with another parameter, 1 + ln φ: nobody else may know what θ means."""

    name = "toy_shifted"
    parameters = (Parameter("one_more", float(np.log(0.5)) + 1.0, 2.0),)

    def remainder_value(self, mean, count, theta):
        return super().remainder_value(mean, count, theta - 1.0)

    def hazard_value(self, theta):
        return super().hazard_value(theta - 1.0)

    def draw(self, mean, theta, rng):
        return super().draw(mean, theta - 1.0, rng)

    def cdf(self, count, mean, theta):
        return super().cdf(count, mean, theta - 1.0)

    def dispersion(self, theta):
        return super().dispersion(theta - 1.0)

    def words(self, theta):
        return f"shifted by {float(np.median(theta[0])) - np.log(self.dispersion(theta) - 1):.3f}"


class LogNormalEffect(SubjectEffect):
    """ln υ ~ N(−v/2, v), ψ = ln v: no closed form, so every subject is integrated numerically."""

    name = "toy_lognormal"
    title = "subjects differ (log-normal effects, a toy)"
    noun = "with log-normal effects"
    parameters = (Parameter("log_variance", 0.0, 1.5),)

    def log_density(self, y, psi):
        v = np.exp(psi[0])
        return norm.logpdf(y, -v / 2, np.sqrt(v))

    def derivatives(self, y, psi):
        v = np.exp(psi[0])
        return -(y + v / 2) / v, -1 / v + np.zeros_like(y + v)

    def parameter_derivatives(self, y, psi):
        v = np.exp(psi[0])
        first = -0.5 * (1 + v / 4 - y**2 / v)
        second = -0.5 * (v / 4 + y**2 / v)
        return first[None], second[None, None], (y / v)[None]

    def variance(self, psi):
        return np.expm1(np.exp(psi[0]))

    # asked about no subject, since every subject is integrated numerically

    def closed_form_each(self, power, exposure, psi):
        return np.zeros_like(exposure)

    def mean(self, psi, power, exposure):
        return np.ones_like(exposure)

    def draw(self, psi, power, exposure, rng):
        return np.ones_like(exposure)


class RationalQuadratic(Kernel):
    """k(r) = (1 + r²/4a²)⁻²: several length-scales at once."""

    name = "toy_rational"
    title = "rational quadratic (a toy)"
    spacing = 0.5

    def __call__(self, distance, length_scale):
        return (1.0 + (distance / length_scale) ** 2 / 4.0) ** -2


class WeibullMoments(PlugInEstimator):
    """Λ(t) = a tᵇ through the mean counts by the middle and by the end of the window.

    Estimating by two moments takes no iteration: everything else comes from the base class.
    """

    name = "toy-weibull"
    title = "Weibull growth from two moments (a toy)"
    method_text = "A Weibull growth curve was matched to two moments (a toy)."
    saved = {"scale_": kinds.number(positive=True), "power_": kinds.number(positive=True)}  # noqa: RUF012

    def __init__(self, *, middle=0.5):
        self.middle = middle

    def _check_parameters(self):
        if not 0 < self.middle < 1:
            raise ValueError(f"middle must be between 0 and 1, not {self.middle!r}")

    def fit(self, panel, y=None):
        self._check_parameters()
        with self._whole_fit(panel):
            self._begin_fit(panel)
            # events are spread evenly over their intervals
            start, end = panel.window
            time = start + self.middle * (end - start)
            shares = np.clip((time - panel.start) / (panel.stop - panel.start), 0, 1)
            by_then, all_events = float(shares @ panel.count), float(panel.n_events)
            self.power_ = np.log(by_then / all_events) / np.log(self.middle)
            spans = (panel.stop - start) ** self.power_ - (panel.start - start) ** self.power_
            self.scale_ = all_events / float(panel.exposure @ spans)
            expected = panel.exposure * self.scale_ * spans
            self.objective_ = float(panel.count @ np.log(expected) - expected.sum())
            self._end_fit(panel)
        return self

    def _cumulative(self, times):
        return self.scale_ * np.maximum(times - self.window_[0], 0.0) ** self.power_

    def intensity(self, t, *, extrapolate=False):
        def rate(times):
            since = np.maximum(times - self.window_[0], 1e-9)
            return self.scale_ * self.power_ * since ** (self.power_ - 1)

        return self._evaluate(t, rate, extrapolate)
