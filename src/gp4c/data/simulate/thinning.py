"""Exact draws from inhomogeneous Poisson processes, many subjects at once.

Lewis and Shedler's thinning: draw candidates from a piecewise-constant envelope above the
intensity, keep each with probability intensity / envelope. Candidates come sorted by subject and
time without any sorting, as order statistics built from exponential spacings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gp4c.data.simulate.intensities import BoundedIntensity, Intensity, Window
from gp4c.data.subjects import FloatArray, IndexArray
from gp4c.exceptions import PanelDataError

# Candidates per batch: small enough to stay in the processor's cache.
_BATCH = 1 << 17
# Cells of the envelope of an arbitrary callable, and evaluations per cell.
_CELLS, _PROBES = 1024, 8
# Head-room above the largest probed value, and the least envelope relative to the overall maximum:
# a cell at zero would never see a candidate, so a spike in it would never be found out.
_MARGIN, _FLOOR = 1.1, 0.01
# Rounding in interpolation may exceed an exact bound by this much.
_ROUNDING = 1e-9
# Growth of the envelope's integral, by doubling, at which the intensity is called unbounded.
_MAX_GROWTH = 100.0


@dataclass(frozen=True)
class Envelope:
    """A piecewise-constant function above an intensity.

    Parameters
    ----------
    edges : array (n + 1,)
        End points of the cells.
    height : array (n,)
        Value in each cell.
    """

    edges: FloatArray
    height: FloatArray

    def mass_at_edges(self) -> FloatArray:
        """Integral from the first edge to each edge (n + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.height * np.diff(self.edges))])

    def doubled(self, cells: IndexArray) -> Envelope:
        """Twice as high in the given cells, and positive where it was zero."""
        height = self.height.copy()
        height[cells] = np.maximum(2 * height[cells], _FLOOR * height.max())
        return replace(self, height=height)


class EnvelopeExceededError(Exception):
    """The intensity is above the envelope in these cells."""

    def __init__(self, cells: IndexArray) -> None:
        super().__init__("the intensity exceeds its envelope")
        self.cells = cells


def draw_events(
    intensity: Intensity,
    *,
    window: Window,
    weight: FloatArray,
    end: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, IndexArray]:
    """Draw the event times of every subject.

    Subject k has rate weight[k] · intensity(t) on (window start, end[k]].

    An intensity with an ``envelope`` method is thinned under that bound. Any other callable is
    probed on a fine grid; when a candidate is found to exceed the envelope, the envelope is
    doubled in that cell and everything is drawn anew. What remains unseen is a spike narrower
    than the grid of probes that no candidate hits.

    Parameters
    ----------
    intensity : callable
        Array of times to array of rates.
    window : (float, float)
        Start and stop of the time axis.
    weight : array (n_subjects,)
        Non-negative factor of each subject's rate.
    end : array (n_subjects,)
        End of each subject's observation, inside the window.
    rng : Generator
        Source of randomness.

    Returns
    -------
    time : array (n_events,)
        Sorted by subject, then time.
    n_events : array (n_subjects,)
        Number of events of each subject.
    """
    envelope = find_envelope(intensity, window)
    largest_mass = _MAX_GROWTH * envelope.mass_at_edges()[-1]
    while True:
        try:
            batches = list(_thin_all(intensity, envelope, weight, end, rng))
        except EnvelopeExceededError as found:
            envelope = envelope.doubled(found.cells)
            _check_bounded(envelope, largest_mass)
        else:
            times, counts = zip(*batches, strict=True)
            return np.concatenate(times), np.concatenate(counts)


def find_envelope(intensity: Intensity, window: Window) -> Envelope:
    """Bound an intensity from above: by what it knows itself, else by probing it."""
    if isinstance(intensity, BoundedIntensity):
        edges, height = intensity.envelope(window)
        evaluate(intensity, (edges[:-1] + edges[1:]) / 2)
        return Envelope(edges, height)
    probes = np.linspace(*window, _CELLS * _PROBES + 1)
    rate = evaluate(intensity, probes)
    in_cell = np.concatenate([rate[:-1].reshape(_CELLS, _PROBES), rate[_PROBES::_PROBES, None]], 1)
    highest = np.pad(in_cell.max(axis=1), 1, mode="edge")
    with_neighbours = np.maximum.reduce([highest[:-2], highest[1:-1], highest[2:]])
    height = np.maximum(_MARGIN * with_neighbours, _FLOOR * rate.max())
    return Envelope(probes[::_PROBES], height)


def evaluate(intensity: Intensity, time: FloatArray) -> FloatArray:
    """Rates at the given times, checked: one finite, non-negative number for each."""
    try:
        rate = np.asarray(intensity(time), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, PanelDataError):
            raise
        raise PanelDataError(
            f"the intensity must turn an array of times into an array of rates; it raised "
            f"{type(error).__name__}: {error} (np.vectorize makes a scalar function do so)"
        ) from error
    if rate.ndim == 0:
        rate = np.broadcast_to(rate, time.shape)
    if rate.shape != time.shape:
        raise PanelDataError(
            f"the intensity must give one rate per time; "
            f"{len(time)} times gave an array of shape {rate.shape}"
        )
    bad = ~(np.isfinite(rate) & (rate >= 0))
    if bad.any():
        place = int(np.argmax(bad))
        raise PanelDataError(
            "the intensity must be finite and not negative; "
            f"it is {rate[place]:g} at time {time[place]:g}"
        )
    return rate


def events_until(
    time: FloatArray, first: IndexArray, last: IndexArray, end: FloatArray
) -> IndexArray:
    """Position after the last event at or before `end` in each slice ``time[first:last]``.

    A binary search in all slices at once; each slice is sorted.

    Parameters
    ----------
    time : array (n_events,)
        Sorted within each slice.
    first, last : array (n,)
        Slices.
    end : array (n,)
        One time per slice.

    Returns
    -------
    array (n,)
        ``first + np.searchsorted(time[first:last], end, side="right")`` for each slice.
    """
    low, high = first.copy(), last.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        before = np.zeros(len(low), dtype=bool)
        before[open_] = time[middle[open_]] <= end[open_]
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    return low


def _check_bounded(envelope: Envelope, largest_mass: float) -> None:
    """Give up on an envelope that has grown out of all proportion."""
    if envelope.mass_at_edges()[-1] <= largest_mass:
        return
    cell = int(np.argmax(envelope.height))
    raise PanelDataError(
        "the intensity seems unbounded between times "
        f"{envelope.edges[cell]:g} and {envelope.edges[cell + 1]:g}"
    )


def _thin_all(
    intensity: Intensity,
    envelope: Envelope,
    weight: FloatArray,
    end: FloatArray,
    rng: np.random.Generator,
) -> Iterator[tuple[FloatArray, IndexArray]]:
    """Thin consecutive batches of subjects: event times, and number of events per subject."""
    mass_until_end = np.interp(end, envelope.edges, envelope.mass_at_edges())
    total = np.cumsum(weight * mass_until_end)
    n_batches = int(total[-1] // _BATCH) + 1
    bounds = np.searchsorted(total, np.linspace(0, total[-1], n_batches + 1)[1:-1])
    for subjects in np.split(np.arange(len(weight)), np.unique(bounds)):
        if len(subjects):
            yield _thin(intensity, envelope, weight[subjects], end[subjects], rng)


def _thin(
    intensity: Intensity,
    envelope: Envelope,
    weight: FloatArray,
    end: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, IndexArray]:
    """Draw candidates under the envelope and keep each with probability rate / envelope."""
    time, cell, n_candidates = _candidates(envelope, weight, end, rng)
    rate = evaluate(intensity, time)
    bound = envelope.height[cell]
    above = rate > bound * (1 + _ROUNDING)
    if above.any():
        raise EnvelopeExceededError(np.unique(cell[above]))
    kept = rng.random(len(time)) * bound < rate
    subject = np.repeat(np.arange(len(weight)), n_candidates)
    return time[kept], np.bincount(subject[kept], minlength=len(weight))


def _candidates(
    envelope: Envelope, weight: FloatArray, end: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, IndexArray, IndexArray]:
    """Draw times and cells of candidates, sorted by subject and time; count them per subject.

    The subjects' envelopes, laid end to end and stretched to rate 1, make one homogeneous
    process on (0, total mass]. Given their number, its points are uniform order statistics:
    partial sums of exponential spacings divided by the sum of all.
    """
    mass = envelope.mass_at_edges()
    offset = np.concatenate([[0.0], np.cumsum(weight * np.interp(end, envelope.edges, mass))])
    spacing = rng.standard_exponential(rng.poisson(offset[-1]) + 1)
    partial_sum = np.cumsum(spacing)
    position = np.minimum(partial_sum[:-1] * (offset[-1] / partial_sum[-1]), offset[-1])
    n_candidates = np.diff(np.searchsorted(position, offset[1:], side="right"), prepend=0)
    subject = np.repeat(np.arange(len(weight)), n_candidates)
    own_mass = (position - offset[subject]) / weight[subject]
    cell = np.searchsorted(mass, own_mass, side="right") - 1
    cell = np.minimum(cell, np.flatnonzero(envelope.height)[-1]) if len(cell) else cell
    time = envelope.edges[cell] + (own_mass - mass[cell]) / envelope.height[cell]
    # rounding must not move an event to the window's start or beyond the end of observation
    earliest = np.nextafter(envelope.edges[0], np.inf)
    return np.clip(time, earliest, end[subject]), cell, n_candidates
