"""Modes at one length-scale and one u: a lattice of a single point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.climb import climb
from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import LENGTHS, Lattice, Point
from gp4c.inference.engine.turns import distinct
from gp4c.inference.engine.weigh import weigh
from gp4c.model.hyper_priors import STEADY, VARIATION, normal_log_density

Floats = NDArray[np.float64]

#: starts drawn from the prior, beside its centre
N_STARTS = 60
#: modes so many nats below the best are left out
_DROP = 12.0
#: draws that give the evidence of a curve that does not vary, to 0.05
_STEADY_DRAWS = 2000


def modes_at(
    task: Task, length_scale: float, u: float, *, n_starts: int = N_STARTS, random_state: int = 0
) -> Lattice:
    """The modes that climbs from the prior's centre and from draws of it find.

    The lattice stands for one point, of area 1: its evidence, and that of its weighted draws, is
    p(counts | a, u) p(ln a) p(u). :func:`log_prior_at` is what to subtract.
    """
    land = task.landscape(float(np.log(length_scale)))
    starts = np.zeros((land.dimension, 1 + n_starts))
    rng = np.random.default_rng(random_state)
    starts[: land.size, 1:] = rng.standard_normal((land.size, n_starts))
    modes = climb(land, starts, np.full(1 + n_starts, u))
    found = sorted((mode for mode in modes if mode.found), key=lambda mode: -mode.log_evidence)
    if not found:
        raise ArithmeticError("no mode of the posterior was found")
    found = [mode for mode in found if mode.log_evidence > found[0].log_evidence - _DROP]
    first, *others = distinct(found)
    return Lattice([Point(0, 0, first, others)], (1.0, 1.0), (0.0, 0.0))


def log_prior_at(lattice: Lattice) -> float:
    """ln p(ln a) + ln p(u) at the single point of a lattice."""
    mode = lattice.points[0].mode
    return float(mode.landscape.log_prior_length + normal_log_density(np.array(mode.u), *VARIATION))


def steady_evidence(task: Task, seed: int = 0) -> float:
    """ln p(counts) where the curve does not vary."""
    lattice = modes_at(task, float(np.exp(LENGTHS[1])), STEADY, n_starts=0)
    found = weigh(lattice, _STEADY_DRAWS, np.random.default_rng(seed), rounds=0)
    return found.log_evidence - log_prior_at(lattice)
