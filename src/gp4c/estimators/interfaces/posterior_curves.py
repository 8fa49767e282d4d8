"""Curves of a fitted posterior of λ, with their bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.inputs import check_band
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.estimators.interfaces.fitted_window import shaped_like
from gp4c.estimators.interfaces.reported_bounds import FittedBounds
from gp4c.posterior.quantiles import simultaneous_level
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.estimators.base import Numbers
    from gp4c.posterior.draws import CurveDraws
    from gp4c.posterior.sparse_posterior import Posterior

Floats = NDArray[np.float64]

#: draws of the curve, and times in the window, behind a simultaneous band
BAND_DRAWS, BAND_POINTS = 2000, 400


class PosteriorCurves(FittedBounds):
    """Rate and mean number of events: posterior means, credible bands and draws."""

    random_state: int | None
    posterior_: Posterior | CurveDraws

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of the intensity λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        extrapolate : bool
            Allow times outside the window, where the model returns to its prior.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> model.intensity([12.0, 24.0]).shape
        (2,)
        """
        return self._evaluate(t, self._posterior().intensity, extrapolate)

    def cumulative(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of Λ(t), the expected number of events from the window's start to t.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> bool(model.cumulative(12.0) < model.cumulative(24.0))
        True
        """

        def function(times: Floats) -> Floats:
            return self._signed(times, self._posterior().expected_integral)

        return self._evaluate(t, function, extrapolate)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of λ: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
            Posterior probability between the two curves.
        kind : {"pointwise", "simultaneous"}
            Probability at each time, with equal tails; or of the whole curve over the window to
            lie between the two, which is wider. The band of a variational fit begins at zero where
            f may be zero.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.intensity_band(24.0, 0.9, kind="simultaneous")
        >>> bool(low < model.intensity(24.0) < high)
        True
        """
        posterior = self._posterior()
        levels = self._tails(level, kind, lambda x: self._draw_intensities(posterior, x))
        low, high = np.array(levels)[:, None]
        x = self._inside(t, extrapolate)
        first, last = posterior.intensity_edges(x.ravel(), low, high)[:, 0]
        return shaped_like(x, first), shaped_like(x, last)

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of Λ(t): (low, high), each shaped like `t`; see :meth:`intensity_band`.

        Quantiles are those of the weighted draws; of a variational posterior they come from Jensen
        and Solomon's law with the exact first three cumulants (docs/maths.md, section 7).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        posterior = self._posterior()
        levels = self._tails(level, kind, lambda x: self._draw_cumulatives(posterior, x))
        x = self._inside(t, extrapolate)
        edges = self._signed(
            x.ravel(), lambda a, b: posterior.integral_quantile(a, b, np.array(levels))
        )
        first, last = np.sort(edges, axis=0)  # before the window Λ < 0
        return shaped_like(x, first), shaped_like(x, last)

    def sample_intensity(
        self,
        t: ArrayLike,
        size: int,
        random_state: int | None = None,
        *,
        extrapolate: bool = False,
    ) -> Floats:
        """Joint posterior draws of λ at the times `t`, shape (size, len(t)).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> model.sample_intensity([12.0, 24.0], size=100, random_state=1).shape
        (100, 2)
        """
        times = np.atleast_1d(self._inside(t, extrapolate)).ravel()
        rng = np.random.default_rng(self._seed(random_state))
        return self._posterior().sample_intensity(times, size, rng)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> parts = model.expected_counts([0.0, 12.0], [12.0, 24.0])
        >>> bool(abs(parts.sum() - model.cumulative(24.0)) < 1e-6)
        True
        """
        integral = self._posterior().expected_integral
        return self._over_intervals(start, stop, extrapolate, integral)

    # -- helpers ----------------------------------------------------------------------------

    def _posterior(self) -> Posterior | CurveDraws:
        """The posterior, or a clear error before ``fit``."""
        self._check_fitted()
        return self.posterior_

    def _seed(self, random_state: int | None) -> int:
        if random_state is not None:
            return random_state
        return self.random_state if self.random_state is not None else 0

    def _tails(
        self, level: float, kind: str, draw: Callable[[Floats], Floats]
    ) -> tuple[float, float]:
        """Tail probabilities of a band; a simultaneous one uses draws of the curve."""
        check_band(level, kind)
        self._check_fitted()
        if kind == "simultaneous":
            inner = np.linspace(*self.window_, BAND_POINTS + 1)[1:]  # Λ is 0 at the start
            with one_blas_thread():
                level = simultaneous_level(draw(inner), level)
        low, high = equal_tails(level)
        return low, high

    def _draw_intensities(self, posterior: Posterior | CurveDraws, times: Floats) -> Floats:
        rng = np.random.default_rng(self._seed(None))
        return posterior.sample_intensity(times, BAND_DRAWS, rng)

    def _draw_cumulatives(self, posterior: Posterior | CurveDraws, times: Floats) -> Floats:
        rng = np.random.default_rng(self._seed(None))
        start = np.full_like(times, self.window_[0])
        return posterior.sample_integrals(start, times, BAND_DRAWS, rng)

    def _signed(self, times: Floats, integral: Callable[[Floats, Floats], Floats]) -> Floats:
        """∫ from the window's start to each time; negative for times before it."""
        origin = np.full_like(times, self.window_[0])
        before = times < origin
        value = integral(np.minimum(times, origin), np.maximum(times, origin))
        return np.asarray(np.where(before, -value, value))
