"""What a saved model may hold: the kind and the size of every value, class by class.

A check is a function of a value and the sizes seen so far; it returns None, or what is wrong. Sizes
are named ("K" subjects, "M" inducing inputs, ...) and must be the same wherever the name occurs
within one object, so that no answer of a loaded model runs into arrays that do not fit together.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS

Sizes: TypeAlias = dict[str, int]
Check: TypeAlias = Callable[[Any, Sizes], str | None]

#: estimators and result classes that a file may name -> the module that defines them
ESTIMATORS = {
    "GP4C": "gp4c.estimators.gp4c",
    "GP4CW": "gp4c.estimators.gp4c",
    "GP3": "gp4c.estimators.gp3",
    "LocalEM": "gp4c.classical.smoothed.local_em",
    "NPMPLE": "gp4c.classical.step_functions.step",
    "NPMLE": "gp4c.classical.step_functions.step",
    "NPMPLGF": "gp4c.classical.step_functions.step",
    "HomogeneousPoisson": "gp4c.classical.homogeneous",
}
RESULTS = {
    "Component": "gp4c.posterior.mixture",
    "Posterior": "gp4c.posterior.mixture",
    "SubjectHistories": "gp4c.data.subject_histories",
    "OwnCheck": "gp4c.posterior.own_check",
    "ServiceRecord": "gp4c.data.tables.service",
    "CurveDraws": "gp4c.posterior.draws",
    "CurveGroup": "gp4c.posterior.draws",
    "RateRows": "gp4c.classical.marginal_counts",
    "SamplerReport": "gp4c.inference.sampler.sampler_report",
    "Bound": "gp4c.inference.variational.bound",
    "CovariateEffects": "gp4c.estimators.regression.covariate_effects",
    "FormulaDesign": "gp4c.data.formulas.formula",
}
_LABEL_TYPES = (str, int, float, bool, tuple, type(None))


# -- kinds of values -------------------------------------------------------------------------------


def number(*, positive: bool = False, infinite: bool = False, nan: bool = False) -> Check:
    """A float; finite unless said otherwise."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if isinstance(value, bool) or not isinstance(value, float | int):
            return "is not a number"
        return _bad_values(np.float64(value), positive, infinite, nan)

    return check


def array(
    *shape: str, kind: str = "f", positive: bool = False, infinite: bool = False, nan: bool = False
) -> Check:
    """An array of numbers whose axes have named sizes; kind "f" for floats, "i" for integers."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != kind:
            return "is not an array of numbers"
        wrong = _bad_shape(value, shape, sizes)
        return wrong or _bad_values(value, positive, infinite, nan)

    return check


def index(size: str, into: str) -> Check:
    """Positions in an axis of another array."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "i":
            return "is not an array of positions"
        wrong = _bad_shape(value, (size,), sizes)
        if wrong is None and value.size and not 0 <= value.min() <= value.max() < sizes[into]:
            return "points outside its array"
        return wrong

    return check


def labels(size: str) -> Check:
    """An array of texts, numbers or whatever else names a subject or a level."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "OUifb":
            return "is not an array of labels"
        if value.dtype == object and not all(isinstance(v, _LABEL_TYPES) for v in value.flat):
            return "has a label that is no text or number"
        return _bad_shape(value, (size,), sizes)

    return check


def one_of(*types: type) -> Check:
    """A value of one of some plain types."""

    def check(value: Any, sizes: Sizes) -> str | None:
        return None if type(value) in types else f"is a {type(value).__name__}"

    return check


def choice(*values: Any) -> Check:
    """One of some values."""

    def check(value: Any, sizes: Sizes) -> str | None:
        known = value is None or isinstance(value, str)
        return None if known and value in values else "is none of the known choices"

    return check


def maybe(check: Check) -> Check:
    """None, or what another check wants."""
    return lambda value, sizes: None if value is None else check(value, sizes)


def result(*names: str) -> Check:
    """An object of one of the result classes, whose content is checked when it is made."""

    def check(value: Any, sizes: Sizes) -> str | None:
        return None if type(value).__name__ in names else "is not what it should be"

    return check


def tuple_of(each: Check, size: str | None = None, at_least: int = 0) -> Check:
    """A tuple of values that all pass a check."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, tuple) or len(value) < at_least:
            return "is not a list of values"
        wrong = _bad_size(len(value), size, sizes) if size else None
        return wrong or next((w for v in value if (w := each(v, sizes)) is not None), None)

    return check


def dict_of(each: Check) -> Check:
    """A dictionary with texts as keys and values that all pass a check."""

    def check(value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return "is not a list of named values"
        return next((w for v in value.values() if (w := each(v, sizes)) is not None), None)

    return check


def window(value: Any, sizes: Sizes) -> str | None:
    """Two finite times, the first before the second."""
    finite = isinstance(value, tuple) and all(isinstance(v, float | int) for v in value)
    if not finite or len(value) != 2 or not -math.inf < value[0] < value[1] < math.inf:
        return "is not a window of time"
    return None


def date(value: Any, sizes: Sizes) -> str | None:
    """A date as ISO text."""
    try:
        found = np.datetime64(value if isinstance(value, str) else "none", "us")
    except ValueError:
        return "is not a date"
    return "is not a date" if np.isnat(found) else None


def _bad_values(value: Any, positive: bool, infinite: bool, nan: bool) -> str | None:
    if not nan and np.any(np.isnan(value)):
        return "is not a number"
    if not infinite and np.any(np.isinf(value)):
        return "is not finite"
    return "is not positive" if positive and np.any(value <= 0) else None


def _bad_shape(value: Any, shape: tuple[str, ...], sizes: Sizes) -> str | None:
    if value.ndim != len(shape):
        return f"has {value.ndim} axes instead of {len(shape)}"
    wrong = (_bad_size(n, name, sizes) for n, name in zip(value.shape, shape, strict=True))
    return next((text for text in wrong if text is not None), None)


def _bad_size(size: int, name: str, sizes: Sizes) -> str | None:
    expected = sizes.setdefault(name, size)
    return None if size == expected else f"has {size} values instead of {expected}"


# -- classes ---------------------------------------------------------------------------------------

_ANY_NUMBER = number(infinite=True, nan=True)
_COUNT, _FLAG, _TEXT = one_of(int), one_of(bool), one_of(str)


def _kernel(value: Any, sizes: Sizes) -> str | None:
    """The name of a kernel that is known now."""
    return choice(*KERNELS)(value, sizes)


def _law(value: Any, sizes: Sizes) -> str | None:
    """The name of a law of counts that is known now."""
    return choice(*LAWS)(value, sizes)


def _effect(value: Any, sizes: Sizes) -> str | None:
    """The name of a law of effects that is known now, or the paper's free weights."""
    return choice(*EFFECTS, "weight")(value, sizes)


_SQUARE = array("p", "p", infinite=True, nan=True)

#: fields of result classes
FIELDS: dict[str, dict[str, Check]] = {
    "Component": {
        "weight": number(), "kernel": _kernel, "length_scale": number(positive=True),
        "variance": number(), "prior_mean": number(), "inducing": array("M"), "mean": array("M"),
        "root": array("M", "M"),
    },
    "Posterior": {
        "components": tuple_of(result("Component"), at_least=1), "window": window,
        "rate": number(),
    },
    "CurveGroup": {
        "length_scale": number(positive=True), "inducing": array("M"), "values": array("M", "S"),
    },
    "CurveDraws": {
        "kernel": _kernel, "groups": tuple_of(result("CurveGroup"), at_least=1),
        "weights": array("S"), "variance": array("S"), "prior_mean": array("S"),
        "params": array("P", "S"), "coefficients": array("p", "S"),
        "chain": array("S", kind="i"), "window": window, "rate": number(),
    },
    "SamplerReport": {
        "log_evidence": _ANY_NUMBER, "log_evidence_error": _ANY_NUMBER,
        "run_log_evidences": array("C", infinite=True, nan=True), "names": tuple_of(_TEXT, "P"),
        "r_hat": array("P", infinite=True, nan=True), "ess": array("P", infinite=True, nan=True),
        "acceptance": _ANY_NUMBER, "n_steps": array("C", kind="i"), "unexplained": _ANY_NUMBER,
    },
    "SubjectHistories": {
        "subjects": labels("K"), "totals": array("K"), "span_subject": index("P", into="K"),
        "span_start": array("P"), "span_stop": array("P"), "span_exposure": array("P"),
        "row_subject": index("J", into="K"), "row_start": array("J"), "row_stop": array("J"),
        "row_exposure": array("J"), "row_count": array("J"), "mean_expected": maybe(array("K")),
        "service": maybe(result("ServiceRecord")),
    },
    "ServiceRecord": {
        "end": array("K", nan=True), "usage_rate": maybe(array("K")), "usage": maybe(_TEXT),
    },
    "RateRows": {
        "count": array("J", positive=True), "time": array("J", positive=True),
        "time_at_risk": array("K"), "subject": index("J", into="K"),
    },
    "OwnCheck": dict.fromkeys(
        ("dispersion", "allowed", "p_value", "worst_start", "worst_stop", "worst_observed",
         "worst_expected", "time_p_value", "time", "mean", "nonparametric"), _ANY_NUMBER,
    ),
    "Bound": dict.fromkeys(("counts", "events", "exposure", "kl", "constant"), _ANY_NUMBER),
    "CovariateEffects": {
        "design": result("FormulaDesign"), "beta": array("p"), "covariance": _SQUARE,
        "robust_covariance": _SQUARE, "jackknife_covariance": _SQUARE,
        "subject_design": array("K", "p"),
    },
    "FormulaDesign": {
        "formula": _TEXT, "columns": dict_of(labels("n")),
        "levels": dict_of(tuple_of(one_of(*_LABEL_TYPES))), "weights": array("n"),
        "names": tuple_of(_TEXT, "p"), "centre": array("p"),
    },
}  # fmt: skip

_SHARED: dict[str, Check] = {
    "window_": window, "time_unit_": maybe(_TEXT), "time_origin_": maybe(date),
    "usage_": maybe(_TEXT),
    "effect_": _effect,
    "frailty_shape_": number(positive=True, infinite=True), "subjects_": labels("K"),
    "subject_totals_": array("K"), "subject_effects_": maybe(array("K")),
    "subject_expected_": maybe(array("K")), "data_summary_": dict_of(number()),
    "objective_": _ANY_NUMBER, "history_": array("iterations", infinite=True, nan=True),
    "n_iter_": _COUNT, "converged_": _FLAG, "fit_check_": maybe(result("OwnCheck")),
}  # fmt: skip
_GAUSSIAN = _SHARED | {
    "posterior_": result("Posterior", "CurveDraws"),
    "law_": _law, "frailty_variance_": number(),
    "dispersion_": number(positive=True), "burst_size_": number(positive=True),
    "effective_draws_": _ANY_NUMBER, "pareto_k_": _ANY_NUMBER,
    "evidences_": dict_of(_ANY_NUMBER),
    "sampler_": maybe(result("SamplerReport")),
    "length_scale_": number(positive=True), "variance_": number(), "mean_": number(),
    "terms_": maybe(result("Bound")), "log_evidence_": _ANY_NUMBER, "elbo_": _ANY_NUMBER,
    "paper_bound_": _ANY_NUMBER,
    "n_inducing_": _COUNT, "histories_": maybe(result("SubjectHistories")),
    "effect_choice_": _TEXT,
}  # fmt: skip
_GP4C = _GAUSSIAN | {
    "compression_": maybe(dict_of(one_of(str, int, float))),
    "coefficients_": maybe(result("CovariateEffects")),
}  # fmt: skip
_PLUG_IN = _SHARED | {
    "time_at_risk_": number(), "residual_": _ANY_NUMBER, "bootstrap_seed_": _COUNT,
    "histories_": maybe(result("SubjectHistories")),
}  # fmt: skip
_STEP = _PLUG_IN | {
    "times_": array("L"), "values_": array("L"), "n_left_out_": _COUNT,
    "bootstrap_": dict_of(array("B", "L")),
}  # fmt: skip

#: fitted attributes of estimators
STATES: dict[str, dict[str, Check]] = {
    "GP4C": _GP4C, "GP4CW": _GP4C, "GP3": _GAUSSIAN,
    "NPMPLE": _STEP, "NPMLE": _STEP, "NPMPLGF": _STEP,
    "HomogeneousPoisson": _PLUG_IN | {
        "rate_": number(), "subject_time_at_risk_": array("K"), "bootstrap_": dict_of(array("B")),
        "dispersion_": number(positive=True), "counted_": result("RateRows"),
        "law_": _law,
        "subject_effect_errors_": array("K"),
    },
    "LocalEM": _PLUG_IN | {
        "bandwidth_": number(positive=True), "points_": array("points"), "density_": array("L"),
        "at_risk_": array("L"), "bandwidths_": array("candidates"),
        "cv_scores_": array("candidates", infinite=True, nan=True),
        "bootstrap_": dict_of(lambda value, sizes: _local_em_draw(value, sizes)),
    },
}  # fmt: skip
#: attributes, and fields of results, that only some fits have
OPTIONAL = frozenset(
    {
        "bandwidths_",
        "bootstrap_",
        "bootstrap_seed_",
        "counted_",
        "cv_scores_",
        "effective_draws_",
        "evidences_",
        "fit_check_",
        "histories_",
        "law_",
        "pareto_k_",
        "dispersion_",
        "n_left_out_",
        "paper_bound_",
        "residual_",
        "subject_effect_errors_",
        "subject_effects_",
        "time_origin_",
        "usage_",
        "service",
    }
)


def _local_em_draw(value: Any, sizes: Sizes) -> str | None:
    """Bandwidths of the samples, (B,), or their curves, (B, L)."""
    shape = ("B", "L") if getattr(value, "ndim", 1) == 2 else ("B",)
    return array(*shape)(value, sizes)


def problem_with(
    values: Mapping[str, Any], checks: Mapping[str, Check], optional: frozenset[str] = frozenset()
) -> str | None:
    """What is wrong with named values: one missing, one unknown, one of another kind or size."""
    for name in values:
        if name not in checks:
            return f"{short(name)} is unknown"
    sizes: Sizes = {}
    for name, check in checks.items():  # in this order: sizes are known before they are used
        if name in values:
            wrong = check(values[name], sizes)
            if wrong is not None:
                return f"{name!r} {wrong}"
        elif name not in optional:
            return f"{name!r} is missing"
    return None


def short(value: object) -> str:
    """A value from a file in a message: hostile ones must not fill the screen."""
    return reprlib.repr(value)
