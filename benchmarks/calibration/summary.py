"""Tables of the study from its records: coverage, ranks, regimes, paired differences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from benchmarks.calibration.measure import LEVELS, N_DRAWS, RANKED
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Records = list[dict[str, Any]]

N_FIFTHS, N_BINS = 5, 20
#: what the power of the rank tests is stated for: posterior standard deviations too narrow or
#: too wide by this factor, or shifted by this many of them
WIDTHS, SHIFTS = (0.8, 0.9, 1.1, 1.25), (0.1, 0.2, 0.3)
_POWER_REPEATS = 1000


def inside(records: Records, key: str) -> Floats:
    """Indicators of coverage, (data sets, times)."""
    return np.array([[float(bit) for bit in record[key]] for record in records])


def mean_and_error(values: Floats) -> list[float]:
    """Mean over data sets and its Monte-Carlo standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return [round(float(values.mean()), 4), round(float(error), 4)]


def coverage(records: Records) -> dict[str, Any]:
    """Coverage of every band by level: overall, in each fifth of the window, simultaneous, Λ."""
    table: dict[str, Any] = {"data_sets": len(records)}
    for level in LEVELS:
        pointwise = inside(records, f"inside_{level}")
        fifths = np.array_split(pointwise, N_FIFTHS, axis=1)
        table[str(level)] = {
            "pointwise": mean_and_error(pointwise.mean(axis=1)),
            "fifths": [mean_and_error(part.mean(axis=1)) for part in fifths],
            "simultaneous": mean_and_error(
                np.array([float(r[f"simultaneous_{level}"]) for r in records])
            ),
            "cumulative": mean_and_error(
                inside(records, f"cumulative_inside_{level}").mean(axis=1)
            ),
        }
    return table


def errors_and_width(records: Records) -> dict[str, Any]:
    """Width of the 75% band and time per fit."""
    return {
        "relative_width_0.75": mean_and_error(
            np.array([r["relative_width_0.75"] for r in records])
        ),
        "median_seconds": round(float(np.median([r["seconds"] for r in records])), 2),
        "not_converged": sum(not r["converged"] for r in records),
        "with_frailty": sum(r["effect"] is not None for r in records),
    }


#: with fewer events the level of the rate is known to no better than a quarter, and what the study
#: leaves out of its range (fewer than 0.3 events per subject) matters
FEW = 15
#: bounds of the regimes in which coverage is shown
REGIMES = {
    "n_events": (0, FEW, 50, 200, 1000, 5000, np.inf),
    "length_scale": (0.03, 0.06, 0.12, 0.25, 0.5),
    "variation": (0.1, 0.18, 0.32, 0.56, 1.0),
}


def regimes(records: Records) -> list[dict[str, Any]]:
    """Coverage and bias by what the data sets were drawn from."""
    rows = []
    for name, edges in REGIMES.items():
        values = np.array([record[name] for record in records])
        for low, high in pairwise(edges):
            members = [r for r, v in zip(records, values, strict=True) if low <= v < high]
            if len(members) < 3:
                continue
            row: dict[str, Any] = {"regime": name, "from": low, "to": min(high, 1e9)}
            row["data_sets"] = len(members)
            for level in LEVELS:
                row[str(level)] = mean_and_error(inside(members, f"inside_{level}").mean(axis=1))
            ranks = np.array([r["rank"] for r in members]) / N_DRAWS
            row["below"] = mean_and_error((ranks < 0.125).mean(axis=1))
            row["above"] = mean_and_error((ranks > 0.875).mean(axis=1))
            rows.append(row)
    return rows


def rank_table(records: Records) -> dict[str, Floats]:
    """Ranks of λ at five times and of Λ(T), each (data sets,)."""
    ranks = np.array([record["rank"] for record in records])
    table = {f"lambda_{i + 1}": ranks[:, place] for i, place in enumerate(RANKED)}
    table["Lambda_T"] = np.array([record["cumulative_rank"] for record in records])
    return table


def chi_square(ranks: Floats) -> tuple[float, float]:
    """Pearson's test of uniform ranks in equal bins: statistic and p-value."""
    counts = np.histogram(ranks, N_BINS, range=(0, N_DRAWS + 1))[0]
    found = stats.chisquare(counts)
    return float(found.statistic), float(found.pvalue)


def kolmogorov(ranks: Floats) -> tuple[float, float]:
    """Kolmogorov–Smirnov test of ranks, spread evenly over their cell, against uniform."""
    found = stats.kstest((np.asarray(ranks) + 0.5) / (N_DRAWS + 1), "uniform")
    return float(found.statistic), float(found.pvalue)


def simulation_based(records: Records) -> dict[str, Any]:
    """Uniformity of ranks: tests, and the size of what departs from it.

    ``narrow`` is the ratio of standard deviations of Φ⁻¹(rank) to 1: above 1 the posterior is
    too narrow; ``shift`` their mean: above 0 the posterior lies too low.
    """
    rows = {}
    for name, ranks in rank_table(records).items():
        z = stats.norm.ppf((ranks + 0.5) / (N_DRAWS + 1))
        statistic, p = chi_square(ranks)
        distance, p_ks = kolmogorov(ranks)
        rows[name] = {
            "chi_square": round(statistic, 1), "chi_square_p": round(p, 4),
            "ks": round(distance, 4), "ks_p": round(p_ks, 4),
            "shift": mean_and_error(z),
            "narrow": [round(float(z.std(ddof=1)), 3), round(float(1 / np.sqrt(2 * len(z))), 3)],
            "outside_0.95": mean_and_error(((ranks < 25) | (ranks >= 975)).astype(float)),
        }  # fmt: skip
    smallest = min(min(r["chi_square_p"], r["ks_p"]) for r in rows.values())
    return {"data_sets": len(records), "quantities": rows, "power": power(len(records)),
            "smallest_p_times_tests": round(min(1.0, smallest * 2 * len(rows)), 4)}  # fmt: skip


def spread(records: Records) -> dict[str, list[float]]:
    """Root mean square of Φ⁻¹(rank) over all times: above 1 the posterior of λ is too narrow.

    With its standard error over data sets; the ends of the scale are cut at half a rank.
    """
    few = np.array([record["n_events"] < FEW for record in records])
    ranks = np.array([record["rank"] for record in records])
    square = (stats.norm.ppf((ranks + 0.5) / (N_DRAWS + 1)) ** 2).mean(axis=1)
    groups = {"all": np.ones(len(few), dtype=bool), "few events": few, "others": ~few}
    found = {}
    for name, members in groups.items():
        if members.sum() > 1:
            mean, error = mean_and_error(square[members])
            root = float(np.sqrt(mean))
            found[name] = [int(members.sum()), round(root, 4), round(error / (2 * root), 4)]
    return found


def power(n_sets: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """Chance that each test at 5% sees a posterior of the wrong width or place, by simulation."""
    rng = np.random.default_rng(seed)
    table = {}
    cases = [(f"sd x {w}", w, 0.0) for w in WIDTHS] + [(f"shift {s} sd", 1.0, s) for s in SHIFTS]
    for name, width, shift in cases:
        z = shift + rng.standard_normal((_POWER_REPEATS, n_sets)) / width
        u = stats.norm.cdf(z)
        cell = np.minimum((u * N_BINS).astype(int), N_BINS - 1)
        counts = np.stack([(cell == i).sum(axis=1) for i in range(N_BINS)], axis=1)
        chi = ((counts - n_sets / N_BINS) ** 2).sum(axis=1) / (n_sets / N_BINS)
        ordered = np.sort(u, axis=1)
        steps = np.arange(n_sets)
        above, below = (steps + 1) / n_sets - ordered, ordered - steps / n_sets
        distance = np.maximum(above.max(axis=1), below.max(axis=1))
        table[name] = {
            "chi_square": round(float((chi > stats.chi2.ppf(0.95, N_BINS - 1)).mean()), 3),
            "ks": round(float((distance > stats.kstwo.ppf(0.95, n_sets)).mean()), 3),
        }
    return table


def paired(records: Records) -> dict[str, Any]:
    """The default against the converged b = 0.3 bound on the same trials."""

    def column(name: str) -> Floats:
        return np.array([record[name] for record in records])

    mise, other = column("default_mise"), column("lemma2_mise")
    return {
        "trials": len(records),
        "default_mise_median": round(float(np.median(mise)), 2),
        "default_mise_max": round(float(mise.max()), 2),
        "lemma2_mise_median": round(float(np.median(other)), 2),
        "lemma2_mise_max": round(float(other.max()), 2),
        "mise_difference": mean_and_error(mise - other),
        "l_test_difference": mean_and_error(column("default_l_test") - column("lemma2_l_test")),
        "default_seconds_median": round(float(np.median(column("default_seconds"))), 2),
        "lemma2_seconds_median": round(float(np.median(column("lemma2_seconds"))), 2),
    }
