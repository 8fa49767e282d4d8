"""How the effects of subjects go together between types of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.inputs import check_level
from gp4c.estimators.interfaces.credible import credible_interval

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EffectCorrelation:
    """Posterior of the correlations of the subjects' effects, as normal scores, between types.

    Of two types it is a number: ``float(correlation)`` and ``correlation.interval()``.

    Attributes
    ----------
    event_types : tuple of str
        The types whose effects vary; others take no part.
    loadings : (T, S)
        Of each type on what subjects share, by draw.
    weights : (S,)
    log_odds : float
        ln of the evidence of dependent over independent effects.
    """

    event_types: tuple[str, ...]
    loadings: Floats
    weights: Floats
    log_odds: float

    def draws(self, one: str | None = None, two: str | None = None) -> Floats:
        """Draws of the correlation of two types, (S,); of the only two if none are named.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> correlation = model.effect_correlation_
        >>> draws = correlation.draws()
        >>> bool((abs(draws) <= 1).all())
        True
        """
        e, f = self._pair(one, two)
        return np.asarray(self.loadings[e] * self.loadings[f])

    def mean(self, one: str | None = None, two: str | None = None) -> float:
        """Posterior mean.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> correlation = model.effect_correlation_
        >>> -1 <= correlation.mean("basal", "squamous") <= 1
        True
        """
        return float(self.draws(one, two) @ self.weights)

    def interval(
        self, level: float = 0.95, one: str | None = None, two: str | None = None
    ) -> tuple[float, float]:
        """Credible interval with equal tails.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> correlation = model.effect_correlation_
        >>> low, high = correlation.interval()
        >>> bool(low < correlation.mean() < high)
        True
        """
        check_level(level)
        return credible_interval(self.draws(one, two), self.weights, level)

    def matrix(self) -> Floats:
        """Posterior means of all correlations, (T, T), 1 on the diagonal.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> correlation = model.effect_correlation_
        >>> correlation.matrix().shape
        (2, 2)
        """
        found = (self.loadings * self.weights) @ self.loadings.T
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per pair of types: correlation, low, high, and the probability that it is > 0.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> correlation = model.effect_correlation_
        >>> len(correlation.to_frame())
        1
        """
        import pandas as pd

        rows = []
        for e, one in enumerate(self.event_types):
            for two in self.event_types[e + 1 :]:
                low, high = self.interval(level, one, two)
                above = float((self.draws(one, two) > 0) @ self.weights)
                rows.append((one, two, self.mean(one, two), low, high, above))
        names = ["event", "other", "correlation", "low", "high", "positive"]
        return pd.DataFrame(rows, columns=names)

    def __float__(self) -> float:
        return self.mean()

    def __str__(self) -> str:
        lines = [
            f"{row.event} and {row.other}: {row.correlation:.2f} (95% interval {row.low:.2f} to "
            f"{row.high:.2f})"
            for row in self.to_frame().itertuples()
        ]
        return "\n".join(lines) or "fewer than two types have subject effects"

    def _pair(self, one: str | None, two: str | None) -> tuple[int, int]:
        if one is None and two is None and len(self.event_types) == 2:
            return 0, 1
        known = self.event_types
        if one not in known or two not in known or one == two:
            raise ValueError(
                f"name two different types with subject effects, of {', '.join(map(repr, known))}; "
                f"found {one!r} and {two!r}"
            )
        return known.index(one), known.index(two)
