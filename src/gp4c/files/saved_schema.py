"""What the result classes in a saved model may hold, field by field.

Estimators say the same of their fitted attributes themselves, in `saved`.
"""

from __future__ import annotations

from gp4c.files.kinds import (
    ANY_NUMBER,
    COUNT,
    FLAG,
    LABEL_TYPES,
    TEXT,
    Check,
    Sometimes,
    array,
    dict_of,
    index,
    kernel,
    labels,
    maybe,
    number,
    one_of,
    result,
    tuple_of,
    window,
)

#: result classes that a file may name -> the module that defines them
RESULTS = {
    "Posterior": "gp4c.posterior.sparse_posterior",
    "SummedPosterior": "gp4c.posterior.summed.summed_posterior",
    "SubjectHistories": "gp4c.data.subject_histories",
    "OwnCheck": "gp4c.posterior.own_check",
    "ServiceRecord": "gp4c.data.tables.service",
    "CurveDraws": "gp4c.posterior.draws",
    "CurveGroup": "gp4c.posterior.draws",
    "ModulatedDraws": "gp4c.posterior.modulated_draws",
    "Modulation": "gp4c.model.modulation.modulator",
    "LogLinearTrend": "gp4c.model.modulation.rate_trends",
    "PowerTrend": "gp4c.model.modulation.rate_trends",
    "Season": "gp4c.model.modulation.seasons",
    "OverTime": "gp4c.model.modulation.over_time",
    "SummedCurves": "gp4c.posterior.summed.summed_curves",
    "ClassDraws": "gp4c.inference.classes.class_draws",
    "ClassChoice": "gp4c.estimators.mixtures.classes.class_choice",
    "RateRows": "gp4c.classical.parametric.rate_fit",
    "SamplerReport": "gp4c.inference.sampler.sampler_report",
    "Bound": "gp4c.inference.variational.bound",
    "CovariateEffects": "gp4c.estimators.regression.covariate_effects",
    "FormulaDesign": "gp4c.data.formulas.formula",
}

_SQUARE = array("p", "p", infinite=True, nan=True)
_DRAWS: dict[str, Check] = {
    "kernel": kernel, "groups": tuple_of(result("CurveGroup"), at_least=1),
    "weights": array("S"), "variance": array("S"), "prior_mean": array("S"),
    "params": array("P", "S"), "coefficients": array("p", "S"),
    "chain": array("S", kind="i"), "window": window, "rate": number(),
}  # fmt: skip
_FACTORS = ("LogLinearTrend", "PowerTrend", "Season", "OverTime")

#: fields of result classes
FIELDS: dict[str, dict[str, Check]] = {
    "Posterior": {
        "kernel": kernel, "length_scale": number(positive=True), "variance": number(),
        "prior_mean": number(), "inducing": array("M"), "mean": array("M"),
        "root": array("M", "M"), "window": window, "rate": number(),
    },
    "SummedPosterior": {"parts": tuple_of(result("Posterior"), "L", at_least=1)},
    "CurveGroup": {
        "length_scale": number(positive=True), "inducing": array("M"), "values": array("M", "S"),
    },
    "CurveDraws": _DRAWS,
    "ClassDraws": {
        **_DRAWS, "label": array("S", kind="i"), "parent": array("S", kind="i"),
        "share": array("S"), "share_coefficients": array("q", "S"),
    },
    "ModulatedDraws": {
        **_DRAWS, "modulation": result("Modulation"), "modulating": array("r", "S"),
        "inputs": array("i"),
    },
    "Modulation": {"parts": tuple_of(result(*_FACTORS), at_least=1)},
    "LogLinearTrend": {"window": window},
    "PowerTrend": {"window": window},
    "Season": {
        "window": window, "period": number(positive=True), "phase": number(), "cycle": TEXT,
        "dated": FLAG,
    },
    "OverTime": {
        "label": TEXT, "names": tuple_of(TEXT, "c"), "columns": tuple_of(COUNT, "c"),
        "units": array("c", positive=True),
    },
    "SummedCurves": {
        "kernel": kernel, "groups": tuple_of(result("CurveGroup"), "none"), "weights": array("S"),
        "variance": array("none"), "prior_mean": array("none"), "params": array("none", "S"),
        "coefficients": array("none", "S"), "chain": array("S", kind="i"), "window": window,
        "rate": number(), "parts": tuple_of(result("CurveDraws"), "T", at_least=1),
        "who": array("T", "S", kind="i"),
    },
    "ClassChoice": dict.fromkeys(
        ("n_classes", "log_evidence", "held_out", "held_out_error", "unreliable", "effective"),
        array("R", infinite=True, nan=True),
    ),
    "SamplerReport": {
        "log_evidence": ANY_NUMBER, "log_evidence_error": ANY_NUMBER,
        "run_log_evidences": array("C", infinite=True, nan=True), "names": tuple_of(TEXT, "P"),
        "r_hat": array("P", infinite=True, nan=True), "ess": array("P", infinite=True, nan=True),
        "acceptance": ANY_NUMBER, "n_steps": array("C", kind="i"), "unexplained": ANY_NUMBER,
    },
    "SubjectHistories": {
        "subjects": labels("K"), "totals": array("K"), "span_subject": index("P", into="K"),
        "span_start": array("P"), "span_stop": array("P"), "span_exposure": array("P"),
        "row_subject": index("J", into="K"), "row_start": array("J"), "row_stop": array("J"),
        "row_exposure": array("J"), "row_count": array("J"), "mean_expected": maybe(array("K")),
        "service": Sometimes(maybe(result("ServiceRecord"))),
        "span_inputs": Sometimes(maybe(array("P", "r"))),
        "row_inputs": Sometimes(maybe(array("J", "r"))),
    },
    "ServiceRecord": {
        "end": array("K", nan=True), "usage_rate": maybe(array("K")), "usage": maybe(TEXT),
        "entry": Sometimes(maybe(array("K"))), "dated": Sometimes(FLAG),
        "by_usage": Sometimes(FLAG),
    },
    "RateRows": {
        "count": array("J"), "start": array("J"), "stop": array("J"), "exposure": array("J"),
        "z": array("J", "p"), "n_subjects": COUNT, "subject": array("J", kind="i"),
    },
    "OwnCheck": dict.fromkeys(
        ("dispersion", "allowed", "p_value", "worst_start", "worst_stop", "worst_observed",
         "worst_expected", "time_p_value", "time", "mean", "nonparametric"), ANY_NUMBER,
    ),
    "Bound": dict.fromkeys(("counts", "events", "exposure", "kl", "constant"), ANY_NUMBER),
    "CovariateEffects": {
        "design": result("FormulaDesign"), "beta": array("p"), "covariance": _SQUARE,
        "robust_covariance": _SQUARE, "jackknife_covariance": _SQUARE,
        "subject_design": array("K", "p"),
    },
    "FormulaDesign": {
        "formula": TEXT, "columns": dict_of(labels("n")),
        "levels": dict_of(tuple_of(one_of(*LABEL_TYPES))), "weights": array("n"),
        "names": tuple_of(TEXT, "p"), "centre": array("p"),
    },
}  # fmt: skip
