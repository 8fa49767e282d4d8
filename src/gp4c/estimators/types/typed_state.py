"""The fitted state of a model with types: what is kept, saved, and checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from gp4c.data.events import RecurrentEvents
from gp4c.exceptions import PanelDataError
from gp4c.files import kinds
from gp4c.posterior.summed.summed_curves import SummedCurves

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.types.typed_answers import TypedCurves


class _Kept(TypedDict):
    """What a checked state with types holds besides the rest."""

    event_types_: tuple[str, ...]
    loadings_: NDArray[np.float64]
    type_models_: Mapping[str, Mapping[str, object]]


_OWN = ("event_types_", "type_models_", "loadings_", "log_evidence_gain_")

#: fitted attributes of a model with types besides those of the types, in the order of checks
TYPED: Mapping[str, kinds.Check] = {
    "window_": kinds.window, "time_unit_": kinds.maybe(kinds.TEXT),
    "time_origin_": kinds.Sometimes(kinds.maybe(kinds.date)),
    "usage_": kinds.Sometimes(kinds.maybe(kinds.TEXT)),
    "event_types_": kinds.tuple_of(kinds.TEXT, "T", at_least=1),
    "posterior_": kinds.result("SummedCurves"), "loadings_": kinds.array("T", "S"),
    "log_evidence_gain_": kinds.ANY_NUMBER, "log_evidence_": kinds.ANY_NUMBER,
    "objective_": kinds.ANY_NUMBER, "elbo_": kinds.ANY_NUMBER,
    "history_": kinds.array("iterations", infinite=True, nan=True), "n_iter_": kinds.COUNT,
    "effective_draws_": kinds.ANY_NUMBER, "pareto_k_": kinds.ANY_NUMBER,
    "converged_": kinds.FLAG, "subjects_": kinds.labels("K"), "subject_totals_": kinds.array("K"),
    "data_summary_": kinds.dict_of(kinds.number()),
}  # fmt: skip


def forget_types(model: TypedCurves) -> None:
    """Remove what an earlier fit to types left."""
    for name in _OWN:
        vars(model).pop(name, None)


def forget_fit(model: PanelEstimator) -> None:
    """Remove all that an earlier fit left."""
    for name in [*model._state(), "_engine_data", "_fitted_to", "_bound_with"]:
        vars(model).pop(name, None)


def refuse_with_types(events: RecurrentEvents | None, client: object) -> None:
    """Types go with counts in memory."""
    given = "events=" if events is not None else "client=" if client is not None else ""
    if given:
        raise PanelDataError(f"{given} does not go with a panel that has event types")


def typed_state(model: TypedCurves, state: Mapping[str, object]) -> dict[str, object]:
    """Fitted attributes for a file: the states of the types, whose draws are in the posterior."""
    each = {
        name: {key: value for key, value in one._state().items() if key != "posterior_"}
        for name, one in model.type_models_.items()
    }
    return {**state, "type_models_": each}


def typed_checks(
    plain: Mapping[str, kinds.Check], state: Mapping[str, object]
) -> dict[str, kinds.Check]:
    """Checks of a state with types; the draws of each type are checked with the posterior."""
    of_type = {name: check for name, check in plain.items() if name != "posterior_"}

    def check_types(value: object, sizes: kinds.Sizes) -> str | None:
        if not isinstance(value, dict) or tuple(value) != state.get("event_types_"):
            return "does not have the states of the types"
        wrong = (
            kinds.problem_with(one, of_type) if isinstance(one, dict) else "is not a state"
            for one in value.values()
        )
        return next((text for text in wrong if text is not None), None)

    return {**TYPED, "type_models_": check_types}


def restored(model: TypedCurves, state: Mapping[str, object]) -> dict[str, object]:
    """The attributes of a state from a file: each type is a model again, with its own draws."""
    posterior = state["posterior_"]
    assert isinstance(posterior, SummedCurves)
    kept = cast(_Kept, state)
    names, size = kept["event_types_"], posterior.who.shape[1]
    if len(names) != len(posterior.parts) or kept["loadings_"].shape[1] != size:
        raise ValueError("its types and their draws do not fit together")
    for row, part in zip(posterior.who, posterior.parts, strict=True):
        if not 0 <= row.min() <= row.max() < part.size:
            raise ValueError("its joint draws point outside those of a type")
    types = {}
    for name, part in zip(names, posterior.parts, strict=True):
        one = type(model)(**model.get_params())
        one._set_state({**kept["type_models_"][name], "posterior_": part})
        types[name] = one
    return {**state, "type_models_": types}
