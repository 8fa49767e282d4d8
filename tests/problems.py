"""Small problems, random but seeded, on which whole formulas can be written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gp4c.data.panel import PanelCounts
from gp4c.inference.variational.bound import Gaussian, Workspace
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.observations import Observations, observe
from gp4c.model.quadrature import Grid
from gp4c.model.sparse_prior import SparsePrior

Floats = NDArray[np.float64]


def visits_panel(
    seed: int = 0,
    n_subjects: int = 6,
    n_intervals: int = 3,
    level: float = 2.0,
    window: tuple[float, float] = (0.0, 1.0),
    with_exposure: bool = False,
    frailty: float | None = None,
) -> PanelCounts:
    """Subjects seen over most of the window, cut at random visits, with rate ∝ 1 + sin.

    A finite `frailty` shape makes some subjects much more frequent than others.
    """
    rng = np.random.default_rng(seed)
    effects = np.ones(n_subjects)
    if frailty is not None:
        effects = np.random.default_rng(seed + 1).gamma(frailty, 1 / frailty, n_subjects)
    rows: dict[str, list[float]] = {"subject": [], "start": [], "stop": [], "count": []}
    rows["exposure"] = []
    length = window[1] - window[0]
    for subject in range(n_subjects):
        cuts = np.sort(rng.uniform(0.0, 1.0, n_intervals + 1))
        cuts[0], cuts[-1] = (0.0, 1.0) if subject == 0 else (cuts[0], cuts[-1])
        for low, high in pairwise(cuts):
            exposure = rng.uniform(0.5, 2.0) if with_exposure else 1.0
            rate = level * effects[subject] * (1.0 + np.sin(3.0 * (low + high)))
            rows["subject"].append(subject)
            rows["start"].append(window[0] + length * low)
            rows["stop"].append(window[0] + length * high)
            rows["count"].append(int(rng.poisson(exposure * rate * (high - low) * n_intervals)))
            rows["exposure"].append(exposure)
    columns = {name: np.array(values) for name, values in rows.items()}
    columns["count"] = columns["count"].astype(int)
    return PanelCounts.from_frame(columns, exposure="exposure", window=window)


def observed(panel: PanelCounts) -> Observations:
    """The panel alone, on its own window."""
    return observe(panel, None, panel.window)


def workspace(
    data: Observations,
    *,
    count_term: str = "lemma2",
    b: float = 0.3,
    effect: str | None = None,
    kernel: str = "se",
    size: int = 6,
    length_scale: float = 0.3,
    order: int = 16,
    tol: float = 1e-11,
) -> Workspace:
    """Workspace with `size` inducing inputs and the grid that goes with them."""
    grid = Grid.on(np.linspace(0.0, 1.0, max(size, 2)), order)
    likelihood = Likelihood.of(data, grid, count_term, b, effect)
    prior = SparsePrior(KERNELS[kernel], np.linspace(0.0, 1.0, size), length_scale)
    return Workspace(likelihood, prior, tol)


def random_q(size: int, seed: int = 0, mean: float = 0.7, spread: float = 0.4) -> Gaussian:
    """A Gaussian q with a full covariance."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(size, size))) * 0.2
    root[np.diag_indices(size)] = spread * rng.uniform(0.5, 1.5, size)
    log_det = 2.0 * float(np.log(np.abs(np.diag(root))).sum())
    return Gaussian(mean * rng.normal(size=size), root, log_det)


def gaussian(mean: Floats, covariance: Floats) -> Gaussian:
    """q from its mean and covariance."""
    root = np.linalg.cholesky(covariance)
    return Gaussian(mean, root, 2.0 * float(np.log(np.diag(root)).sum()))


def central_difference(
    function: Callable[[Floats], float], at: Floats, step: float = 1e-5
) -> Floats:
    """Numerical gradient by central differences."""
    gradient = np.empty_like(at)
    for i in range(len(at)):
        up, down = at.copy(), at.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (function(up) - function(down)) / (2.0 * step)
    return gradient


def symmetric_directions(size: int) -> list[Floats]:
    """A basis of the symmetric matrices."""
    basis = []
    for i in range(size):
        for j in range(i + 1):
            direction = np.zeros((size, size))
            direction[i, j] = direction[j, i] = 1.0
            basis.append(direction)
    return basis
