r"""Pseudo-likelihood of cumulative counts, with and without gamma frailty.

The cumulative counts N_ij of a subject are treated as if they were independent:
N_ij ~ Poisson(e_i Λ(T_ij)), or Poisson(γ_i e_i Λ(T_ij)) with a gamma frailty γ_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.step_functions.frailty_npmle import FrailtyFit, fit_jumps_and_frailty
from gp4c.classical.step_functions.isotonic import nondecreasing_fit
from gp4c.classical.step_functions.jumps import Exposure, JumpProblem
from gp4c.classical.visit_cells import Floats, Indices, Runs, group_sums


@dataclass(frozen=True, eq=False)
class CumulativeCounts:
    """Cumulative counts at the distinct visit times.

    Attributes
    ----------
    times : (L,)
        Distinct visit times, increasing.
    visit, subject : (N,)
        Visit time (by index) and subject of each cumulative count.
    count, exposure : (N,)
        N_ij and e_i.
    n_subjects : int
    """

    times: Floats
    visit: Indices
    subject: Indices
    count: Floats
    exposure: Floats
    n_subjects: int

    @classmethod
    def of(cls, rows: PanelRows) -> CumulativeCounts:
        """Take every row at which the cumulative count since the earliest start is known."""
        known = rows.unbroken()
        times, visit = np.unique(rows.stop[known], return_inverse=True)
        return cls(
            times,
            visit,
            rows.subject[known],
            rows.cumulative_count()[known],
            rows.exposure[known],
            rows.n_subjects,
        )

    def by_visit(self, values: Floats) -> Floats:
        """Sum over the rows of each visit time, (L,)."""
        return group_sums(self.visit, values, len(self.times))

    def by_subject(self, values: Floats) -> Floats:
        """Sum over the rows of each subject, (K,)."""
        return group_sums(self.subject, values, self.n_subjects)


def fit_pseudo_likelihood(data: CumulativeCounts, weights: Floats) -> Floats:
    r"""Nondecreasing Λ that maximises Σ N log Λ − eΛ, at all visit times, (L,).

    .. math::
        \hat\Lambda_l = \max_{a \le l} \min_{b \ge l}
        \frac{\sum_{k=a}^b \sum_{T_{ij} = s_k} N_{ij}}{\sum_{k=a}^b \sum_{T_{ij} = s_k} e_i} .

    Visit times where nobody has weight (in a bootstrap sample) take the value before them.
    """
    multiplicity = weights[data.subject]
    exposure = data.by_visit(multiplicity * data.exposure)
    used = exposure > 0.0
    mean = data.by_visit(multiplicity * data.count)[used] / exposure[used]
    level = np.concatenate([[0.0], nondecreasing_fit(mean, exposure[used])])
    return level[np.cumsum(used)]


def pseudo_log_likelihood(data: CumulativeCounts, level: Floats, weights: Floats) -> float:
    """Σ N log(eΛ) − eΛ over all cumulative counts; 0 log 0 = 0."""
    mean = data.exposure * level[data.visit]
    multiplicity = weights[data.subject]
    logs = np.log(mean, out=np.zeros_like(mean), where=multiplicity * data.count > 0)
    return float(multiplicity @ (data.count * logs - mean))


def frailty_problem(data: CumulativeCounts, weights: Floats) -> JumpProblem:
    """The frailty pseudo-likelihood as a likelihood in the jumps of Λ.

    Each cumulative count is the count of an interval from the start to the visit, and a
    subject's exposure is the sum of e_i Λ(T_ij) over its visits.
    """
    n_times = len(data.times)
    ends = np.arange(1, n_times + 1)
    runs = Runs(np.zeros(n_times, dtype=np.intp), ends, n_times)
    exposure = Exposure(
        Runs(np.zeros(len(data.visit), dtype=np.intp), data.visit + 1, n_times),
        data.exposure,
        data.subject,
        data.n_subjects,
    )
    return JumpProblem.of(runs, data.by_visit(weights[data.subject] * data.count), exposure)


def fit_frailty_pseudo_likelihood(
    data: CumulativeCounts, weights: Floats, tol: float, max_iter: int
) -> tuple[Floats, FrailtyFit]:
    """Λ at all visit times, (L,), and the fit with its frailty variance."""
    problem = frailty_problem(data, weights)
    events = data.by_subject(data.count)
    fit = fit_jumps_and_frailty(problem, events, weights, tol, max_iter)
    jumps = np.zeros(len(data.times))
    jumps[problem.sites] = fit.jumps
    return np.cumsum(jumps), fit
