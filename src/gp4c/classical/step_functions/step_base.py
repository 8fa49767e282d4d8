"""What the step-function estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from gp4c.classical.bootstrap import BootstrapEstimator, Draw
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.plug_in import Floats
from gp4c.data.checks import plural
from gp4c.exceptions import ConvergenceWarning, GP4CWarning, NoIntensityError
from gp4c.files import kinds
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts


@dataclass(frozen=True, eq=False)
class StepSolution:
    """What a maximisation returns: Λ at the times, (L,), and how it was reached."""

    times: Floats
    level: Floats
    history: Floats
    residual: float
    converged: bool
    n_iter: int
    variance: float = 0.0
    effects: Floats | None = None


class StepEstimator(BootstrapEstimator):
    """A right-continuous step function Λ with jumps at visit times.

    Λ is 0 before the first visit and flat after the last: the data say nothing about where
    between two visits an event happened. There is no intensity.
    """

    is_step = True
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "times_": kinds.array("L"), "values_": kinds.array("L"),
        "n_left_out_": kinds.Sometimes(kinds.COUNT),
        "bootstrap_": kinds.Sometimes(kinds.dict_of(kinds.array("B", "L"))),
    }  # fmt: skip

    times_: Floats
    values_: Floats
    objective_: float
    history_: Floats
    residual_: float
    converged_: bool
    n_iter_: int
    subject_effects_: Floats | None

    def _solve(self, rows: PanelRows, weights: Floats) -> StepSolution:
        raise NotImplementedError

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Estimate Λ from a panel; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.NPMLE().fit(panel)
        >>> round(model.cumulative(24.0), 2)
        4.08
        """
        self._check_parameters()
        with self._whole_fit(panel), one_blas_thread():
            self._begin_fit(panel)
            found = self._solve(self._rows, np.ones(panel.n_subjects))
            self.times_, self.values_ = found.times, found.level
            self.history_, self.objective_ = found.history, float(found.history[-1])
            self.residual_, self.converged_ = found.residual, found.converged
            self.n_iter_ = found.n_iter
            self.subject_effects_ = (
                None if found.effects is None else self._rows.in_panel_order(found.effects)
            )
            if found.variance > 0.0:
                self.frailty_shape_ = 1.0 / found.variance
            if found.effects is not None:
                self.effect_ = "gamma"
            self._end_fit(panel)
        self._warn_if_short()
        return self

    def _warn_if_short(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} steps with optimality "
                f"residual {self.residual_:.1e}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> NoReturn:
        """Raise :class:`~gp4c.exceptions.NoIntensityError`: a step function has no rate.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> model.intensity(24.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        gp4c.exceptions.NoIntensityError: NPMPLE is a step function...
        """
        raise NoIntensityError(
            f"{type(self).__name__} is a step function: it has jumps, not an intensity; "
            "use cumulative(t), or a smooth estimator (GP4C, LocalEM)"
        )

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> NoReturn:
        """Raise :class:`~gp4c.exceptions.NoIntensityError`: a step function has no rate.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> model.intensity_band(24.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        gp4c.exceptions.NoIntensityError: NPMPLE is a step function...
        """
        self.intensity(t)

    def _cumulative(self, times: Floats) -> Floats:
        return np.asarray(self._steps(self.values_[None], times)[0], dtype=np.float64)

    def _draw(self, rows: PanelRows, weights: Floats) -> tuple[Draw, bool]:
        with one_blas_thread():
            found = self._solve(rows, weights)
        return {"values": found.level}, found.converged

    def _cumulative_draws(self, times: Floats) -> Floats:
        return self._steps(self.bootstrap_["values"], times)

    def _steps(self, values: Floats, times: Floats) -> Floats:
        """Evaluate step functions with values (B, L) at times, (B, T)."""
        padded = np.concatenate([np.zeros((len(values), 1)), values], axis=1)
        columns = np.searchsorted(self.times_, times, side="right")
        return np.asarray(padded[:, columns], dtype=np.float64)


class PseudoLikelihoodEstimator(StepEstimator):
    """A step function from cumulative counts, which not every row has."""

    objective_name = "log pseudo-likelihood"
    n_left_out_: int

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Estimate Λ, and α with frailty; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.NPMPLE().fit(panel)
        >>> round(model.cumulative(24.0), 2)
        3.66
        """
        with self._whole_fit():
            super().fit(panel)
            self.n_left_out_ = _warn_left_out(self, self._rows)
        return self


def _warn_left_out(model: StepEstimator, rows: PanelRows) -> int:
    """Say how many rows a pseudo-likelihood estimator could not use; return the number."""
    left_out = int((~rows.unbroken()).sum())
    if left_out:
        subjects = len(np.unique(rows.subject[~rows.unbroken()]))
        warnings.warn(
            f"{type(model).__name__} needs cumulative counts from the earliest start "
            f"({rows.start.min():g}): {left_out} of {len(rows.start)} rows "
            f"({plural(subjects, 'subject')}) after a late entry, a gap or a change of exposure "
            "were left out; NPMLE uses all rows",
            GP4CWarning,
            stacklevel=3,
        )
    return left_out
