"""A fitted posterior for ArviZ: draws of the curve, hyper-parameters, effects, likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from gp4c.design.quadrature import IntervalIntegrals
from gp4c.exceptions import MissingExtraError
from gp4c.inference.exposure import GammaFrailty
from gp4c.inference.posterior import Posterior
from gp4c.inference.scoring import ScoredRows
from gp4c.inference.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
# name of a variable -> its dimensions after chain and draw, and its values (draws, ...)
Variables: TypeAlias = dict[str, tuple[tuple[str, ...], Any]]

#: chains that independent draws are split into; ArviZ's diagnostics ask for more than one
N_CHAINS = 4


@dataclass(frozen=True)
class Draws:
    """Joint draws, all of the same curves: f at times and events, ∫λ over intervals.

    Everything is in the user's units, λ = f². Arrays have one row per draw.
    """

    f: Floats
    at_events: Floats
    integrals: Floats
    length_scale: Floats
    variance: Floats
    mean: Floats
    shape: Floats
    n_chains: int
    weight: Floats | None = None


@dataclass(frozen=True)
class Asked:
    """Where the draws are evaluated, in the user's time."""

    times: Floats
    events: Floats
    start: Floats
    stop: Floats


def to_arviz(
    model: Any,
    panel: PanelCounts | None = None,
    *,
    n_draws: int = 2000,
    n_points: int = 100,
    random_state: int | None = None,
) -> Any:
    """Export a fitted GP4C or GP3 to ArviZ.

    Parameters
    ----------
    model : GaussianProcessModel
        Fitted.
    panel : PanelCounts, optional
        The data of the fit; needed for a model read from a file, which holds no data. Without
        data there are neither likelihoods nor observations.
    n_draws : int
        Draws of a variational posterior; those of a sampler are taken as they are.
    n_points : int
        Times at which curves are evaluated: evenly spaced, the last at the window's end.
    random_state : int, optional
        Seed; default that of the model.

    Returns
    -------
    InferenceData, or DataTree from ArviZ 1.0 on
        Groups posterior, log_likelihood, posterior_predictive, observed_data, constant_data and,
        for a sampler, sample_stats.
    """
    arviz = import_arviz()
    if model.histories_ is None:
        raise ValueError("this fit to very large data kept no subjects; to_arviz needs them")
    own_panel, events = getattr(model, "_fitted_to", (None, None))
    if panel is not None:
        _check_panel(model, panel)
    panel = own_panel if panel is None else model._adjusted(panel)
    histories, (first, last) = model.histories_, model.window_
    times = np.linspace(first, last, n_points + 1)[1:]
    distinct = None if panel is None else panel.distinct()
    origin = np.full_like(times, first)
    starts = [origin, histories.span_start, *([] if distinct is None else [distinct.start])]
    stops = [times, histories.span_stop, *([] if distinct is None else [distinct.stop])]
    moments = np.zeros(0) if events is None else events.time
    asked = Asked(times, moments, np.concatenate(starts), np.concatenate(stops))
    rng = np.random.default_rng(model._seed(random_state))
    with one_blas_thread():
        draws = joint_draws(model, asked, n_draws, rng)
    cumulative, spans, rows = np.split(
        draws.integrals, [n_points, n_points + len(histories.span_start)], axis=1
    )
    expected = histories.expected(spans)
    groups = {"posterior": _posterior(model, draws, cumulative, expected, rng)}
    if panel is not None or events is not None:
        counts = _count_terms(panel, events, distinct, rows, draws.at_events)
        constant = _log_factorials(panel, events)
        likelihood = subject_likelihoods(model, draws.shape, counts, expected) - constant
        groups["log_likelihood"] = {"counts": (("subject",), likelihood)}
        replicates = _replicates(model, draws.shape, expected, rng)
        groups["posterior_predictive"] = {"counts": (("subject",), replicates)}
    if draws.weight is not None:
        groups["sample_stats"] = {"weight": ((), draws.weight)}
    fixed = _fixed_groups(model, panel, events)
    # those at their best values are no draws: R̂ of a constant is not defined
    fixed["constant_data"] |= {
        name: ((), values[0]) for name, values in _hyper(draws).items() if np.ptp(values) == 0
    }
    return _assemble(arviz, model, groups, fixed, times, draws.n_chains)


def _check_panel(model: Any, panel: PanelCounts) -> None:
    """The subjects must be those of the fit, in number and names."""
    if panel.subjects.tolist() != list(model.histories_.subjects.tolist()):
        raise ValueError("these are not the subjects of the fit: pass the panel it was fitted to")


def import_arviz() -> Any:
    """ArviZ, or an error that says how to get it."""
    try:
        import arviz
    except ImportError:
        raise MissingExtraError(
            "to_arviz needs ArviZ, which is not installed: pip install 'gp4c[arviz]'"
        ) from None
    return arviz


# -- draws -----------------------------------------------------------------------------------


def joint_draws(model: Any, asked: Asked, n_draws: int, rng: np.random.Generator) -> Draws:
    """Draws of everything at once, so that f, its integrals and its hyper-parameters agree."""
    if isinstance(model.posterior_, Posterior):
        return _variational_draws(model, model.posterior_, asked, n_draws, rng)
    return _sampled_draws(model, model.posterior_, asked)


def _variational_draws(
    model: Any, posterior: Posterior, asked: Asked, n_draws: int, rng: np.random.Generator
) -> Draws:
    """Independent draws from the mixture, in random order, in chains of equal length."""
    each = max(n_draws // N_CHAINS, 1)
    points = posterior.unit(np.concatenate([asked.times, asked.events]))
    low, high = posterior.unit(asked.start), posterior.unit(asked.stop)
    weights = posterior.weights / posterior.weights.sum()
    shares = rng.multinomial(each * N_CHAINS, weights)
    paths, integrals, hyper = [], [], []
    for component, share in zip(posterior.components, shares.tolist(), strict=True):
        grid = component.grid(0.0, 1.0)
        f = component.draw(np.concatenate([points, grid.nodes]), share, rng)
        squares = f[len(points) :] ** 2
        paths.append(f[: len(points)])
        integrals.append(np.maximum(IntervalIntegrals(grid, low, high).apply(squares), 0.0))
        values = (component.length_scale, component.variance, component.prior_mean)
        hyper.append(np.tile(np.array(values)[:, None], share))
    order = rng.permutation(each * N_CHAINS)
    f, area, theta = (np.concatenate(p, axis=1)[:, order].T for p in (paths, integrals, hyper))
    shape = np.full(len(order), model.frailty_shape_)
    return _in_user_units(posterior, asked, f, area, (*theta.T, shape), N_CHAINS)


def _sampled_draws(model: Any, posterior: Any, asked: Asked) -> Draws:
    """The sampler's draws as they are, chain by chain."""
    points = np.concatenate([asked.times, asked.events])
    hyper = (posterior.length_scale, posterior.variance, posterior.prior_mean, posterior.shape)
    area = posterior.integrals(asked.start, asked.stop).T / posterior.rate
    chains = len(np.unique(posterior.chain))
    f = posterior.paths(points).T
    return _in_user_units(posterior, asked, f, area, hyper, chains, posterior.weights)


def _in_user_units(
    posterior: Any,
    asked: Asked,
    f: Floats,
    area: Floats,
    hyper: tuple[Floats, ...],
    n_chains: int,
    weight: Floats | None = None,
) -> Draws:
    """Unit time and unit rate to the data's units; the sign of f is free, and made positive.

    f and −f give the same intensity; a draw is shown with the sign that is positive on average.
    """
    length_scale, variance, mean, shape = hyper
    sign = np.where(f[:, : len(asked.times)].mean(axis=1) < 0, -1.0, 1.0)
    root = np.sqrt(posterior.scale)
    f = root * sign[:, None] * f
    return Draws(
        f=f[:, : len(asked.times)],
        at_events=f[:, len(asked.times) :],
        integrals=posterior.rate * area,
        length_scale=length_scale * (posterior.window[1] - posterior.window[0]),
        variance=variance * posterior.scale,
        mean=mean * root,
        shape=shape,
        n_chains=n_chains,
        weight=weight,
    )


# -- variables -------------------------------------------------------------------------------


def _posterior(
    model: Any, draws: Draws, cumulative: Floats, expected: Floats, rng: np.random.Generator
) -> Variables:
    """Curves, hyper-parameters and, with gamma effects, each subject's frailty given its curve."""
    variables: Variables = {
        "f": (("time",), draws.f),
        "intensity": (("time",), draws.f**2),
        "cumulative_intensity": (("time",), cumulative),
        **{name: ((), values) for name, values in _hyper(draws).items() if np.ptp(values) > 0},
    }
    if model.effect_ == "gamma" and np.all(np.isfinite(draws.shape)):
        shape, totals = draws.shape[:, None], model.histories_.totals
        frailty = rng.standard_gamma(shape + totals) / (shape + expected)
        variables["frailty"] = (("subject",), frailty)
    effects = getattr(model, "coefficients_", None)
    if effects is not None:  # normal around the estimates, independent of the curve
        beta = effects.beta + effects.deviations(len(draws.f), rng)
        variables["coefficient"] = (("covariate",), beta)
    return variables


def _hyper(draws: Draws) -> dict[str, Floats]:
    """Hyper-parameters of each draw; without frailty there is no α."""
    values = {
        "length_scale": draws.length_scale,
        "prior_variance": draws.variance,
        "prior_mean": draws.mean,
        "frailty_shape": draws.shape,
    }
    return {name: value for name, value in values.items() if np.all(np.isfinite(value))}


def subject_likelihoods(model: Any, shape: Floats, counts: Floats, expected: Floats) -> Floats:
    """ln p(counts of subject k | draw s) + Σ ln m!, (S, K).

    Gamma effects are integrated out, so that leaving a subject out leaves its frailty out too;
    free weights are those of the fit.
    """
    totals = model.histories_.totals
    if model.effect_ == "gamma" and np.all(np.isfinite(shape)):
        cost: Any = GammaFrailty().cost  # elementwise: one α per draw is as good as one for all
        return np.asarray(counts - cost(totals, expected, shape[:, None]))
    if model.effect_ == "weight":
        weights = model.subject_effects_
        return np.asarray(counts + xlogy(totals, weights) - weights * expected)
    return counts - expected


def _count_terms(
    panel: PanelCounts | None,
    events: RecurrentEvents | None,
    distinct: Any,
    rows: Floats,
    at_events: Floats,
) -> Floats:
    """Σ m ln(e ∫λ) of subjects with counts, then Σ ln λ(t) of those with event times, (S, K)."""
    parts = []
    if panel is not None:
        scored = ScoredRows(
            panel.count.astype(float), panel.exposure, panel.subject_index, distinct.inverse,
            panel.n_subjects,
        )  # fmt: skip
        parts.append(scored.counts_term(rows))
    if events is not None:
        terms = np.zeros((len(at_events), events.n_subjects))
        with np.errstate(divide="ignore"):
            logs = 2.0 * np.log(np.abs(at_events))
        np.add.at(terms.T, events.subject_index, logs.T)
        parts.append(terms)
    return np.concatenate(parts, axis=1)


def _log_factorials(panel: PanelCounts | None, events: RecurrentEvents | None) -> Floats:
    """Σ ln m! of each subject, so that likelihoods are probabilities; event times have none."""
    parts: list[Floats] = []
    if panel is not None:
        logs = gammaln(panel.count + 1.0)
        parts.append(np.asarray(np.bincount(panel.subject_index, logs, panel.n_subjects)))
    if events is not None:
        parts.append(np.zeros(events.n_subjects))
    return np.concatenate(parts)


def _replicates(
    model: Any, shape: Floats, expected: Floats, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Totals of new subjects, watched as long as those of the fit, (S, K)."""
    rate = expected
    if model.effect_ == "gamma" and np.all(np.isfinite(shape)):
        rate = expected * rng.standard_gamma(shape[:, None], expected.shape) / shape[:, None]
    elif model.effect_ == "weight":
        rate = expected * model.subject_effects_
    return np.asarray(rng.poisson(rate))


def _fixed_groups(
    model: Any, panel: PanelCounts | None, events: RecurrentEvents | None
) -> dict[str, Variables]:
    """Observations and what they are conditioned on; no chains, no draws."""
    constant: Variables = {"window": (("end",), np.array(model.window_))}
    if model.effect_ == "weight":
        constant["subject_effect"] = (("subject",), model.subject_effects_)
    groups = {"constant_data": constant}
    if panel is None and events is None:
        return groups
    observed: Variables = {"counts": (("subject",), model.histories_.totals.astype(np.int64))}
    if panel is not None:
        constant |= {  # ArviZ looks for a replicate of everything that was observed
            "interval_count": (("interval",), panel.count),
            "start": (("interval",), panel.start),
            "stop": (("interval",), panel.stop),
            "exposure": (("interval",), panel.exposure),
            "interval_subject": (("interval",), panel.subject_index),
        }
    if events is not None:
        constant["event_time"] = (("event",), events.time)
        constant["event_subject"] = (("event",), events.subject_index)
    return groups | {"observed_data": observed}


# -- ArviZ's containers ------------------------------------------------------------------------


def _assemble(
    arviz: Any,
    model: Any,
    groups: dict[str, Variables],
    fixed: dict[str, Variables],
    times: Floats,
    n_chains: int,
) -> Any:
    """Datasets of all groups in the container that this version of ArviZ uses."""
    import xarray as xr

    coords: dict[str, Any] = {"time": times, "subject": _labels(model.histories_.subjects)}
    if getattr(model, "coefficients_", None) is not None:
        coords["covariate"] = list(model.coefficients_.design.names)
    attributes = _attributes(model)
    datasets = {}
    for name, variables in groups.items():
        chained = {
            key: (("chain", "draw", *dims), values.reshape(n_chains, -1, *values.shape[1:]))
            for key, (dims, values) in variables.items()
        }
        datasets[name] = xr.Dataset(chained)
    datasets |= {name: xr.Dataset(variables) for name, variables in fixed.items()}
    for name, data in datasets.items():
        own = {dim: coords.get(str(dim), np.arange(size)) for dim, size in data.sizes.items()}
        datasets[name] = data.assign_coords(own).assign_attrs(attributes)
    if int(arviz.__version__.split(".")[0]) >= 1:
        return xr.DataTree.from_dict(datasets)
    return arviz.InferenceData(**datasets)


def _labels(subjects: NDArray[Any]) -> NDArray[Any]:
    """Labels of one kind: numbers, or else texts."""
    plain = np.array(subjects.tolist())
    return plain if plain.dtype.kind in "iuf" else np.array([str(s) for s in subjects.tolist()])


def _attributes(model: Any) -> dict[str, Any]:
    from gp4c import __version__

    sampled = model.sampler_ is not None
    method = (
        "tempered populations, one chain each; weight in sample_stats is their share"
        if sampled
        else "independent draws from the variational posterior; R̂ is 1 by construction"
    )
    found = {"inference_library": "gp4c", "inference_library_version": __version__,
             "model": repr(model), "draws": method}  # fmt: skip
    if model.time_unit_:
        found["time_unit"] = model.time_unit_
    if sampled:
        found["log_evidence"] = model.sampler_.log_evidence
    return found
