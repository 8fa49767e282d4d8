"""Subject-level bootstrap: confidence bands for estimators without a posterior."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.plug_in import PlugInEstimator
from gp4c.estimators.base import Numbers
from gp4c.estimators.inputs import check_band
from gp4c.estimators.interfaces.fitted_window import shaped_like
from gp4c.exceptions import ConvergenceWarning, NotFittedError
from gp4c.files import kinds

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Draw = dict[str, Floats]

#: points of the window at which a simultaneous band is calibrated
_CALIBRATION_POINTS = 201
_TASKS_PER_JOB = 8


class BootstrapEstimator(PlugInEstimator):
    """An estimator whose uncertainty comes from resampling subjects.

    A subclass says how to estimate from rows and multiplicities (:meth:`_draw`), and how a set
    of such draws becomes curves (:meth:`_cumulative_draws`, :meth:`_intensity_draws`).

    Attributes
    ----------
    bootstrap_ : dict of arrays
        Estimates of the bootstrap samples, stacked along the first axis.
    bootstrap_seed_ : int
        Seed that generated them.
    """

    can_bootstrap = True
    saved: ClassVar[Mapping[str, kinds.Check]] = {"bootstrap_seed_": kinds.Sometimes(kinds.COUNT)}

    bootstrap_: Mapping[str, Floats] = MappingProxyType({})
    bootstrap_seed_: int | None = None
    #: the rows of the fit; a file holds none
    _fitted_rows: PanelRows | None = None

    @property
    def n_bootstraps_(self) -> int:
        """Bootstrap samples so far."""
        return max((len(draws) for draws in self.bootstrap_.values()), default=0)

    @property
    def _rows(self) -> PanelRows:
        if self._fitted_rows is None:
            raise NotFittedError(
                f"this {type(self).__name__} was loaded from a file, which holds no data; "
                "fit it again to bootstrap it"
            )
        return self._fitted_rows

    def band_text(self) -> str:
        """Percentiles of bootstrap samples, once there are any.

        :meta private:
        """
        if not self.n_bootstraps_:
            return ""
        return (
            f"Bands are pointwise percentiles of {self.n_bootstraps_} bootstrap samples of the "
            "subjects."
        )

    def _draw(self, rows: PanelRows, weights: Floats) -> tuple[Draw, bool]:
        """Estimate with these multiplicities; the arrays, and whether the fit converged."""
        raise NotImplementedError

    def _cumulative_draws(self, times: Floats) -> Floats:
        """Λ of each bootstrap sample at flat times, (B, T)."""
        raise NotImplementedError

    def _intensity_draws(self, times: Floats) -> Floats:
        """λ of each bootstrap sample at flat times, (B, T)."""
        raise NotImplementedError

    def _begin_fit(self, panel: PanelCounts) -> None:
        super()._begin_fit(panel)
        self._fitted_rows = PanelRows.of(panel)

    def bootstrap(
        self,
        n: int = 200,
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
        progress: bool = False,
    ) -> Self:
        """Refit to `n` samples of the subjects, drawn with replacement.

        Subjects, not intervals, are resampled, so the bands allow for dependence within a
        subject: they are honest about overdispersion even where the estimator assumes none.
        Everything that the fit chose from the data (a bandwidth, a frailty variance) is chosen
        again in each sample.

        Parameters
        ----------
        n : int
            Number of samples; a few hundred for a 95% band.
        n_jobs : int, optional
            Processes of joblib; its context managers (``parallel_config``) choose the backend.
        random_state : int, Generator or None
            Seed. Sample k depends on the seed and k only: another call with the same integer
            keeps the samples already there (also after an interruption) and adds what is missing.
        progress : bool
            Show a progress bar.

        Returns
        -------
        self
            With :meth:`cumulative_band` (and :meth:`intensity_band` of smooth estimators) ready.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> model.bootstrap(20, random_state=1).n_bootstraps_
        20
        >>> low, high = model.cumulative_band(24.0)
        """
        self._check_fitted()
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer, not {n!r}")
        rows, seed = self._rows, _seed(random_state)
        kept = self._kept_draws(seed, n)
        draws, failed = self._run(rows, kept, n, seed, n_jobs, progress)
        if failed:
            warnings.warn(
                f"{failed} of {n} bootstrap fits did not converge; raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._keep(draws[:n], seed)

    def _kept_draws(self, seed: int, n: int) -> list[Draw]:
        """Draws of an earlier call with the same seed."""
        if self.bootstrap_seed_ != seed:
            return []
        have = min(n, self.n_bootstraps_)
        return [{name: a[k] for name, a in self.bootstrap_.items()} for k in range(have)]

    def _keep(self, draws: list[Draw], seed: int) -> Self:
        if draws:
            names = draws[0]
            self.bootstrap_ = {name: np.stack([d[name] for d in draws]) for name in names}
            self.bootstrap_seed_ = seed
        return self

    def _run(
        self,
        rows: PanelRows,
        draws: list[Draw],
        n: int,
        seed: int,
        n_jobs: int | None,
        progress: bool,
    ) -> tuple[list[Draw], int]:
        """Add draws up to n; an interruption keeps those that are done."""
        from joblib import Parallel, delayed, effective_n_jobs

        missing = np.arange(len(draws), n)
        n_tasks = min(len(missing), max(1, effective_n_jobs(n_jobs)) * _TASKS_PER_JOB)
        plain = type(self)(**self.get_params())
        tasks = [
            delayed(_replicates)(plain, rows, part, seed)
            for part in np.array_split(missing, n_tasks)
        ] if n_tasks else []  # fmt: skip
        failed = 0
        with _progress_bar(n, progress) as advance:
            advance(len(draws))
            try:
                for part in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
                    draws += [draw for draw, _ in part]
                    failed += sum(not converged for _, converged in part)
                    advance(len(part))
            except KeyboardInterrupt:
                self._keep(draws, seed)
                raise
        return draws, failed

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Bootstrap confidence band of λ: (low, high), each shaped like `t`.

        Parameters
        ----------
        t : float or array
        level : float in (0, 1)
            Confidence at each time, or over the whole window.
        kind : {"pointwise", "simultaneous"}
            Percentiles at each time, or percentiles widened until the given share of the
            bootstrap curves lies inside over the whole window.
        extrapolate : bool
            Allow times outside the window.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LocalEM(bandwidth=6.0).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.bootstrap(20, random_state=1).intensity_band(24.0)
        >>> low < high
        True
        """
        return self._band(self._intensity_draws, t, level, kind, extrapolate)

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Bootstrap confidence band of Λ: (low, high); see :meth:`intensity_band`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.bootstrap(20, random_state=1).cumulative_band(24.0)
        >>> low < high
        True
        """
        return self._band(self._cumulative_draws, t, level, kind, extrapolate)

    def _band(
        self,
        draws: Callable[[Floats], Floats],
        t: ArrayLike,
        level: float,
        kind: str,
        extrapolate: bool,
    ) -> tuple[Numbers, Numbers]:
        self._check_fitted()
        check_band(level, kind)
        if not self.n_bootstraps_:
            raise NotFittedError(
                f"{type(self).__name__} has no posterior; call bootstrap(200) first to get bands"
            )
        tail = (1.0 - level) / 2.0
        if kind == "simultaneous":
            grid = np.linspace(*self.window_, _CALIBRATION_POINTS)
            tail = min(tail, _simultaneous_tail(draws(grid), level))

        times = self._inside(t, extrapolate)
        low, high = np.quantile(draws(times.ravel()), [tail, 1.0 - tail], axis=0)
        return shaped_like(times, low), shaped_like(times, high)


def resampled_weights(n_subjects: int, seed: int, index: int) -> Floats:
    """How often each subject is in bootstrap sample `index`, (K,)."""
    sequence = np.random.SeedSequence(seed, spawn_key=(index,))
    drawn = np.random.default_rng(sequence).integers(0, n_subjects, n_subjects)
    return np.bincount(drawn, minlength=n_subjects).astype(np.float64)


def _replicates(
    estimator: BootstrapEstimator, rows: PanelRows, indices: NDArray[np.intp], seed: int
) -> list[tuple[Draw, bool]]:
    """Fit some of the bootstrap samples; runs in a worker."""
    return [
        estimator._draw(rows, resampled_weights(rows.n_subjects, seed, int(index)))
        for index in indices
    ]


def _simultaneous_tail(draws: Floats, level: float) -> float:
    """Tail probability at which `level` of the curves, (B, T), lie within the percentiles.

    The depth of a curve is its most extreme pointwise rank; the band that holds the deepest
    share `level` of the curves has the corresponding rank as its tail.
    """
    n = len(draws)
    below = np.stack([np.searchsorted(np.sort(c), c, side="right") for c in draws.T], axis=1)
    above = np.stack([n - np.searchsorted(np.sort(c), c, side="left") for c in draws.T], axis=1)
    depth = np.minimum(below, above).min(axis=1)  # 1 for a curve that is extreme somewhere
    rank = np.sort(depth)[int(np.floor((1.0 - level) * n))]
    return float((rank - 1) / max(n - 1, 1))


def _seed(random_state: int | np.random.Generator | None) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(np.random.default_rng(random_state).integers(2**63))


@contextmanager
def _progress_bar(total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar (or does nothing)."""
    if not shown:
        yield lambda steps: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("bootstrap", total=total)
        yield lambda steps: bar.advance(task, steps)
