"""GP4CMixture: every subject's rate is its own combination of a few basis intensities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np

from gp4c.estimators.inputs import check_choice, check_panel, check_shared_parameters
from gp4c.estimators.mixtures.fitted_mixture import FittedMixture
from gp4c.inference.variational.count_terms import COUNT_TERMS
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts


class GP4CMixture(FittedMixture):
    r"""Rates that are combinations of basis intensities, with weights of every subject.

    .. math::
        \lambda_k(t) = \sum_l w_{kl} f_l(t)^2, \quad f_l \sim \mathcal{GP}(g_l, \gamma_l k_{a_l}),
        \quad w_{kl} \ge 0

    The extension that Appendix F of Ding, Lee, Sato and Sugiyama (UAI 2018) proposes, after Lloyd
    et al. (2016). Subjects differ in the course of their rate, not only in its level.
    :class:`gp4c.GP4CW` is the case of one basis.

    Use it to see which courses there are and how much of each a subject has. Weights are fitted to
    the subjects' own counts: more bases always fit these better. Let :func:`gp4c.cross_validate`
    choose `n_bases`.

    Parameters
    ----------
    n_bases : int
        Number of basis intensities, L.
    count_term : {"pointwise", "lemma2", "exact"}
        How E ln ∫ f² enters the bound: "lemma2" is the paper's Theorem 1, with `b`; the others
        are tighter (:class:`gp4c.GP4C`). Over the bases Jensen's inequality is used in each.
    n_inducing, b, kernel, mean
        As in :class:`gp4c.GP4C`, for each basis. A learned mean is one of f_l relative to its
        weights, whose scale it fixes.
    n_starts : int
        Random starts of a coarse version of the model, of which the best that differ are carried
        on; the best bound wins.
    tol : float
        Stop when a cycle of rounds gains fewer nats than this.
    max_iter : int
        Most cycles.
    random_state : int, optional
        Seed of the starts; None is 0.

    Attributes
    ----------
    weights_ : (subjects, bases) array
        Weights in the order of ``panel.subjects``; their mean over the subjects is 1 for each
        basis. The basis with most events comes first.
    shares_ : (bases,) array
        Share of all events that belongs to each basis.
    posterior_ : SummedPosterior
        The bases; their sum is the rate of a subject with mean weights.
    starts_ : array
        Bounds that the different starts had reached when they were compared, best first.
    length_scales_ : (bases,) array
        Time scale of each basis, in the unit of the data.
    law_weights_, law_masses_ : (points, bases) and (points,) arrays
        The law of the weights of new subjects: points and their probabilities.
    subject_effects_ : array
        Expected number of each subject relative to one with mean weights seen over the same times.
    objective_, elbo_, paper_bound_, terms_, history_, n_iter_, converged_
        As in :class:`gp4c.GP4C`; `elbo_` has the exact count term of all bases together.

    Examples
    --------
    >>> import gp4c
    >>> panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> model = gp4c.GP4CMixture(n_bases=2).fit(panel)
    >>> model.weights_.shape, float(model.weights_.mean().round(6))
    ((47, 2), 1.0)
    >>> early, late = model.basis(5.0, 0), model.basis(5.0, 1)
    """

    name = "mixture"
    title = "combinations of basis intensities with weights of every subject"
    method_text = (
        "Event counts between visits were modelled as Poisson counts whose rate is, for every "
        "subject, a combination of basis intensities with non-negative weights; each basis is the "
        "square of a Gaussian process ({kernel} covariance; Ding, Lee, Sato and Sugiyama, 2018, "
        "Appendix F)."
    )
    _memory_remedy = "a coarser curve (n_inducing=), or a sample of the subjects (panel[::2])"

    def __init__(
        self,
        *,
        n_bases: int = 2,
        count_term: str = "pointwise",
        n_inducing: int | None = None,
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        n_starts: int = 20,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: int | None = None,
    ):
        self.n_bases = n_bases
        self.count_term = count_term
        self.n_inducing = n_inducing
        self.b = b
        self.kernel = kernel
        self.mean = mean
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self, panel: PanelCounts, y: None = None, *, progress: Callable[[str], None] | None = None
    ) -> Self:
        """Fit bases and weights to panel counts.

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
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.weights_.shape
        (85, 2)
        """
        from gp4c.estimators.mixtures.mixture_fit import fit_and_store

        check_panel(self, panel)
        self._check_parameters()
        with self._whole_fit(panel), one_blas_thread():
            self._keep_time_axis(panel)
            vars(self).pop("weight_law", None)
            fit_and_store(self, panel, progress or (lambda text: None))
        return self

    def _check_parameters(self) -> None:
        check_choice("count_term", self.count_term, tuple(COUNT_TERMS))
        for name in ("n_bases", "n_starts", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be in [0, 1], not {self.b!r}")
        check_shared_parameters(self)

    def _fit_bytes(self, panel: PanelCounts) -> float:
        from gp4c.estimators.large_data.footprint import bound_bytes

        return self.n_bases * bound_bytes(self, panel)
