"""Step-function estimators of the mean number of events: NPMPLE, NPMLE and NPMPLGF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.plug_in import Floats, check_positive
from gp4c.classical.step_functions.frailty_npmle import fit_jumps_and_frailty
from gp4c.classical.step_functions.isotonic import fenchel_residual
from gp4c.classical.step_functions.jumps import Exposure, JumpProblem, PoissonExposure
from gp4c.classical.step_functions.npmle import JumpFit, em, icm, newton
from gp4c.classical.step_functions.pseudo import (
    CumulativeCounts,
    fit_frailty_pseudo_likelihood,
    fit_pseudo_likelihood,
    pseudo_log_likelihood,
)
from gp4c.classical.step_functions.step_base import (
    PseudoLikelihoodEstimator,
    StepEstimator,
    StepSolution,
)
from gp4c.classical.visit_cells import FEWER_CELLS, Grid
from gp4c.estimators.inputs import check_choice
from gp4c.model.gamma_frailty import frailty_mean

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

_SOLVERS: dict[str, Callable[..., JumpFit]] = {"newton": newton, "icm": icm, "em": em}
_MAX_ITER = {"newton": 200, "icm": 20_000, "em": 20_000}


class NPMPLE(PseudoLikelihoodEstimator):
    r"""Nonparametric maximum pseudo-likelihood estimator of the mean function Λ.

    The cumulative counts :math:`N_{ij}` of a subject at its visits :math:`T_{ij}` are treated as
    if they were independent Poisson variables,

    .. math::
        \ell = \sum_{ij} N_{ij} \log\{e_i \Lambda(T_{ij})\} - e_i \Lambda(T_{ij}), \qquad
        0 \le \Lambda(s_1) \le \Lambda(s_2) \le \dots

    and maximised by weighted isotonic regression, exactly and at once.

    **Assumes** that the mean function is the same for all subjects (up to the exposure
    :math:`e_i`) and that visits do not depend on the events. Neither Poisson counts nor
    independence are needed: the estimator is consistent for the mean function of any counting
    process.

    **Use it** as a quick, robust picture of Λ. It is less efficient than :class:`NPMLE` where
    subjects have many visits, because the dependence of cumulative counts is ignored. It
    converges at the rate :math:`n^{1/3}`: use :meth:`bootstrap` for bands and read them as
    approximate.

    **Gaps and late entries.** A cumulative count is comparable with Λ only if the subject was
    seen without a break since the earliest start of the panel. Subjects who enter later are left
    out, and of the others every row from the first gap (or change of exposure) on; a warning
    says how many rows. :class:`NPMLE` uses them all.

    Attributes
    ----------
    times_ : (L,)
        Distinct visit times.
    values_ : (L,)
        Λ at them.
    objective_ : float
        Maximum of the pseudo-likelihood (without Σ ln N!).
    residual_ : float
        Distance from the Fenchel conditions of the maximum, per event.
    n_left_out_ : int
        Rows that could not be used.

    References
    ----------
    Sun, J. and Kalbfleisch, J. D. (1995), Estimation of the mean function of point processes
    based on panel count data, Statistica Sinica 5, 279-290.
    Wellner, J. A. and Zhang, Y. (2000), Two estimators of the mean of a counting process with
    panel count data, Annals of Statistics 28, 779-814.
    """

    name = "npmple"
    title = "mean number of events, nonparametric pseudo-likelihood (step function)"
    method_text = (
        "The mean number of events was estimated by the nonparametric maximum pseudo-likelihood "
        "estimator (Sun and Kalbfleisch, 1995)."
    )

    def __init__(self) -> None:
        pass

    def _solve(self, rows: PanelRows, weights: Floats) -> StepSolution:
        data = CumulativeCounts.of(rows)
        level = fit_pseudo_likelihood(data, weights)
        value = pseudo_log_likelihood(data, level, weights)
        residual = _pseudo_residual(data, level, weights)
        return StepSolution(data.times, level, np.array([value]), residual, residual <= 1e-9, 1)


class NPMLE(StepEstimator):
    r"""Nonparametric maximum likelihood estimator of the mean function Λ.

    The likelihood is that of a Poisson process seen through its counts between visits,

    .. math::
        \ell = \sum m \log\{e\,\Delta\Lambda\} - e\,\Delta\Lambda ,

    over all rows, m the count, e the exposure and ΔΛ the increment over the interval. With
    ``effect="gamma"`` each subject's rate is multiplied by an unobserved frailty
    :math:`\gamma_i \sim \mathrm{Gamma}(\alpha, \alpha)` (mean 1, variance 1/α), integrated out;
    α is estimated with Λ.

    **Assumes** one mean function (times exposure and frailty), visits that do not depend on the
    events, and that counts in disjoint intervals are independent given the frailty. The estimate
    of Λ stays consistent if the counts are not Poisson, but then the plain likelihood says
    nothing about the spread between subjects: on overdispersed data (most real ones) use
    ``effect="gamma"`` for scores and predictions.

    **Use it** as the reference for Λ without any smoothing; it takes gaps, late entries and
    varying exposure as they are. Smooth alternatives: :class:`~gp4c.GP4C`, :class:`~gp4c.LocalEM`.

    **Not unique everywhere.** The likelihood determines the increments of the intervals with
    events; where it leaves a choice, jumps are put at the latest possible visit and at as few of
    them as the solver needs.

    Parameters
    ----------
    effect : {None, "gamma"}
        Frailty.
    method : {"newton", "icm", "em"}
        Active-set Newton (milliseconds), the iterative convex minorant of Wellner and Zhang, or
        the self-consistency (EM) iteration; all reach the same maximum. Frailty needs "newton".
    tol : float
        Bound on the residual of the optimality (Karush-Kuhn-Tucker) conditions; the log-likelihood
        is then within ``2 · tol · events`` of its maximum.
    max_iter : int, optional
        Steps; default 200 for Newton, 20,000 for the others.

    Attributes
    ----------
    times_, values_ : (L,)
        Visit times and Λ at them.
    objective_ : float
        Log-likelihood (without Σ ln m!).
    history_ : array
        Log-likelihood of each step; never decreasing.
    residual_ : float
        See `tol`.
    converged_, n_iter_
    frailty_shape_ : float
        α; infinite without frailty, or if there is no overdispersion.
    subject_effects_ : (n_subjects,) array or None
        Posterior mean frailties, in the order of ``panel.subjects``.

    References
    ----------
    Wellner, J. A. and Zhang, Y. (2000), Two estimators of the mean of a counting process with
    panel count data, Annals of Statistics 28, 779-814.
    Wellner, J. A. and Zhan, Y. (1997), A hybrid algorithm for computation of the nonparametric
    maximum likelihood estimator from censored data, J. Am. Stat. Assoc. 92, 945-959 (for ICM).
    """

    name = "npmle"
    title = "mean number of events, nonparametric maximum likelihood (step function)"
    method_text = (
        "The mean number of events was estimated by nonparametric maximum likelihood for a "
        "Poisson process seen through its counts between visits (Wellner and Zhang, 2000)."
    )
    effect_options: ClassVar[Mapping[str, str | None]] = {
        "auto": "gamma", "none": None, "gamma": "gamma",
    }  # fmt: skip
    _memory_remedy = FEWER_CELLS

    def __init__(
        self,
        *,
        effect: str | None = None,
        method: str = "newton",
        tol: float = 1e-9,
        max_iter: int | None = None,
    ) -> None:
        self.effect = effect
        self.method = method
        self.tol = tol
        self.max_iter = max_iter

    def _fit_bytes(self, panel: PanelCounts) -> float:
        """The matrix of second derivatives at the cells that may hold a jump."""
        distinct = panel.distinct()
        runs = Grid.of(distinct.start, distinct.stop).runs
        sites = min(runs.size, 2 * int((distinct.count > 0).sum()))
        return 6.0 * sites**2 + 20.0 * runs.n_kept

    def _check_parameters(self) -> None:
        check_choice("effect", self.effect, (None, "gamma"))
        check_choice("method", self.method, tuple(_SOLVERS))
        check_positive("tol", self.tol)
        if self.max_iter is not None:
            check_positive("max_iter", self.max_iter)
        if self.effect is not None and self.method != "newton":
            raise ValueError(f"effect={self.effect!r} needs method='newton', not {self.method!r}")

    def _solve(self, rows: PanelRows, weights: Floats) -> StepSolution:
        return (self._poisson if self.effect is None else self._gamma)(rows, weights)

    def _steps_allowed(self) -> int:
        return _MAX_ITER[self.method] if self.max_iter is None else int(self.max_iter)

    def _poisson(self, rows: PanelRows, weights: Floats) -> StepSolution:
        multiplicity = weights[rows.subject]
        exposure = Exposure.pooled(rows.grid.runs, rows.by_interval(multiplicity * rows.exposure))
        problem = JumpProblem.of(
            rows.grid.runs, rows.by_interval(multiplicity * rows.count), exposure
        )
        fit = _SOLVERS[self.method](
            problem, PoissonExposure(), tol=self.tol, max_iter=self._steps_allowed()
        )
        return StepSolution(
            rows.grid.points[1:],
            _levels(problem, fit.jumps),
            fit.history + _exposure_constant(rows, weights),
            fit.residual,
            fit.converged,
            fit.n_iter,
        )

    def _gamma(self, rows: PanelRows, weights: Floats) -> StepSolution:
        runs = rows.grid.runs
        exposure = Exposure(runs.take(rows.interval), rows.exposure, rows.subject, rows.n_subjects)
        counts = rows.by_interval(weights[rows.subject] * rows.count)
        problem = JumpProblem.of(runs, counts, exposure)
        events = rows.by_subject(rows.count)
        fit = fit_jumps_and_frailty(problem, events, weights, self.tol, self._steps_allowed())
        return StepSolution(
            rows.grid.points[1:],
            _levels(problem, fit.jumps),
            fit.history + _exposure_constant(rows, weights),
            fit.residual,
            fit.converged,
            fit.n_iter,
            fit.variance,
            frailty_mean(fit.variance, events, problem.exposure.by_subject(fit.jumps)),
        )


class NPMPLGF(PseudoLikelihoodEstimator):
    r"""Nonparametric maximum pseudo-likelihood estimator with gamma frailty.

    Given a frailty :math:`\gamma_i \sim \mathrm{Gamma}(\alpha, \alpha)` shared by all visits of a
    subject, its cumulative counts are treated as independent
    :math:`\mathrm{Poisson}(\gamma_i e_i \Lambda(T_{ij}))`; the frailty is integrated out and
    Λ and α are estimated together.

    **A reconstruction.** It follows the published description of the method (shared gamma
    frailty, pseudo-likelihood given the frailty); the original program was not at hand, so
    details may differ from it.

    **Assumes** what :class:`NPMPLE` assumes, and a gamma distribution of the frailty. Because
    each event is counted again at every later visit, the frailty variance 1/α comes out too
    large: for inference about it, and for scores, prefer ``NPMLE(effect="gamma")``, which uses
    the full likelihood. Without overdispersion (α = ∞) it equals :class:`NPMPLE`.

    **Use it** to compare with the literature. Gaps and late entries are treated as in
    :class:`NPMPLE`.

    Parameters
    ----------
    tol : float
        Bound on the residual of the optimality conditions.
    max_iter : int
        Rounds of updates of Λ and α.

    Attributes
    ----------
    times_, values_ : (L,)
        Distinct visit times and Λ at them.
    objective_, history_
        Log pseudo-likelihood (without Σ ln N!); never decreasing.
    frailty_shape_ : float
        α.
    subject_effects_ : (n_subjects,) array
        Posterior mean frailties, in the order of ``panel.subjects``; 1 for subjects left out.
    residual_, converged_, n_iter_, n_left_out_

    References
    ----------
    Zhang, Y. and Jamshidian, M. (2003), The gamma-frailty Poisson model for the nonparametric
    estimation of panel count data, Biometrics 59, 1099-1106.
    """

    name = "npmplgf"
    title = "mean number of events, pseudo-likelihood with gamma frailty (step function)"
    method_text = (
        "The mean number of events was estimated by nonparametric maximum pseudo-likelihood with "
        "gamma frailty (Zhang and Jamshidian, 2003)."
    )
    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": "gamma", "gamma": "gamma"}
    _memory_remedy = FEWER_CELLS

    def __init__(self, *, tol: float = 1e-9, max_iter: int = 200) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def _fit_bytes(self, panel: PanelCounts) -> float:
        """Second derivatives at all visits: cumulative counts reach back to the beginning."""
        return 36.0 * len(np.unique(panel.stop)) ** 2

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter)

    def _solve(self, rows: PanelRows, weights: Floats) -> StepSolution:
        data = CumulativeCounts.of(rows)
        level, fit = fit_frailty_pseudo_likelihood(data, weights, self.tol, int(self.max_iter))
        events = data.by_subject(data.count)
        exposure = data.by_subject(data.exposure * level[data.visit])
        constant = weights[data.subject] @ (data.count * np.log(data.exposure))
        return StepSolution(
            data.times,
            level,
            fit.history + float(constant),
            fit.residual,
            fit.converged,
            fit.n_iter,
            fit.variance,
            frailty_mean(fit.variance, events, exposure),
        )


def _levels(problem: JumpProblem, jumps: Floats) -> Floats:
    """Λ at the end of every cell, (L,); the jump of a cell is at its end."""
    each = np.zeros(problem.size)
    each[problem.sites] = jumps
    return np.cumsum(each)


def _exposure_constant(rows: PanelRows, weights: Floats) -> float:
    """Σ m log e, the part of the log-likelihood that the jumps do not change."""
    return float(weights[rows.subject] @ (rows.count * np.log(rows.exposure)))


def _pseudo_residual(data: CumulativeCounts, level: Floats, weights: Floats) -> float:
    """Fenchel residual of the pseudo-likelihood at Λ (its gradient where Λ is positive)."""
    multiplicity = weights[data.subject]
    counts = data.by_visit(multiplicity * data.count)
    exposure = data.by_visit(multiplicity * data.exposure)
    pull = np.divide(counts, level, out=np.zeros_like(level), where=level > 0.0)
    return fenchel_residual((pull - exposure)[level > 0.0], level[level > 0.0], counts.sum())
