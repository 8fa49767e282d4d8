r"""Bounds of a mixture that was found: with any count term, and with the exact one over all bases.

For a row with weights w the integral Σ_l w_l ∫ f_l² is a quadratic form in independent Gaussians:
its means are √(w_l ω) E f_l at the quadrature nodes of all bases, ω their weights, and its
covariance is block-diagonal. E ln of it is the same one-dimensional integral as for one basis
(:mod:`gp4c.inference.variational.expected_logs.log_quadratic`, docs/maths_mixture.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.variational.bases.basis_em import Bases
from gp4c.inference.variational.bases.basis_weights import EventRows
from gp4c.inference.variational.bound import Gaussian, Workspace
from gp4c.inference.variational.count_terms import count_term
from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic
from gp4c.inference.variational.hyper import Problem
from gp4c.model.sparse_prior import Hyper

Floats = NDArray[np.float64]
Forms = list[tuple[Floats, Floats]]


def bases_bound(problem: Problem, rows: EventRows, found: Bases, name: str) -> float:
    """The bound of bases and weights as they are, with the count term of that name.

    A term that needs covariances within intervals takes all bases together; its stand-in takes
    its place where there are very many rows.
    """
    term = count_term(name)
    if term.stand_in is not None and len(rows.count) > term.most_intervals:
        return bases_bound(problem, rows, found, term.stand_in)
    judge = problem.variant(count_term=name)
    works = [judge.workspace(b.hyper.length_scale, b.work.size) for b in found.bases]
    weights = found.shared.weights
    if term.within:
        logs = joint_logs(rows, found, works)
    else:
        pairs = zip(works, found.bases, strict=True)
        each = np.stack([work.interval_logs(b.hyper, b.estep.q) for work, b in pairs], axis=1)
        logs = logsumexp(np.log(weights)[rows.subject] + each[rows.interval], axis=1)
    bound = found.bound
    return float(rows.count @ logs) - bound.exposure - bound.kl + problem.data.constant


def joint_logs(rows: EventRows, found: Bases, works: list[Workspace]) -> Floats:
    """E ln Σ_l w_l ∫ f_l² of each row, (N,), exactly."""
    forms, place = [], []
    for work, one in zip(works, found.bases, strict=True):
        forms.append(_forms(work, one.hyper, one.estep.q))
        where = np.zeros((rows.n_intervals, 2), dtype=np.intp)  # block, and position in it
        for number, block in enumerate(work.blocks):
            where[block.which] = np.stack(
                [np.full(len(block.which), number), np.arange(len(block.which))], axis=1
            )
        place.append(where[rows.interval])
    blocks = np.stack([p[:, 0] for p in place], axis=1)
    kinds, which = np.unique(blocks, axis=0, return_inverse=True)
    logs, roots = np.empty(len(rows.count)), np.sqrt(found.shared.weights)[rows.subject]
    tol = works[0].blocks[0].tol
    for number, kind in enumerate(kinds):
        some = np.flatnonzero(which.reshape(-1) == number)
        chosen = [
            (part[block][0][p[some, 1]], part[block][1][p[some, 1]])
            for part, block, p in zip(forms, kind, place, strict=True)
        ]
        logs[some] = expected_log_quadratic(*_joined(chosen, roots[some]), tol=tol)[0]
    return logs


def _forms(work: Workspace, hyper: Hyper, q: Gaussian) -> Forms:
    """Means (J, n) and covariances (J, n, n) of √ω f in the blocks of a basis."""
    found = []
    for block in work.blocks:
        mean, covariance = block.moments(hyper, q.mean, q.root)
        w = block.root_weights
        found.append((w * mean, w[:, :, None] * w[:, None, :] * covariance))
    return found


def _joined(parts: Forms, roots: Floats) -> tuple[Floats, Floats]:
    """One form of all bases: means beside each other, covariances along the diagonal."""
    sizes = [mean.shape[1] for mean, _ in parts]
    ends = np.cumsum([0, *sizes])
    covariance = np.zeros((len(roots), ends[-1], ends[-1]))
    means = []
    for (mean, own), root, a, b in zip(parts, roots.T, ends, ends[1:], strict=False):
        means.append(root[:, None] * mean)
        covariance[:, a:b, a:b] = (root**2)[:, None, None] * own
    return np.concatenate(means, axis=1), covariance
