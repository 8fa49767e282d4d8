"""Trend tests: identities with classical statistics, and size under frailty and bursts."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from classical_panels import panel_of
from gp4c.analysis.units.trend_testing import LAPLACE, MILITARY, POISSON, UNITS, row_scores
from gp4c.classical.parametric.rate_curves import LogLinearCurve, PowerCurve
from gp4c.exceptions import PanelDataError


def simulated(seed, n=15, lengths=None, slope=0.0, spread=0.0, exposure=None, variance=1.0, phi=4.0,
              late=0.0):  # fmt: skip
    """Units with frailty, bursts and slopes; intervals grow longer unless told otherwise."""
    rng = np.random.default_rng(seed)
    lengths = np.linspace(0.5, 2.0, 8) if lengths is None else np.asarray(lengths, dtype=float)
    units = np.ones(len(lengths)) if exposure is None else np.asarray(exposure, dtype=float)
    edges = late + np.concatenate([[0.0], np.cumsum(lengths)])
    middle = (edges[:-1] + edges[1:] - edges[0] - edges[-1]) / 2
    rows = []
    for k in range(n):
        effect = rng.gamma(1 / variance) * variance if variance else 1.0
        mean = effect * lengths * units * np.exp((slope + spread * rng.normal()) * middle)
        count = rng.poisson(rng.gamma(mean / phi) * phi if phi else mean)
        rows += list(
            zip([k] * len(units), edges[:-1], edges[1:], count.tolist(), units, strict=True)
        )
    return rows


def finely_counted(times, end, n=20_000):
    """One unit, its events counted in so many intervals."""
    edges = np.linspace(0.0, end, n + 1)
    count = np.histogram(times, edges)[0]
    return panel_of(list(zip([0] * n, edges[:-1], edges[1:], count.tolist(), strict=True)))


def test_with_fine_intervals_they_are_the_classical_statistics():
    times, end = np.sort(np.random.default_rng(1).uniform(0, 10, 30) ** 1.3), 10.0**1.3
    table = gp4c.trend_test(finely_counted(times, end), n_permutations=1).table
    z = table[table["form"] == POISSON].set_index("test")["statistic"]
    n = len(times)
    assert_allclose(z[LAPLACE], (times.sum() - n * end / 2) / (end * np.sqrt(n / 12)), atol=1e-3)
    # 2N/β̂ = 2 Σ ln(T/t) has mean 2N and variance 4N without a trend
    military = 2 * np.log(end / times).sum()
    assert_allclose(z[MILITARY], (2 * n - military) / (2 * np.sqrt(n)), atol=2e-3)


def test_scores_are_those_of_the_growth_models():
    start, stop = np.array([0.0, 1.0, 4.0]), np.array([1.0, 4.0, 9.0])
    by_slope = LogLinearCurve(0.0, 1.0).log_integral(start, stop, 0.0)[1]
    assert_allclose(row_scores(LAPLACE, start, stop), by_slope)
    by_shape = PowerCurve(1.0).log_integral(start, stop, 0.0)[1]
    assert_allclose(row_scores(MILITARY, start, stop) + 1.0, by_shape, atol=1e-12)


def test_the_square_is_close_to_the_likelihood_ratio():
    panel = panel_of(simulated(3, n=200, slope=0.03, variance=0, phi=0))
    z = gp4c.trend_test(panel, n_permutations=1).statistic
    line, flat = gp4c.LogLinear().fit(panel), gp4c.HomogeneousPoisson().fit(panel)
    assert z > 2
    assert_allclose(z**2, 2 * (line.objective_ - flat.objective_), rtol=0.15)


def test_permutations_of_one_unit_are_all_orders():
    count = np.array([0, 1, 1, 3, 6])
    panel = panel_of([("a", float(j), j + 1.0, int(m)) for j, m in enumerate(count)])
    found = gp4c.trend_test(panel, n_permutations=20_000)
    middle = np.arange(5) + 0.5
    every = [abs(middle @ np.array(p) - 2.5 * 11) for p in itertools.permutations(count)]
    exact = np.mean(np.array(every) >= abs(middle @ count - 2.5 * 11) - 1e-9)
    assert_allclose(found.p_value, exact, atol=4 * np.sqrt(exact / 20_000))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 4, "lengths": np.ones(12)},
        {"n": 1, "lengths": np.linspace(2.0, 0.5, 25), "variance": 0.0},
        {"exposure": [1, 1, 2, 2, 4, 4, 8, 8], "late": 3.0},
    ],
    ids=["growing intervals", "few units", "one unit", "growing exposure, late clock"],
)
@pytest.mark.filterwarnings("ignore:the exposure in")  # meant as it is
def test_the_robust_forms_keep_their_size_under_frailty_and_bursts(options):
    p_values, n = [], 250
    for seed in range(n):
        panel = panel_of(simulated(seed, **options))
        found = gp4c.trend_test(panel, n_permutations=99)
        p_values.append(
            [
                *found.p_values().values(), found.p_values(UNITS).get(LAPLACE, np.nan),
                found.p_values(form=POISSON)[LAPLACE],
            ]
        )  # fmt: skip
    *robust, plain = (np.array(p_values) <= 0.1).sum(axis=0)
    for rejected in robust[: 2 if options.get("n") == 1 else 3]:
        assert 9 <= rejected <= 43  # of 250 at 0.1: one in 1000 outside
    assert plain > 60


def test_gaps_stay_in_the_time_axis():
    # twice the same counts, once with a gap in the middle: later counts are later
    whole = [("a", float(j), j + 1.0, m) for j, m in enumerate([1, 2, 1, 4, 3, 5])]
    gap = [(k, a + 6.0 * (a >= 3), b + 6.0 * (a >= 3), m) for k, a, b, m in whole]
    one, other = (gp4c.trend_test(panel_of(rows), n_permutations=99) for rows in (whole, gap))
    middle = np.array([a + b for _, a, b, _ in gap]) / 2
    count = np.array([m for *_, m in gap])
    u = ((count - count.mean()) * middle).sum()
    assert_allclose(other.statistic, u / np.sqrt(count.sum() * middle.var()))
    assert other.statistic != one.statistic
    rejected = 0
    for seed in range(200):
        rows = [row for row in simulated(seed, n=8) if not 2.0 < row[1] < 6.0]
        rejected += gp4c.trend_test(panel_of(rows), n_permutations=99).p_value <= 0.1
    assert 6 <= rejected <= 36  # of 200 at 0.1: one in 1000 outside


def test_trends_are_found():
    common, differ = [], []
    for seed in range(20):
        common.append(gp4c.trend_test(panel_of(simulated(seed, slope=0.3)), n_permutations=99))
        rows = simulated(seed, spread=0.6, variance=0.3, phi=1.0)
        differ.append(gp4c.trend_test(panel_of(rows), n_permutations=99))
    assert sum(found.p_value <= 0.05 and found.statistic > 0 for found in common) >= 17
    assert sum(found.p_values(UNITS)[LAPLACE] <= 0.05 for found in common) <= 3
    assert sum(found.p_values(UNITS)[LAPLACE] <= 0.05 for found in differ) >= 17


def test_labels_row_order_and_the_unit_of_time_do_not_matter():
    rows = simulated(5)
    found = gp4c.trend_test(panel_of(rows), n_permutations=199)
    rng = np.random.default_rng(0)
    names = rng.permutation(15)
    other = [(f"u{names[k]:02d}", 7 * a, 7 * b, m, e) for k, a, b, m, e in rows]
    again = gp4c.trend_test(panel_of([other[i] for i in rng.permutation(len(other))]),
                            n_permutations=199)  # fmt: skip
    assert_allclose(again.table["statistic"], found.table["statistic"], rtol=1e-9)
    assert_allclose(again.table["p_value"], found.table["p_value"], rtol=1e-9)


def test_the_sentence_says_what_was_found():
    rises = gp4c.trend_test(panel_of(simulated(1, slope=0.5)))
    assert "The rate rises over time (Laplace z = " in str(rises)
    assert "trends of units do not differ clearly" in str(rises)
    falls = gp4c.trend_test(panel_of(simulated(1, slope=-0.5)))
    assert "The rate falls over time" in falls.sentence
    bursts = next(
        found
        for seed in range(50)
        if (found := gp4c.trend_test(panel_of(simulated(seed)), n_permutations=99)).p_value > 0.3
        and found.p_values(form=POISSON)[LAPLACE] < 0.01
    )
    assert "No trend is found" in str(bursts)
    assert "although the Poisson form, for counts without bursts, has p" in str(bursts)


def test_before_time_0_there_is_no_power_law():
    rows = [(k, a - 5.0, b - 5.0, m) for k, a, b, m, _ in simulated(2)]
    assert set(gp4c.trend_test(panel_of(rows), n_permutations=9).table["test"]) == {LAPLACE}


def test_panels_that_say_nothing_are_refused():
    one_each = [("a", 0.0, 2.0, 3), ("b", 0.0, 3.0, 1)]
    nothing = [("a", 0.0, 2.0, 0), ("a", 2.0, 3.0, 0)]
    for rows in (one_each, nothing):
        with pytest.raises(PanelDataError, match="seen in two or more intervals"):
            gp4c.trend_test(panel_of(rows))
    with pytest.raises(ValueError, match="n_permutations must be at least 1"):
        gp4c.trend_test(panel_of(simulated(0)), n_permutations=0)
