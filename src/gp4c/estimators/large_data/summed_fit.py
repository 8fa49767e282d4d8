"""Fits to tables that are read in parts: sums first, then the usual engine on them.

The rows are read once. What remains of them are weighted intervals between nodes, close enough
for the length-scale: a first look finds how close they must be, and the result says how far the
objective is from that of the rows (docs/maths_scale.md).
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.panel import PanelCounts
from gp4c.data.tables.sources import ArraySource, PanelSource, scan_panel
from gp4c.estimators.engine_fit import (
    candidates,
    given_mean,
    run_engine,
    store_posterior,
)
from gp4c.estimators.fit_warnings import warn_of_weights
from gp4c.estimators.large_data.large_subjects import store_subjects
from gp4c.inference.engine.climb import Mode
from gp4c.inference.engine.posterior_fit import EngineFit, Laws
from gp4c.large.count_classes import MOST_CLASSES
from gp4c.large.expanded_cells import expanded_cells, expansion_error
from gp4c.large.resolved import SummedPanel
from gp4c.large.size import SUPPORTED, unsupported
from gp4c.large.streaming import PanelSums, Say, sum_source
from gp4c.model.cells import Cells
from gp4c.model.laws import LAWS, CountLaw, SubjectEffect
from gp4c.model.laws.choice_words import choice_words
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from distributed import Client

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.tables.sources import Source
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.estimators.interfaces.fitted_state import Compression

#: cells and owners up to which they are fitted as they are; more are expanded at the mode first
MOST_CELLS = 15_000
#: deviation of an expansion over draws, in nats, that changes no result visibly
MOST_ERROR = 1.0
_NO_BURSTS = "bursts were not considered, because the rows are not in memory"
_NOT_BOTH = (
    "bursts together with subject effects were not considered, because the rows are not in memory"
)


def as_source(panel: PanelCounts | PanelSource | Source) -> PanelSource:
    """Anything that ``fit`` takes as a source of rows."""
    if isinstance(panel, PanelSource):
        return panel
    return ArraySource(panel) if isinstance(panel, PanelCounts) else scan_panel(panel)


def fit_large(
    model: GaussianProcessModel,
    panel: PanelCounts | PanelSource | Source,
    events: RecurrentEvents | None = None,
    client: Client | None = None,
    say: Say | None = None,
) -> None:
    """Fit GP4C to a source of rows; the model's attributes are those of a small fit.

    Parameters
    ----------
    model : GP4C
    panel : PanelCounts, PanelSource or what :func:`gp4c.scan_panel` takes
    events : None
        Exact event times need the rows in memory.
    client : distributed.Client, optional
        Where to read the rows.
    say : callable, optional
        Told what goes on.
    """
    _check_supported(model, events)
    source = as_source(panel)
    began = time.perf_counter()
    sums = _sums(source, model.effect, client, say)
    told = _silent if say is None else _with_speed(say, sums, time.perf_counter() - began)
    whole = SummedPanel(sums, source.window, model.kernel, model.n_inducing, given_mean(model))
    asked = candidates(model.effect, model.bursts, sums)
    laws = _served(whole, asked)
    with one_blas_thread():
        fit, model.compression_ = fit_sums(model, whole, laws, told)
        store_posterior(model, source.window, fit)
        model._keep_time_axis(source)
        model.data_summary_ = _describe(sums, source.window)
        store_subjects(model, source, sums)
    model.effect_choice_ = _choice(fit, [pair for pair in asked if pair not in laws])
    model.coefficients_ = model._engine_data = model.fit_check_ = None
    warn_of_weights(model, fit.weighted.rough)


def fit_sums(
    model: GaussianProcessModel, whole: SummedPanel, laws: list[Laws], say: Say
) -> tuple[EngineFit, Compression]:
    """Fit with nodes as close as the length-scale needs; closer if the error asks for it."""
    resolution, near = whole.closest, None
    if not whole.exact:
        resolution, near = whole.resolution(laws[0], say)
    while True:
        fit, left = _fit_nodes(model, whole, laws, resolution, near, say)
        error = whole.error(fit.lattice, resolution)
        if resolution <= whole.closest or whole.good(fit.lattice, error):
            described = _compression(whole, fit, resolution, error)
            return fit, {**described, **({"expansion_error": left} if left else {})}
        say(f"closer nodes: log probabilities may be {error:.1g} off")
        resolution = max(whole.closest, resolution / 2)


def _fit_nodes(
    model: GaussianProcessModel,
    whole: SummedPanel,
    laws: list[Laws],
    resolution: float,
    near: Mode | None,
    say: Say,
) -> tuple[EngineFit, float]:
    """Fit by an expansion where cells are many and that is close enough; also its error."""

    def observe(law: CountLaw, effect: SubjectEffect) -> Cells:
        cells = whole.cells(law, effect, resolution)
        if near is None or len(cells.start) + cells.n_owners <= MOST_CELLS:
            return cells
        return expanded_cells(cells, (law, effect), near, whole.settings)

    fit = run_engine(model, observe, laws, say)
    if fit.task.likelihood.cells.expansion is None:
        return fit, 0.0
    error = expansion_error(fit, iter([whole.cells(*fit.laws, resolution)]), whole.settings)
    if error <= MOST_ERROR:
        return fit, error
    say(f"fitting the nodes themselves: an expansion is {error:.1g} off in log probability")
    exact = partial(whole.cells, resolution=resolution)
    return run_engine(model, exact, [fit.laws], say), 0.0


def _compression(
    whole: SummedPanel, fit: EngineFit, resolution: float, error: float
) -> Compression:
    """What stands for the rows, and how far the objective is from theirs."""
    intervals = whole.sums.intervals
    return {
        "method": "distinct intervals" if intervals.exact is not None else "nodes",
        "n_rows": int(intervals.n_rows),
        "n_intervals": len(whole.cells(*fit.laws, resolution).start),
        "resolution": resolution * (whole.window[1] - whole.window[0]),
        "error": error,
        "relative_error": error / max(abs(fit.weighted.log_evidence), 1.0),
    }


def _silent(text: str) -> None:
    """Tell nobody."""


def _with_speed(say: Say, sums: PanelSums, seconds: float) -> Say:
    """Also tell how many rows there are, and how fast they were read."""
    n_rows = sums.intervals.n_rows
    return lambda text: say(f"{text} ({n_rows:,.0f} rows, {n_rows / seconds:,.0f} per second)")


def _served(whole: SummedPanel, laws: list[Laws]) -> list[Laws]:
    """Laws that the sums can tell, Poisson counts first: they find the length-scale."""
    served = [pair for pair in laws if whole.serves(*pair)]
    if not served:
        law, effect = laws[-1]
        raise ValueError(
            f"{law.title}, {effect.title}: this needs the rows in memory, or bursts='auto' or "
            "False; without subject effects (effect=None) at most "
            f"{MOST_CLASSES:,} different intervals with different counts"
        )
    return sorted(served, key=lambda pair: not pair[0].one_by_one)


def _choice(fit: EngineFit, left_out: list[Laws]) -> str:
    """Why these laws, and what the sums could not tell."""
    law, effect = fit.laws
    words = choice_words((law.name, effect.name), fit.evidences)
    if not left_out:
        return words
    tried = any(not LAWS[name].one_by_one for name, _ in fit.evidences)
    return f"{words}; {_NOT_BOTH if tried else _NO_BURSTS}"


def _check_supported(model: GaussianProcessModel, events: RecurrentEvents | None) -> None:
    """Say what does not work on sums, and what does."""
    if events is not None:
        raise ValueError("events= goes with a PanelCounts in memory, and without client=")
    parameters = model.get_params()
    if parameters.get("count_term") is not None:
        raise ValueError("count_term needs the rows in memory; leave it at None")
    for name in unsupported(parameters):
        raise ValueError(
            f"{name}={parameters[name]!r} needs the rows themselves; with data of this size "
            f"use {name}={SUPPORTED[name]!r}, or fit a sample of subjects"
        )


def _sums(
    source: PanelSource, effect: str | None, client: Client | None, say: Say | None
) -> PanelSums:
    from gp4c.data.tables.sources import DaskSource

    if client is None and not isinstance(source, DaskSource):
        return sum_source(source, effect=effect, say=say)
    from gp4c.large.cluster import sum_on_cluster

    return sum_on_cluster(source, client, effect=effect, say=say)


def _describe(sums: PanelSums, window: tuple[float, float]) -> dict[str, float]:
    intervals = sums.intervals
    return {
        "n_subjects": sums.n_subjects,
        "n_intervals": int(intervals.n_rows),
        "n_events": int(intervals.n_events),
        "exposure_time": intervals.exposure_time * float(np.diff(window)[0]),
    }
