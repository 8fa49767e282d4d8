"""Effects of subjects with intervals: what the data say of each one beyond the common curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv

from gp4c.exceptions import PanelDataError
from gp4c.inference.threads import one_blas_thread
from gp4c.models.bootstrap import check_level
from gp4c.models.forecast_inputs import known_subjects

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.subject_histories import SubjectHistories

Floats = NDArray[np.float64]

#: draws of the curve behind an interval, and most numbers held at once
N_DRAWS, _CHUNK = 200, 4_000_000
#: halvings of a bracket that is never much wider than its quantile
_HALVINGS = 40


def subject_effect_table(model: Any, level: float = 0.95) -> pd.DataFrame:
    """Effect υ of each fitted subject, with an interval.

    Given the curve, the effect of a subject with m events where R were expected is
    Gamma(α + m, α + R); intervals are of the mixture of these laws over the posterior of the
    curve, at the α of the fit.

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
    """
    import pandas as pd

    check_level(level)
    if model.effect_ is None:
        raise PanelDataError("this fit has no subject effects: effect='gamma' fits them")
    known = known_subjects(model, "all", None)
    assert known is not None
    with one_blas_thread():
        integrals = _integrals(model, known)
    size = max(1, _CHUNK // len(integrals))
    ends = np.full((2, len(known.subjects)), np.nan)
    expected = np.empty(len(known.subjects))
    for first in range(0, len(known.subjects), size):
        part = np.arange(first, min(first + size, len(known.subjects)))
        some, spans = known.take(part), np.isin(known.span_subject, part)
        means = some.expected(integrals[:, spans])
        expected[part] = means.mean(axis=0)
        if model.effect_ == "gamma":
            shape = float(model.frailty_shape_)
            for row, p in enumerate(((1 - level) / 2, (1 + level) / 2)):
                ends[row, part] = mixture_quantile(shape + some.totals, shape + means, p)
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


def _integrals(model: Any, known: SubjectHistories) -> Floats:
    """Draws of ∫λ over the spans of all subjects, (S, P); one where expected counts were kept."""
    if known.mean_expected is not None:
        return np.zeros((1, 0))
    if not hasattr(model, "posterior_"):
        fixed = model.expected_counts(known.span_start, known.span_stop, extrapolate=True)
        return np.asarray(fixed)[None]
    rng = np.random.default_rng(0)
    draws = model.posterior_.sample_integrals(known.span_start, known.span_stop, N_DRAWS, rng)
    return np.asarray(draws)


def mixture_quantile(shape: Floats, rates: Floats, p: float) -> Floats:
    """Quantile p of even mixtures of Gamma(shape, rate) laws: (K,), (S, K) → (K,).

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
