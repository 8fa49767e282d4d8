"""The test of the level beside the negative-binomial Wald test, in many trials at once.

Where everybody is watched for the same time, both tests know of subjects' totals alone. So trials
are drawn as tables of totals, and thousands of them cost a minute. In 1,000 trials, as
`power_peers.py` has them, size-adjusted power has a standard error of over a point, since the
5% point of the Wald test is estimated from the trials without a difference.

The Wald test is that of a regression on the arm, its dispersion by maximum likelihood. With equal
times its means are those of the arms, and one equation is left, for the dispersion.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from permutation_size import LEVEL, N_PER_ARM, PHI
from provenance import stamp
from scipy.special import digamma

from gp4c.analysis.groups.contrasts import column_statistics

Floats = NDArray[np.float64]

N_TRIALS, N_PERMUTATIONS = 20_000, 999
#: 97.5% point of the normal distribution
CRITICAL = 1.959964
#: expected events of a subject of the first arm, and rate ratio of the second
MEAN, RATIO = 4.8, 0.6
#: points of power that the test may be below the Wald test
MOST_BEHIND = 0.03
#: trials whose figures are compared with each other: as many as `power_peers.py` has
BATCH = 1000
#: trials that are treated at once, and bisections for the dispersion
AT_ONCE, HALVINGS = 500, 40
STANDS_ON = ("analysis/groups/contrasts.py",)
RESULTS = Path(__file__).parent / "results" / "power_totals.json"
#: frailty variance, and dispersion of bursts
KINDS: dict[str, tuple[float, float]] = {
    "Poisson": (0.0, 0.0),
    "frailty 0.5": (0.5, 0.0),
    "frailty 2": (2.0, 0.0),
    "frailty 0.5 and bursts": (0.5, PHI),
}


def totals(kind: tuple[float, float], ratio: float, n: int, rng: np.random.Generator) -> Floats:
    """Totals of the subjects of `n` trials, the first arm first, (2K, n)."""
    variance, phi = kind
    mean = np.repeat([MEAN, ratio * MEAN], N_PER_ARM)[:, None] * np.ones(n)
    if variance:
        mean = mean * rng.gamma(1 / variance, variance, mean.shape)
    if phi:
        mean = rng.gamma(mean / phi, phi)
    return rng.poisson(mean).astype(float)


def permuted(counts: Floats, rng: np.random.Generator) -> Floats:
    """p-value of each trial; trials that are treated at once have the same permutations."""
    strata, given = np.zeros(len(counts), dtype=np.intp), np.repeat([0, 1], N_PER_ARM)
    found = []
    for first in range(0, counts.shape[1], AT_ONCE):
        labels = np.array([given, *(rng.permutation(given) for _ in range(N_PERMUTATIONS))])
        some = counts[:, first : first + AT_ONCE]
        each = column_statistics(some - some.mean(axis=0), np.ones_like(some), strata, labels, 2)
        found.append((each >= each[0] * (1 - 1e-9)).mean(axis=0))
    return np.concatenate(found)


def wald(counts: Floats) -> Floats:
    """|z| of the log ratio of each trial."""
    arms = counts[:N_PER_ARM].mean(axis=0), counts[N_PER_ARM:].mean(axis=0)
    mean = np.repeat(arms, N_PER_ARM, axis=0)
    low, high = np.full(counts.shape[1], np.log(1e-6)), np.full(counts.shape[1], np.log(50.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        k = np.exp(-middle)  # the derivative of the log likelihood by k = 1 / dispersion
        slope = digamma(counts + k) - digamma(k) + np.log(k / (k + mean))
        more = (slope + 1 - (counts + k) / (k + mean)).sum(axis=0) < 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    dispersion = np.exp((low + high) / 2)
    variance = sum((1 + dispersion * arm) / (N_PER_ARM * arm) for arm in arms)
    return np.asarray(np.abs(np.log(arms[1] / arms[0])) / np.sqrt(variance))


def row(kind: tuple[float, float], n_trials: int) -> dict[str, Any]:
    """Sizes, powers, and how far power is behind that of the Wald test at a size of 5%."""
    rng = np.random.default_rng(1)
    null, other = (totals(kind, ratio, n_trials, rng) for ratio in (1.0, RATIO))
    p_null, p, z_null, z = permuted(null, rng), permuted(other, rng), wald(null), wald(other)
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
        **stamp(STANDS_ON), "trials": n_trials, "permutations": N_PERMUTATIONS, "ratio": RATIO,
        "kinds": {},
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
