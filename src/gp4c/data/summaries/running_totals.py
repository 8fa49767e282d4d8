r"""Whether the counts of some subjects are totals since the beginning.

Totals never fall from one visit to the next. If the rate does not change, each order of a subject's
:math:`n` counts is equally likely over intervals of one length, and the probability that they do
not fall is

.. math:: p = \frac{\prod_v n_v!}{n!},

where :math:`n_v` counts are equal to :math:`v`. A table in which many subjects have such counts
against the odds holds totals, at least of these subjects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import FloatArray, IntArray

#: counts that rise by chance as rarely as this are held against a subject
UNLIKELY = 0.02
#: and as many such subjects against the panel: rates that rise a little do not suffice
RARE, FEWEST = 1e-6, 3


def totals_remark(panel: PanelCounts) -> tuple[str, ...]:
    """One sentence if counts of several subjects look like totals since the beginning."""
    chance = chance_of_order(panel.subject_index, panel.count)
    telling = chance <= UNLIKELY
    index = panel.subject_index
    fell = (index[1:] == index[:-1]) & (np.diff(panel.count) < 0)
    rising = telling.copy()
    rising[index[1:][fell]] = False
    n, expected = int(rising.sum()), float(chance[telling].sum())
    if n < FEWEST or _tail(n, expected) > RARE:
        return ()
    named = ", ".join(map(repr, panel.subjects[rising][:FEWEST].tolist()))
    return (
        f"counts of {n} subjects never fall from visit to visit, such as {named}; at a steady rate "
        f"{expected:.2g} would be expected. If these counts are totals since the beginning, they "
        "were read as new events: subtract the total of the visit before, or, if all counts are "
        "totals, read them as cumulative",
    )


def chance_of_order(subject_index: IntArray, count: IntArray) -> FloatArray:
    """Probability that a subject's counts do not fall, if all their orders are equally likely."""
    from scipy.special import gammaln

    pairs, repeats = np.unique(np.stack([subject_index, count]), axis=1, return_counts=True)
    ties = np.bincount(pairs[0], weights=gammaln(repeats + 1.0))
    chance: FloatArray = np.exp(ties - gammaln(np.bincount(subject_index) + 1.0))
    return chance


def _tail(n: int, mean: float) -> float:
    """Probability of at least n of a sum of rare events, bounded by Chernoff."""
    if n <= mean:
        return 1.0
    return float(np.exp(n - mean - n * np.log(n / mean)))
