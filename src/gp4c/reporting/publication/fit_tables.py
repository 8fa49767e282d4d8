"""Tables of fitted models: estimates, effects of covariates, curves at a few times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gp4c.data.checks import check_choice
from gp4c.data.summaries.table import Table
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.exceptions import PanelDataError
from gp4c.reporting.effect_rows import (
    ABOUT_EFFECTS,
    HEADER,
    effect_cells,
    effects_frame,
    has_effects,
    references,
)
from gp4c.reporting.figures.curves import Curves, at_exposure, curves_of
from gp4c.reporting.figures.plot_style import time_label
from gp4c.reporting.publication.estimate_lines import NONE, Estimate, by_group, one_column
from gp4c.reporting.remarks import warnings_of
from gp4c.reporting.rows.law_rows import dispersion_range, frailty_range, length_scale_range
from gp4c.reporting.summary_rows import title_of
from gp4c.reporting.words import estimate, per, percent, point, when

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.estimators.base import PanelEstimator

#: times of a table of curves
_TIMES = 11
#: tables that a model has
KINDS = ("estimates", "effects", "curve")


def model_table(
    model: PanelEstimator, what: str = "estimates", *, level: float = 0.95,
    times: ArrayLike | None = None,
) -> Table:  # fmt: skip
    """What ``model.table()`` returns."""
    check_choice("what", what, KINDS)
    if what == "effects":
        return effects_table({"": model}, level)
    if what == "curve":
        return curve_table({"": model}, level, times=times)
    return estimates_table({"": model}, level)


def estimates_table(
    models: Mapping[str, PanelEstimator], level: float = 0.95, by: str | None = None
) -> Table:
    """What was estimated, of one model or of one for each group.

    Parameters
    ----------
    models : dict
        Group to fitted estimator; any name if there is one.
    level : float in (0, 1)
        Level of the intervals.
    by : str, optional
        The covariate that makes the groups.
    """
    lines = {name: list(_estimates(model, level)) for name, model in models.items()}
    first = next(iter(models.values()))
    title = "Event rate and number of events" + (f" by {by}" if by else "")
    caption, notes = f"{title_of(first)}.", _notes(models, by)
    if len(models) == 1 and by is None:
        return one_column(title, next(iter(lines.values())), level, notes, caption)
    return by_group(title, lines, level, notes, caption)


def _estimates(model: PanelEstimator, level: float) -> Iterator[Estimate]:
    """Data, events, covariates, shape and differences of one model."""
    known = model.data_summary_
    for key in ("n_subjects", "n_intervals", "n_events"):
        if key in known:
            yield Estimate("Data", key[2:], float(known[key]), certain=True)
    yield from _events(model, level)
    if model.coefficients_ is not None:
        for row in model.coefficients_.rows(level):
            yield Estimate(
                "Rate ratios of covariates", str(row.covariate), row.rate_ratio,
                (row.low, row.high), row.p_value,
            )  # fmt: skip
    yield from _shape(model, level)
    yield from _differences(model, level)


def _events(model: PanelEstimator, level: float) -> Iterator[Estimate]:
    """Mean number of events in the window, and the average rate where there is a rate."""
    section, unit, (start, end) = "Events", model.time_unit_, model.window_
    curves = curves_of(model, [start, end], levels=(level,))
    value, band = float(curves.cumulative[-1]), curves.cumulative_bands.get(level)
    limits = None if band is None else (float(band[0][-1]), float(band[1][-1]))
    who = "at average covariates" if has_effects(model) else "per subject"
    name = f"mean number by {when(end, TimeAxis.of(model))}, {who}{at_exposure(model)}"
    yield Estimate(section, name, value, limits)
    if not model.is_step:
        length = end - start
        each = None if limits is None else (limits[0] / length, limits[1] / length)
        yield Estimate(
            section, f"average rate {per(unit, model.usage_)}", value / length, each
        )  # fmt: skip


def _shape(model: PanelEstimator, level: float) -> Iterator[Estimate]:
    section = "Shape of the curve"
    for name, _, counted, value, low, high in model.curve_parameters(level):
        title = f"{name} ({counted})" if counted else name
        yield Estimate(section, title, value, (low, high))
    if isinstance(model, GaussianProcessModel):
        unit = f" ({model.time_unit_})" if model.time_unit_ else ""
        limits = length_scale_range(model, level)
        yield Estimate(section, f"length scale{unit}", float(model.length_scale_), limits)


def _differences(model: PanelEstimator, level: float) -> Iterator[Estimate]:
    """Variances of the laws that the fit has."""
    section = "Differences between subjects and visits"
    if model.effect_law_.varies:
        yield Estimate(
            section, "variance of subject effects", float(1.0 / model.frailty_shape_),
            frailty_range(model, level),
        )  # fmt: skip
    if model.count_law_.parameters:
        yield Estimate(
            section, "variance of a count over its mean", float(model.dispersion_),
            dispersion_range(model, level),
        )  # fmt: skip


def _notes(models: Mapping[str, PanelEstimator], by: str | None) -> Iterator[str]:
    """How intervals were obtained, reference levels, and what to beware of."""
    said: dict[str, None] = {}
    for name, model in models.items():
        whose = f"{by}: {name}: " if by else ""
        texts = [model.band_text()]
        if references(model):
            texts.append(f"Reference levels: {references(model)}.")
        texts += [f"{whose}{remark[:1].upper()}{remark[1:]}." for remark in warnings_of(model)]
        said |= dict.fromkeys(filter(None, texts))
    return iter(said)


# -- covariates -----------------------------------------------------------------------------


def effects_table(
    models: Mapping[str, PanelEstimator], level: float = 0.95, by: str | None = None
) -> Table:
    """Rate ratios of the covariates with standard errors; see :func:`estimates_table`."""
    rows: list[tuple[str, ...]] = []
    notes, formula = [ABOUT_EFFECTS], ""
    for name, model in models.items():
        if model.coefficients_ is None:
            continue
        formula = str(model.coefficients_.design.formula)
        if by:
            rows.append((f"{by}: {name}",))
        rows += [effect_cells(row) for row in model.coefficients_.rows(level)]
        if references(model):
            notes.append(f"Reference levels: {references(model)}.")
    if not rows:
        raise PanelDataError("a model without a formula has no effects of covariates to tabulate")
    columns = tuple(f"{percent(level)} interval" if n == "interval" else n for n in HEADER)
    return Table(
        "Effects of covariates", columns, tuple(rows), tuple(dict.fromkeys(notes)),
        f"Model: {formula}.", effects_frame(models, level, by),
    )  # fmt: skip


# -- curves ---------------------------------------------------------------------------------


def curve_table(
    models: Mapping[str, PanelEstimator], level: float = 0.95, by: str | None = None,
    times: ArrayLike | None = None,
) -> Table:  # fmt: skip
    """Rate and mean number of events at a few times; see :func:`estimates_table`."""
    rows: list[tuple[str, ...]] = []
    frames, curves = [], None
    for name, model in models.items():
        at = np.linspace(*model.window_, _TIMES) if times is None else np.atleast_1d(times)
        curves = curves_of(model, model._as_numbers(at), levels=(level,))
        if by:
            rows.append((f"{by}: {name}",))
        rows += _curve_rows(curves, level, TimeAxis.of(model))
        frames.append(curves.to_frame().assign(**({"group": name} if by else {})))
    assert curves is not None
    columns = [time_label(curves.axis, curves.time_unit)]
    if curves.rate is not None:
        columns += [curves.rate_label, f"{percent(level)} band"]
    columns += [curves.cumulative_label, f"{percent(level)} band"]
    title = "Event rate and mean number of events over time" + (f" by {by}" if by else "")
    first = next(iter(models.values()))
    return Table(
        title, tuple(columns), tuple(rows), tuple(filter(None, [first.band_text()])),
        f"{title_of(first)}.", _stacked(frames),
    )  # fmt: skip


def _curve_rows(curves: Curves, level: float, axis: TimeAxis) -> Iterator[tuple[str, ...]]:
    for k, time in enumerate(curves.times.tolist()):
        cells = [axis.date(time) or point(time, 4)]
        for values, bands in (
            (curves.rate, curves.rate_bands), (curves.cumulative, curves.cumulative_bands)
        ):  # fmt: skip
            if values is not None:
                band = bands.get(level)
                text = NONE if band is None else f"{estimate(band[0][k])} to {estimate(band[1][k])}"
                cells += [estimate(values[k]), text]
        yield tuple(cells)


def _stacked(frames: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(frames, ignore_index=True)
