"""Does the model fit? Tables of residuals, calibration, dispersion and influence.

Every function takes a fitted model and a panel and returns a pandas frame. On the panel of the
fit the answers are slightly flattering; on held-out subjects they are honest. The laws are those
of subjects about whom nothing else is known: with gamma effects the effect is integrated out,
with ``effect="weight"`` the weights are those that fit the panel's own totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.forecasting import count_cdf, draw_effects
from gp4c.inference.scoring import ScoredRows, log_mean_exp, subject_log_likelihoods
from gp4c.inference.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: draws of the curve behind a diagnostic, and most numbers that they may take
N_DRAWS, MAX_NUMBERS = 2000, 50_000_000
#: the same where only averages over draws of a probability are wanted
FEW_DRAWS = 300


@dataclass(frozen=True)
class _Laws:
    """Draws of the expected counts of a panel, and the laws of counts given them."""

    panel: PanelCounts
    integrals: Floats  # (S, J) over distinct intervals; one row for a plugged-in curve
    last: Floats  # (S,) ∫λ over the window
    shape: float
    effect: str | None

    @property
    def rows(self) -> ScoredRows:
        p = self.panel
        return ScoredRows(
            p.count.astype(np.float64), p.exposure, p.subject_index, p.distinct().inverse,
            p.n_subjects,
        )  # fmt: skip

    def subject_means(self) -> Floats:
        """R_k of each draw, (S, K); with free weights times the weight."""
        expected = self.rows.expected(self.integrals)
        return expected * self._weights(expected)

    def row_means(self) -> Floats:
        """Expected count of each row in each draw, (S, N)."""
        means = self.integrals[:, self.rows.interval] * self.panel.exposure
        if self.effect != "weight":
            return means
        weights = self._weights(self.rows.expected(self.integrals))
        return np.asarray(means * weights[self.panel.subject_index])

    def _weights(self, expected: Floats) -> Floats:
        if self.effect != "weight":
            return np.ones(expected.shape[1])
        best = self.rows.totals / np.maximum(expected.mean(axis=0), 1e-300)
        return np.asarray(np.maximum(best, 1e-6))

    def replicate_totals(self, size: int, rng: np.random.Generator) -> Floats:
        """Totals of the same subjects in new data from the model, (size, K)."""
        means = self.subject_means()
        means = means[np.arange(size) % len(means)]
        none = np.zeros(means.shape[1])
        effects = draw_effects(self.shape, none, np.zeros_like(means), rng)
        return rng.poisson(effects * means).astype(np.float64)


def _laws(model: Any, panel: PanelCounts, n_draws: int = N_DRAWS) -> _Laws:
    model._inside([panel.start.min(), panel.stop.max()], False)
    panel = model._adjusted(panel)
    distinct = panel.distinct()
    n_draws = max(min(n_draws, MAX_NUMBERS // panel.n_intervals), 20)
    start = np.append(distinct.start, model.window_[0])
    stop = np.append(distinct.stop, model.window_[1])
    if hasattr(model, "posterior_"):
        with one_blas_thread():
            rng = np.random.default_rng(0)
            draws = model.posterior_.sample_integrals(start, stop, n_draws, rng)
    else:
        draws = np.asarray(model.expected_counts(start, stop))[None]
    shape = float(model.frailty_shape_) if model.effect_ == "gamma" else np.inf
    return _Laws(panel, draws[:, :-1], draws[:, -1], shape, model.effect_)


def pit(
    model: Any, panel: PanelCounts, per: str = "interval", *, random_state: int = 0
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

    laws = _laws(model, panel, FEW_DRAWS)
    if per == "interval":
        means, counts = laws.row_means(), panel.count.astype(np.float64)
        table = {
            "subject": panel.subjects[panel.subject_index],
            "start": panel.start,
            "stop": panel.stop,
        }
    elif per == "subject":
        means, counts = laws.subject_means(), laws.rows.totals
        table = {"subject": panel.subjects}
    else:
        raise ValueError(f"per must be 'interval' or 'subject', not {per!r}")
    lower = count_cdf(counts - 1.0, means, laws.shape).mean(axis=0)
    upper = count_cdf(counts, means, laws.shape).mean(axis=0)
    return pd.DataFrame(
        {
            **table,
            "count": counts.astype(np.int64),
            "expected": means.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "pit": _between(lower, upper, random_state),
        }
    )


def next_visit_pit(model: Any, panel: PanelCounts, *, random_state: int = 0) -> pd.DataFrame:
    """Forecast every count from the subject's earlier ones; randomised PIT of the outcomes.

    With gamma effects the law given the curve is negative binomial, the effect having the law
    Gamma(α + events so far, α + expected so far). The curve is that of the fit. Unlike in
    :func:`pit`, the values of one subject are independent given the curve if the model is right.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``start``, ``stop``, ``count``, ``earlier`` (events before), ``expected``,
        ``lower``, ``upper``, ``pit``; as in :func:`pit`.
    """
    import pandas as pd

    laws = _laws(model, panel, FEW_DRAWS)
    means, counts = laws.row_means(), panel.count.astype(np.float64)
    first = np.flatnonzero(np.diff(panel.subject_index, prepend=-1))
    before = _running(counts[None], first)[0]
    seen = _running(means, first)
    lower = count_cdf(counts - 1.0, means, laws.shape, before, seen).mean(axis=0)
    upper = count_cdf(counts, means, laws.shape, before, seen).mean(axis=0)
    factor = 1.0
    if np.isfinite(laws.shape):
        factor = (laws.shape + before) / (laws.shape + seen)
    return pd.DataFrame(
        {
            "subject": panel.subjects[panel.subject_index],
            "start": panel.start,
            "stop": panel.stop,
            "count": panel.count,
            "earlier": before.astype(np.int64),
            "expected": (factor * means).mean(axis=0),
            "lower": lower,
            "upper": upper,
            "pit": _between(lower, upper, random_state),
        }
    )


def rootogram(
    model: Any, panel: PanelCounts, per: str = "interval", largest: int | None = None
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

    if per not in ("interval", "subject"):
        raise ValueError(f"per must be 'interval' or 'subject', not {per!r}")
    laws = _laws(model, panel, FEW_DRAWS // 3)
    means = laws.row_means() if per == "interval" else laws.subject_means()
    counts = panel.count if per == "interval" else laws.rows.totals.astype(np.int64)
    top = int(min(counts.max(initial=0), 50) if largest is None else largest)
    cumulated = np.array(
        [
            count_cdf(np.array(float(n)), means, laws.shape).mean(axis=0).sum()
            for n in range(top + 1)
        ]
    )
    expected = np.append(np.diff(cumulated, prepend=0.0), len(counts) - cumulated[-1])
    observed = np.bincount(np.minimum(counts, top + 1), minlength=top + 2)
    roots = np.sqrt(observed), np.sqrt(np.maximum(expected, 0.0))
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
    model: Any, panel: PanelCounts, *, n_replicates: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    """Pearson dispersion of subjects' totals against its reference distributions.

    Σ (m − R)² / R over subjects, divided by their number, R the expected total at effect 1.
    About 1 for Poisson counts.

    Returns
    -------
    pandas.DataFrame
        Two rows, ``reference`` "Poisson" (what the statistic would be without subject effects)
        and "model" (the fitted model, effects included), each by replicated data with the
        curve's uncertainty: ``statistic``, ``mean``, ``low``, ``high`` (95%), ``p_value`` (share
        of replicates at least as large, the data counted as one). A small p-value in the first row
        asks for subject effects, in the second for another model.
    """
    import pandas as pd

    laws = _laws(model, panel)
    rng = np.random.default_rng(random_state)
    expected = np.maximum(laws.subject_means().mean(axis=0), 1e-300)

    def statistic(totals: Floats) -> Floats:
        return np.asarray(((totals - expected) ** 2 / expected).mean(axis=-1))

    observed = float(statistic(laws.rows.totals))
    rows = []
    for name, shape in (("Poisson", np.inf), ("model", laws.shape)):
        law = _Laws(laws.panel, laws.integrals, laws.last, shape, laws.effect)
        values = statistic(law.replicate_totals(n_replicates, rng))
        rows.append({"reference": name, "statistic": observed, **_against(values, observed)})
    return pd.DataFrame(rows)


def predictive_check(
    model: Any, panel: PanelCounts, *, n_replicates: int = 2000, random_state: int = 0
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
    laws = _laws(model, panel)
    new = laws.replicate_totals(n_replicates, np.random.default_rng(random_state))
    rows = []
    for name, feature in features.items():
        observed = float(feature(laws.rows.totals))
        rows.append({"feature": name, "observed": observed, **_against(feature(new), observed)})
    return pd.DataFrame(rows)


def contributions(model: Any, panel: PanelCounts) -> pd.DataFrame:
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

    laws = _laws(model, panel)
    expected = laws.subject_means()
    weights = laws._weights(laws.rows.expected(laws.integrals))
    each = subject_log_likelihoods(
        laws.rows,
        laws.integrals,
        effect="gamma" if laws.effect == "gamma" else None,
        shape=laws.shape,
        weights=weights if laws.effect == "weight" else None,
    )
    score = log_mean_exp(each)[0] if len(each) > 1 else each[0]
    table = {
        "subject": panel.subjects,
        "events": laws.rows.totals.astype(np.int64),
        "expected": expected.mean(axis=0),
        "score": score,
    }
    missing = np.full(panel.n_subjects, np.nan)
    if len(each) == 1:
        return pd.DataFrame(
            {**table, "score_without": missing, "influence": missing, "effective_draws": missing}
        )
    without = -log_mean_exp(-each)[0]
    share = np.exp(without - each) / len(each)  # weights of draws without the subject, sum 1
    influence = np.log(laws.last.mean()) - np.log(share.T @ laws.last)
    return pd.DataFrame(
        {
            **table,
            "score_without": without,
            "influence": influence,
            "effective_draws": 1.0 / (share**2).sum(axis=0),
        }
    )


def _against(values: Floats, observed: float) -> dict[str, float]:
    """A replicated statistic beside the observed one."""
    low, high = np.quantile(values, [0.025, 0.975])
    above = (1 + int((values >= observed).sum())) / (1 + len(values))
    return {"mean": float(values.mean()), "low": low, "high": high, "p_value": above}


def _between(lower: Floats, upper: Floats, random_state: int) -> Floats:
    u = np.random.default_rng(random_state).uniform(size=len(lower))
    return lower + u * (upper - lower)


def _running(values: Floats, first: NDArray[np.intp]) -> Floats:
    """Sums of a subject's earlier rows, (S, N); `first` are the subjects' first rows."""
    total = np.cumsum(values, axis=1) - values
    lengths = np.diff(np.append(first, values.shape[1]))
    return np.asarray(np.maximum(total - np.repeat(total[:, first], lengths, axis=1), 0.0))
