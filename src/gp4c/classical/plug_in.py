"""What the classical estimators share: one fitted curve, plugged into the likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.classical.visit_cells import group_sums
from gp4c.data.subject_histories import SubjectHistories
from gp4c.estimators.base import Numbers, PanelEstimator
from gp4c.estimators.inputs import check_panel
from gp4c.exceptions import GP4CWarning
from gp4c.files import kinds
from gp4c.model.gamma_frailty import log_marginal

if TYPE_CHECKING:
    from gp4c.classical.parametric.marginal_counts import SubjectTerms
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


class PlugInEstimator(PanelEstimator):
    """Curves and scores of an estimator that is a single function Λ.

    Attributes
    ----------
    time_at_risk_ : float
        Exposure times length, summed over the rows that were fitted.
    effect_ : None or "gamma"
    frailty_shape_ : float
        α of the Gamma(α, α) frailty; infinite without frailty or overdispersion.
    subjects_, subject_totals_ : (n_subjects,) arrays
        Labels and events of the fitted subjects.
    subject_expected_ : (n_subjects,) array or None
        Their expected numbers of events at frailty 1; None without frailty.
    data_summary_ : dict
        Sizes of the data.
    dispersion_, burst_size_ : float
        1 + φ and φ / ln(1 + φ): variance of a count over its mean given the subject's frailty,
        and mean number of events in a burst; both 1 for a model without bursts.
    frailty_variance_ : float
        1/α.
    """

    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "time_at_risk_": kinds.number(), "residual_": kinds.Sometimes(kinds.ANY_NUMBER),
        "histories_": kinds.Sometimes(kinds.result("SubjectHistories")),
    }  # fmt: skip

    #: events that the floor of a score spreads over the whole observed time
    _floor_events = 0.5

    time_at_risk_: float
    effect_: str | None
    frailty_shape_: float
    subject_totals_: Floats
    subject_expected_: Floats | None
    history_: Floats
    data_summary_: dict[str, float]

    @property
    def frailty_variance_(self) -> float:
        """Variance of the frailty, 1/α; 0 without."""
        return 1.0 / self.frailty_shape_

    @property
    def burst_size_(self) -> float:
        """Mean number of events in a burst; 1 where they come one by one."""
        from gp4c.model.laws.bursts import mean_burst

        return mean_burst(self.dispersion_ - 1.0)

    def _cumulative(self, times: Floats) -> Floats:
        """Λ at flat times, 0 at the window's start."""
        raise NotImplementedError

    def _begin_fit(self, panel: PanelCounts) -> None:
        """Forget an earlier fit and set what every fit sets."""
        check_panel(self, panel)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._keep_time_axis(panel)
        self.time_at_risk_ = float((panel.exposure * (panel.stop - panel.start)).sum())
        self.effect_ = None
        self.frailty_shape_ = np.inf
        self.converged_, self.n_iter_, self.history_ = True, 0, np.zeros(0)  # of a closed form
        self.subjects_ = np.asarray(panel.subjects, dtype=object)
        counts = panel.count.astype(np.float64)
        self.subject_totals_ = group_sums(panel.subject_index, counts, panel.n_subjects)
        self.histories_ = SubjectHistories.of(panel)
        self.data_summary_ = {
            "n_subjects": panel.n_subjects,
            "n_intervals": panel.n_intervals,
            "n_events": panel.n_events,
            "exposure_time": self.time_at_risk_,
            "observed_time": float((panel.stop - panel.start).sum()),
        }

    def _end_fit(self, panel: PanelCounts) -> None:
        """Make the model a fitted one, and set what follows from the curve."""
        self.window_ = panel.window
        self.subject_expected_ = None
        if self.effect_ is not None:
            expected = panel.exposure * self.expected_counts(panel.start, panel.stop)
            self.subject_expected_ = group_sums(panel.subject_index, expected, panel.n_subjects)

    def cumulative(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Λ(t), the expected number of events from the window's start to t per unit exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        extrapolate : bool
            Allow times outside the window; the class says how Λ goes on there.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> model.cumulative([12.0, 24.0]).round(2)
        array([1.71, 3.66])
        """
        return self._evaluate(t, self._cumulative, extrapolate)

    def expected_counts(
        self, start: ArrayLike, stop: ArrayLike, *, extrapolate: bool = False
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.NPMPLE().fit(gp4c.load_dataset("bladder"))
        >>> round(model.expected_counts(12.0, 24.0), 2)
        1.95
        """

        def mass(first: Floats, last: Floats) -> Floats:
            return np.maximum(self._cumulative(last) - self._cumulative(first), 0.0)

        return self._over_intervals(start, stop, extrapolate, mass)

    def score(
        self, panel: PanelCounts, y: None = None, *, constant: bool = False, joint: bool = True
    ) -> float:
        r"""Log-likelihood of the counts of these subjects with the fitted curve plugged in.

        .. math:: \sum m \log(e \Delta\Lambda) - e \Delta\Lambda

        over the rows, e the exposure and ΔΛ the fitted mass of the interval; with gamma frailty
        each subject's frailty is integrated out (negative multinomial counts). With bursts counts
        are negative binomial given the frailty. Σ ln m! is left out.

        **Floor.** An interval in which events happened but the fitted curve has (almost) no mass
        would make the score −∞. Its mass is taken to be at least that of half an event spread
        evenly over all the observed time at risk of the fit, ``0.5 (stop − start) /
        time_at_risk_`` (1e-20 instead of 0.5 for :class:`~gp4c.LocalEM`, whose curve vanishes
        only beyond the reach of its kernel); a warning says how many intervals that concerned.

        Parameters
        ----------
        panel : PanelCounts
            Must lie in the window of the fit.
        y : None
            Ignored; scikit-learn passes it.
        constant : bool
            Add −Σ ln m!.
        joint : bool
            Makes no difference here: with a plugged-in curve the joint score is the sum of the
            subjects' scores.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
        >>> round(model.score(panel.where(treatment="placebo")), 1)
        -275.6
        """
        total = float(self.score_subjects(panel).sum())
        return total - panel.log_factorials if constant else total

    def score_subjects(self, panel: PanelCounts) -> Floats:
        """Log-likelihood of each subject's counts, in the order of ``panel.subjects``.

        Σ ln m! over the subject's counts m is left out.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
        >>> bool(abs(model.score_subjects(panel).sum() - model.score(panel)) < 1e-6)
        True
        """
        panel = self._adjusted(panel)
        mass = self._bounded_mass(panel)
        expected = panel.exposure * mass
        if self.dispersion_ > 1.0:
            return self._marginal_terms(panel, expected).value
        seen = panel.count > 0
        logs = np.zeros(panel.n_intervals)
        logs[seen] = panel.count[seen] * np.log(expected[seen])

        def by_subject(values: Floats) -> Floats:
            return group_sums(panel.subject_index, values, panel.n_subjects)

        variance = 1.0 / self.frailty_shape_
        events = by_subject(panel.count.astype(np.float64))
        return by_subject(logs) + log_marginal(variance, events, by_subject(expected))

    def _marginal_terms(self, panel: PanelCounts, expected: Floats) -> SubjectTerms:
        """ln p of each subject, and its frailty given the counts, under the law of counts."""
        from gp4c.classical.parametric.marginal_counts import LogMeans, MarginalCounts

        counts = MarginalCounts(
            panel.count.astype(np.float64), panel.subject_index, panel.n_subjects,
            self.count_law_, self.effect_law_,
        )  # fmt: skip
        psi = self._point_params()[: len(self.effect_law_.parameters), 0]
        return counts.terms(LogMeans.of(expected), psi, self.law_parameters_)

    def _effect_moments(self, panel: PanelCounts, expected: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each subject's frailty given its counts, (K,) each."""
        found = self._marginal_terms(panel, expected)
        return found.mean, np.sqrt(np.maximum(found.variance, 0.0))

    def _bounded_mass(self, panel: PanelCounts) -> Floats:
        """Mass of each interval of a panel; at least the floor where it has events."""
        mass = self.expected_counts(panel.start, panel.stop)
        floor = self._floor_events * (panel.stop - panel.start) / self.time_at_risk_
        low = (panel.count > 0) & (mass < floor)
        if np.any(low):
            warnings.warn(
                f"{int(low.sum())} of {int((panel.count > 0).sum())} intervals with events have "
                f"(almost) no mass under this {type(self).__name__}; they are scored as if "
                f"{self._floor_events:g} events were spread evenly over the observed time at risk",
                GP4CWarning,
                stacklevel=4,
            )
        return np.where(low, floor, mass)


def check_positive(name: str, value: float | str) -> None:
    """Raise a clear error unless `value` is a positive finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number, not {value!r}")
