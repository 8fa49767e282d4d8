"""Draws of the groups' curves under the three accounts of them, or averaged over these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.hypotheses import NAMES, Hypotheses
from gp4c.data.checks import check_choice
from gp4c.estimators.regression.covariates import CovariateModel
from gp4c.posterior.forecasting import intensity_paths
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.posterior.draws import CurveDraws
    from gp4c.posterior.sparse_posterior import Posterior

Floats = NDArray[np.float64]

#: draws of each group's curve, and sets of them kept
N_DRAWS, CACHED = 4000, 8
CURVES = ("rate", "cumulative")
ACCOUNTS = (*NAMES, "average")
#: whose covariates the curves of an adjusted comparison have: everybody's, averaged over the
#: curves; or those of one subject in the middle
COVARIATES = ("standardised", "average")


@dataclass(frozen=True)
class GroupDraws:
    """Paths of the groups' curves; each draw is one path, whatever times are asked.

    The order of draws is shuffled, as a posterior gives those of one component together. The last
    few answers are kept: a ratio and its band are often asked in turn.
    """

    groups: Sequence[Hashable]
    models: Mapping[Hashable, GaussianProcessModel]
    pooled: GaussianProcessModel | None
    hypotheses: Hypotheses | None
    start: float
    random_state: int
    _cache: dict[tuple[Hashable, ...], Floats] = field(default_factory=dict, repr=False)

    def of(
        self, t: Floats, curve: str, name: Hashable, under: str, at: str = "standardised"
    ) -> Floats:
        """Draws of a group's curve at times t, (N_DRAWS, T).

        Draws of different groups belong together: under "same" they are the same paths, under
        "factor" the same shapes, and an average takes as many of each account as it is probable.
        """
        key = (under, at, curve, self.groups.index(name), t.tobytes())
        if key not in self._cache:
            while len(self._cache) >= CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = self._new(t, curve, name, under, at)
        return self._cache[key]

    def _new(self, t: Floats, curve: str, name: Hashable, under: str, at: str) -> Floats:
        check_choice("under", under, ACCOUNTS)
        check_choice("at", at, COVARIATES)
        if under == "curves":
            # a group's draws are its own: another reference inverts ratios, no more
            stream = sorted(self.groups, key=lambda g: (str(g), type(g).__name__)).index(name)
            return self._paths(shown(self.models[name], at).posterior_, t, curve, stream)
        if self.hypotheses is None or self.pooled is None:
            raise ValueError(f"under={under!r} needs the probabilities of the three accounts")
        if under == "same":
            return self._paths(shown(self.pooled, at).posterior_, t, curve, len(self.groups))
        if under == "factor":
            curve_of = self.hypotheses.curve(self.groups.index(name))
            known = self.pooled.coefficients_
            if known is not None and at == "standardised":
                curve_of = curve_of.multiplied(known.average_factor(curve_of.coefficients, {}))
            return self._paths(curve_of, t, curve, len(self.groups) + 1)
        ends = np.cumsum([self.hypotheses.probabilities[account] for account in NAMES])
        stops = np.round(N_DRAWS * ends).astype(np.intp)
        parts = [self.of(t, curve, name, account, at) for account in NAMES]
        return np.concatenate([
            part[a:b] for part, a, b in zip(parts, [0, *stops[:-1]], stops, strict=True)
        ])  # fmt: skip

    def _paths(
        self, posterior: CurveDraws | Posterior, t: Floats, curve: str, stream: int
    ) -> Floats:
        seed = np.random.SeedSequence((self.random_state, stream))
        order = np.random.default_rng(seed.spawn(1)[0]).permutation(N_DRAWS)
        with one_blas_thread():
            if curve == "rate":
                return intensity_paths(posterior, t, N_DRAWS, seed)[order]
            begin = np.full_like(t, self.start)
            rng = np.random.default_rng(seed)
            return np.asarray(posterior.sample_integrals(begin, t, N_DRAWS, rng)[order])


def has_medians(model: GaussianProcessModel, at: str) -> bool:
    """Whether curves to show are posterior medians, since their means say nothing."""
    view = shown(model, at)
    return isinstance(view, CovariateModel) and view.has_medians


def shown(model: GaussianProcessModel, at: str) -> GaussianProcessModel:
    """The model with the curves to show: averaged over everybody's covariates, or as it is."""
    if at == "standardised" and isinstance(model, CovariateModel):
        return model._standardised()
    return model
