"""A fitted posterior for ArviZ: draws of the curve, hyper-parameters, effects, likelihoods."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from gp4c.exceptions import MissingExtraError
from gp4c.files.arviz_draws import Asked, Draws, joint_draws
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.fitted_counts import coefficient_deviations, fitted_counts
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataTree

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.parts import GaussianProcessModel

Floats = NDArray[np.float64]
# name of a variable -> its dimensions after chain and draw, and its values (draws, ...)
Variables: TypeAlias = dict[str, tuple[tuple[str, ...], NDArray[np.generic]]]


def to_arviz(
    model: GaussianProcessModel,
    panel: PanelCounts | None = None,
    *,
    n_draws: int = 2000,
    n_points: int = 100,
    random_state: int | None = None,
) -> InferenceData | DataTree:
    """Export a fitted GP4C or GP3 to ArviZ.

    Parameters
    ----------
    model : GaussianProcessModel
        Fitted.
    panel : PanelCounts, optional
        The data of the fit, for a model read from a file: its rows are then in the export. A
        formula with covariates that change over time needs it for exact likelihoods.
    n_draws : int
        Weighted draws are resampled to so many of equal weight, in four chains; a variational
        posterior is drawn from. Those of a sampler are taken as they are.
    n_points : int
        Times at which curves are evaluated: evenly spaced, the last at the window's end.
    random_state : int, optional
        Seed; default that of the model.

    Returns
    -------
    InferenceData, or DataTree from ArviZ 1.0 on
        Groups posterior, log_likelihood, posterior_predictive, observed_data, constant_data and,
        for a sampler, sample_stats. Parameters that do not vary are in constant_data: R̂ of a
        constant is not defined.
    """
    arviz = import_arviz()
    if model.histories_ is None:
        raise ValueError("this fit to very large data kept no subjects; to_arviz needs them")
    own_panel, events = model._fitted_to
    if panel is not None:
        _check_panel(model, panel)
    panel = own_panel if panel is None else model._adjusted(panel)
    counts = fitted_counts(model, panel)
    first, last = model.window_
    times = np.linspace(first, last, n_points + 1)[1:]
    start = np.concatenate([np.full_like(times, first), counts.start])
    stop = np.concatenate([times, counts.stop])
    asked = Asked(times, counts.start[counts.points], start, stop)
    rng = np.random.default_rng(model._seed(random_state))
    with one_blas_thread():
        draws = joint_draws(model, asked, n_draws, rng)
        groups = _groups(model, counts, draws, n_points, rng)
    fixed = _fixed_groups(model, panel, events)
    fixed["constant_data"] |= {
        name: ((), values[0]) for name, values in _numbers(counts, draws).items() if _fixed(values)
    }
    return _assemble(arviz, model, groups, fixed, times, draws.n_chains)


def _check_panel(model: GaussianProcessModel, panel: PanelCounts) -> None:
    """The subjects must be those of the fit, in number and names."""
    if panel.subjects.tolist() != model.subjects_.tolist():
        raise ValueError("these are not the subjects of the fit: pass the panel it was fitted to")


def import_arviz() -> ModuleType:
    """ArviZ, or an error that says how to get it."""
    try:
        import arviz
    except ImportError:
        raise MissingExtraError(
            "to_arviz needs ArviZ, which is not installed: pip install 'gp4c[arviz]'"
        ) from None
    return arviz


# -- variables -------------------------------------------------------------------------------


def _groups(
    model: GaussianProcessModel,
    counts: SubjectCounts,
    draws: Draws,
    n_points: int,
    rng: np.random.Generator,
) -> dict[str, Variables]:
    """Everything that has draws; effects are integrated out of likelihoods.

    Leaving a subject out then leaves its effect out too. Likelihoods are probabilities: Σ ln m! is
    subtracted.
    """
    cumulative, seen = np.split(draws.integrals, [n_points])
    seen[counts.points] = draws.at_events**2
    beta = coefficient_deviations(model, draws.beta)
    variables: Variables = {
        "f": (("time",), draws.f.T),
        "intensity": (("time",), draws.f.T**2),
        "cumulative_intensity": (("time",), cumulative.T),
    }
    variables |= {
        name: ((), values) for name, values in _numbers(counts, draws).items() if not _fixed(values)
    }
    if counts.effect.varies:
        frailty = counts.effect_draws(seen, draws.params, rng, beta)
        variables["frailty"] = (("subject",), frailty.T)
    if len(draws.beta):
        variables["coefficient"] = (("covariate",), draws.beta.T)
    likelihood = counts.log_likelihoods(seen, draws.params, beta) - _log_factorials(counts)
    totals = _replicates(counts, counts.expected(seen, beta), draws.params, rng)
    groups: dict[str, Variables] = {
        "posterior": variables,
        "log_likelihood": {"counts": (("subject",), likelihood.T)},
        "posterior_predictive": {"counts": (("subject",), totals.T)},
    }
    if draws.weight is not None:
        groups["sample_stats"] = {"weight": ((), draws.weight)}
    return groups


def _numbers(counts: SubjectCounts, draws: Draws) -> dict[str, Floats]:
    """Hyper-parameters, and what the laws have: the frailty's shape, the counts' dispersion."""
    psi, theta = counts.likelihood.split(draws.params)
    values = {
        "length_scale": draws.length_scale,
        "prior_variance": draws.variance,
        "prior_mean": draws.mean,
    }
    if counts.effect.varies:
        values["frailty_shape"] = 1.0 / counts.effect.variance(psi)
    if counts.law.parameters:
        values["dispersion"] = counts.law.dispersion(theta)
    return values


def _fixed(values: Floats) -> bool:
    """Whether all draws have the same value."""
    return bool(np.ptp(values) == 0)


def _log_factorials(counts: SubjectCounts) -> Floats:
    """Σ ln m! of each subject, (K, 1)."""
    logs = gammaln(counts.seen.count + 1.0)
    return np.asarray(np.bincount(counts.seen.subject, logs, counts.n_subjects)[:, None])


def _replicates(
    counts: SubjectCounts, expected: Floats, params: Floats, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Totals of new subjects, watched as long as those of the fit, (K, S)."""
    psi, theta = counts.likelihood.split(params)
    nothing = np.zeros((len(expected), 1))
    effects = counts.effect.draw(psi, nothing, nothing, rng)
    return counts.law.draw(effects * expected, theta, rng)


def _fixed_groups(
    model: GaussianProcessModel, panel: PanelCounts | None, events: RecurrentEvents | None
) -> dict[str, Variables]:
    """Observations and what they are conditioned on; no chains, no draws."""
    constant: Variables = {"window": (("end",), np.array(model.window_))}
    if model.effect_law_.is_free and model.subject_effects_ is not None:
        constant["subject_effect"] = (("subject",), model.subject_effects_)
    observed: Variables = {"counts": (("subject",), model.subject_totals_.astype(np.int64))}
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
    return {"constant_data": constant, "observed_data": observed}


# -- ArviZ's containers ------------------------------------------------------------------------


def _assemble(
    arviz: ModuleType,
    model: GaussianProcessModel,
    groups: dict[str, Variables],
    fixed: dict[str, Variables],
    times: Floats,
    n_chains: int,
) -> InferenceData | DataTree:
    """Datasets of all groups in the container that this version of ArviZ uses."""
    import xarray as xr

    coords: dict[str, ArrayLike] = {"time": times, "subject": _labels(model.subjects_)}
    if model.coefficients_ is not None:
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
    container: InferenceData = arviz.InferenceData(**datasets)
    return container


def _labels(subjects: NDArray[np.generic]) -> NDArray[np.generic]:
    """Labels of one kind: numbers, or else texts."""
    plain = np.array(subjects.tolist())
    return plain if plain.dtype.kind in "iuf" else np.array([str(s) for s in subjects.tolist()])


def _attributes(model: GaussianProcessModel) -> dict[str, str | float]:
    from gp4c import __version__

    found: dict[str, str | float] = {
        "inference_library": "gp4c", "inference_library_version": __version__,
        "model": repr(model), "draws": _words(model.posterior_),
    }  # fmt: skip
    if model.time_unit_:
        found["time_unit"] = model.time_unit_
    if model.has_evidence:
        found["log_evidence"] = model.log_evidence_
    return found


def _words(posterior: object) -> str:
    """Where the draws come from."""
    if not isinstance(posterior, CurveDraws):
        return "independent draws from the variational posterior; R̂ is 1 by construction"
    if len(np.unique(posterior.chain)) > 1:
        return "populations of a sampler, one chain each; weight in sample_stats is their share"
    return (
        "weighted draws of the posterior, resampled to equal weights and dealt into chains; R̂ is 1 "
        "by construction"
    )
