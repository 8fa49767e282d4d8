"""GP3: the same intensity when every event time is known, the paper's upper benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gp4c.estimators.engine_fit import EngineData, fit_and_store
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.inputs import check_choice, check_events, check_shared_parameters
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents


class GP3(GaussianProcessModel):
    r"""Smooth event rate from exact event times: a squared Gaussian process.

    .. math::
        \lambda(t) = f(t)^2, \quad f \sim \mathcal{GP}(g, \gamma k_a)

    for subjects that are watched continuously. The posterior is weighted draws, as in
    :class:`gp4c.GP4C`. It shows what panel counts lose against exact times.

    **Bursts** of exact events are ties: events of one subject at the same time are one burst, and
    its size is their number. Event times without ties therefore speak against bursts.

    Parameters
    ----------
    n_inducing, kernel, mean, effect, bursts, hyper, random_state
        As in :class:`gp4c.GP4C`.

    Attributes
    ----------
    posterior_, log_evidence_, length_scale_, variance_, mean_, n_inducing_, n_iter_, converged_,
    history_, effect_, frailty_shape_, dispersion_, burst_size_, subject_effects_,
    effective_draws_, pareto_k_
        As in :class:`gp4c.GP4C`.
    """

    title = "smooth event rate from exact event times (squared Gaussian process)"
    method_text = (
        "Event times were modelled as those of a process whose rate is the square of a Gaussian "
        "process ({kernel} covariance; Ding, Lee, Sato and Sugiyama, 2018)."
    )

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        kernel: str = "se",
        mean: str | float = "learn",
        effect: str | None = None,
        bursts: str | bool = "auto",
        hyper: str = "integrate",
        random_state: int | None = None,
    ):
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.mean = mean
        self.effect = effect
        self.bursts = bursts
        self.hyper = hyper
        self.random_state = random_state

    def fit(self, events: RecurrentEvents, y: None = None) -> Self:  # type: ignore[override]
        """Fit to exact event times.

        Examples
        --------
        >>> import gp4c
        >>> panel, events = gp4c.simulate_panel("square_wave", n_subjects=5, random_state=1)
        >>> model = gp4c.GP3(bursts=False, n_inducing=8).fit(events)
        >>> model.intensity(events.window[0]) > 0
        True
        """
        check_events(self, events)
        check_shared_parameters(self)
        check_choice("effect", self.effect, ("auto", None, "gamma"))
        with self._whole_fit(), one_blas_thread():
            self._keep_time_axis(events)
            fit_and_store(self, EngineData(None, events, events.window))
        return self
