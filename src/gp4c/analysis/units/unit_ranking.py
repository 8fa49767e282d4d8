r"""Bad actors: which units fail more often than others, and how sure that is.

The worst share q of K units are the ⌈qK⌉ with the largest effects. A unit's probability to be one
of them is the share of joint posterior draws of curve, parameters and effects in which it is,

.. math:: P(k \in W_q) = \frac{1}{S} \sum_s 1\{\mathrm{rank}(\upsilon_{ks}) \le \lceil qK \rceil\}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.forecasts.forecast_inputs import covariate_rows, known_subjects, seed_of
from gp4c.estimators.forecasts.joint_counts import JointCounts
from gp4c.estimators.forecasts.subject_effects import subject_effect_table
from gp4c.exceptions import PanelDataError
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]


def unit_ranking(
    model: PanelEstimator,
    worst: float = 0.1,
    level: float = 0.95,
    *,
    n_draws: int = 4000,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Units by the probability that they are among the worst, highest first.

    Parameters
    ----------
    model : fitted estimator with subject effects
    worst : float in (0, 1)
        Share of the units that is called the worst.
    level : float in (0, 1)
        Probability of the intervals of the effects.
    n_draws : int
        Joint draws of the effects; the error of a probability is at most 0.5 / √n_draws.
    random_state : int, optional
        Seed; default that of the model.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``probability`` to be among the worst, ``effect`` (2: twice the events of an
        average unit) with ``low`` and ``high``, ``events`` seen and ``expected`` of an average
        unit, and, where the data say who is out of service, ``in_service``.

    Notes
    -----
    Ranks of estimates mislead: units that were watched for little have the largest and the
    smallest. The probability knows how little is known of them. With covariates, effects are what
    these leave unexplained.
    """
    if not 0 < worst < 1:
        raise ValueError(f"worst must be a share between 0 and 1, not {worst!r}")
    if not model.effect_law_.varies:
        raise PanelDataError(
            "this fit has no subject effects, so no unit is worse than another: effect='gamma' "
            "fits them"
        )
    table = subject_effect_table(model, level)
    probability = chance_of_worst(model, worst, n_draws, seed_of(model, random_state))
    table.insert(1, "probability", probability)
    columns = ["subject", "probability", "effect", "low", "high", "events", "expected"]
    known = known_subjects(model, "all", None)
    if known is not None and np.isfinite(known.end).any():
        table["in_service"] = np.isnan(known.end)
        columns.append("in_service")
    order = np.lexsort((-table["effect"].to_numpy(), -probability))
    return table[columns].iloc[order].reset_index(drop=True)


def chance_of_worst(model: PanelEstimator, worst: float, n_draws: int, seed: int) -> Floats:
    """Probability of each fitted subject to be among the worst share, (K,)."""
    known = known_subjects(model, "all", None)
    assert known is not None
    z = covariate_rows(model, known, None, None)
    n_subjects = len(known.subjects)
    n_worst = min(int(np.ceil(worst * n_subjects - 1e-9)), n_subjects)
    found = np.zeros(n_subjects)
    counts = JointCounts(model, known, z, "prior")
    with one_blas_thread():
        for effects in counts.effects(n_draws, np.random.default_rng(seed)):
            place = np.argpartition(-effects, n_worst - 1, axis=0)[:n_worst]
            found += np.bincount(place.ravel(), minlength=n_subjects)
    return found / n_draws
