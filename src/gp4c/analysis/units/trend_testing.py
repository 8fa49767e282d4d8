r"""Is there a trend? Laplace's test and that of MIL-HDBK-189C, for counts between visits.

Without a trend the rate of a unit is constant, whatever its level. Given its N events, a row with
time at risk w expects N w / W of them, W the unit's sum. With a score s for the time of a row,

.. math::
    U = \sum_k \sum_j s_{kj} \Bigl(m_{kj} - N_k \frac{w_{kj}}{W_k}\Bigr), \qquad
    V = \sum_k N_k \Bigl[\sum_j \frac{w_{kj}}{W_k} s_{kj}^2
        - \Bigl(\sum_j \frac{w_{kj}}{W_k} s_{kj}\Bigr)^2\Bigr] .

The score of a log-linear rate at slope 0 is the middle of the interval (Laplace), that of a power
law at β = 1 the mean of ln t there (MIL-HDBK-189C). Under the Poisson law U/√V is standard normal.
With bursts its variance is larger by a factor that depends on a unit's events, not on the lengths
of its intervals: the robust form permutes a unit's rows, each with its length, exposure and count,
and lays them end to end anew (docs/maths_growth.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.classical.panel_rows import PanelRows
from gp4c.exceptions import PanelDataError
from gp4c.plain import p_words, printable

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

LAPLACE, MILITARY = "Laplace", "MIL-HDBK-189C"
COMMON, UNITS = "common trend", "trend per unit"
POISSON, PERMUTATION = "Poisson", "permutation"
#: p-values up to which a trend is said to be found
_LEVEL = 0.05
#: numbers of rows times permutations that are held at once
_CHUNK = 1_000_000


@dataclass(frozen=True, eq=False)
class TrendTest:
    """Tests for a trend; printing gives the result in a sentence.

    Attributes
    ----------
    statistic, p_value : float
        Of Laplace's test for a common trend: z, positive where the rate rises, and its p-value
        by permutation, which holds with frailty and bursts. Chosen before the data were seen.
    table : pandas.DataFrame
        ``test``, ``question`` ("common trend": one trend in all units; "trend per unit": trends
        of units differ from the common one), ``form`` ("Poisson" or "permutation"),
        ``statistic`` (z, or Cochran's Q), ``p_value``.
    n_units : int
        Units with events in two or more intervals: only they say anything.
    n_permutations : int
    """

    statistic: float
    p_value: float
    table: pd.DataFrame
    n_units: int
    n_permutations: int

    def p_values(self, question: str = COMMON, form: str = PERMUTATION) -> dict[str, float]:
        """P-values of a question in a form, by test.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.trend_test(gp4c.load_dataset("bladder"))
        >>> found.p_values()["Laplace"] == found.p_value
        True
        """
        rows = self.table[(self.table["question"] == question) & (self.table["form"] == form)]
        return dict(zip(rows["test"], rows["p_value"], strict=True))

    def to_dict(self) -> dict[str, object]:
        """The result for JSON.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.trend_test(gp4c.load_dataset("bladder"))
        >>> list(found.to_dict())[:3]
        ['result', 'statistic', 'p_value']
        """
        return {
            "result": self.sentence, "statistic": self.statistic, "p_value": self.p_value,
            "n_units": self.n_units, "n_permutations": self.n_permutations,
            "table": self.table.to_dict(orient="records"),
        }  # fmt: skip

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        way = "rises" if self.statistic > 0 else "falls"
        found = f"the rate {way} over time" if self.p_value <= _LEVEL else "no trend is found"
        other = self.p_values().get(MILITARY)
        second = "" if other is None else f", {MILITARY} {p_words(other)}"
        text = (
            f"{found[0].upper()}{found[1:]} ({LAPLACE} z = {self.statistic:.2f}, "
            f"{p_words(self.p_value)}{second}; by permutation of increments)"
        )
        plain = self.p_values(form=POISSON)[LAPLACE]
        if plain <= _LEVEL < self.p_value:
            text += f", although the Poisson form, for counts without bursts, has {p_words(plain)}"
        differ = self.p_values(UNITS).get(LAPLACE)
        if differ is not None:
            verb = "differ" if differ <= _LEVEL else "do not differ clearly"
            text += f"; trends of units {verb} ({p_words(differ)})"
        return text + "."

    def __str__(self) -> str:
        return printable(self.sentence)

    __repr__ = __str__


def trend_test(
    panel: PanelCounts, *, n_permutations: int = 999, random_state: int = 0
) -> TrendTest:
    """Test whether a rate rises or falls over time.

    Parameters
    ----------
    panel : PanelCounts
        Zero counts, exposures, gaps and late entries are allowed. MIL-HDBK-189C needs a time axis
        that begins at 0 or later, 0 being the beginning of life or of the test.
    n_permutations : int
    random_state : int
        Seed of the permutations.

    Returns
    -------
    TrendTest
        With ``statistic``, ``p_value``, ``table``, ``sentence``.

    Examples
    --------
    >>> import gp4c
    >>> found = gp4c.trend_test(gp4c.load_dataset("bladder"))
    >>> 0 < found.p_value <= 1
    True
    """
    from scipy.special import chdtrc, ndtr

    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, not {n_permutations!r}")
    data = _Blocks.of(panel)
    tests = (LAPLACE, MILITARY) if panel.start.min() >= 0.0 else (LAPLACE,)
    seen = _statistics(data, np.arange(len(data.count))[None], tests)
    as_high = _exceedances(data, tests, seen, n_permutations, np.random.default_rng(random_state))
    p_values = (1 + as_high) / (1 + n_permutations)
    n_units = int((data.totals > 0).sum())
    rows = []
    for k, test in enumerate(tests):
        z, q = (float(value) for value in seen[k, :, 0])
        rows += [
            (test, COMMON, POISSON, z, 2.0 * float(ndtr(-abs(z)))),
            (test, COMMON, PERMUTATION, z, float(p_values[k, 0])),
        ]
        if n_units > 1:
            rows += [
                (test, UNITS, POISSON, q, float(chdtrc(n_units - 1, q))),
                (test, UNITS, PERMUTATION, q, float(p_values[k, 1])),
            ]
    return _result(rows, float(seen[0, 0, 0]), float(p_values[0, 0]), n_units, n_permutations)


def _result(
    rows: list[tuple[str, str, str, float, float]], z: float, p_value: float, n_units: int, n: int
) -> TrendTest:
    import pandas as pd

    columns = ["test", "question", "form", "statistic", "p_value"]
    return TrendTest(z, p_value, pd.DataFrame(rows, columns=columns), n_units, n)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Rows of the units that say anything, and the gaps between them, in the order of time.

    Attributes
    ----------
    unit : (N,)
        Increasing.
    length, at_risk, count : (N,)
        A gap has nothing at risk.
    begin, totals, whole : (K,)
        First start, events and time at risk of each unit.
    """

    unit: Indices
    length: Floats
    at_risk: Floats
    count: Floats
    begin: Floats
    totals: Floats
    whole: Floats

    @classmethod
    def of(cls, panel: PanelCounts) -> _Blocks:
        """Units by content, so that labels do not matter."""
        rows = PanelRows.of(panel)
        events = rows.by_subject(rows.count)
        several = np.bincount(rows.subject, rows.time_at_risk() > 0, rows.n_subjects) > 1
        kept = (events > 0) & several
        if not kept.any():
            raise PanelDataError(
                "no subject with events was seen in two or more intervals, so that nothing tells "
                "of a trend"
            )
        some = kept[rows.subject]
        unit = (np.cumsum(kept) - 1)[rows.subject[some]]
        start, stop = rows.start[some], rows.stop[some]
        first = np.diff(unit, prepend=-1) != 0
        gap = np.where(first, 0.0, start - np.concatenate([[0.0], stop[:-1]]))
        holes = np.flatnonzero(gap > 1e-12 * np.abs(stop))
        none = np.zeros(len(holes))
        return cls(
            unit=np.insert(unit, holes, unit[holes]),
            length=np.insert(stop - start, holes, gap[holes]),
            at_risk=np.insert(rows.time_at_risk()[some], holes, none),
            count=np.insert(rows.count[some], holes, none),
            begin=start[first],
            totals=events[kept],
            whole=rows.by_subject(rows.time_at_risk())[kept],
        )


def _exceedances(
    data: _Blocks, tests: tuple[str, ...], seen: Floats, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many permutations are as extreme as the data, (tests, 2)."""
    found = np.zeros((len(tests), 2), dtype=np.int64)
    size = max(1, _CHUNK // len(data.unit))
    bound = np.abs(seen) * (1.0 - 1e-9)
    for k in range(0, n, size):
        # units stay together: their rows are sorted by unit, then at random
        keys = data.unit + rng.random((min(size, n - k), len(data.unit)))
        values = _statistics(data, np.argsort(keys, axis=1), tests)
        found += (np.abs(values) >= bound).sum(axis=2)
    return found


def _statistics(data: _Blocks, order: Indices, tests: tuple[str, ...]) -> Floats:
    """The common z and Cochran's Q of each test, for orders of the rows (S, N): (tests, 2, S)."""
    length, at_risk, count = data.length[order], data.at_risk[order], data.count[order]
    heads = np.flatnonzero(np.diff(data.unit, prepend=-1))
    ends = np.cumsum(length, axis=1)
    before = (ends - length)[:, heads]
    stop = ends + (data.begin - before)[:, data.unit]
    start = np.maximum(stop - length, data.begin.min())
    share = at_risk / data.whole[data.unit]
    excess = count - data.totals[data.unit] * share

    def units(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, heads, axis=1))

    result = np.empty((len(tests), 2, len(order)))
    for k, test in enumerate(tests):
        score = row_scores(test, start, stop)
        mean = units(share * score)
        score = score - mean[:, data.unit]  # nothing cancels on a late clock
        u, v = units(excess * score), data.totals * units(share * score**2)
        total = v.sum(axis=1)
        common = u.sum(axis=1) / np.maximum(total, 1e-300)
        result[k, 0] = u.sum(axis=1) / np.sqrt(np.maximum(total, 1e-300))
        away = (u - common[:, None] * v) ** 2 / np.where(v > 0, v, 1.0)
        result[k, 1] = away.sum(axis=1)
    return result


def row_scores(test: str, start: Floats, stop: Floats) -> Floats:
    """Score of each row: the middle of the interval, or the mean of ln t over it."""
    if test == LAPLACE:
        return (start + stop) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        early = np.where(start > 0.0, start * np.log(start), 0.0)
        return np.asarray((stop * np.log(stop) - early) / (stop - start) - 1.0)
