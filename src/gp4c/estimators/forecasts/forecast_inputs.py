"""What is asked of a forecast: windows, subjects, exposure, covariates; checked at the door."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.formulas.covariate_rows import design_rows, last_covariates, last_rows
from gp4c.data.panel import PanelCounts
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.inputs import check_level
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.forecasts.forecast_layout import Step

Floats = NDArray[np.float64]

BEYOND = ("auto", "prior", "hold", "trend")


class ForecastOptions(TypedDict, total=False):
    """What may be said of a forecast besides its windows and subjects."""

    level: float
    every: Step | None
    each: bool
    exposure: ArrayLike | str | None
    usage: ArrayLike | str | None
    new_units: ArrayLike
    at: ArrayLike | None
    covariates: Mapping[str, object] | None
    history: PanelCounts | None
    beyond: str
    n_draws: int | None
    random_state: int | None


def check_forecast(model: PanelEstimator, level: float, beyond: str, n_draws: int | None) -> None:
    """Check what does not depend on subjects or windows."""
    model._check_fitted()
    check_level(level)
    if beyond not in BEYOND:
        raise ValueError(f"beyond must be 'auto', 'prior', 'hold' or 'trend', not {beyond!r}")
    if beyond == "trend" and not model.has_trend:
        raise ValueError(
            f"beyond='trend' continues a trend, and this {type(model).__name__} has none: fit with "
            "trend='loglinear', 'power' or 'auto'"
        )
    if n_draws is not None and n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, not {n_draws!r}")


def windows(axis: TimeAxis, start: ArrayLike, stop: ArrayLike) -> tuple[Floats, Floats]:
    """Start and stop of the windows as arrays of one length, on an axis."""
    first, last = axis.numbers(start), axis.numbers(stop)
    if first.ndim > 1 or last.ndim > 1:
        raise ValueError("start and stop must be numbers or one-dimensional arrays")
    first, last = np.broadcast_arrays(np.atleast_1d(first), np.atleast_1d(last))
    if not np.all(np.isfinite(first) & np.isfinite(last)):
        raise ValueError("times must be finite numbers")
    if np.any(last < first):
        raise ValueError("each stop must not be before its start")
    return first.copy(), last.copy()


def is_sum(subjects: object) -> bool:
    """Whether the sum over all subjects, or over those in service, is asked for."""
    return isinstance(subjects, str) and subjects in ("all", "active")


def is_label(subjects: object) -> bool:
    """One label rather than several: several come as a list, array or other sequence."""
    many = isinstance(subjects, Sequence | np.ndarray) or hasattr(subjects, "tolist")
    plain = isinstance(subjects, str | bytes | tuple | np.generic)
    return subjects is not None and (plain or not many) and not is_sum(subjects)


def known_subjects(
    model: PanelEstimator, subjects: object, history: PanelCounts | None
) -> SubjectHistories | None:
    """Histories of the subjects asked for, in that order; None for a new subject."""
    if subjects is None:
        return None
    if history is not None and model.effect_law_.is_free:
        raise ValueError(
            f'history= needs gamma effects: effect="{model.effect_}" knows fitted subjects only'
        )
    if history is None:
        known = fitted_subjects(model)
    else:
        known = SubjectHistories.of(model._adjusted(history), model._inputs_of(history))
    if is_sum(subjects):
        return known
    return known.take(known.positions(labels_of(subjects)))


def labels_of(subjects: object) -> list[Hashable]:
    """The labels of the subjects asked for, one or several."""
    if isinstance(subjects, PanelCounts):
        raise PanelDataError(
            "subjects= takes labels of subjects, such as panel.subjects; a panel of what was seen "
            "of them goes in history="
        )
    many: list[Hashable] = np.asarray(subjects, dtype=object).tolist()
    return [subjects] if isinstance(subjects, Hashable) and is_label(subjects) else many


def fitted_subjects(model: PanelEstimator) -> SubjectHistories:
    """What a fitted model keeps of its subjects."""
    if model.histories_ is not None:
        return model.histories_
    labels, expected = model.subjects_, model.subject_expected_
    if expected is None and model.effect_law_.varies:
        raise ValueError(
            f"this {type(model).__name__} keeps no histories of its subjects; pass the panel as "
            "history="
        )
    expected = np.ones(len(labels)) if expected is None else expected
    return SubjectHistories.without_spans(labels, model.subject_totals_, expected)


def covariate_rows(
    model: PanelEstimator,
    known: SubjectHistories | None,
    history: PanelCounts | None,
    covariates: Mapping[str, object] | None,
) -> Floats | None:
    """Centred covariates z of the subjects to forecast, (n, p); None without a formula.

    A known subject has its own, those that vary over time at their last values.
    """
    effects = model.coefficients_
    if covariates is not None and effects is None:
        raise ValueError("covariates= is for models with a formula")
    if effects is None:
        return None
    if known is None:
        return np.asarray(effects.profile(covariates or {})[None])
    labels = known.subjects.tolist()
    if history is None:
        return np.asarray(effects.subject_design[fitted_subjects(model).positions(labels)])
    own = design_rows(effects.design, history)[last_rows(history)]
    return np.asarray(own[SubjectHistories.of(history).positions(labels)])


def changed_covariates(
    model: PanelEstimator,
    known: SubjectHistories,
    history: PanelCounts | None,
    covariates: Mapping[str, object],
) -> Floats:
    """Centred covariates z of known subjects, some of them changed, (K, p)."""
    import pandas as pd

    effects = model.coefficients_
    assert effects is not None
    effects.profile(covariates)  # which refuses what the formula does not know
    labels = known.subjects.tolist()
    if history is not None:
        table = last_covariates(effects.design, history)
        places = SubjectHistories.of(history).positions(labels)
    else:
        kept = fitted_subjects(model)
        table, places = pd.DataFrame(effects.design.columns), kept.positions(labels)
        if len(table) != len(kept.subjects):
            raise ValueError(
                "covariates vary within subjects, and the model does not keep them: pass the panel "
                "as history="
            )
    table = table.iloc[places].reset_index(drop=True)
    for name, value in covariates.items():
        table[name] = pd.Series([value] * len(table))
    return np.asarray(effects.design.matrix(table))


def last_exposures(
    model: PanelEstimator, known: SubjectHistories | None, z: Floats | None = None
) -> Floats | None:
    """Units at risk of each known subject when it was last observed; None if nobody knows.

    Histories hold exposures times the effects of covariates, which are taken out again with the
    subjects' last covariates `z`.
    """
    if known is None or not len(known.span_stop):
        return None
    order = np.lexsort((known.span_stop, known.span_subject))
    last = np.ones(len(known.subjects))
    last[known.span_subject[order]] = known.span_exposure[order]
    effects = model.coefficients_
    return last if z is None or effects is None else last / np.exp(effects.log_factor(z))


def exposures(
    model: PanelEstimator,
    exposure: ArrayLike | str | None,
    known: SubjectHistories | None,
    z: Floats | None,
) -> Floats:
    """Units at risk during the windows: given, or ``"last"`` for those last observed.

    None is the last of known subjects where it is known, else 1.
    """
    if exposure is None:
        kept = last_exposures(model, known, z)
        return (
            per_subject(1.0, 1 if known is None else len(known.subjects)) if kept is None else kept
        )
    if isinstance(exposure, str):
        last = last_exposures(model, known, z)
        if exposure != "last" or last is None:
            raise ValueError(
                f'exposure must be a number, or "last" for known subjects of a Gaussian-process '
                f"model, whose histories it keeps; found {exposure!r}"
            )
        return last
    return per_subject(exposure, 1 if known is None else len(known.subjects))


def per_subject(exposure: ArrayLike, n_subjects: int) -> Floats:
    """Units at risk of each subject."""
    units = np.asarray(exposure, dtype=np.float64)
    if units.ndim > 1 or (units.ndim == 1 and len(units) != n_subjects):
        raise ValueError(f"exposure must be one number or one per subject ({n_subjects})")
    if not np.all(np.isfinite(units) & (units >= 0)):
        raise ValueError("exposure must not be negative")
    return np.broadcast_to(units, (n_subjects,))


def seed_of(model: PanelEstimator, random_state: int | None) -> int:
    """The seed given, that of the model, or 0."""
    own = model.get_params().get("random_state") if random_state is None else random_state
    return int(own) if isinstance(own, int | np.integer) else 0
