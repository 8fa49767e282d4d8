"""The rows of a model's summary: each reads fitted attributes and says them in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gp4c.data.checks import plural
from gp4c.data.timeaxis import TimeAxis
from gp4c.models.base import average_exposure
from gp4c.reporting.curves import AT_EXPOSURE, N_POINTS, Curves, bands_of, is_step
from gp4c.reporting.effect_rows import effect_text, has_effects, references
from gp4c.reporting.words import duration, estimate, moment, number, per, percent

#: what each estimator is, in one line
TITLES = {
    "GP4C": "smooth event rate from panel counts (squared Gaussian process)",
    "GP4CW": "smooth event rate with a free weight per subject (squared Gaussian process)",
    "GP3": "smooth event rate from exact event times (squared Gaussian process)",
    "LocalEM": "smooth event rate by local EM (Gaussian kernel)",
    "NPMLE": "mean number of events, nonparametric maximum likelihood (step function)",
    "NPMPLE": "mean number of events, nonparametric pseudo-likelihood (step function)",
    "NPMPLGF": "mean number of events, pseudo-likelihood with gamma frailty (step function)",
    "HomogeneousPoisson": "constant event rate",
}
#: difference of logarithms from which a crude rate is said not to be the average rate
_NOTICEABLE = math.log(1.1)
#: frailty variance above which few subjects carry the mean
_HEAVY_FRAILTY = 2.0


@dataclass(frozen=True)
class Row:
    """One line of a summary: words, and the numbers behind them."""

    section: str
    quantity: str
    text: str
    value: float | int | bool | str | None = None
    low: float | None = None
    high: float | None = None


def title_of(model: Any) -> str:
    """What the estimator is."""
    name = type(model).__name__
    return f"{name}: {TITLES[name]}" if name in TITLES else name


def rows_of(model: Any, level: float, curves: Curves | None = None) -> Iterator[Row]:
    """All rows, section by section; `curves`, if they are there already, save work."""
    yield from _data_rows(model)
    yield from _result_rows(model, level, curves)
    yield from _effect_rows(model, level)
    yield from _curve_rows(model)
    yield from _subject_rows(model)
    yield from _fit_rows(model)


def _data_rows(model: Any) -> Iterator[Row]:
    section = "Fitted to"
    known: dict[str, Any] = getattr(model, "data_summary_", None) or {}
    for key in ("n_subjects", "n_intervals", "n_events"):
        if key in known:
            yield Row(section, key[2:], f"{known[key]:,}", int(known[key]))
    at_risk = known.get("exposure_time", getattr(model, "time_at_risk_", None))
    unit = model.time_unit_
    if at_risk is not None:
        yield Row(section, "time at risk", duration(at_risk, unit, 4), float(at_risk))
    low, high = model.window_
    text = f"{number(low, 4)} to {number(high, 4)} {unit or '(unit of time not stated)'}"
    first, last = (TimeAxis.of(model).date(time) for time in (low, high))
    if first is not None:
        text += f" ({first} to {last})"
    yield Row(section, "window", text, low=low, high=high)


def _result_rows(model: Any, level: float, curves: Curves | None) -> Iterator[Row]:
    section, (_, end), unit = "Result", model.window_, model.time_unit_
    if curves is not None and curves.times[-1] != end:
        curves = None
    value = float(model.cumulative(end) if curves is None else curves.cumulative[-1])
    if curves is not None and level in curves.cumulative_bands:
        bands = curves.cumulative_bands
    else:
        bands = bands_of(model, "cumulative", np.array([end]), levels=(level,))
    band = bands.get(level)
    limits = {} if band is None else {"low": float(band[0][-1]), "high": float(band[1][-1])}
    yield Row(
        section, "mean number of events", _with_band(value, limits, level)
        + f" by {moment(end, unit)}, {_for_whom(model)}", value, **limits,
    )  # fmt: skip
    if not is_step(model):
        yield from _rate_rows(model, section, value, curves)


def _for_whom(model: Any) -> str:
    who = "at average covariates" if has_effects(model) else "per subject"
    return who + _at_exposure(model)


def _at_exposure(model: Any) -> str:
    return AT_EXPOSURE if average_exposure(model) != 1.0 else ""


def _effect_rows(model: Any, level: float) -> Iterator[Row]:
    """Rate ratios of the covariates."""
    if not has_effects(model):
        return
    section = "Rate ratios of covariates"
    for row in model.effect_table(level).itertuples():
        ratio, low, high = (float(v) for v in (row.rate_ratio, row.low, row.high))
        yield Row(section, str(row.covariate), effect_text(row, level), ratio, low, high)
    if references(model):
        yield Row(section, "reference", references(model))


def _with_band(value: float, limits: dict[str, float], level: float) -> str:
    if not limits:
        return estimate(value)
    low, high = estimate(limits["low"]), estimate(limits["high"])
    return f"{estimate(value)} ({percent(level)} band {low} to {high})"


def _rate_rows(model: Any, section: str, total: float, curves: Curves | None) -> Iterator[Row]:
    """Average, lowest and highest rate of the window."""
    unit, (start, end) = model.time_unit_, model.window_
    average = total / (end - start)
    said = f"{estimate(average)} {per(unit)}{_at_exposure(model)}"
    yield Row(section, "average rate", said, average)
    yield from _crude_row(model, section, average)
    times = np.linspace(start, end, N_POINTS)
    same = curves is not None and np.array_equal(curves.times, times)
    rate: Any = curves.rate if same and curves is not None else model.intensity(times)
    low, high = int(np.argmin(rate)), int(np.argmax(rate))
    if rate[high] > rate[low] * (1 + 1e-9):
        text = (
            f"from {estimate(rate[low])} at {_when(model, times[low])} "
            f"to {estimate(rate[high])} at {_when(model, times[high])}"
        )
        yield Row(section, "range of the rate", text, low=float(rate[low]), high=float(rate[high]))


def _when(model: Any, time: float) -> str:
    """A time, with its date where the data had dates."""
    text, date = moment(time, model.time_unit_), TimeAxis.of(model).date(time)
    return text if date is None else f"{text} ({date})"


def _crude_row(model: Any, section: str, average: float) -> Iterator[Row]:
    """Events divided by time at risk, where it is not about the average rate, and why not."""
    known: dict[str, Any] = getattr(model, "data_summary_", None) or {}
    at_risk, events = known.get("exposure_time", 0.0), known.get("n_events", 0)
    expected = getattr(model, "subject_expected_", None)
    if not at_risk * events * average > 0 or (model.effect_ is not None and expected is None):
        return
    crude = events / at_risk
    if abs(math.log(crude / average)) <= _NOTICEABLE:
        return
    word = "lower" if crude < average else "higher"
    own = crude if expected is None else float(np.sum(expected)) / at_risk
    text = f"{estimate(crude)} {per(model.time_unit_)} (events by time at risk), {word} because "
    yield Row(section, "crude rate", text + _why_crude(model, crude, average, own), crude)


def _why_crude(model: Any, crude: float, average: float, expected: float) -> str:
    """Why a crude rate is not the average rate; `expected` is that of average subjects' own times.

    From the average to the expected rate times are weighted by who was there to be seen, from the
    expected to the crude one subjects are weighted by how long they were.
    """
    if has_effects(model):
        return "the average is that of average covariates"
    if abs(math.log(crude / expected)) > abs(math.log(expected / average)):
        word = "lower" if crude < expected else "higher"
        return f"subjects who were observed longer had {word} rates, and each counts once in a mean"
    return f"more of the time at risk is where the rate is {'low' if crude < average else 'high'}"


# -- hyper-parameters -----------------------------------------------------------------------


def _curve_rows(model: Any) -> Iterator[Row]:
    section, unit = "Shape of the curve", model.time_unit_
    if hasattr(model, "length_scale_"):
        yield _length_scale_row(model, section)
        level = model.mean_**2 + model.variance_
        share = model.variance_ / level if level > 0 else math.nan
        yield Row(
            section, "prior of the rate",
            f"mean {number(level)} {per(unit)}; {share:.0%} of it is variation over time", level,
        )  # fmt: skip
        yield Row(section, "inducing inputs", str(model.n_inducing_), int(model.n_inducing_))
    if hasattr(model, "bandwidth_"):
        chosen = "chosen by cross-validation" if model.bandwidth == "cv" else "as given"
        text = f"{duration(model.bandwidth_, unit)} ({chosen})"
        yield Row(section, "bandwidth", text, float(model.bandwidth_))
    if is_step(model):
        jumps = int(np.sum(np.diff(model.values_, prepend=0.0) > 0))
        yield Row(section, "jumps", f"{jumps:,} at {len(model.times_):,} visit times", jumps)


def _length_scale_row(model: Any, section: str) -> Row:
    """The scale on which the rate varies; a range if the hyper-parameters were integrated out."""
    unit, value = model.time_unit_, float(model.length_scale_)
    text = f"the rate varies on a scale of about {duration(value, unit)}"
    limits = _length_scale_range(model)
    if limits is None:
        return Row(section, "length scale", text, value)
    low, high = limits
    if high > 1.2 * low:
        text += f" (80% of the posterior: {number(low, 2)} to {number(high, 2)})"
    return Row(section, "length scale", text, value, low, high)


def _length_scale_range(model: Any) -> tuple[float, float] | None:
    """10% and 90% points of the length scale over the components or draws of the posterior."""
    posterior: Any = getattr(model, "posterior_", None)
    if getattr(model, "sampler_", None) is not None:
        scale, weight = posterior.length_scale, posterior.weights
    else:
        components = getattr(posterior, "components", ())
        scale = np.array([c.length_scale for c in components])
        weight = np.array([c.weight for c in components])
    if len(scale) < 2:
        return None
    scale = scale * (model.window_[1] - model.window_[0])
    order = np.argsort(scale)
    share = np.cumsum(weight[order]) / weight.sum()
    at = np.minimum(np.searchsorted(share, [0.1, 0.9]), len(order) - 1)
    low, high = scale[order][at]
    return float(low), float(high)


# -- subjects -------------------------------------------------------------------------------


def _subject_rows(model: Any) -> Iterator[Row]:
    section, effect = "Differences between subjects", model.effect_
    variance = 1.0 / model.frailty_shape_
    if effect == "gamma":
        yield Row(section, "subject effects", "gamma frailty, mean 1", "gamma")
        yield Row(section, "frailty variance", number(variance), variance)
        if variance > 0:
            yield Row(section, "in other words", frailty_words(model.frailty_shape_))
    elif effect == "weight":
        weights = np.sort(model.subject_effects_)
        text = f"free weights, mean 1, from {number(weights[0])} to {number(weights[-1])}"
        yield Row(section, "subject effects", text, "weight")
    else:
        yield Row(section, "subject effects", "none: one rate for all subjects")
    choice = getattr(model, "effect_choice_", None)
    if choice and choice != "as asked":
        yield Row(section, "why", choice, choice)


def frailty_words(shape: float) -> str:
    """A frailty distribution as a statement about subjects."""
    from scipy.special import gammainccinv

    most, middle = gammainccinv(shape, [0.1, 0.5]) / shape  # upper quantiles of Gamma(α, α)
    return (
        f"one subject in ten has more than {number(most, 2)} times the mean rate, "
        f"half have less than {number(middle, 2)} times"
    )


# -- the fit --------------------------------------------------------------------------------


def _fit_rows(model: Any) -> Iterator[Row]:
    section = "Fit"
    method = _method(model)
    if method:
        yield Row(section, "posterior", method)
    if hasattr(model, "elbo_"):
        text = f"{model.elbo_:,.2f} (evidence lower bound, without Σ ln m!)"
        yield Row(section, "ELBO", text, float(model.elbo_))
    elif hasattr(model, "objective_"):
        name = "pseudo-likelihood" if type(model).__name__.startswith("NPMPL") else "likelihood"
        yield Row(section, f"log {name}", f"{model.objective_:,.2f}", float(model.objective_))
    if hasattr(model, "converged_"):
        steps = f"{model.n_iter_} step{'' if model.n_iter_ == 1 else 's'}"
        text = f"yes, after {steps}" if model.converged_ else f"NO, stopped after {steps}"
        yield Row(section, "converged", text, bool(model.converged_))
    if getattr(model, "compression_", None) is not None:
        yield Row(section, "rows", _compression(model.compression_))
    draws = len(next(iter(model.bootstrap_.values()))) if hasattr(model, "bootstrap_") else 0
    if draws:
        yield Row(section, "bands", f"{draws} bootstrap samples of the subjects", draws)


def _compression(how: dict[str, Any]) -> str:
    """What stands for the rows of a large table, and how closely."""
    if how["method"] != "nodes":
        return f"{how['n_rows']:,} rows as {how['n_intervals']:,} different intervals, exactly"
    text = (
        f"{how['n_rows']:,} rows as {how['n_intervals']:,} weighted intervals; the objective is "
        f"within {how['error']:.1g} nats of theirs ({how['relative_error']:.0e} of it)"
    )
    if how["below_exact"]:
        text += (
            f"; the pointwise count term was used, {how['below_exact']:.1f} nats below the exact"
        )
    return text


def _method(model: Any) -> str:
    if not hasattr(model, "posterior_"):
        return ""
    report = getattr(model, "sampler_", None)
    if report is not None:
        return (
            f"sampled: {model.posterior_.size:,} draws, of the curve R̂ at most "
            f"{report.curve_r_hat:.3f}, effective sample size at least {report.curve_ess:,.0f}"
        )
    n = len(getattr(model.posterior_, "components", ())) or 1
    if getattr(model, "hyper", "") == "integrate" and n > 1:
        return f"variational, hyper-parameters integrated out ({n} components)"
    return "variational, hyper-parameters at their best values"


# -- what to beware of ----------------------------------------------------------------------


def warnings_of(model: Any) -> Iterator[str]:
    """What a reader should know before relying on the result."""
    if not getattr(model, "converged_", True):
        yield "the fit did not converge: raise max_iter, or loosen tol, before using it"
    if (getattr(model, "data_summary_", None) or {}).get("n_events") == 0:
        yield "there were no events: the curve is an upper limit set by a weak prior"
    yield from _effect_warnings(model)
    yield from _approximation_warnings(model)
    left_out = getattr(model, "n_left_out_", 0)
    if left_out:
        was = "was" if left_out == 1 else "were"
        rows = f"{plural(left_out, 'row')} after a late entry, a gap or a change of exposure"
        yield f"{rows} {was} not used"
    if not _has_bands(model):
        yield "no bands yet: this estimator has no posterior; call model.bootstrap(200)"


def _effect_warnings(model: Any) -> Iterator[str]:
    if model.effect_ is None and getattr(model, "effect", None) != "auto":
        bootstrapped = hasattr(model, "bootstrap_")
        if not bootstrapped and _has_bands(model):
            yield (
                "without subject effects the bands are too narrow if some subjects have many "
                "more events than others; effect='gamma' allows for it"
            )
    elif model.effect_ == "gamma" and model.frailty_shape_ < 1 / _HEAVY_FRAILTY:
        yield (
            "subjects differ a great deal, so the mean rests on few of them; the band allows for "
            "it, but a picture of the panel is worth a look"
        )
    elif model.effect_ == "weight":
        yield "weights are fitted to the subjects' own counts: scores of others are no predictions"


def _approximation_warnings(model: Any) -> Iterator[str]:
    if getattr(model, "count_term", "exact") == "lemma2":
        yield (
            f"the paper's bound (b = {model.b:g}) is loose, which can misplace the curve's "
            "smoothness and the width of the band; count_term='exact' is not"
        )
    if getattr(model, "hyper", "integrate") == "optimize" and hasattr(model, "posterior_"):
        yield "the band leaves out the uncertainty of the length scale; hyper='integrate' has it"


def _has_bands(model: Any) -> bool:
    analytic = hasattr(model, "posterior_") or hasattr(model, "rate_interval")
    return analytic or hasattr(model, "bootstrap_")
