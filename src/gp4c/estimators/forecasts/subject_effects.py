"""Effects of subjects with intervals: what the data say of each one beyond the common curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv

from gp4c.estimators.forecasts.forecast_inputs import known_subjects
from gp4c.estimators.inputs import check_level
from gp4c.exceptions import PanelDataError
from gp4c.posterior.fitted_counts import coefficient_deviations, subject_design
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]

#: draws of the curve behind an exact mixture; draws of effects behind other intervals
N_DRAWS, N_EFFECTS = 200, 2000
#: most numbers held at once
_CHUNK = 4_000_000
#: halvings of a bracket that is never much wider than its quantile
_HALVINGS = 40


def subject_effect_table(model: PanelEstimator, level: float = 0.95) -> pd.DataFrame:
    r"""Effect υ of each fitted subject, with an interval.

    Parameters
    ----------
    model : fitted estimator with subject effects
    level : float in (0, 1)
        Probability of the intervals, with equal tails.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``events``, ``expected`` (at effect 1), ``effect`` (posterior mean), ``low``
        and ``high``. Free weights (``effect="weight"``) are no random variables: their ends are
        missing.

    Notes
    -----
    Given curve and parameters, the effect of a subject with m Poisson counts where R were expected
    is Gamma(α + m, α + R); intervals are of the mixture of these laws over the posterior,

    .. math:: \frac{1}{S} \sum_s P(\upsilon \le x \mid \alpha_s + m, \alpha_s + R_s) = p .

    Under other laws of counts they are quantiles of draws of υ.
    """
    import pandas as pd

    check_level(level)
    if model.effect_ is None:
        raise PanelDataError("this fit has no subject effects: effect='gamma' fits them")
    known = known_subjects(model, "all", None)
    assert known is not None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    with one_blas_thread():
        expected, ends = _expected_and_ends(model, known, tails)
    return pd.DataFrame(
        {
            "subject": known.subjects,
            "events": known.totals.astype(np.int64),
            "expected": expected,
            "effect": model.subject_effects_,
            "low": ends[0],
            "high": ends[1],
        }
    )


def _expected_and_ends(
    model: PanelEstimator, known: SubjectHistories, tails: Floats
) -> tuple[Floats, Floats]:
    """Expected numbers (K,) and quantiles of the effects (2, K), so many subjects at a time."""
    law, effect = model.count_law_, model.effect_law_
    exact = known.mean_expected is not None or (law.one_by_one and effect.conjugate)
    n_draws = N_DRAWS if exact or not effect.varies else N_EFFECTS
    n_draws = 1 if model._plugs_in and exact else n_draws
    n_subjects = len(known.subjects)
    expected, ends = np.empty(n_subjects), np.full((2, n_subjects), np.nan)
    design = subject_design(model)
    for part in np.array_split(np.arange(n_subjects), 1 + n_subjects * n_draws // _CHUNK):
        some, z = known.take(part), None if design is None else design[part]
        counts = SubjectCounts.of_histories(some, law, effect, z)
        rng = np.random.default_rng(0)
        start, stop = counts.start, counts.stop
        integrals, params, beta = model._curve_draws(
            start, stop, n_draws, rng, "prior", counts.inputs
        )
        beta = coefficient_deviations(model, beta)
        means = counts.expected(integrals, beta)
        if some.mean_expected is not None:  # spans were not kept: R is its mean
            means = np.repeat(some.mean_expected[:, None], n_draws, axis=1)
        expected[part] = means.mean(axis=1)
        if effect.varies and exact:
            alpha = 1.0 / effect.variance(params[: len(effect.parameters)])[:, None]
            for row, p in zip(ends, tails, strict=True):
                row[part] = mixture_quantile(alpha + some.totals, alpha + means.T, p)
        elif effect.varies:
            drawn = counts.effect_draws(integrals, params, rng, beta)
            ends[:, part] = np.quantile(drawn, tails, axis=1)
    return expected, ends


def mixture_quantile(shape: Floats, rates: Floats, p: float) -> Floats:
    """Quantile p of even mixtures of Gamma(shape, rate) laws: (S, K) or (K,), (S, K) → (K,).

    Their quantiles lie between the smallest and the largest of the parts, so the bracket is
    halved.
    """
    parts = gammaincinv(shape, p) / rates
    low, high = parts.min(axis=0), parts.max(axis=0)
    for _ in range(_HALVINGS if len(rates) > 1 else 0):
        middle = 0.5 * (low + high)
        below = gammainc(shape, rates * middle).mean(axis=0) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))
