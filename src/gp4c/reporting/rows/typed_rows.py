"""Rows of a summary that only a fit to several types of events has."""

from __future__ import annotations

from collections.abc import Iterator

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.reporting.effect_rows import effect_text
from gp4c.reporting.row import Row
from gp4c.reporting.rows.law_rows import SUBJECTS, VISITS
from gp4c.reporting.words import estimate, number, percent, when


def typed_rows(model: TypedCurves, level: float) -> Iterator[Row]:
    """Data, the mean number of events of each type and in all, ratios, and the correlation."""
    for key in ("n_subjects", "n_intervals", "n_events"):
        yield Row("Fitted to", key[2:], f"{model.data_summary_[key]:,}", model.data_summary_[key])
    yield Row("Fitted to", "event types", ", ".join(model.event_types_))
    yield from _result_rows(model, level)
    yield from _ratio_rows(model, level)
    yield from _correlation_rows(model, level)
    yield from _law_rows(model)
    yield from _effect_rows(model, level)
    draws = f"{model.effective_draws_:,.0f} effective joint draws, Pareto k {model.pareto_k_:.2f}"
    yield Row("Fit", "joint posterior", draws, model.effective_draws_, detail=True)
    worth = f"from drawn curves of all types, worth {model.effective_draws_:,.0f} independent ones"
    yield Row("Fit", "bands", worth, model.effective_draws_)


def _result_rows(model: TypedCurves, level: float) -> Iterator[Row]:
    end, by = model.window_[1], when(model.window_[1], TimeAxis.of(model))
    first = next(iter(model.type_models_.values()))
    whom = "per subject" if first.coefficients_ is None else "at average covariates"
    for name in (*model.event_types_, None):
        value = float(model.cumulative(end, event=name))
        low, high = (float(edge) for edge in model.cumulative_band(end, level, event=name))
        band = f"{percent(level)} band {estimate(low)} to {estimate(high)}"
        text = f"{estimate(value)} ({band}) by {by}, {whom}"
        yield Row("Mean number of events", name or "all types", text, value, low, high)


def _ratio_rows(model: TypedCurves, level: float) -> Iterator[Row]:
    end, (first, *others) = model.window_[1], model.event_types_
    for other in others:
        ratio, low, high = (float(v) for v in model.type_ratio(end, first, other, level))
        text = f"{number(ratio)} ({percent(level)} interval {number(low)} to {number(high)})"
        yield Row("Ratios between types", f"{first} / {other}", text, ratio, low, high)


def _law_rows(model: TypedCurves) -> Iterator[Row]:
    """How subjects differ, type by type, then visits."""
    for name, one in model.type_models_.items():
        text, variance = one.effect_law_.title, float(1.0 / one.frailty_shape_)
        if one.effect_ is not None:
            text += f", variance {number(variance)}"
        yield Row(SUBJECTS, name, text, variance)
    for name, one in model.type_models_.items():
        words = one.count_law_.words(one.law_parameters_)
        yield Row(VISITS, name, words, float(one.dispersion_))


def _effect_rows(model: TypedCurves, level: float) -> Iterator[Row]:
    """Rate ratios of the covariates, type by type."""
    for name, one in model.type_models_.items():
        effects = one.coefficients_
        for row in [] if effects is None else effects.rows(level):
            words = effect_text(row, level)
            yield Row(
                f"Rate ratios of covariates, {name}", row.covariate, words, row.rate_ratio,
                row.low, row.high,
            )  # fmt: skip


def _correlation_rows(model: TypedCurves, level: float) -> Iterator[Row]:
    """Who has more of one type has more of the other, or fewer."""
    section, known = "Subjects", model.effect_correlation_
    assert known is not None
    if len(known.event_types) < 2:
        yield Row(section, "dependence", "fewer than two types have subject effects: none")
    for row in known.to_frame(level).to_dict("records"):
        value, low, high = (float(row[key]) for key in ("correlation", "low", "high"))
        more = "more" if value > 0 else "fewer"
        sure = "" if low * high > 0 else ", not clearly"
        text = (
            f"{value:.2f} ({percent(level)} interval {low:.2f} to {high:.2f}): who has more "
            f"{row['event']} events has {more} {row['other']} ones{sure}"
        )
        yield Row(section, f"{row['event']} and {row['other']}", text, value, low, high)
