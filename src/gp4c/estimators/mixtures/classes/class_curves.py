"""Curves of latent classes, with their bands: every answer takes the label of a class."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.inputs import check_level
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.inference.classes.class_draws import ClassDraws
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.quantiles import weighted_quantiles

if TYPE_CHECKING:
    import pandas as pd
    from arviz import InferenceData
    from matplotlib.axes import Axes
    from xarray import DataTree

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


class ClassCurves(GaussianProcessModel):
    """Curves of a class, or without a label of the population, in which classes have shares."""

    n_classes_: int
    shares_: Floats

    def _view(self, label: int | None) -> Self:
        """The model as one class sees it; without a label the population's."""
        self._check_fitted()
        if label is None:
            return self
        if isinstance(label, bool) or label not in range(self.n_classes_):
            known = ", ".join(map(str, range(self.n_classes_)))
            raise ValueError(f"there is no class {label!r}; there are {known}")
        if isinstance(self.posterior_, ClassDraws):
            view = copy.copy(self)
            view.posterior_ = self.posterior_.of_class(int(label))
            return view
        return self

    def intensity(
        self, t: ArrayLike, *, label: int | None = None, extrapolate: bool = False
    ) -> Numbers:
        """λ(t) of a class; without a label the mean over the classes by their shares.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.intensity([12.0, 24.0], label=0).shape
        (2,)
        """
        view = self._view(label)
        return super(ClassCurves, view).intensity(t, extrapolate=extrapolate)

    def cumulative(
        self, t: ArrayLike, *, label: int | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Λ(t) of a class; without a label the mean over the classes by their shares.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> bool(model.cumulative(53.0, label=0) < model.cumulative(53.0, label=1))
        True
        """
        view = self._view(label)
        return super(ClassCurves, view).cumulative(t, extrapolate=extrapolate)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        label: int | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of λ of a class, or of the population; see :class:`gp4c.GP4C`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> low, high = model.intensity_band(24.0, label=1)
        >>> bool(low < high)
        True
        """
        view = self._view(label)
        return super(ClassCurves, view).intensity_band(t, level, kind, extrapolate=extrapolate)

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        label: int | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of Λ of a class, or of the population; see :class:`gp4c.GP4C`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> low, high = model.cumulative_band(24.0, label=1)
        >>> bool(low < high)
        True
        """
        view = self._view(label)
        return super(ClassCurves, view).cumulative_band(t, level, kind, extrapolate=extrapolate)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        label: int | None = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop], of a class or of the population.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.expected_counts(12.0, 24.0, label=1) > 0
        True
        """
        view = self._view(label)
        return super(ClassCurves, view).expected_counts(start, stop, extrapolate=extrapolate)

    def sample_intensity(
        self,
        t: ArrayLike,
        size: int,
        random_state: int | None = None,
        *,
        label: int | None = None,
        extrapolate: bool = False,
    ) -> Floats:
        """Joint posterior draws of λ of a class, or of the population, (size, len(t)).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.sample_intensity([12.0, 24.0], size=100, label=1).shape
        (100, 2)
        """
        view = self._view(label)
        return super(ClassCurves, view).sample_intensity(
            t, size, random_state, extrapolate=extrapolate
        )

    def shares_band(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Credible interval of the share of each class: (low, high), (C,) each.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> low, high = model.shares_band()
        >>> bool((low <= high).all())
        True
        """
        check_level(level)
        posterior = self._posterior()
        if not isinstance(posterior, ClassDraws):
            return np.ones(1), np.ones(1)
        shares = posterior.share[posterior.members]
        low, high = weighted_quantiles(
            shares, posterior.parent_weights, np.array(equal_tails(level))
        )
        return low, high

    def curves_by_class(self, level: float = 0.95, n_points: int = 201) -> pd.DataFrame:
        """Rate and mean number of events of every class with bands, a row per class and time.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.curves_by_class(n_points=5).shape
        (10, 9)
        """
        import pandas as pd

        self._check_fitted()
        times, parts = np.linspace(*self.window_, n_points), []
        for c in range(self.n_classes_):
            low, high = self.intensity_band(times, level, label=c)
            least, most = self.cumulative_band(times, level, label=c)
            columns = {
                "label": c, "share": self.shares_[c], "time": times,
                "rate": self.intensity(times, label=c), "rate_low": low, "rate_high": high,
                "cumulative": self.cumulative(times, label=c), "cumulative_low": least,
                "cumulative_high": most,
            }  # fmt: skip
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def plot_classes(self, ax: Axes | None = None, *, what: str = "rate") -> Axes:
        """Draw the curve of every class; see :mod:`gp4c.reporting.page.classes.class_plots`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> ax = model.plot_classes(what="cumulative")
        """
        self._check_fitted()
        figures = import_module("gp4c.reporting.page.classes.class_plots")
        drawn: Axes = figures.plot_classes(self, ax, what=what)
        return drawn

    def to_arviz(
        self,
        panel: PanelCounts | None = None,
        *,
        label: int | None = None,
        n_draws: int = 2000,
        n_points: int = 100,
        random_state: int | None = None,
    ) -> InferenceData | DataTree:
        """Draws of one class for ArviZ; see :meth:`gp4c.GP4C.to_arviz`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> draws = model.to_arviz(label=1)  # doctest: +SKIP
        """
        self._check_fitted()
        if label is None and self.n_classes_ > 1:
            raise ValueError("to_arviz needs a class: label=0")
        view = self._view(label)
        return super(ClassCurves, view).to_arviz(
            panel, n_draws=n_draws, n_points=n_points, random_state=random_state
        )

    def _check_curve(self, times: Floats) -> Floats:
        return np.asarray(self.cumulative(times))

    def class_curve(self, label: int) -> CurveDraws:
        """The posterior draws of the curve of one class.

        :meta private:
        """
        view = self._view(label)
        posterior = view.posterior_
        assert isinstance(posterior, CurveDraws)
        return posterior
