"""Local EM transcribed directly from the paper's description, for comparison of speed only.

All visit times are merged into N̄ cells; every integral over a cell, of the kernel as well as of
the intensity, is a Gauss-Legendre rule with M̄ = 10 points. An iteration therefore works through
the (N̄M̄) × (N̄M̄) matrix of kernel values: O(N̄²M̄²). Folds are blocks of subjects in file order,
fitted one after another; bandwidths are linspace(0.02, √T, 15).

The transcription is kind to itself: the kernel matrix is kept while a bandwidth lasts (half a
gigabyte on the skin data), and the rest is matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import gp4c

N_POINTS = 10
N_FOLDS = 5
N_BANDWIDTHS = 15
SQUARED_CHANGE = 1e-8
MAX_STEPS = 2000


@dataclass
class Reference:
    """What the transcription found."""

    bandwidth: float
    mass: np.ndarray
    n_steps: int


class Transcription:
    """Cells, quadrature points and the rows that cover each cell."""

    def __init__(self, panel: gp4c.PanelCounts) -> None:
        self.panel = panel
        points = np.unique(np.concatenate([panel.start, panel.stop]))
        left, right = points[:-1], points[1:]
        self.width = right - left
        gauss, weight = np.polynomial.legendre.leggauss(N_POINTS)
        centre = (left + right)[:, None] / 2
        self.nodes = (centre + self.width[:, None] / 2 * gauss).ravel()
        self.node_weights = (self.width[:, None] / 2 * weight).ravel()
        self.inside = (panel.start[:, None] <= left) & (right <= panel.stop[:, None])
        self.inside = self.inside.astype(float)
        self.n_steps = 0

    def kernel(self, bandwidth: float) -> np.ndarray:
        """Gaussian kernel between all quadrature points, (N̄M̄, N̄M̄)."""
        z = (self.nodes[:, None] - self.nodes) / bandwidth
        return np.exp(-0.5 * z**2)

    def fit(self, kernel: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Cell masses from the chosen rows, by EM with smoothing until it hardly moves."""
        inside, count = self.inside[rows], self.panel.count[rows]
        at_risk = inside.sum(axis=0)
        seen = count > 0
        covering = count[seen] @ inside[seen]
        mass = np.divide(covering, at_risk, out=np.zeros_like(covering), where=at_risk > 0)
        below = kernel @ (self.node_weights * np.repeat(at_risk, N_POINTS))
        for _ in range(MAX_STEPS):
            share = count[seen] / (inside[seen] @ mass)
            density = mass * (share @ inside[seen]) / self.width
            above = kernel @ (self.node_weights * np.repeat(density, N_POINTS))
            rate = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
            new = (self.node_weights * rate).reshape(-1, N_POINTS).sum(axis=1)
            change = float(((new - mass) ** 2).sum())
            mass = new
            self.n_steps += 1
            if change <= SQUARED_CHANGE:
                break
        return mass

    def score(self, mass: np.ndarray, rows: np.ndarray) -> float:
        """Σ m log μ − μ over the chosen rows."""
        mean, count = self.inside[rows] @ mass, self.panel.count[rows]
        with np.errstate(divide="ignore"):
            logs = np.where(count > 0, np.log(np.where(count > 0, mean, 1.0)), 0.0)
        return float((count * logs - mean).sum())


def local_em_reference(panel: gp4c.PanelCounts) -> Reference:
    """Choose the bandwidth by five folds and fit with it."""
    work = Transcription(panel)
    block = (np.arange(panel.n_subjects) * N_FOLDS) // panel.n_subjects
    fold = block[panel.subject_index]
    length = panel.window[1] - panel.window[0]
    bandwidths = np.linspace(0.02, np.sqrt(length), N_BANDWIDTHS)
    scores = np.zeros(N_BANDWIDTHS)
    for place, bandwidth in enumerate(bandwidths):
        kernel = work.kernel(bandwidth)
        for k in range(N_FOLDS):
            mass = work.fit(kernel, fold != k)
            scores[place] += work.score(mass, fold == k)
    best = float(bandwidths[np.argmax(scores)])
    everybody = np.ones(panel.n_intervals, dtype=bool)
    mass = work.fit(work.kernel(best), everybody)
    return Reference(best, mass, work.n_steps)
