"""New subjects fitted together with those of a fit: what that says of them jointly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.engine_fit import EngineData, fit_engine
from gp4c.inference.engine.posterior_fit import EngineFit
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.draws import CurveDraws

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _JoinedRows:
    """Rows of two panels as one: what cells are made of."""

    start: Floats
    stop: Floats
    count: NDArray[np.int64]
    exposure: Floats
    subject_index: NDArray[np.intp]
    n_subjects: int

    @property
    def n_intervals(self) -> int:
        return len(self.start)

    @property
    def n_events(self) -> int:
        return int(self.count.sum())

    @classmethod
    def of(cls, first: PanelCounts, second: PanelCounts) -> _JoinedRows:
        return cls(
            np.concatenate([first.start, second.start]),
            np.concatenate([first.stop, second.stop]),
            np.concatenate([first.count, second.count]),
            np.concatenate([first.exposure, second.exposure]),
            np.concatenate([first.subject_index, second.subject_index + first.n_subjects]),
            first.n_subjects + second.n_subjects,
        )


def joint_score(
    model: GaussianProcessModel,
    fitted: EngineData,
    panel: PanelCounts,
    z: Floats | None,
    inputs: Floats | None = None,
) -> tuple[float, float] | None:
    """ln p(new subjects | subjects of the fit) = ln p(all) − ln p(fitted), and its error.

    Both evidences are importance estimates, with the laws, the priors and the scale of the fit, so
    that their ratio is a predictive probability. None where either comes from tempering or a
    sampler: such evidences have errors of some tenths, more than an average over draws has.
    """
    found = joined_fit(model, fitted, panel, z, inputs)
    if found is None:
        return None
    error = np.sqrt(1.0 / found.weighted.effective + 1.0 / (model.effective_draws_ or np.inf))
    return found.weighted.log_evidence - model.log_evidence_, float(error)


def joined_data(
    model: GaussianProcessModel,
    fitted: EngineData,
    panel: PanelCounts,
    z: Floats | None,
    inputs: Floats | None = None,
) -> EngineData:
    """Subjects of a fit and new ones, in the scale of the fit."""
    assert fitted.panel is not None
    assert isinstance(model.posterior_, CurveDraws)
    rows: Any = _JoinedRows.of(fitted.panel, panel)
    both = None
    if fitted.z is not None and fitted.scale is not None and z is not None:
        both = np.concatenate([fitted.z, z * fitted.scale])
    modulated = None
    if fitted.modulated is not None:
        new = np.zeros((panel.n_intervals, 0)) if inputs is None else inputs
        modulated = fitted.modulated[0], np.concatenate([fitted.modulated[1], new])
    rate = model.posterior_.rate
    return EngineData(rows, None, fitted.window, both, fitted.scale, rate, modulated)


def joined_fit(
    model: GaussianProcessModel,
    fitted: EngineData,
    panel: PanelCounts,
    z: Floats | None,
    inputs: Floats | None = None,
) -> EngineFit | None:
    """The laws of a fit fitted to its subjects and new ones together; None as in `joint_score`."""
    if model.pareto_k_ is None or np.isnan(model.pareto_k_):
        return None
    data = joined_data(model, fitted, panel, z, inputs)
    found = fit_engine(model, data, [(LAWS[model.law_], EFFECTS[model.effect_])])
    return None if np.isnan(found.weighted.pareto_k) else found
