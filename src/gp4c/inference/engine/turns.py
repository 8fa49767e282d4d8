"""Other patterns of signs: modes that a curve reaches when f changes its sign somewhere.

f² does not know the sign of f. Where |f| comes near zero, a curve that crosses and one that only
touches explain the counts about equally well, and each has a mode of its own. Weights cannot see
a mode that no climb has found, so a few are looked for on purpose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.climb import Mode, climb
from gp4c.inference.engine.landscape import split_level

Floats = NDArray[np.float64]

#: nats below a mode within which another pattern of signs matters
WITHIN = 5.0
#: f may turn where |h| has a minimum below this share of its largest value
_LOW = 0.5
#: most places that are tried, the lowest first
_MOST_SITES = 12
#: curves closer than this, relative to the height of the first, are one mode
_SAME = 0.15


def turned_modes(mode: Mode) -> list[Mode]:
    """Modes of other patterns at the same hyper-parameters, not far below this one, best first.

    f is turned beyond each place where it is low, and between neighbouring places.
    """
    land, u = mode.landscape, np.array([mode.u])
    order = np.argsort(land.nodes.nodes)
    size = np.abs(land.curve(mode.x[:, None], u)[order, 0])
    sites = _sites(size, land.nodes.nodes[order])
    if not len(sites):
        return []
    k, mean = split_level(u)
    height = mean + k * (land.prior.factor @ mode.x[: land.size])
    beyond = np.where(land.prior.inducing[:, None] > sites, -1.0, 1.0)
    signs = np.concatenate([beyond, beyond[:, 1:] * beyond[:, :-1]], axis=1)
    starts = np.tile(mode.x[:, None], (1, signs.shape[1]))
    starts[: land.size] = land.prior.inverse_factor @ ((signs * height[:, None] - mean) / k)
    floor = mode.log_evidence - WITHIN
    reached = climb(land, starts, np.full(signs.shape[1], mode.u), floor=floor)
    high = [one for one in reached if one.found and one.log_evidence > floor]
    high.sort(key=lambda one: -one.log_evidence)
    return distinct([mode, *high])[1:]


def distinct(modes: list[Mode]) -> list[Mode]:
    """The first of modes with the same curve h; −h is another mode with its own weight."""
    kept: list[Mode] = []
    curves: list[Floats] = []
    for mode in modes:
        curve = mode.landscape.curve(mode.x[:, None], np.array([mode.u]))
        height = np.abs(curve).max()
        if all(np.abs(curve - other).max() > _SAME * height for other in curves):
            kept.append(mode)
            curves.append(curve)
    return kept


def _sites(size: Floats, places: Floats) -> Floats:
    """Where |h| has low minima in the interior, in the order of time."""
    inner = np.flatnonzero((size[1:-1] <= size[:-2]) & (size[1:-1] < size[2:])) + 1
    inner = inner[size[inner] < _LOW * size.max()]
    lowest = inner[np.argsort(size[inner], kind="stable")][:_MOST_SITES]
    return np.asarray(places[np.sort(lowest)])
