"""Does the model fit? Tables of residuals, calibration, dispersion and influence.

Every function takes a fitted model and a panel and returns a pandas frame. On the panel of the
fit the answers are slightly flattering; on held-out subjects they are honest. The laws are those
of the model, bursts included, for subjects about whom nothing else is known: effects are integrated
out; with ``effect="weight"`` the weights are those that fit the panel's own totals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.panel_laws import panel_laws
from gp4c.posterior.effect_given import EffectGiven
from gp4c.posterior.scoring import log_mean_exp

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]

#: draws of the curve behind a diagnostic
N_DRAWS = 2000
#: the same where only averages over draws of a probability are wanted
FEW_DRAWS = 300
#: rows times draws that bound these where a probability is itself a sum over effects
_ROWS_AND_DRAWS = 100_000
#: expected counts that stand for those of a large panel in a rootogram
_MOST_MEANS = 2500


def pit(
    model: PanelEstimator, panel: PanelCounts, per: str = "interval", *, random_state: int = 0
) -> pd.DataFrame:
    """Randomised probability integral transform of counts: uniform on (0, 1) if the model fits.

    Parameters
    ----------
    per : {"interval", "subject"}
        Each count by itself, or each subject's total. Subjects' totals are independent given the
        curve; counts of one subject are not if it has an effect.
    random_state : int
        Seed of the uniform numbers between P(N < count) and P(N ≤ count).

    Returns
    -------
    pandas.DataFrame
        ``subject``, (``start``, ``stop``), ``count``, ``expected``, ``lower`` = P(N < count),
        ``upper`` = P(N ≤ count), ``pit``.
    """
    import pandas as pd

    laws = panel_laws(model, panel, _few(model, panel))
    counts, means = laws.units(per)
    owner = panel.subject_index if per == "interval" else np.arange(panel.n_subjects)
    table: dict[str, Any] = {"subject": panel.subjects[owner]}
    if per == "interval":
        table |= {"start": panel.start, "stop": panel.stop}
    table |= {"count": counts.astype(np.int64), "expected": means.mean(axis=1)}
    return pd.DataFrame({**table, **_transformed(laws.new_subjects(), counts, means, random_state)})


def next_visit_pit(
    model: PanelEstimator, panel: PanelCounts, *, random_state: int = 0
) -> pd.DataFrame:
    """Forecast every count from the subject's earlier ones; randomised PIT of the outcomes.

    The effect of the subject has the law that its earlier counts leave (Gamma(α + events so far,
    α + expected so far) for Poisson counts with gamma effects). The curve is that of the fit.
    Unlike in :func:`pit`, the values of one subject are independent given the curve if the model
    is right.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``start``, ``stop``, ``count``, ``earlier`` (events before), ``expected``,
        ``lower``, ``upper``, ``pit``; as in :func:`pit`.
    """
    import pandas as pd

    n_draws = _few(model, panel)
    laws = panel_laws(model, panel, n_draws, earlier=True)
    effects, counts, means = laws.seen_subjects(), laws.counts, laws.means
    first = np.flatnonzero(np.diff(panel.subject_index, prepend=-1))
    so_far = np.cumsum(panel.count) - panel.count
    earlier = so_far - np.repeat(so_far[first], np.diff(np.append(first, len(counts))))
    return pd.DataFrame(
        {
            "subject": panel.subjects[panel.subject_index],
            "start": panel.start,
            "stop": panel.stop,
            "count": panel.count,
            "earlier": earlier,
            "expected": (effects.mean() * means).mean(axis=1),
            **_transformed(effects, counts, means, random_state),
        }
    )


def rootogram(
    model: PanelEstimator, panel: PanelCounts, per: str = "interval", largest: int | None = None
) -> pd.DataFrame:
    """How often each count occurs, and how often the model expects it.

    Parameters
    ----------
    per : {"interval", "subject"}
    largest : int, optional
        Last count with a row of its own, default the largest observed (at most 50); one more row
        has all above.

    Returns
    -------
    pandas.DataFrame
        ``count`` (text, the last "above n"), ``observed``, ``expected`` (frequencies),
        ``root_observed``, ``root_expected`` and ``hanging`` = root_expected − root_observed.
    """
    import pandas as pd

    laws = panel_laws(model, panel, _few(model, panel) // 3)
    found, means = laws.units(per)
    counts, effects = found.astype(np.int64), laws.new_subjects()
    top = int(min(counts.max(initial=0), 50) if largest is None else largest)
    means = _every_kth(means, _MOST_MEANS)
    each = np.ones(len(means))
    shares = [effects.probability(n * each, means).mean() for n in range(top + 1)]
    expected = len(counts) * np.array(shares)
    expected = np.append(expected, max(len(counts) - expected.sum(), 0.0))
    observed = np.bincount(np.minimum(counts, top + 1), minlength=top + 2)
    roots = np.sqrt(observed), np.sqrt(expected)
    return pd.DataFrame(
        {
            "count": [*map(str, range(top + 1)), f"above {top}"],
            "observed": observed,
            "expected": expected,
            "root_observed": roots[0],
            "root_expected": roots[1],
            "hanging": roots[1] - roots[0],
        }
    )


def dispersion(
    model: PanelEstimator, panel: PanelCounts, *, n_replicates: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    """Pearson dispersion of subjects' totals against its reference distributions.

    Σ (m − R)² / R over subjects, divided by their number, R the expected total at effect 1.
    About 1 for Poisson counts.

    Returns
    -------
    pandas.DataFrame
        Two rows, ``reference`` "Poisson" (what the statistic would be without effects and bursts)
        and "model" (the fitted model, with both), each by replicated data with the
        curve's uncertainty: ``statistic``, ``mean``, ``low``, ``high`` (95%), ``p_value`` (share
        of replicates at least as large, the data counted as one). A small p-value in the first row
        asks for subject effects or bursts, in the second for another model.
    """
    import pandas as pd

    laws = panel_laws(model, panel, N_DRAWS)
    rng = np.random.default_rng(random_state)
    expected = np.maximum(laws.subject_means.mean(axis=1), 1e-300)

    def statistic(totals: Floats) -> Floats:
        return np.asarray(((totals - expected) ** 2 / expected).mean(axis=-1))

    observed = float(statistic(laws.totals))
    rows = []
    for name, reference in (("Poisson", laws.without_differences()), ("model", laws)):
        values = statistic(reference.replicate_totals(n_replicates, rng))
        rows.append({"reference": name, "statistic": observed, **_against(values, observed)})
    return pd.DataFrame(rows)


def predictive_check(
    model: PanelEstimator, panel: PanelCounts, *, n_replicates: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    """Features of the subjects' totals, beside those of data replicated from the posterior.

    Returns
    -------
    pandas.DataFrame
        ``feature`` ("mean", "variance", "share of zeros", "largest"), ``observed``, ``mean``,
        ``low``, ``high`` (95% of replicates), ``p_value`` (share of replicates at least as large).
    """
    import pandas as pd

    features: dict[str, Callable[[Floats], Any]] = {
        "mean": lambda x: x.mean(axis=-1),
        "variance": lambda x: x.var(axis=-1),
        "share of zeros": lambda x: (x == 0).mean(axis=-1),
        "largest": lambda x: x.max(axis=-1),
    }
    laws = panel_laws(model, panel, N_DRAWS)
    new = laws.replicate_totals(n_replicates, np.random.default_rng(random_state))
    rows = []
    for name, feature in features.items():
        observed = float(feature(laws.totals))
        rows.append({"feature": name, "observed": observed, **_against(feature(new), observed)})
    return pd.DataFrame(rows)


def contributions(model: PanelEstimator, panel: PanelCounts) -> pd.DataFrame:
    """What each subject adds to the log-likelihood, and how it moves the curve.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``events``, ``expected`` (at effect 1), ``score`` (log-likelihood of its
        counts), ``score_without`` (the same by a fit without the subject), ``influence``
        (ln of Λ over the window with the subject, relative to without) and ``effective_draws``.

    Notes
    -----
    The last three are for subjects of the fit and are approximations without a refit: posterior
    draws of the curve are weighted by 1 / p(counts of the subject | draw). Hyper-parameters that
    were maximised stay as they are. With few effective draws (say below 100) the subject matters
    too much for the approximation: refit without it. For a plugged-in curve they are missing.
    """
    import pandas as pd

    laws = panel_laws(model, panel, N_DRAWS)
    table = {
        "subject": panel.subjects,
        "events": laws.totals.astype(np.int64),
        "expected": laws.subject_means.mean(axis=1),
    }
    if model._plugs_in:
        missing = dict.fromkeys(("score_without", "influence", "effective_draws"), np.nan)
        return pd.DataFrame({**table, "score": model.score_subjects(panel), **missing})
    each = laws.log_likelihoods().T
    without = -log_mean_exp(-each)[0]
    share = np.exp(without - each) / len(each)  # weights of draws without the subject, sum 1
    influence = np.log(laws.window.mean()) - np.log(share.T @ laws.window)
    return pd.DataFrame(
        {
            **table,
            "score": log_mean_exp(each)[0],
            "score_without": without,
            "influence": influence,
            "effective_draws": 1.0 / (share**2).sum(axis=0),
        }
    )


def _few(model: PanelEstimator, panel: PanelCounts) -> int:
    """Draws for averages of probabilities, which take longer under laws without a closed form."""
    bound = np.inf if model.count_law_.one_by_one else _ROWS_AND_DRAWS / panel.n_intervals
    return int(min(FEW_DRAWS, bound))


def _every_kth(means: Floats, most: int) -> Floats:
    """At most so many rows that stand for all: evenly spaced in the order of their means."""
    if len(means) <= most:
        return means
    order = np.argsort(means.mean(axis=1))
    return means[order[(2 * np.arange(most) + 1) * len(order) // (2 * most)]]


def _transformed(
    effects: EffectGiven, counts: Floats, means: Floats, random_state: int
) -> dict[str, Floats]:
    """P(N < count), P(N ≤ count), and a uniform number between the two."""
    upper = effects.cdf(counts, means)
    lower = np.clip(upper - effects.probability(counts, means), 0.0, 1.0)
    u = np.random.default_rng(random_state).uniform(size=len(counts))
    return {"lower": lower, "upper": upper, "pit": lower + u * (upper - lower)}


def _against(values: Floats, observed: float) -> dict[str, float]:
    """A replicated statistic beside the observed one."""
    low, high = np.quantile(values, [0.025, 0.975])
    above = (1 + int((values >= observed).sum())) / (1 + len(values))
    return {"mean": float(values.mean()), "low": low, "high": high, "p_value": above}
