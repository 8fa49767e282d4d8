"""GP4CClasses: subgroups of subjects, each with a curve of its own, found from the counts alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.data.panel import PanelCounts
from gp4c.estimators.inputs import check_choice, check_panel, check_shared_parameters
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.estimators.mixtures.classes.class_choice import ClassChoice
from gp4c.estimators.mixtures.classes.class_curves import ClassCurves
from gp4c.exceptions import ConvergenceWarning, PanelDataError
from gp4c.files import kinds
from gp4c.inference.classes.class_draws import ClassDraws
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.formulas.formula import FormulaDesign
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.forecasts.joint_counts import JointCounts

Floats = NDArray[np.float64]

#: most classes that can be asked for: labellings are counted, and there are C! of them
MOST_CLASSES = 6
#: draws at once while scores are computed
_SCORE_CHUNK = 4_000_000


class GP4CClasses(ClassCurves):
    r"""Latent classes: each subject follows one of C curves, and the data say which.

    .. math::
        P(\text{class } c) = \pi_c, \quad \lambda_c(t) = f_c(t)^2, \quad
        \mathrm{E}\, m_j = \upsilon_k e_j \int_{s_j}^{t_j} \lambda_c(t)\,dt

    Subjects may still differ within a class by an effect υ, and events may come in bursts. That
    makes one class with frailties a fair rival of two classes: where it describes the data as well,
    "auto" says one. Classes are numbered from 0 by their mean number of events over the window,
    the lowest first.

    Parameters
    ----------
    n_classes : "auto" or int
        The number of classes; "auto" takes more than one only if the evidence for them is clear
        (odds of 20 to 1).
    max_classes : int
        Most classes that "auto" tries.
    membership : str, optional
        Covariates of subjects that change the probabilities of the classes (multinomial logistic),
        such as ``"age + arm"``; see :class:`gp4c.GP4C` for what a formula may say.
    n_inducing, kernel, effect, bursts, random_state
        As in :class:`gp4c.GP4C`. Laws that are left open are weighed again for every number of
        classes; their parameters are shared by the classes.
    n_refits : int
        Refits without a fifth of the subjects that `stability_` rests on; 0 for none.

    Attributes
    ----------
    n_classes_ : int
    shares_ : (C,)
        Share of each class in the population.
    membership_ : (K, C)
        Posterior probability of each subject to be in each class, in the order of `subjects_`.
    choice_ : ClassChoice
        Evidence and held-out likelihood of every number that was tried; ``to_frame()``.
    stability_ : (n_refits,)
        Share of the subjects that stay in their class when a fifth is left out.
    starts_ : (int, int)
        Starts of the search that ended at the best classes, and starts in all.
    posterior_ : ClassDraws, or CurveDraws of one class
    log_evidence_, effective_draws_, pareto_k_, frailty_variance_, dispersion_, …
        As in :class:`gp4c.GP4C`, of the number of classes chosen.

    Examples
    --------
    >>> import gp4c
    >>> model = gp4c.GP4CClasses(n_classes=2).fit(gp4c.load_dataset("bladder"))
    >>> model.membership_.shape
    (85, 2)
    >>> bool(model.cumulative(50.0, label=0) < model.cumulative(50.0, label=1))
    True
    """

    name = "classes"
    title = "latent classes of subjects, each with a smooth event rate"
    method_text = (
        "Each subject was taken to belong to one of several latent classes, each with an event "
        "rate that is the square of a Gaussian process ({kernel} covariance); classes share the "
        "smoothness of their curves and the laws of counts and of subject effects. Laws and the "
        "number of classes were judged by the evidence, in which every set of classes counts once."
    )
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "posterior_": kinds.result("CurveDraws", "ClassDraws"), "n_classes_": kinds.COUNT,
        "shares_": kinds.array("C"), "membership_": kinds.array("K", "C"),
        "choice_": kinds.result("ClassChoice"), "stability_": kinds.array("refits"),
        "starts_": kinds.tuple_of(kinds.COUNT),
        "membership_design_": kinds.maybe(kinds.result("FormulaDesign")),
        "membership_scale_": kinds.array("q"), "subject_design_": kinds.array("K", "q"),
    }  # fmt: skip

    hyper = "integrate"
    mean = "learn"
    membership_: Floats
    choice_: ClassChoice
    stability_: Floats
    starts_: tuple[int, int]
    membership_design_: FormulaDesign | None
    membership_scale_: Floats
    subject_design_: Floats

    def __init__(
        self,
        *,
        n_classes: int | str = "auto",
        max_classes: int = 4,
        membership: str | None = None,
        n_inducing: int | None = None,
        kernel: str = "se",
        effect: str | None = "auto",
        bursts: str | bool = "auto",
        n_refits: int = 3,
        random_state: int | None = None,
    ):
        self.n_classes = n_classes
        self.max_classes = max_classes
        self.membership = membership
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.effect = effect
        self.bursts = bursts
        self.n_refits = n_refits
        self.random_state = random_state

    def fit(
        self,
        panel: PanelCounts,
        y: None = None,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Fit to panel counts.

        Parameters
        ----------
        panel : PanelCounts
        y : None
            Ignored; scikit-learn passes it.
        progress : callable, optional
            Called with one line of text whenever a new step begins.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.membership_.shape
        (11, 2)
        """
        from gp4c.estimators.fit_warnings import warn_of_misfit
        from gp4c.estimators.mixtures.classes.class_store import fit_and_store_classes

        self._check_parameters()
        check_panel(self, panel)
        with self._whole_fit(panel), one_blas_thread():
            self._keep_time_axis(panel)
            fit_and_store_classes(self, panel, progress or (lambda text: None))
        self._warn_of_draws()
        warn_of_misfit(self)
        return self

    def _warn_of_draws(self) -> None:
        """Say that the draws are few for the bands, and what to do."""
        if self.converged_:
            return
        warnings.warn(
            f"GP4CClasses: the bands of {self.n_classes_} classes rest on drawn curves worth "
            f"{self.effective_draws_:.0f} independent ones (their Pareto k is "
            f"{self.pareto_k_:.2f}, reliable below 0.7) and may be rough, as happens where classes "
            "overlap; compare with fewer classes",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _fit_bytes(self, panel: PanelCounts) -> float:
        draws = 6000.0 * (panel.n_subjects + 100.0) * 3 * MOST_CLASSES
        return 8.0 * (draws + 600.0 * panel.n_intervals)

    def _check_parameters(self) -> None:
        check_shared_parameters(self)
        if EFFECTS.get(self.effect) is not None and EFFECTS[self.effect].is_free:
            raise ValueError(
                f"effect={self.effect!r} gives every subject a level of its own, so that classes "
                "of levels cannot be told: take 'auto', None or 'gamma'"
            )
        _check_number("max_classes", self.max_classes)
        if isinstance(self.n_classes, str):
            check_choice("n_classes", self.n_classes, ("auto", *range(1, MOST_CLASSES + 1)))
        else:
            _check_number("n_classes", self.n_classes)
        if not isinstance(self.n_refits, int) or self.n_refits < 0:
            raise ValueError(f"n_refits must be a number from 0 on, not {self.n_refits!r}")

    # -- subjects -------------------------------------------------------------------------------

    def members(self) -> pd.DataFrame:
        """One row per subject: events, the most probable class, its probability, and all others.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> list(model.members().columns)[2:]
        ['label', 'probability', 'class_0', 'class_1']
        """
        import pandas as pd

        self._check_fitted()
        frame = pd.DataFrame({"subject": self.subjects_, "events": self.subject_totals_})
        frame["events"] = frame["events"].astype(np.int64)
        frame["label"] = self.membership_.argmax(axis=1)
        frame["probability"] = self.membership_.max(axis=1)
        for c in range(self.n_classes_):
            frame[f"class_{c}"] = self.membership_[:, c]
        return frame

    def predict_membership(self, panel: PanelCounts, n_draws: int = 2000) -> Floats:
        """Probabilities of the classes for subjects of any panel, given their counts, (K, C).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> model.predict_membership(panel, n_draws=200).shape
        (11, 2)
        """
        check_panel(self, panel)
        self._check_fitted()
        if not isinstance(self.posterior_, ClassDraws):
            return np.ones((panel.n_subjects, 1))
        total = np.zeros((self.n_classes_, panel.n_subjects))
        drawn = 0
        for joint in self._log_joint_draws(panel, n_draws):
            total += np.exp(joint - logsumexp(joint, axis=0)).sum(axis=2)
            drawn += joint.shape[2]
        return np.asarray(total.T / drawn)

    def _log_joint_draws(self, panel: PanelCounts, n_draws: int) -> list[Floats]:
        """ln π_c L_kc of the subjects of a panel, (C, K, S) for some draws at a time."""
        posterior = self._posterior()
        assert isinstance(posterior, ClassDraws)
        self._inside([panel.start.min(), panel.stop.max()], extrapolate=False)
        counts = SubjectCounts.of(panel, LAWS[self.law_], EFFECTS[self.effect_])
        rng = np.random.default_rng(self._seed(None))
        parents = posterior.choose_parents(n_draws, rng)
        chunk = max(1, _SCORE_CHUNK // max(panel.n_intervals, 1))
        design, parts = self._panel_design(panel), []
        with one_blas_thread():
            for first in range(0, n_draws, chunk):
                some = parents[first : first + chunk]
                joint = posterior.log_shares(design, some)
                for c, m in enumerate(posterior.members):
                    inside = posterior.integrals_of(counts.start, counts.stop, m[some], rng)
                    joint[c] += counts.log_likelihoods(inside, posterior.params[:, m[some]])
                parts.append(joint)
        return parts

    def _log_likelihood_draws(self, panel: PanelCounts, n_draws: int, new_subjects: bool) -> Floats:
        if not isinstance(self._posterior(), ClassDraws):
            return super()._log_likelihood_draws(panel, n_draws, new_subjects)
        parts = self._log_joint_draws(panel, n_draws)
        return np.concatenate([logsumexp(joint, axis=0).T for joint in parts])

    def _panel_design(self, panel: PanelCounts) -> Floats:
        """Covariates of membership of the subjects of a panel, (K, q)."""
        if self.membership_design_ is None:
            return np.ones((panel.n_subjects, 1))
        from gp4c.data.formulas.covariate_rows import design_rows, last_rows

        rows = design_rows(self.membership_design_, panel)[last_rows(panel)]
        return np.column_stack([np.ones(len(rows)), rows * self.membership_scale_[1:]])

    def _design_of(self, known: SubjectHistories) -> Floats:
        """Covariates of membership of known subjects, as the fit saw them, (K, q)."""
        from gp4c.estimators.mixtures.classes.class_forecasts import known_design

        return known_design(known, self.subjects_.tolist(), self.subject_design_)

    def _joint_counts(
        self,
        known: SubjectHistories | None,
        covariates: Floats | None,
        beyond: str,
        own: Floats | None = None,
    ) -> JointCounts:
        if not isinstance(self.posterior_, ClassDraws):
            return super()._joint_counts(known, covariates, beyond, own)
        from gp4c.estimators.mixtures.classes.class_forecasts import ClassCounts

        return ClassCounts(self, known, covariates, beyond, own)

    def unit_ranking(
        self, worst: float = 0.1, level: float = 0.95, *, n_draws: int = 4000
    ) -> pd.DataFrame:
        """Only of a single class: effects are relative to the class of a subject.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CClasses(n_classes=1, effect="gamma", bursts=False).fit(panel)
        >>> list(model.unit_ranking().columns[:3])
        ['subject', 'probability', 'effect']
        """
        if self.n_classes_ > 1:
            raise PanelDataError(
                "effects are relative to the curve of a subject's class, so that units of "
                "different classes cannot be ranked by them; rank with GP4C, or see members()"
            )
        return super().unit_ranking(worst, level, n_draws=n_draws)

    def effects_over_shares(self, level: float = 0.95) -> pd.DataFrame:
        """How covariates change the odds of each class against the lowest, with intervals.

        Columns: ``label``, ``covariate``, ``odds_ratio`` per unit, ``low`` and ``high``.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, membership="treatment", **quick).fit(panel)
        >>> list(model.effects_over_shares().columns)
        ['label', 'covariate', 'odds_ratio', 'low', 'high']
        """
        import pandas as pd

        from gp4c.posterior.quantiles import weighted_quantiles

        posterior = self._posterior()
        if self.membership_design_ is None or not isinstance(posterior, ClassDraws):
            raise PanelDataError('this fit has no covariates of membership: membership="age"')
        tails, rows = np.array([0.5, *equal_tails(level)]), []
        for c in range(1, self.n_classes_):
            change = (
                posterior.share_coefficients[1:, posterior.members[c]]
                - posterior.share_coefficients[1:, posterior.members[0]]
            ) * self.membership_scale_[1:, None]
            found = np.exp(weighted_quantiles(change, posterior.parent_weights, tails))
            names = self.membership_design_.names
            rows += [(c, name, *found[:, i]) for i, name in enumerate(names)]
        return pd.DataFrame(rows, columns=["label", "covariate", "odds_ratio", "low", "high"])

    # -- other answers -----------------------------------------------------------------------------

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """Members, curves of the classes, and what speaks for each number of them.

        :meta private:
        """
        return {
            "members": self.members(), "class-curves": self.curves_by_class(),
            "class-numbers": self.choice_.to_frame(),
        }  # fmt: skip

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Curves of the classes, and memberships.

        :meta private:
        """
        if self.n_classes_ == 1:
            return {}
        return {"classes": self.plot_classes, "membership": self.plot_membership}

    def plot_membership(self, ax: Axes | None = None) -> Axes:
        """Draw the probabilities of membership, a bar per subject.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> ax = model.plot_membership()
        """
        from importlib import import_module

        self._check_fitted()
        drawn: Axes = import_module("gp4c.reporting.page.classes.class_plots").plot_membership(
            self, ax
        )
        return drawn


def _check_number(name: str, value: object) -> None:
    """Raise unless a number of classes can be fitted."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_CLASSES:
        raise ValueError(f"{name} must be a number from 1 to {MOST_CLASSES}, not {value!r}")
