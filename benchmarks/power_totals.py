"""The test of the level beside the negative-binomial Wald test, in many trials at once.

Where everybody is watched for the same time, both tests know of subjects' totals alone. So trials
are drawn as tables of totals, and thousands of them cost a minute. In 1,000 trials, as
`power_peers.py` has them, size-adjusted power has a standard error of over a point, since the
5% point of the Wald test is estimated from the trials without a difference.

The Wald test is that of a regression on the arm, its dispersion by maximum likelihood. With equal
times its means are those of the arms, and one equation is left, for the dispersion. Among tests
that are exact for all laws of counts none has more power against negative-binomial totals of equal
arms than ours (`docs/maths_comparison.md`): what the Wald test has more is what exactness costs.
Arms of different sizes are there with the larger rate in the smaller arm and in the larger one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from permutation_size import LEVEL, PHI
from provenance import stamp
from scipy.special import digamma

from gp4c.analysis.groups.contrasts import column_statistics
from gp4c.analysis.permutation import LabelledStatistics

Floats = NDArray[np.float64]

N_TRIALS, N_PERMUTATIONS = 20_000, 999
#: 97.5% point of the normal distribution
CRITICAL = 1.959964
#: expected events of a subject of the first arm
MEAN = 4.8
#: points of power that the test may be below the Wald test
MOST_BEHIND = 0.03
#: trials whose figures are compared with each other: as many as `power_peers.py` has
BATCH = 1000
#: trials that are treated at once, and bisections for the dispersion
AT_ONCE, HALVINGS = 500, 40
STANDS_ON = ("analysis/groups/contrasts.py", "analysis/permutation.py")
RESULTS = Path(__file__).parent / "results" / "power_totals.json"


@dataclass(frozen=True)
class Kind:
    """Frailty variance, dispersion of bursts, rate ratio of the second arm, sizes of the arms."""

    variance: float = 0.0
    phi: float = 0.0
    ratio: float = 0.6
    arms: tuple[int, int] = (30, 30)


KINDS = {
    "Poisson": Kind(),
    "frailty 0.5": Kind(0.5),
    "frailty 2": Kind(2.0),
    "frailty 0.5 and bursts": Kind(0.5, PHI),
    "frailty 0.5, ratio 0.7, arms of 69 and 138": Kind(0.5, ratio=0.7, arms=(69, 138)),
    "frailty 0.5, ratio 0.7, arms of 138 and 69": Kind(0.5, ratio=0.7, arms=(138, 69)),
}


def totals(kind: Kind, ratio: float, n: int, rng: np.random.Generator) -> Floats:
    """Totals of the subjects of `n` trials, the first arm first, (K, n)."""
    mean = np.repeat([MEAN, ratio * MEAN], kind.arms)[:, None] * np.ones(n)
    if kind.variance:
        mean = mean * rng.gamma(1 / kind.variance, kind.variance, mean.shape)
    if kind.phi:
        mean = rng.gamma(mean / kind.phi, kind.phi)
    return rng.poisson(mean).astype(float)


def permuted(counts: Floats, arms: tuple[int, int], rng: np.random.Generator) -> Floats:
    """p-value of each trial; trials that are treated at once have the same permutations."""
    strata, given = np.zeros(len(counts), dtype=np.intp), np.repeat([0, 1], arms)
    found = []
    for first in range(0, counts.shape[1], AT_ONCE):
        labels = np.array([given, *(rng.permutation(given) for _ in range(N_PERMUTATIONS))])
        some = counts[:, first : first + AT_ONCE]
        residual = some - some.mean(axis=0)
        each = column_statistics(residual, np.ones_like(some), strata, labels, 2)
        signed = np.copysign(each, labels @ residual)
        found += [
            LabelledStatistics(one[:1], one[None], ("level",), (True,), False, np.array([arms]))
            .test().p_value
            for one in signed.T
        ]  # fmt: skip
    return np.array(found)


def wald(counts: Floats, arms: tuple[int, int]) -> Floats:
    """|z| of the log ratio of each trial."""
    means = counts[: arms[0]].mean(axis=0), counts[arms[0] :].mean(axis=0)
    mean = np.repeat(means, arms, axis=0)
    low, high = np.full(counts.shape[1], np.log(1e-6)), np.full(counts.shape[1], np.log(50.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        k = np.exp(-middle)  # the derivative of the log likelihood by k = 1 / dispersion
        slope = digamma(counts + k) - digamma(k) + np.log(k / (k + mean))
        more = (slope + 1 - (counts + k) / (k + mean)).sum(axis=0) < 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    dispersion = np.exp((low + high) / 2)
    variance = sum((1 + dispersion * m) / (n * m) for m, n in zip(means, arms, strict=True))
    return np.asarray(np.abs(np.log(means[1] / means[0])) / np.sqrt(variance))


def row(kind: Kind, n_trials: int) -> dict[str, Any]:
    """Sizes, powers, and how far power is behind that of the Wald test at a size of 5%."""
    rng = np.random.default_rng(1)
    null, other = (totals(kind, ratio, n_trials, rng) for ratio in (1.0, kind.ratio))
    p_null, p = (permuted(each, kind.arms, rng) for each in (null, other))
    z_null, z = (wald(each, kind.arms) for each in (null, other))
    ours, theirs = size_adjusted(p_null, p), size_adjusted(-z_null, -z)
    batches = [np.split(x, n_trials // BATCH) for x in (p_null, p, -z_null, -z)]
    each = [
        size_adjusted(*pair[2:]) - size_adjusted(*pair[:2]) for pair in zip(*batches, strict=True)
    ]
    return {
        "gp4c": {
            "size": float(np.mean(p_null <= LEVEL)),
            "power": float(np.mean(p <= LEVEL)),
            "adjusted power": ours,
        },
        "negative-binomial Wald": {
            "size": float(np.mean(z_null > CRITICAL)),
            "power": float(np.mean(z > CRITICAL)),
            "adjusted power": theirs,
        },
        "behind": round(theirs - ours, 4),
        "error": round(float(np.std(each) / np.sqrt(len(each))), 4),
        "scatter of 1,000 trials": round(float(np.std(each)), 4),
    }


def size_adjusted(null: Floats, other: Floats) -> float:
    """Power at the value that 5% of the trials without a difference fall below."""
    return float(np.mean(other <= np.quantile(null, LEVEL)))


def main(n_trials: int = N_TRIALS) -> None:
    table: dict[str, Any] = {
        **stamp(STANDS_ON), "trials": n_trials, "permutations": N_PERMUTATIONS, "kinds": {},
    }  # fmt: skip
    for name, kind in KINDS.items():
        table["kinds"][name] = found = row(kind, n_trials)
        print(name, found, flush=True)
    if n_trials == N_TRIALS:
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    short = max(each["behind"] for each in table["kinds"].values())
    assert short <= MOST_BEHIND, f"{100 * short:.1f} points below the Wald test"


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
