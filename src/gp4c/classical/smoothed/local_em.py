"""LocalEM: kernel-smoothed EM for the intensity."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.classical.bootstrap import BootstrapEstimator, Draw
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.plug_in import Floats, check_positive
from gp4c.classical.smoothed.local_em_rows import UnitRows
from gp4c.classical.smoothed.local_em_steps import (
    EMSteps,
    LocalEMData,
    LocalEMFit,
    fixed_point,
    held_out_score,
    published_iteration,
)
from gp4c.classical.smoothed.smoothing import Smoother, intensity_at
from gp4c.classical.visit_cells import FEWER_CELLS, Grid
from gp4c.estimators.base import Numbers
from gp4c.estimators.inputs import check_choice
from gp4c.exceptions import ConvergenceWarning, GP4CWarning
from gp4c.files import kinds
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

#: the paper's 0.02 and √T at T = 60, as shares of the window
SMALLEST_SHARE, LARGEST_SHARE = 0.02 / 60.0, 60.0**-0.5
N_BANDWIDTHS = 15
#: cross-validation needs the score to a fraction of a nat, not the fixed point to rounding
_CV_TOL, _CV_STEPS = 1e-6, 60


def _a_draw(value: object, sizes: kinds.Sizes) -> str | None:
    """Check the bandwidths of bootstrap samples, (B,), or their curves, (B, L)."""
    shape = ("B", "L") if isinstance(value, np.ndarray) and value.ndim == 2 else ("B",)
    return kinds.array(*shape)(value, sizes)


class LocalEM(BootstrapEstimator):
    r"""Local EM estimator of the intensity: EM for the unseen event times, then smoothing.

    Each iteration spreads the events of every interval over the cells between visit times
    according to the current intensity (E-step) and smooths the result,

    .. math::
        \lambda(x) = \frac{\sum_l (E_l / |J_l|) \int_{J_l} K_h(u - x)\,du}
                          {\sum_l Y_l \int_{J_l} K_h(u - x)\,du} ,

    with expected events :math:`E_l` and exposure :math:`Y_l` of the subjects under observation in
    cell :math:`J_l`, and a Gaussian kernel of bandwidth h. The denominator corrects for the ends
    of the window, for drop-out, gaps and late entries. As h → 0 it tends to the EM iteration of
    :class:`~gp4c.NPMLE`, for large h to a constant rate.

    **Assumes** a Poisson process with one smooth intensity for all subjects (times exposure), and
    visits that do not depend on the events. It is a local likelihood: a point estimate without a
    probability model of the curve, so its uncertainty comes from :meth:`bootstrap`.

    **Use it** to compare with the literature. On the real data sets that come with gp4c it does
    not predict held-out subjects better than a constant rate, and frailty matters more than
    either (:class:`~gp4c.HomogeneousPoisson`).

    **Bandwidth.** By default it is chosen by 5-fold cross-validation over subjects among 15
    values. The published grid runs from 0.02 to √T in the paper's units; as √T is not in units
    of time, the same data in days and months would get different grids. Here the values are
    evenly spaced shares of the window, from 1/3000 to 1/√60 ≈ 0.129: the published grid for
    T = 60, near which all data sets of the paper lie (53 to 63).

    Outside the window the intensity goes on at its value at the window's end.

    Parameters
    ----------
    bandwidth : "cv" or float
        Standard deviation of the kernel, in the data's time unit, or "cv".
    bandwidths : None, "paper" or array
        Candidates of the cross-validation, in the data's time unit; "paper" is
        ``linspace(0.02, sqrt(T), 15)`` in whatever unit the data have.
    n_splits : int
        Folds.
    folds : {"shuffled", "contiguous"}
        At random (seeded, the same whatever the labels of the subjects and the order of rows), or
        blocks of subjects in the order of their labels.
    stop : {"fixed-point", "squared-change"}
        Iterate to the fixed point; or the published rule, which stops when the squared change of
        the cell masses falls to 1e-8, after a few steps.
    tol : float
        Fixed point: bound on Σ|M_new − M| / ΣM over the cell masses M.
    max_iter : int
        Limit on iterations.
    random_state : int, optional
        Seed of the folds (0 if None).

    Attributes
    ----------
    bandwidth_ : float
        In the data's time unit.
    bandwidths_, cv_scores_ : arrays
        Candidates and their summed held-out log-likelihoods (absent with a given bandwidth).
    objective_ : float
        Log-likelihood of the fitted curve (without Σ ln m!); smoothing does not maximise it.
    history_ : array
        Σ|M_new − M| / ΣM of each iteration.
    residual_, converged_, n_iter_

    References
    ----------
    Fan, C.-P. S., Stafford, J. and Brown, P. E. (2011), Local-EM and the EMS algorithm, Journal
    of Computational and Graphical Statistics 20, 750-766.
    Ding, H., Lee, Y., Sato, I. and Sugiyama, M. (2018), Variational inference for Gaussian
    processes with panel count data, UAI (for the folds, the grid and the early stop).
    """

    name = "local-em"
    title = "smooth event rate by local EM (Gaussian kernel)"
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "bandwidth_": kinds.number(positive=True), "points_": kinds.array("points"),
        "density_": kinds.array("L"), "at_risk_": kinds.array("L"),
        "bandwidths_": kinds.Sometimes(kinds.array("candidates")),
        "cv_scores_": kinds.Sometimes(kinds.array("candidates", infinite=True, nan=True)),
        "bootstrap_": kinds.Sometimes(kinds.dict_of(_a_draw)),
    }  # fmt: skip
    method_text = (
        "The event rate was estimated by local EM: the events of each interval are spread over "
        "time according to the current rate and smoothed with a Gaussian kernel, in turn (Fan, "
        "Stafford and Brown, 2011)."
    )

    #: only beyond the reach of the kernel
    _floor_events = 1e-20
    _memory_remedy = FEWER_CELLS

    bandwidth_: float
    bandwidths_: Floats
    cv_scores_: Floats
    points_: Floats
    density_: Floats
    at_risk_: Floats
    objective_: float
    history_: Floats
    residual_: float
    converged_: bool
    n_iter_: int

    def __init__(
        self,
        *,
        bandwidth: str | float = "cv",
        bandwidths: str | ArrayLike | None = None,
        n_splits: int = 5,
        folds: str = "shuffled",
        stop: str = "fixed-point",
        tol: float = 1e-9,
        max_iter: int = 5000,
        random_state: int | None = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidths = bandwidths
        self.n_splits = n_splits
        self.folds = folds
        self.stop = stop
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def paper(cls) -> LocalEM:
        """Return the estimator as in the paper: its folds, its grid and its early stop.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.LocalEM.paper()
        LocalEM(bandwidths='paper', folds='contiguous', stop='squared-change')
        """
        return cls(bandwidths="paper", folds="contiguous", stop="squared-change")

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Estimate the intensity from a panel; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LocalEM(bandwidth=6.0).fit(panel)
        >>> model.converged_
        True
        """
        self._check_parameters()
        with self._whole_fit(panel):
            self._begin_fit(panel)
            weights = np.ones(panel.n_subjects)
            with one_blas_thread():
                problem = UnitRows.of(self._rows)
                share, scores = self._choose(problem, weights, warn=True)
                found = self._solve(problem, weights, share)
            length = problem.length
            self.bandwidth_ = share * length
            if scores is not None:
                self.bandwidths_, self.cv_scores_ = self._candidates(problem) * length, scores
            self.points_ = self._rows.grid.points
            data = problem.data(weights)
            self.density_, self.at_risk_ = found.density[:, 0] / length, data.at_risk[:, 0]
            self.history_, self.n_iter_ = found.trace[:, 0], found.n_iter
            self.residual_ = float(found.residual[0])
            self.converged_ = self._stopped(found)
            self._end_fit(panel)
            self.objective_ = float(data.log_likelihood(found.mass)[0]) + _exposure_constant(
                self._rows
            )
        self._warn_if_short()
        return self

    def _fit_bytes(self, panel: PanelCounts) -> float:
        """Sparse intervals by cells and folds; kernel weights of the narrowest bandwidth."""
        distinct = panel.distinct()
        runs = Grid.of(distinct.start, distinct.stop).runs
        return 8e6 + 35_200.0 * runs.size + 66.0 * runs.n_kept

    def _check_parameters(self) -> None:
        check_choice("folds", self.folds, ("shuffled", "contiguous"))
        check_choice("stop", self.stop, ("fixed-point", "squared-change"))
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter)
        if self.bandwidth != "cv":
            check_positive("bandwidth, unless it is 'cv',", self.bandwidth)
        elif not isinstance(self.n_splits, int | np.integer) or self.n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, not {self.n_splits!r}")

    def _warn_if_short(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"LocalEM stopped after {self.n_iter_} iterations, {self.residual_:.1e} from its "
                "fixed point; raise max_iter, or the bandwidth, which is very small here",
                ConvergenceWarning,
                stacklevel=3,
            )

    # -- choice of the bandwidth --------------------------------------------------------------

    def _candidates(self, problem: UnitRows) -> Floats:
        """Bandwidths to choose from, as shares of the window, increasing."""
        if self.bandwidths is None:
            return np.linspace(SMALLEST_SHARE, LARGEST_SHARE, N_BANDWIDTHS)
        if isinstance(self.bandwidths, str):
            check_choice("bandwidths", self.bandwidths, (None, "paper", "an array of numbers"))
            grid = np.linspace(0.02, np.sqrt(problem.length), N_BANDWIDTHS)
        else:
            grid = np.sort(np.asarray(self.bandwidths, dtype=np.float64).ravel())
        if len(grid) == 0 or not np.all(np.isfinite(grid)) or grid[0] <= 0.0:
            raise ValueError(f"bandwidths must be positive numbers, not {self.bandwidths!r}")
        return grid / problem.length

    def _choose(
        self, problem: UnitRows, weights: Floats, warn: bool = False
    ) -> tuple[float, Floats | None]:
        """Bandwidth as a share of the window, and the scores of the candidates."""
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth) / problem.length, None
        candidates = self._candidates(problem)
        if problem.rows.n_subjects < 2:
            if warn:
                warnings.warn(
                    "one subject cannot be cross-validated; the largest bandwidth is used: "
                    "pass bandwidth=... to choose another",
                    GP4CWarning,
                    stacklevel=3,
                )
            return float(candidates[-1]), None
        train, held_out = problem.folds(self._fold_of_subjects(problem.rows), weights)
        floor = self._floor(train)
        start: Floats | None = None
        scores = np.empty(len(candidates))
        for k in reversed(range(len(candidates))):  # wide first: a good start for the next
            steps = EMSteps(train, problem.smoother(candidates[k]))
            found = self._iterate(steps, _CV_TOL, _CV_STEPS, start)
            start = found.mass
            scores[k] = held_out_score(found.mass, held_out, floor).sum()
        best = len(scores) - 1 - int(np.argmax(scores[::-1]))  # the smoother of two equals
        return float(candidates[best]), scores

    def _floor(self, train: LocalEMData) -> Floats:
        """Least mass of held-out intervals with events: as in `score`, or none (published)."""
        if self.stop == "squared-change":
            return np.zeros((1, 1))
        time = np.where(train.time_at_risk > 0.0, train.time_at_risk, 1.0)
        return np.asarray(self._floor_events * train.length / time, dtype=np.float64)

    def _fold_of_subjects(self, rows: PanelRows) -> NDArray[np.intp]:
        """Fold of each subject of the rows, (K,)."""
        n = rows.n_subjects
        n_splits = min(int(self.n_splits), n)
        block = (np.arange(n) * n_splits) // n
        fold = np.empty(n, dtype=np.intp)
        if self.folds == "contiguous":
            return np.asarray(block[rows.order], dtype=np.intp)
        rng = np.random.default_rng(0 if self.random_state is None else self.random_state)
        fold[rng.permutation(n)] = block
        return fold

    # -- the iteration ------------------------------------------------------------------------

    def _solve(self, problem: UnitRows, weights: Floats, share: float) -> LocalEMFit:
        steps = EMSteps(problem.data(weights), problem.smoother(share))
        return self._iterate(steps, self.tol, int(self.max_iter), None)

    def _iterate(
        self, steps: EMSteps, tol: float, max_iter: int, start: Floats | None
    ) -> LocalEMFit:
        if self.stop == "squared-change":
            return published_iteration(steps, steps.published_start(), 1e-8, int(self.max_iter))
        return fixed_point(steps, steps.constant_start() if start is None else start, tol, max_iter)

    def _stopped(self, found: LocalEMFit) -> bool:
        """Whether an iteration met its rule, not its limit."""
        if self.stop == "squared-change":
            return found.n_iter < int(self.max_iter)
        return bool(found.residual[0] <= self.tol)

    # -- curves -------------------------------------------------------------------------------

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        extrapolate : bool
            Allow times outside the window, where λ goes on as at the window's end.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LocalEM(bandwidth=6.0).fit(gp4c.load_dataset("bladder"))
        >>> model.intensity([12.0, 24.0]).round(3)
        array([0.145, 0.155])
        """
        return self._evaluate(t, self._intensity, extrapolate)

    def _intensity(self, times: Floats) -> Floats:
        return self._rates(times, self.bandwidth_, self.density_[:, None], self.at_risk_[:, None])[
            :, 0
        ]

    def _cumulative(self, times: Floats) -> Floats:
        columns = self.density_[:, None], self.at_risk_[:, None]
        return self._integrals(times, self.bandwidth_, *columns)[:, 0]

    def _rates(self, times: Floats, bandwidth: float, density: Floats, at_risk: Floats) -> Floats:
        """λ at times for columns (L, F), constant outside the window, (T, F)."""
        inside = np.clip(times, *self.window_)
        return intensity_at(inside, self.points_, bandwidth, density, at_risk)

    def _integrals(
        self, times: Floats, bandwidth: float, density: Floats, at_risk: Floats
    ) -> Floats:
        """∫λ from the window's start to times for columns (L, F), (T, F)."""
        smoother = Smoother.of(self.points_, bandwidth, self.window_)
        inside = np.clip(times, *self.window_)
        value = smoother.cumulative(smoother.exposure(at_risk).rates(density), inside)
        value = np.maximum(value, 0.0)  # rounding
        beyond = times - inside
        if np.any(beyond != 0.0):
            value += beyond[:, None] * self._rates(inside, bandwidth, density, at_risk)
        return value

    # -- bootstrap ----------------------------------------------------------------------------

    def _draw(self, rows: PanelRows, weights: Floats) -> tuple[Draw, bool]:
        with one_blas_thread():
            problem = UnitRows.of(rows)
            share, _ = self._choose(problem, weights)
            found = self._solve(problem, weights, share)
        draw = {
            "bandwidth": np.array(share * problem.length),
            "density": found.density[:, 0] / problem.length,
            "at_risk": problem.data(weights).at_risk[:, 0],
        }
        return draw, self._stopped(found)

    def _intensity_draws(self, times: Floats) -> Floats:
        return self._by_bandwidth(self._rates, times)

    def _cumulative_draws(self, times: Floats) -> Floats:
        return self._by_bandwidth(self._integrals, times)

    def _by_bandwidth(self, curves: Callable[..., Floats], times: Floats) -> Floats:
        """Evaluate all draws, (B, T), those of one bandwidth together: there are few."""
        draws = self.bootstrap_
        result = np.empty((len(draws["bandwidth"]), len(times)))
        for h in np.unique(draws["bandwidth"]):
            same = draws["bandwidth"] == h
            columns = draws["density"][same].T, draws["at_risk"][same].T
            result[same] = curves(times, float(h), *columns).T
        return result


def _exposure_constant(rows: PanelRows) -> float:
    """Σ m log e, the part of the log-likelihood that the curve does not change."""
    return float(rows.count @ np.log(rows.exposure))
