"""GP3: the same intensity when every event time is known, the paper's upper benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gp4c.data.subject_histories import SubjectHistories
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference.hyper import Problem
from gp4c.inference.threads import one_blas_thread
from gp4c.models.fitting import (
    describe_data,
    find_fit,
    store_fit,
    subject_labels,
    warn_unless_converged,
)
from gp4c.models.gp_base import GaussianProcessModel
from gp4c.models.inputs import check_choice, check_events, check_shared_parameters

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents


class GP3(GaussianProcessModel):
    r"""Smooth event rate from exact event times: a squared Gaussian process, variationally.

    .. math::
        \lambda(t) = f(t)^2, \quad f \sim \mathcal{GP}(g, \gamma k_a)

    for subjects that are watched continuously. E ln f² at each event is exact (through Dawson's
    integral), so the objective is the evidence lower bound itself. It shows what panel counts
    lose against exact times.

    Parameters
    ----------
    n_inducing, kernel, mean, effect, hyper, tol, max_iter, random_state
        As in :class:`gp4c.GP4C`.

    Attributes
    ----------
    posterior_, terms_, objective_, elbo_, length_scale_, variance_, mean_, n_inducing_, n_iter_,
    converged_, history_, effect_, frailty_shape_, subject_effects_
        As in :class:`gp4c.GP4C`.
    """

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        kernel: str = "se",
        mean: str | float = "learn",
        effect: str | None = None,
        hyper: str = "optimize",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: int | None = None,
    ):
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.mean = mean
        self.effect = effect
        self.hyper = hyper
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, events: RecurrentEvents, y: None = None) -> Self:  # type: ignore[override]
        """Fit to exact event times."""
        check_events(self, events)
        check_shared_parameters(self)
        check_choice("effect", self.effect, (None, "weight", "gamma"))
        data = observe(None, events, events.window)
        problem = Problem(
            data, KERNELS[self.kernel], "pointwise", 0.0, self.effect, self.n_inducing
        )
        with self._whole_fit(), one_blas_thread():
            fit = find_fit(
                problem, mean=self.mean, hyper=self.hyper, tol=self.tol, max_iter=self.max_iter
            )
            store_fit(self, problem, fit)
            self._fitted_to = (None, events)
            self._keep_time_axis(events)
            self.subjects_ = subject_labels(None, events)
            self.data_summary_ = describe_data(None, events)
            self.histories_ = SubjectHistories.of_all(None, events)
        warn_unless_converged(self, fit.best)
        return self
