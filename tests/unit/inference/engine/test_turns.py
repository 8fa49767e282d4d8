"""Other patterns of signs: the search ends at the best one, and the others are modes too."""

import numpy as np
import pandas as pd
import pytest
from engine_tasks import task_of

import gp4c
from gp4c.inference.engine.climb import tilt
from gp4c.inference.engine.lattice import find_modes, with_turned
from gp4c.inference.engine.single import modes_at
from gp4c.inference.engine.turns import WITHIN, distinct, turned_modes


def crossing_panel(seed, n_subjects=25, n_visits=5, events=60.0):
    """Counts of a rate f² whose f crosses zero three times, all visits different."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, 1.0, 2001)
    f = np.sin(2 * np.pi * (1.6 * grid + 0.1)) + 0.35
    total = np.concatenate([[0.0], np.cumsum((f[1:] ** 2 + f[:-1] ** 2) / 2)])
    total *= events / total[-1]
    ends = np.sort(rng.random((n_subjects, n_visits)), axis=1)
    starts = np.concatenate([np.zeros((n_subjects, 1)), ends[:, :-1]], axis=1)
    counts = rng.poisson(np.interp(ends, grid, total) - np.interp(starts, grid, total))
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n_subjects), n_visits),
            "start": starts.ravel(), "stop": ends.ravel(), "count": counts.ravel(),
        }
    )  # fmt: skip
    return gp4c.PanelCounts.from_frame(frame, window=(0, 1))


@pytest.fixture(scope="module", params=[0, 1])
def lattice(request):
    return find_modes(task_of(crossing_panel(request.param), "poisson", None))


def test_no_start_from_the_prior_climbs_higher(lattice):
    """Climbs from draws of the prior know nothing of turns.

    Laplace's method depends a little on the coordinates that a climb chose on its way: 0.3 nats.
    """
    best = lattice.best.mode
    length_scale = float(np.exp(best.landscape.log_length))
    blind = modes_at(best.landscape.task, length_scale, best.u, n_starts=20).best.mode
    assert best.log_evidence > blind.log_evidence - 0.5


def test_turned_modes_are_other_modes_near_the_best(lattice):
    best = lattice.best.mode
    turned = turned_modes(best)
    evidence = [mode.log_evidence for mode in turned]
    assert evidence == sorted(evidence, reverse=True)
    assert all(value > best.log_evidence - WITHIN for value in evidence)
    assert len(distinct([best, *turned])) == 1 + len(turned)
    for mode in turned:
        x, u = mode.x[:, None], np.array([mode.u])
        at = tilt(mode.landscape, x, u, mode.tilt, mode.landscape.derivatives(x, u))
        step = np.linalg.solve(-at.hessian[0], at.gradient[0])
        assert 0.5 * at.gradient[0] @ step < 0.05  # nats still to gain


def test_every_point_of_the_lattice_gets_the_other_modes():
    """Counts of the thiotepa arm, taken one by one, leave the signs of f open."""
    panel = gp4c.load_dataset("bladder").where(group="A")
    lattice = find_modes(task_of(panel, "poisson", None))
    turned = turned_modes(lattice.best.mode)
    assert turned
    richer = with_turned(lattice, turned)
    assert [point.mode for point in richer.points] == [point.mode for point in lattice.points]
    assert sum(len(point.others) for point in richer.points) >= len(richer.points)
    for point in richer.points:
        assert all(other.u == point.mode.u for other in point.others)
        assert len(distinct(point.modes)) == len(point.modes)


def test_a_curve_far_from_zero_has_no_turns():
    panel, _ = gp4c.simulate_panel("square_wave", random_state=1)
    assert turned_modes(find_modes(task_of(panel, "poisson", None)).best.mode) == []
