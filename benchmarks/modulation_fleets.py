"""Intervals of trend, season and forecasts on fleets with frailty, bursts, ageing and a season.

Each fleet has 40 units that enter over two years and are inspected every two months for three
years; a quarter of them is retired at an inspection in the second or third year. Given its effect
(gamma, variance ½) the counts of a unit come in bursts (variance 1½ times the mean) with the rate
0.25 exp(0.02 age) exp(0.4 cos 2π(p − peak)) a month, p the phase of the calendar year; the peak
differs from fleet to fleet. The fit has a log-linear trend and a season, time counted from entry;
the forecast is of the half year after the third, for the units in service. These fleets follow
their trend exactly. The model averages that and smooth deviations from the trend, each with prior
probability ½ (docs/maths_modulation.md): `alone` is the mean posterior probability of the first,
`spread` the mean square of error over deviation, 1 if intervals are as wide as they should be.
Results are kept fleet by fleet, so that a run can be broken off and taken up again;
``python benchmarks/modulation_fleets.py 30`` runs 30 fleets.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from provenance import is_current, stamp

import gp4c

RESULTS = Path(__file__).parent / "results" / "modulation_fleets.json"
N_FLEETS, UNITS, MONTHS, STEP, AHEAD = 200, 40, 36, 2, 6
RATE, GROWTH, AMPLITUDE, SHAPE, BURSTS = 0.25, 0.02, 0.4, 2.0, 0.5
RETIRED = 0.25
DAYS = 365.25 / 12
#: shares that 200 intervals of 95% and 90% hold with a probability of 99.9% at least, and of
#: forecasts at most, if they are right; the prior of trends is wider than what these fleets have
LEAST = {"trend": 0.895, "amplitude": 0.895, "phase": 0.895, "forecast": 0.83}
MOST = 0.96
#: largest bias of forecasts
BIAS = 0.03


def area(entry: float, start: float, stop: float, peak: float) -> float:
    """∫ of the rate of a unit of effect 1 over ages from start to stop, in months."""
    x, weights = np.polynomial.legendre.leggauss(8)
    age = start + (stop - start) * (x + 1) / 2
    season = AMPLITUDE * np.cos(2 * np.pi * ((entry + age) / 12 - peak))
    return float((stop - start) / 2 * weights @ (RATE * np.exp(GROWTH * age + season)))


def count(mean: float, rng: np.random.Generator) -> int:
    """A count of a process in bursts: negative binomial with variance 1½ times the mean."""
    return int(rng.negative_binomial(mean / BURSTS, 1 / (1 + BURSTS)))


def fleet(seed: int) -> tuple[gp4c.PanelCounts, float, int]:
    """A panel, the phase of its peak, and the events of units in service in the half year after."""
    rng = np.random.default_rng([seed, 7])
    peak, rows, later = rng.uniform(), [], 0
    for k in range(UNITS):
        entry, effect = rng.uniform(0, 24), rng.gamma(SHAPE, 1 / SHAPE)
        gone = rng.uniform() < RETIRED
        seen = STEP * int(rng.integers(7, MONTHS // STEP)) if gone else MONTHS
        end = entry + seen if gone else np.nan
        rows.append((k, entry, 0, end))
        for start in range(0, seen, STEP):
            mean = effect * area(entry, start, start + STEP, peak)
            rows.append((k, entry + start + STEP, count(mean, rng), end))
        ahead = effect * area(entry, MONTHS, MONTHS + AHEAD, peak)
        later += 0 if gone else count(ahead, rng)
    table = pd.DataFrame(rows, columns=["subject", "time", "count", "retired_on"])
    for column in ("time", "retired_on"):
        days = pd.to_timedelta(table[column] * DAYS, unit="D")
        table[column] = pd.Timestamp("2000-01-01") + days
    panel = gp4c.PanelCounts.from_visits(
        table, origin=None, since_entry=True, time_unit="months", end="retired_on"
    )
    return panel, peak, later


def study(seed: int) -> dict[str, float | bool]:
    """Fit one fleet, and say which intervals hold."""
    panel, peak, later = fleet(seed)
    model = gp4c.GP4C(trend="loglinear", season="year", effect="gamma", bursts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(panel)
    trend = model.trend_estimate(0.95)
    part, w = model._season()
    a, b = part.at_phase(np.array([0.0, 0.25]))[[0, 1], [0, 1]][:, None] * w[:2]
    weights = model.posterior_.weights
    size, off = np.hypot(a, b), np.angle((a + 1j * b) * np.exp(-2j * np.pi * peak))
    low, high = (_quantiles(values, weights) for values in (size, off))
    ahead = model.forecast(MONTHS, MONTHS + AHEAD, level=0.9)
    return {
        "trend": trend.low < GROWTH < trend.high, "growth": trend.value,
        "amplitude": low[0] < AMPLITUDE < low[1], "size": float(np.average(size, weights=weights)),
        "phase": high[0] < 0 < high[1],
        "forecast": ahead.interval[0] <= later <= ahead.interval[1],
        "randomised": _share_held(ahead.probability(later - 1), ahead.probability(later)),
        "predicted": float(ahead.mean), "later": later,
        "alone": model.trend_alone_, "beyond": model.continuation().way,
        "error": float((later - ahead.mean) / np.std(ahead.draws)),
        "effective": float(model.effective_draws_),
    }  # fmt: skip


def _share_held(below: float, at_most: float, level: float = 0.9) -> float:
    """Probability that the randomised PIT, uniform from `below` to `at_most`, is in the middle.

    An interval of counts holds more than its level, since its ends are whole numbers; this share
    has the level as its mean if the forecast is right (Czado, Gneiting and Held 2009).
    """
    low, high = (1 - level) / 2, (1 + level) / 2
    inside = min(at_most, high) - max(below, low)
    return float(max(inside, 0) / (at_most - below)) if at_most > below else 0.0


def _quantiles(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Ends of the middle 95%."""
    order = np.argsort(values)
    ends = np.cumsum(weights[order]) / weights.sum()
    low, high = np.interp([0.025, 0.975], ends, values[order])
    return float(low), float(high)


def main(n_fleets: int = N_FLEETS) -> None:
    """Run what is missing, and hold the summary against its limits."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not is_current(known):
        known = {**stamp(), "fleets": {}}
    for seed in range(n_fleets):
        if str(seed) not in known["fleets"]:
            known["fleets"][str(seed)] = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in study(seed).items()
            }
            write(known)
    known["summary"] = summary(pd.DataFrame(known["fleets"].values()))
    write(known)
    for name, value in known["summary"].items():
        print(f"{name}: {value:.3f}")
    if len(known["fleets"]) >= N_FLEETS:
        check(known["summary"])


def summary(found: pd.DataFrame) -> dict[str, float]:
    """Shares of intervals that hold, and the bias of estimates and forecasts."""
    return {
        "fleets": len(found),
        **{name: float(found[name].mean()) for name in [*LEAST, "randomised"]},
        "growth": float(found["growth"].mean()), "size": float(found["size"].mean()),
        "alone": float(found["alone"].mean()), "spread": float((found["error"] ** 2).mean()),
        "bias of forecasts": float(found["predicted"].sum() / found["later"].sum() - 1),
    }  # fmt: skip


def check(found: dict[str, float]) -> None:
    """Raise AssertionError if a limit is broken."""
    for name, least in LEAST.items():
        assert found[name] >= least, f"intervals of the {name} hold {found[name]:.3f}"
    assert found["forecast"] <= MOST, f"intervals of the forecast hold {found['forecast']:.3f}"
    assert abs(found["bias of forecasts"]) <= BIAS, f"bias {found['bias of forecasts']:.3f}"


def write(known: dict[str, Any]) -> None:
    """Write what is known so far, a line for each fleet."""
    fleets = ",\n".join(f'"{k}": {json.dumps(one)}' for k, one in known["fleets"].items())
    head = json.dumps({k: v for k, v in known.items() if k != "fleets"})[1:-1]
    RESULTS.write_text(f'{{{head},\n"fleets": {{\n{fleets}\n}}}}\n')


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
