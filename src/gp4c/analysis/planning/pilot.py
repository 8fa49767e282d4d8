"""What a pilot study says about the subjects of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.checks import few_digits
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: pieces of a curve that is taken from a pilot
_PIECES = 100


@dataclass(frozen=True)
class Pilot:
    """Curve and spread of counts of a fitted model.

    Attributes
    ----------
    times, cumulative : tuple of float
        Λ from the start of its window.
    frailty_variance, dispersion : float
    time_unit : str or None
    words : str
        Where the numbers are from.
    """

    times: tuple[float, ...]
    cumulative: tuple[float, ...]
    frailty_variance: float
    dispersion: float
    time_unit: str | None
    words: str

    def up_to(self, follow_up: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Times and Λ of the first part of the curve."""
        end = self.times[-1]
        if not 0 < follow_up <= end * (1 + 1e-9):
            raise PanelDataError(
                f"follow_up must be positive and at most the pilot's {few_digits(end)}; "
                f"found {follow_up:g}"
            )
        if len(self.times) == 2:
            return (0.0, follow_up), (0.0, self.cumulative[-1] * follow_up / end)
        times = np.linspace(0.0, min(follow_up, end), _PIECES + 1)
        values = np.interp(times, self.times, self.cumulative)
        return tuple(times.tolist()), tuple(values.tolist())


def read_pilot(pilot: PanelCounts | PanelEstimator) -> Pilot:
    """Take curve, frailty variance and dispersion from a model, or from a constant rate's fit."""
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

    if isinstance(pilot, PanelCounts):
        return _read_model(_fitted(pilot), f"a constant rate fitted to {pilot.n_subjects} subjects")
    if not isinstance(pilot, PanelEstimator):
        raise PanelDataError(
            f"pilot must be a fitted model or a panel; found {type(pilot).__name__}"
        )
    pilot._check_fitted()
    n = pilot.data_summary_.get("n_subjects")
    whom = f" fitted to {n:.0f} subjects" if n else ""
    return _read_model(pilot, f"{type(pilot).__name__}{whom}")


def _fitted(panel: PanelCounts) -> PanelEstimator:
    from gp4c.classical.parametric.homogeneous import HomogeneousPoisson

    return HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)


def _read_model(model: PanelEstimator, words: str) -> Pilot:
    from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
    from gp4c.estimators.interfaces.fitted_state import average_exposure

    if model.coefficients_ is not None:
        raise PanelDataError(
            "a pilot with a formula describes subjects with equal covariates; pass one without"
        )
    if model.effect_law_.is_free:
        raise PanelDataError(
            "a pilot whose subjects have free weights does not say how much subjects differ; "
            "pass one with effect='auto'"
        )
    low, high = model.window_
    constant = isinstance(model, HomogeneousPoisson)
    times = np.linspace(low, high, 2 if constant else _PIECES + 1)
    curve = np.asarray(model.cumulative(times), dtype=np.float64)
    if not curve[-1] > curve[0]:
        raise PanelDataError("the pilot has no events, so it says nothing about the rate")
    exposed = "" if average_exposure(model) == 1.0 else ", at exposure 1"
    return Pilot(
        tuple((times - low).tolist()), tuple((curve - curve[0]).tolist()),
        1.0 / model.frailty_shape_, float(model.dispersion_), model.time_unit_, words + exposed,
    )  # fmt: skip
