"""Bounds on the log evidence that a fitted Gaussian process reports: the exact one, the paper's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from gp4c.estimators.base import PanelEstimator
from gp4c.exceptions import NotFittedError
from gp4c.inference.variational.count_terms import Exact, Lemma2
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts


class FittedBounds(PanelEstimator):
    """Bounds for the fitted q, evaluated when asked for; copies and files hold the numbers."""

    _bound_with: Callable[[str], float]
    _fitted_to: tuple[PanelCounts | None, RecurrentEvents | None] = (None, None)

    @cached_property
    def elbo_(self) -> float:
        """The evidence lower bound of the fitted q with the exact count term.

        With the looser count terms it costs as much as a third of the fit, so it is evaluated
        when first asked for.
        """
        self._check_fitted()
        with one_blas_thread():
            return self._bound_with(Exact.name)

    @cached_property
    def paper_bound_(self) -> float:
        """The paper's bound (its Theorem 2) for the fitted q, evaluated when first asked for."""
        self._check_fitted()
        if self._is_default:
            raise ValueError(
                "the default fit has draws and no variational bound; count_term='exact' fits one"
            )
        if "_bound_with" not in vars(self):
            raise NotFittedError("the model was saved without the paper's bound; fit it again")
        with one_blas_thread():
            return self._bound_with(Lemma2.name)

    def elbo_gap(self) -> float:
        """How many nats the paper's bound lies below the evidence lower bound of the fitted q.

        Whatever count term was maximised: the price of the paper's inequality at this posterior.
        ``elbo_ - objective_`` is that of the count term used, 0 for "exact".

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(count_term="lemma2", effect=None, n_inducing=8).fit(panel)
        >>> model.elbo_gap() > 0
        True
        """
        self._check_fitted()
        return float(self.elbo_ - self.paper_bound_)

    def _state(self) -> dict[str, object]:
        """Return what a saved model holds, the bounds included."""
        return {**super()._state(), **self._evaluated()}

    def __getstate__(self) -> dict[str, object]:
        # what evaluates the bounds holds the data: a copy takes the numbers instead
        state = {**vars(self), **self._evaluated()}
        for data in ("_bound_with", "_fitted_to", "_engine_data"):
            state.pop(data, None)
        return state

    @property
    def _is_default(self) -> bool:
        """Whether the model has weighted draws instead of a variational posterior."""
        return vars(self).get("terms_", self) is None

    def _evaluated(self) -> dict[str, float]:
        if "_bound_with" not in vars(self):
            return {}
        return {"elbo_": self.elbo_, "paper_bound_": self.paper_bound_}
