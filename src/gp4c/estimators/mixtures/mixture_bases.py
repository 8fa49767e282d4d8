"""What a mixture is made of: its bases, and the weights of subjects on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.mixtures.mixture_words import basis_facts
from gp4c.files import kinds
from gp4c.model.laws.weights import BasisWeights
from gp4c.posterior.summed.summed_posterior import SummedPosterior
from gp4c.posterior.weight_law import WeightLaw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.model.laws import SubjectEffect

Floats = NDArray[np.float64]
Band = tuple[Numbers, Numbers]

BASIS_WEIGHTS = BasisWeights()
#: where the plots are: reporting stands after estimators in the house
_FIGURES = "gp4c.reporting.figures.mixture_plots"


class MixtureBases(GaussianProcessModel):
    """Basis intensities and the weights of subjects on them."""

    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": "weight", "weight": "weight"}
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": False, "no": False}
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "posterior_": kinds.result("SummedPosterior"), "weights_": kinds.array("K", "L"),
        "basis_expected_": kinds.array("K", "L"), "shares_": kinds.array("L"),
        "length_scales_": kinds.array("L", positive=True), "starts_": kinds.array("starts"),
        "law_weights_": kinds.array("A", "L"), "law_masses_": kinds.array("A", positive=True),
    }  # fmt: skip

    #: what is fixed for this model and asked of others
    hyper = "optimize"
    effect = "weight"
    bursts = False
    posterior_: SummedPosterior  # type: ignore[assignment]
    weights_: Floats
    basis_expected_: Floats
    shares_: Floats
    starts_: Floats
    length_scales_: Floats
    law_weights_: Floats
    law_masses_: Floats

    @property
    def effect_law_(self) -> SubjectEffect:
        """Free weights on every basis."""
        return BASIS_WEIGHTS

    # -- bases and weights --------------------------------------------------------------------

    def basis(self, t: ArrayLike, index: int, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of a basis intensity at times `t`, for a subject with its mean weight.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.basis([12.0, 24.0], 0).shape
        (2,)
        """
        return self._basis(index).intensity(t, extrapolate=extrapolate)

    def basis_band(
        self, t: ArrayLike, index: int, level: float = 0.95, kind: str = "pointwise", *,
        extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of a basis intensity: (low, high); see :meth:`GP4C.intensity_band`.

        The band is that of f_l given the weights.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> low, high = model.basis_band(24.0, 0)
        >>> bool(low < high)
        True
        """
        return self._basis(index).intensity_band(t, level, kind, extrapolate=extrapolate)

    def components(self) -> dict[str, GaussianProcessModel]:
        """The bases by name, each with the questions that a fitted curve answers.

        :meta private:
        """
        self._check_fitted()
        count = range(len(self.posterior_.parts))
        return {f"basis {k + 1}": self._basis(k) for k in count} if len(count) > 1 else {}

    def weight_table(self) -> pd.DataFrame:
        """One row per subject: its events, the weight of each basis, and the bases' shares.

        A share is the part of the subject's expected number that belongs to the basis.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> list(model.weight_table().columns[2:])
        ['weight_1', 'weight_2', 'share_1', 'share_2']
        """
        import pandas as pd

        self._check_fitted()
        own = self.weights_ * self.basis_expected_
        share = own / own.sum(axis=1, keepdims=True)
        columns: dict[str, object] = {
            "subject": self.subjects_, "events": self.subject_totals_.astype(np.int64)
        }  # fmt: skip
        for k in range(self.weights_.shape[1]):
            columns[f"weight_{k + 1}"] = self.weights_[:, k]
        for k in range(self.weights_.shape[1]):
            columns[f"share_{k + 1}"] = share[:, k]
        return pd.DataFrame(columns)

    @cached_property
    def weight_law(self) -> WeightLaw:
        """The law of the weights of new subjects."""
        self._check_fitted()
        return WeightLaw(self.law_weights_, self.law_masses_)

    def facts(self) -> list[tuple[str, str, str, float]]:
        """The bases in words: their shares of the events, when they are highest, their scale.

        :meta private:
        """
        return basis_facts(self)

    def plot_bases(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the basis intensities with bands.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> ax = model.plot_bases()
        """
        found: Axes = import_module(_FIGURES).plot_bases(self, ax, level=level)
        return found

    def plot_weights(self, ax: Axes | None = None) -> Axes:
        """Draw the weights of the subjects.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> ax = model.plot_weights()
        """
        found: Axes = import_module(_FIGURES).plot_weights(self, ax)
        return found

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """The weights of the subjects.

        :meta private:
        """
        return {"weights": self.weight_table()}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Bases and weights.

        :meta private:
        """
        return {"bases": self.plot_bases, "weights": self.plot_weights}

    # -- helpers ------------------------------------------------------------------------------

    def _basis(self, index: int) -> Self:
        """The model as if a basis were all there is."""
        self._check_fitted()
        parts = self.posterior_.parts
        if not 0 <= index < len(parts):
            raise ValueError(f"a basis is one of 0 to {len(parts) - 1}, not {index!r}")
        return self._view(SummedPosterior((parts[index],)))

    def _view(self, posterior: SummedPosterior) -> Self:
        """A copy that answers for another sum of the bases."""
        view = object.__new__(type(self))  # a copy would evaluate the bounds
        vars(view).update(vars(self), posterior_=posterior)
        return view
