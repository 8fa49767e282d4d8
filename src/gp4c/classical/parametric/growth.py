"""Growth models: how a rate rises or falls over the life of a machine, by a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gp4c.classical.parametric.growth_model import GrowthModel
from gp4c.classical.parametric.rate_curves import LogLinearCurve, PowerCurve, RateCurve
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts


class PowerLaw(GrowthModel):
    r"""Power-law rate (Crow–AMSAA), for counts between inspections.

    .. math::
        \Lambda(t) = (t / \eta)^\beta, \qquad
        m \sim \mathrm{law}\bigl(\upsilon\, e\, e^{b^\top z}\,
        [\Lambda(stop) - \Lambda(start)]\bigr)

    β < 1 is reliability growth, β = 1 a constant rate, β > 1 wear. Time 0 of the data is the
    origin of the clock, also for a unit that was first seen later: put it at the beginning of
    life or of the test.

    **Use it** where the rate is known to go one way, and for forecasts beyond the data.
    **Do not use it** where the rate turns: :meth:`goodness_of_fit` says so.

    Parameters
    ----------
    effect : {None, "gamma"}
        Whether subjects differ, by a factor υ ~ Gamma(α, α) of their rates.
    bursts : bool
        Whether events come in bursts.
    formula : str, optional
        Covariates whose effects multiply the rate, such as ``"site + log(load)"``.

    Attributes
    ----------
    shape_ : float
        β.
    scale_ : float
        η, the time by which one event is expected, at average covariates.
    growth_rate_ : float
        1 − β.
    mtbf_ : float
        1/λ at the window's end.
    dispersion_, burst_size_, frailty_variance_, frailty_shape_
        Of the laws, as for :class:`~gp4c.HomogeneousPoisson`.
    coefficients_, effects_
        Of the covariates.
    subject_effects_, subject_effect_errors_ : (n_subjects,) array or None
        Means and standard deviations of the subjects' effects, given their counts.
    objective_ : float
        Log-likelihood (without Σ ln m!).

    Notes
    -----
    Where β < 1 the rate is infinite at time 0; :meth:`intensity` is given from a thousandth of
    the window's end on, and :meth:`cumulative` is exact.

    References
    ----------
    Crow, L. H. (1974), Reliability analysis for complex repairable systems, in Reliability and
    Biometry, SIAM, 379-410. MIL-HDBK-189C (2011), Reliability growth management.
    """

    name = "power-law"
    title = "power-law rate (Crow-AMSAA)"
    method_text = (
        "A power-law rate (Crow-AMSAA) was fitted to the counts between visits by maximum "
        "likelihood."
    )
    _words: ClassVar[Mapping[str, tuple[str, str]]] = {
        "shape": ("shape β", "below 1 the rate falls, above 1 it rises"),
        "scale": ("scale η", "the time by which one event is expected"),
        "mtbf": ("MTBF now", "mean time between events at the window's end"),
    }
    _kinds: ClassVar[Mapping[str, str]] = {"scale": "time", "mtbf": "between"}

    def _curve(self, window: tuple[float, float]) -> RateCurve:
        return PowerCurve(window[1])

    def _check_told(self, panel: PanelCounts) -> None:
        early = np.flatnonzero(panel.start < 0.0)
        if len(early):
            row = int(early[0])
            raise PanelDataError(
                "the clock of PowerLaw begins at time 0; the interval of subject "
                f"{panel.subjects[panel.subject_index[row]]!r} begins at {panel.start[row]:g} "
                f"(row {row})"
            )
        super()._check_told(panel)

    @property
    def shape_(self) -> float:
        """β."""
        return self._derived("shape")

    @property
    def growth_rate_(self) -> float:
        """1 − β: positive where reliability grows."""
        return 1.0 - self.shape_

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Profile-likelihood interval of "shape", "scale", "mtbf" or "growth_rate".

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.PowerLaw(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.interval("shape")
        >>> low < model.shape_ < high
        True
        """
        if name == "growth_rate":
            low, high = super().interval("shape", level)
            return 1.0 - high, 1.0 - low
        return super().interval(name, level)


class LogLinear(GrowthModel):
    r"""Log-linear rate (Cox–Lewis), for counts between inspections.

    .. math::
        \lambda(t) = \lambda_0 e^{\gamma t}, \qquad
        m \sim \mathrm{law}\Bigl(\upsilon\, e\, e^{b^\top z}\,
        \lambda_0 \frac{e^{\gamma\, stop} - e^{\gamma\, start}}{\gamma}\Bigr)

    γ > 0 is wear, γ = 0 a constant rate. In contrast to :class:`~gp4c.PowerLaw` the origin of the
    clock does not matter.

    Parameters
    ----------
    effect, bursts, formula
        As for :class:`~gp4c.PowerLaw`.

    Attributes
    ----------
    slope_ : float
        γ, change of ln λ in a unit of time.
    scale_ : float
        λ₀, the rate at time 0, at average covariates.
    mtbf_ : float
        1/λ at the window's end.
    dispersion_, burst_size_, frailty_variance_, frailty_shape_, coefficients_, effects_
        As for :class:`~gp4c.PowerLaw`.
    subject_effects_, subject_effect_errors_, objective_
        As for :class:`~gp4c.PowerLaw`.

    References
    ----------
    Cox, D. R. and Lewis, P. A. W. (1966), The statistical analysis of series of events, Methuen.
    """

    name = "log-linear"
    title = "log-linear rate (Cox-Lewis)"
    method_text = (
        "A log-linear rate (Cox-Lewis) was fitted to the counts between visits by maximum "
        "likelihood."
    )
    _words: ClassVar[Mapping[str, tuple[str, str]]] = {
        "slope": ("slope γ", "change of the log rate in a unit of time"),
        "scale": ("rate at time 0", "by the formula"),
        "mtbf": ("MTBF now", "mean time between events at the window's end"),
    }
    _kinds: ClassVar[Mapping[str, str]] = {
        "slope": "per time", "scale": "rate", "mtbf": "between",
    }  # fmt: skip

    def _curve(self, window: tuple[float, float]) -> RateCurve:
        return LogLinearCurve((window[0] + window[1]) / 2.0, window[1] - window[0])

    @property
    def slope_(self) -> float:
        """γ."""
        return self._derived("slope")
