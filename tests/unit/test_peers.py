"""The comparison with other packages: how curves are judged and scored, and what its page says."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import nbinom, norm, poisson

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "benchmarks", ROOT / "docs" / "_extensions")


@pytest.fixture(scope="module", autouse=True)
def on_the_path():
    """Imports of benchmarks and of the tables of pages; none of them stays loaded."""
    before = set(sys.modules)
    sys.path[:0] = map(str, FOLDERS)
    yield
    for folder in FOLDERS:
        sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(tuple(map(str, FOLDERS))):
            del sys.modules[name]


@pytest.fixture(scope="module")
def panels():
    from peer_fits import panels

    return panels


def test_a_curve_is_judged_by_its_distance_and_its_band(panels):
    truth = np.full(len(panels.TIMES), 2.0)
    low = np.where(panels.TIMES < 15.0, 2.1, 1.0)  # misses the first quarter
    found = panels.judged({"rate": truth + 0.5, "rate_low": low, "rate_high": truth + 1}, truth)
    assert_allclose(found["rate_error"], 0.25 * panels.END)
    assert_allclose(found["rate_coverage"], 0.75, atol=1 / len(truth))
    assert_allclose(found["sum_error"], 0.25 * panels.END**3 / 3, rtol=1e-4)
    assert np.isnan(found["sum_coverage"])


def test_a_peer_without_a_rate_is_judged_by_its_mean_number(panels):
    truth = np.ones(len(panels.TIMES))
    found = panels.judged({"sum": panels.TIMES + 2}, truth)
    assert np.isnan(found["rate_error"])
    assert_allclose(found["sum_error"], 4 * panels.END)


def test_the_nearer_of_the_two_curves_counts(panels):
    """With normal effects, the mean over subjects is e^{s²/2} times the typical subject's rate."""
    truth = np.full(len(panels.TIMES), 2.0)
    typical = {"rate": truth * np.exp(-0.5)}
    assert_allclose(panels.nearer(typical, 1.0, truth)["rate_error"], 0.0, atol=1e-12)
    assert panels.nearer(typical, 0.0, truth)["rate_error"] > 1
    assert_allclose(panels.nearer({"rate": truth}, 1.0, truth)["rate_error"], 0.0)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        ("poisson", lambda n, m: poisson.pmf(n, m)),
        ("nb1", lambda n, m: nbinom.pmf(n, m / 0.7, 1 / 1.7)),
        ("nb2", lambda n, m: nbinom.pmf(n, 1 / 0.7, 1 / (1 + 0.7 * m))),
    ],
)
def test_scores_with_effects_agree_with_quadrature(panels, family, law):
    fresh = pd.DataFrame({"subject": [1, 1, 2], "count": [3, 0, 2]})
    expected, spread = np.array([1.5, 0.4, 2.5]), 0.8

    def subject(rows):
        def density(b):
            counts = fresh["count"][rows].to_numpy()
            return norm.pdf(b, scale=spread) * law(counts, expected[rows] * np.exp(b)).prod()

        return np.log(quad(density, -8, 8)[0])

    found = panels.plug_in_score(fresh, expected, family, 0.7, spread)
    assert_allclose(found, subject([0, 1]) + subject([2]), rtol=1e-6)


def test_trials_are_what_their_cells_say(panels):
    cell = panels.CELLS[1]
    first, again, other = (panels.simulate(cell, seed) for seed in (3, 3, 4))
    assert_allclose(np.trapezoid(first.rate, panels.TIMES), cell.events)
    assert first.panel.n_events == again.panel.n_events == first.events.n_events
    np.testing.assert_array_equal(first.panel.count, again.panel.count)
    assert not np.array_equal(first.panel.count, first.fresh.count)
    assert not np.array_equal(first.rate, other.rate)


def test_ratios_are_of_the_panels_that_both_were_given():
    from peer_fits import summary

    def trial(peer, number, error, score):
        return dict.fromkeys(summary.COLUMNS, 1.0) | {
            "rate": "wavy", "law": "none", "events": 6.0, "trial": number, "peer": peer,
            "rate_error": error, "score": score, "sum_error": np.nan,
        }  # fmt: skip

    trials = pd.DataFrame([
        trial("gp4c", 0, 1.0, -5.0), trial("gp4c", 1, 3.0, -7.0), trial("gp4c", 2, 90.0, -70.0),
        trial("other", 0, 4.0, -6.0), trial("other", 1, 4.0, -10.0),
    ])  # fmt: skip
    found = summary.figures(trials, "other")
    # leaving either trial out gives 3/4 and 1/4: jackknife error √(1 · 1/16)
    assert_allclose(found["rate_error_ratio"], [0.5, 0.25])
    assert_allclose(found["score_gain"], [2.0, 1.0])
    assert found["sum_error_ratio"] is None
    assert found["sum_error"] is None
    assert found["trials"] == 2


def test_lines_of_code_are_those_of_the_user():
    from peer_fits.roster import MARKER, PEERS

    for peer in PEERS:
        assert peer.code.exists(), peer.file
        user = peer.code.read_text(encoding="utf-8").partition(MARKER)[0]
        assert 0 < peer.lines < user.count("\n"), peer.file


def test_a_peer_that_is_not_there_is_said_to_be_missing():
    from peer_fits.roster import Peer

    assert Peer("none", "gp4c_default.py", "no-such-package", home="nowhere").version() is None


def test_the_page_says_what_the_result_says():
    import peer_tables

    for page in peer_tables.TABLES:
        assert peer_tables.renewed(page) == page.read_text(encoding="utf-8"), "run `make readme`"


def test_losses_are_listed():
    import peer_tables

    row = {"rate": "wavy", "law": "none", "events": 6.0, "peer": "other", "score_gain": [2.0, 1.0]}
    lost, won = row | {"rate_error_ratio": [1.5, 0.1]}, row | {"rate_error_ratio": [0.5, 0.1]}
    assert peer_tables.losses_list({"rows": {"a": won}}) == "None."
    assert "other has the smaller error" in peer_tables.losses_list({"rows": {"a": won, "b": lost}})


def test_the_result_has_all_that_it_measured():
    found = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())
    trials = pd.read_csv(ROOT / "benchmarks" / "results" / "peers_trials.csv")
    waves = trials.loc[trials["rate"] == "wavy", "peer"].value_counts()
    assert {name: row["trials"] for name, row in found["by peer"].items()} == waves.to_dict()
    assert {*waves.index, *found["skipped"], *found["to come"]} == set(found["peers"])
