"""What every fit leaves behind: attributes, their checks in files, and the laws they name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.interfaces.parameters import Parameters
from gp4c.exceptions import NotFittedError
from gp4c.files import kinds

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.data.subjects import LabelArray
    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.regression.covariate_effects import CovariateEffects
    from gp4c.model.laws import CountLaw, SubjectEffect
    from gp4c.posterior.own_check import OwnCheck

Floats = NDArray[np.float64]
#: what stands for the rows of a large table, and how closely
Compression: TypeAlias = Mapping[str, "str | float"]


class FittedState(Parameters):
    """The fitted attributes that all estimators share; their names end in an underscore.

    Every ``fit`` sets `window_`, `time_unit_` and `time_origin_` (the date of time 0, if times were
    dates). `dispersion_` is the variance of a count over its mean, given the effect of the subject:
    1 unless the model lets events come in bursts.

    Attributes
    ----------
    saved : mapping
        Fitted attributes that a class adds to those of its base, each with the check of
        :mod:`gp4c.files.kinds` that a value from a file must pass.
    """

    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "window_": kinds.window, "time_unit_": kinds.maybe(kinds.TEXT),
        "time_origin_": kinds.Sometimes(kinds.maybe(kinds.date)),
        "usage_": kinds.Sometimes(kinds.maybe(kinds.TEXT)), "effect_": kinds.effect,
        "frailty_shape_": kinds.number(positive=True, infinite=True),
        "subjects_": kinds.labels("K"), "subject_totals_": kinds.array("K"),
        "subject_effects_": kinds.Sometimes(kinds.maybe(kinds.array("K"))),
        "subject_expected_": kinds.maybe(kinds.array("K")),
        "data_summary_": kinds.dict_of(kinds.number()), "objective_": kinds.ANY_NUMBER,
        "history_": kinds.array("iterations", infinite=True, nan=True),
        "n_iter_": kinds.COUNT, "converged_": kinds.FLAG,
        "fit_check_": kinds.Sometimes(kinds.maybe(kinds.result("OwnCheck"))),
    }  # fmt: skip

    window_: tuple[float, float]
    time_unit_: str | None
    objective_: float
    converged_: bool
    n_iter_: int
    data_summary_: Mapping[str, float] = MappingProxyType({})
    subject_expected_: Floats | None = None
    subject_effects_: Floats | None = None
    effect_choice_: str = "as asked"
    coefficients_: CovariateEffects | None = None
    compression_: Compression | None = None
    fit_check_: OwnCheck | None = None
    n_left_out_: int = 0
    #: types of events of a fit that has several
    event_types_: tuple[str, ...] = ()
    time_origin_: str | None = None  # of models that were saved before there was one
    usage_: str | None = None  # what rates are per, if not time
    law_: str = "poisson"
    dispersion_: float = 1.0  # of models without bursts
    effective_draws_: float | None = None  # of models without weighted draws
    pareto_k_: float | None = None
    histories_: SubjectHistories | None = None
    history_: Floats
    times_: Floats  # of step functions: where they jump, and to which values
    values_: Floats
    subjects_: LabelArray
    subject_totals_: Floats
    effect_: str | None
    frailty_shape_: float

    def __sklearn_is_fitted__(self) -> bool:
        return "window_" in vars(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _keep_time_axis(self, data: PanelCounts | RecurrentEvents | PanelSource) -> None:
        """Remember the unit of time of the data, and the date that time 0 stands for."""
        from gp4c.data.timeaxis import as_moment

        self.time_unit_, self.usage_ = data.time_unit, data.usage
        self.time_origin_ = None if data.time_origin is None else str(as_moment(data.time_origin))

    # -- for files ----------------------------------------------------------------------------

    @classmethod
    def saved_attributes(cls) -> dict[str, kinds.Check]:
        """Checks of all fitted attributes, those of the base classes first.

        :meta private:
        """
        found: dict[str, kinds.Check] = {}
        for one in reversed(cls.__mro__):
            found |= vars(one).get("saved", {})
        return found

    @classmethod
    def checks_of(cls, state: Mapping[str, object]) -> dict[str, kinds.Check]:
        """Checks of the fitted attributes that a file holds.

        :meta private:
        """
        return cls.saved_attributes()

    def _state(self) -> dict[str, object]:
        """Return what a saved model holds: all fitted attributes."""
        return {name: value for name, value in vars(self).items() if _is_fitted_name(name)}

    def _set_state(self, state: Mapping[str, object]) -> None:
        """Restore what :meth:`_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)

    # -- the laws of counts and of subject effects --------------------------------------------

    @property
    def count_law_(self) -> CountLaw:
        """The law of counts given the curve and the effects: one by one, or in bursts."""
        from gp4c.model.laws import LAWS

        return LAWS[self.law_]

    @property
    def effect_law_(self) -> SubjectEffect:
        """The law of the effects of subjects; frailties without variance are none."""
        from gp4c.model.laws import EFFECTS

        law = EFFECTS[self.effect_]
        return EFFECTS[None] if law.varies and np.isinf(self.frailty_shape_) else law

    @property
    def law_parameters_(self) -> Floats:
        """θ of the law of counts, (P,), at its estimate."""
        excess = [self.dispersion_ - 1.0] if self.dispersion_ > 1.0 else []
        return np.asarray(np.log(np.array(excess, dtype=np.float64)))

    @property
    def effect_parameters_(self) -> Floats:
        """ψ of the law of effects, (P,), at its estimate."""
        shape = [self.frailty_shape_] if self.effect_law_.varies else []
        return np.asarray(np.log(np.array(shape, dtype=np.float64)))

    def _point_params(self) -> Floats:
        """Parameters of both laws at their estimates, (P, 1)."""
        return np.concatenate([self.effect_parameters_, self.law_parameters_])[:, None]


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def average_exposure(model: FittedState) -> float:
    """Units at risk of the subjects of a fit, averaged over time; 1 if not known, or with usage."""
    known = model.data_summary_
    at_risk, observed = known.get("exposure_time", 0.0), known.get("observed_time", 0.0)
    if model.usage_ is not None or not observed or abs(at_risk - observed) <= 1e-9 * observed:
        return 1.0
    return at_risk / observed
