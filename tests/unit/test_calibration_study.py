"""The machinery of the calibration study: its draws, its store, its tables."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

TOP = Path(__file__).parents[2]
if str(TOP) not in sys.path:
    sys.path.insert(0, str(TOP))

from benchmarks.calibration import (  # noqa: E402
    cases,
    document,
    measure,
    report,
    run,
    store,
    summary,
)

import gp4c  # noqa: E402


def made_up_record(rng, pit, **extra):
    """A record whose truth lies at the quantiles `pit` of its posterior."""
    record = {"rank": np.floor(pit * (measure.N_DRAWS + 1)).astype(int).tolist()}
    record |= {"cumulative_rank": int(rng.integers(measure.N_DRAWS + 1))}
    for level in measure.LEVELS:
        covered = np.abs(pit - 0.5) <= level / 2
        record[f"inside_{level}"] = measure.bits(covered)
        record[f"cumulative_inside_{level}"] = measure.bits(covered[:10])
        record[f"simultaneous_{level}"] = bool(covered.all())
    return record | extra


def fast(case):
    model = gp4c.GP4C(count_term="lemma2", n_inducing=8, effect=None, hyper="optimize")
    return model.fit(case.panel)


def test_a_case_depends_on_its_number_alone():
    first, again, other = cases.prior_case(3), cases.prior_case(3), cases.prior_case(4)
    assert first.describe() == again.describe() != other.describe()
    np.testing.assert_array_equal(first.panel.count, again.panel.count)


def test_cases_fill_the_ranges_of_the_study():
    drawn = [cases.prior_case(number) for number in range(60)]
    for name, (low, high) in {
        "length_scale": cases.LENGTH_SCALES,
        "variation": cases.VARIATIONS,
        "events_per_subject": cases.EVENTS,
    }.items():
        share = np.log([getattr(case, name) / low for case in drawn]) / np.log(high / low)
        assert stats.kstest(share, "uniform").pvalue > 1e-3
    assert all(20 <= case.panel.n_subjects <= 100 for case in drawn)
    assert all(case.panel.n_intervals == case.n_subjects * case.n_intervals for case in drawn)
    # E ∫ λ is the expected number of events per subject
    ratio = [case.truth.cumulative(60.0) / case.events_per_subject for case in drawn]
    assert np.mean(ratio) == pytest.approx(1.0, abs=4 * np.std(ratio) / np.sqrt(60))


def test_coverage_and_ranks_of_a_calibrated_posterior():
    rng = np.random.default_rng(0)
    records = [made_up_record(rng, rng.random(measure.N_TIMES)) for _ in range(400)]
    table = summary.coverage(records)
    for level in measure.LEVELS:
        mean, error = table[str(level)]["pointwise"]
        assert error < 0.005
        assert mean == pytest.approx(level, abs=4 * error)
    assert summary.simulation_based(records)["smallest_p_times_tests"] > 0.01


def test_ranks_of_a_narrow_posterior_are_seen():
    rng = np.random.default_rng(1)
    pits = stats.norm.cdf(1.6 * rng.standard_normal((400, measure.N_TIMES)))
    found = summary.simulation_based([made_up_record(rng, pit) for pit in pits])
    for name, row in found["quantities"].items():
        if name != "Lambda_T":
            assert row["chi_square_p"] < 1e-3
            assert row["narrow"][0] == pytest.approx(1.6, rel=0.15)


def test_power_is_the_level_for_a_perfect_posterior(monkeypatch):
    monkeypatch.setattr(summary, "WIDTHS", (1.0, 0.5))
    monkeypatch.setattr(summary, "SHIFTS", ())
    table = summary.power(200)
    for test in ("chi_square", "ks"):
        assert table["sd x 1.0"][test] == pytest.approx(0.05, abs=0.02)
        assert table["sd x 0.5"][test] > 0.9


def test_a_small_study_runs_resumes_and_reports(tmp_path, monkeypatch, capsys):
    for arm in measure.ARMS:
        monkeypatch.setitem(measure.ARMS, arm, fast)
    monkeypatch.setattr(summary, "WIDTHS", (0.8,))
    size = ["--sets", "2", "--compared", "1", "--intensities", "0", "--trials", "0"]
    places = ["--jobs", "1", "--cache", str(tmp_path / "cache"), "--results", str(tmp_path)]
    run.main(size + places)
    assert "12 tasks, 0 of them done before" in capsys.readouterr().out
    written = json.loads((tmp_path / "calibration.json").read_text())
    assert written["prior"]["default"]["data_sets"] == 2
    assert len((tmp_path / "calibration_sets.csv").read_text().splitlines()) == 13
    run.main(size + places)
    assert "12 tasks, 12 of them done before" in capsys.readouterr().out


def test_a_killed_run_leaves_no_half_record(tmp_path):
    kept = store.Store(tmp_path / "new")
    assert not kept.has(("prior", "default", 7))
    kept.write(("prior", "default", 7), {"number": 7})
    assert kept.read("prior", "default") == [{"number": 7}]
    assert [path.name for path in kept.folder.iterdir()] == ["prior-default-00007.json"]


def test_the_short_page_shows_the_committed_results():
    page = document.PAGE.with_name("calibration.md").read_text(encoding="utf-8")
    found = json.loads((report.RESULTS / "burst_calibration.json").read_text())["summary"]
    for key, (share, error) in found["all"].items():
        row = f"| {100 * float(key.split()[1]):.0f}% |"
        line = next(line for line in page.splitlines() if line.startswith(row))
        assert f"{share} ± {error}" in line, key
    assert f"in {found['data sets']} data sets" in page


def test_the_page_shows_the_committed_results():
    page = document.PAGE.read_text(encoding="utf-8")
    shown = page.split(document.BEGIN)[1].split(document.END)[0]
    found = json.loads((report.RESULTS / "calibration.json").read_text())
    assert shown.strip() == document.render(found).strip()
