r"""A test between groups of subjects that permutes the subjects' labels.

Under "one curve for all" the residuals of subjects (:mod:`gp4c.analysis.groups.bin_scores`) have
mean zero. Weighted over time they make the groups' scores
(:mod:`gp4c.analysis.groups.contrasts`): the log-rank score with the influence of the pooled rate
taken off, studentised subject by subject. For the mean number of events so far, residuals are
added up over the bins before, among the subjects who are still watched.

Nothing but the labels changes under permutation, so no refit is needed, and the pooled quantities
(ρ, c, the bins) do not depend on the labels at all. If subjects are exchangeable between groups
within their strata and blocks, follow-up and visits included, the test is exact for every sample
size. If follow-up or visits differ between groups, U still has mean zero and the studentised
statistic is asymptotically free of nuisance, so the level holds approximately.

Two groups, or a trend, can differ in two directions. Each has its own tail, and a labelling is as
extreme as the smaller of its two tails: groups of different sizes have tails of different lengths,
so that one limit for both would favour one direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.bin_scores import SubjectScores, subject_scores
from gp4c.analysis.groups.contrasts import (
    column_statistics,
    joint_watch,
    score_statistics,
    taken_out,
)
from gp4c.analysis.groups.labellings import (
    cell_table,
    every_labelling,
    log_labellings,
    n_labellings,
    random_labellings,
)

__all__ = [
    "LabelledStatistics",
    "PermutationTest",
    "SubjectScores",
    "combined_test",
    "permutation_test",
    "permuted_statistics",
    "statistics",
    "subject_scores",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: numbers held at once while permutations are evaluated
_CHUNK = 4_000_000
#: up to so many labellings, or as many as were asked for, all of them are taken
ENUMERATED = 10_000
#: what a test looks for, and when
TESTS = ("level", "curve", "trend", "any")
WEIGHTS = ("even", "early", "late")
#: statistics of the test "any", which goes by the smallest of their p-values
PARTS = ("level", "early", "late", "crossing", "curve")


@dataclass(frozen=True)
class PermutationTest:
    """What a permutation test found.

    Attributes
    ----------
    statistic : float
        Of the test, Uᵀ V⁺ U; for "any" the smallest p-value of its parts as a normal deviate.
    p_value : float
    exact : bool
        Whether all labellings were taken.
    table : (C, G)
        Subjects of each group in the cells within which labels were exchanged.
    parts : dict
        p-values of the parts of "any", each by itself.
    """

    statistic: float
    p_value: float
    exact: bool
    table: NDArray[np.integer] = field(repr=False)
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def n_labellings(self) -> int:
        """Different ways to label the subjects within their cells."""
        return n_labellings(self.table)


@dataclass(frozen=True)
class LabelledStatistics:
    """Statistics of the labelling that was given and of the permuted ones.

    Attributes
    ----------
    observed : (J,)
        One for each part of the test.
    permuted : (J, P)
        Random labellings begin with that given.
    parts : tuple of str
    signed : tuple of bool
        Which of the parts have a direction, and with it two tails.
    exact : bool
        Whether all labellings were taken.
    table : (C, G)
        As in :class:`PermutationTest`.
    """

    observed: Floats
    permuted: Floats
    parts: tuple[str, ...]
    signed: tuple[bool, ...]
    exact: bool
    table: NDArray[np.integer] = field(repr=False)

    def test(self) -> PermutationTest:
        """The test of these statistics."""
        from scipy.special import ndtri

        each = self._shares()
        p_value = float(_joint(each)[-1])
        if len(self.parts) == 1:
            size = abs(float(self.observed[0]))
            return PermutationTest(size, p_value, self.exact, self.table)
        by_name = dict(zip(self.parts, each[:, -1].tolist(), strict=True))
        deviate = float(-ndtri(each[:, -1].min() / 2))
        return PermutationTest(deviate, p_value, self.exact, self.table, by_name)

    def p_values(self) -> tuple[float, Floats]:
        """p-value of the labelling given, and of each of the permuted ones, (P,)."""
        shares = _joint(self._shares())
        return float(shares[-1]), shares[:-1]

    def _shares(self) -> Floats:
        """p-values of each part by itself, (J, P + 1); the last is of the labelling given."""
        both = np.concatenate([self.permuted, self.observed[:, None]], axis=1)
        return np.array([
            _either_tail(row) if signed else _tails(row[:-1], row)
            for row, signed in zip(both, self.signed, strict=True)
        ])  # fmt: skip


def combined_test(each: Sequence[LabelledStatistics]) -> PermutationTest:
    r"""Several tests of the same labellings as one, by Fisher's combination of their p-values.

    The statistic is :math:`-2 \sum_e \ln p_e`, with p_e the share of the labellings that reach
    the statistic of test e. It has the same meaning for every labelling, so that its own
    permutation p-value is exact, however the tests depend on each other (Pesarin 2001).
    """
    pairs = [one.p_values() for one in each]
    observed = -2.0 * sum(math.log(given) for given, _ in pairs)
    permuted = -2.0 * np.sum([np.log(every) for _, every in pairs], axis=0)
    p_value = float(_tails(permuted, np.array([observed]))[0])
    return PermutationTest(float(observed), p_value, each[0].exact, each[0].table)


def statistics(
    scores: SubjectScores,
    groups: NDArray[np.integer],
    part: str = "level",
    *,
    n_groups: int | None = None,
    trend: Floats | None = None,
    at_least_poisson: bool = False,
) -> Floats:
    """Statistics of several labellings, (P,), with the sign of U where U is one number.

    Parameters
    ----------
    groups : (P, K)
        Labels 0 … G − 1 of the subjects in each labelling.
    part : {"level", "early", "late", "crossing", "curve"}
        The studentised score with weights over time; or the square of the studentised difference
        of the mean numbers so far, averaged over the time in which groups were watched together.
    trend : (G,), optional
        Scores of the groups: the score in their direction alone.
    at_least_poisson : bool
        Whether the variance in that direction is not taken for smaller than that of Poisson counts.
    """
    number = int(groups.max()) + 1 if n_groups is None else n_groups
    chunk = max(1, _CHUNK // max(groups.shape[1] * number, 1))
    weights = None if part == "curve" else scores.time_weights("even" if part == "level" else part)
    taken, parts = taken_out(scores, weights), []
    for first in range(0, len(groups), chunk):
        some = groups[first : first + chunk]
        if weights is None:
            each = column_statistics(
                scores.so_far, scores.expected_so_far, scores.strata, some, number, taken
            )
            time = joint_watch(scores.watched, scores.strata, some, number)
            parts.append((each * time).sum(axis=1) / np.maximum(time.sum(axis=1), 1e-300))
            continue
        parts.append(score_statistics(
            scores.residual, scores.exposure, weights, scores.strata, some, number, trend,
            scores.poisson if at_least_poisson else None, taken,
        ))  # fmt: skip
    return np.concatenate(parts)


class Permuting(TypedDict, total=False):
    """Options of a permutation test; :func:`permuted_statistics` says what they are."""

    kind: str
    weights: str
    trend: Floats | None
    blocks: Indices | None
    at_least_poisson: bool
    n_permutations: int


def permutation_test(
    scores: SubjectScores, groups: Indices, *, rng: np.random.Generator, **how: Unpack[Permuting]
) -> PermutationTest:
    """Permute labels within strata and blocks, and compare the statistic of those given.

    All labellings are taken if they are few: the share that is as extreme is p. Else
    (1 + #{permuted as extreme as observed}) / (1 + n_permutations), which is valid for any number
    of permutations. They run where ``joblib.parallel_config`` says: in this process, or on a
    cluster.
    """
    return permuted_statistics(scores, groups, rng=rng, **how).test()


def permuted_statistics(
    scores: SubjectScores,
    groups: Indices,
    *,
    kind: str = "level",
    weights: str = "even",
    trend: Floats | None = None,
    blocks: Indices | None = None,
    at_least_poisson: bool = False,
    n_permutations: int = 9999,
    rng: np.random.Generator,
) -> LabelledStatistics:
    """The statistics behind :func:`permutation_test`.

    Parameters
    ----------
    groups : (K,)
        Labels 0 … G − 1.
    kind : {"level", "curve", "trend", "any"}
    weights : {"even", "early", "late"}
        Of "level" and "trend".
    trend : (G,), optional
        Scores of the groups, for "trend".
    blocks : (K,), optional
        Labels stay within these too.
    at_least_poisson : bool
        As in :func:`statistics`.
    """
    parts = PARTS if kind == "any" else ("curve",) if kind == "curve" else (_part(weights),)
    cells = scores.strata if blocks is None else crossed(scores.strata, blocks)
    table = cell_table(groups, cells)
    exact = log_labellings(table) <= math.log(max(ENUMERATED, n_permutations)) + 1e-9
    number = int(groups.max()) + 1

    def of(labels: NDArray[np.integer]) -> Floats:
        return np.array([
            statistics(
                scores, labels, part, n_groups=number, trend=trend if kind == "trend" else None,
                at_least_poisson=at_least_poisson,
            )
            for part in parts
        ])  # fmt: skip

    observed = of(groups[None])[:, 0]
    n = None if exact else n_permutations
    permuted = _permuted(of, groups, cells, n, rng)
    if not exact:
        permuted = np.concatenate([observed[:, None], permuted], axis=1)
    one = number == 2 or kind == "trend"
    signed = tuple(one and part != "curve" for part in parts)
    return LabelledStatistics(observed, permuted, parts, signed, exact, table)


def _joint(p_values: Floats) -> Floats:
    """Shares of all labellings but the last that come as early as each, by p-values (J, P + 1)."""
    if len(p_values) == 1:
        return np.asarray(p_values[0])
    places = _places(p_values)
    return _tails(places[:-1], places)


def _either_tail(values: Floats) -> Floats:
    """p-values of all values, as shares of all but the last: by the smaller of their two tails.

    Where the smaller tails are equal, the share that is as far from 0 decides.
    """
    known = values[:-1]
    smaller = np.minimum(_tails(known, values), _tails(-known, -values))
    return _joint(np.array([smaller, _tails(np.abs(known), np.abs(values))]))


def _places(p_values: Floats) -> Floats:
    """Places of labellings by their p-values (J, P): the higher, the smaller the smallest of them.

    Among labellings with the same smallest one the next smallest decides, and so on. Few
    labellings have few different p-values, so that such ties are common.
    """
    ordered = np.sort(p_values, axis=0)
    order = np.lexsort(ordered[::-1])  # by its last key first
    differs = (np.diff(ordered[:, order], axis=1) != 0).any(axis=0)
    places = np.empty(len(order))
    places[order] = len(order) - np.concatenate([[0], np.cumsum(differs)])
    return places


def _part(weights: str) -> str:
    return "level" if weights == "even" else weights


def crossed(one: Indices, other: Indices) -> Indices:
    """Cells of two partitions at once."""
    found: Indices = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1]
    return found


def _permuted(
    of: Callable[[NDArray[np.integer]], Floats],
    groups: Indices,
    cells: Indices,
    n: int | None,
    rng: np.random.Generator,
) -> Floats:
    """Statistics (J, P) of `n` random labellings, or of all."""
    from joblib import Parallel, delayed, effective_n_jobs

    if n is None:
        return of(every_labelling(groups, cells))
    at_once = -(-n // max(1, effective_n_jobs(None)))
    chunk = max(1, min(at_once, _CHUNK // max(len(groups), 1)))
    found = Parallel()(
        delayed(of)(labels) for labels in random_labellings(groups, cells, n, chunk, rng)
    )
    return np.concatenate(found, axis=1)


def _tails(values: Floats, at: Floats) -> Floats:
    """Share of the values that reach each of `at`, but for rounding."""
    ordered = np.sort(values)
    return np.asarray(
        (len(values) - np.searchsorted(ordered, at - 1e-9 * np.abs(at))) / len(values)
    )
