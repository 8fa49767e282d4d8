"""What the guide to forecasts says of their calibration is what was measured."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOUND = json.loads(
    (ROOT / "benchmarks" / "results" / "forecast_pit.json").read_text(encoding="utf-8")
)["forecasts"]
NAMES = {"gamma": "simulated, gamma frailty", "lognormal": "simulated, lognormal frailty"}


@pytest.fixture(scope="module")
def guide():
    return (ROOT / "docs" / "guide" / "forecast.md").read_text(encoding="utf-8")


def p_text(value):
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.01 else f"{value:.2f}"


def test_the_table_is_the_result(guide):
    rows = [
        f"| {NAMES.get(name, name)} | {row['forecasts']:,} | {p_text(row['ks_p_value'])} | "
        f"{p_text(row['chi_square_p_value'])} | {row['below_0.05']:.3f} | "
        f"{row['above_0.95']:.3f} | {row['inside_90%_interval']:.2f} |"
        for name, row in FOUND.items()
    ]
    assert [row for row in rows if row not in guide] == []
    assert guide.count("\n| ") - len(rows) == 9  # the table of subjects=, and two headers


def test_no_departure_is_seen_where_the_model_is_right():
    own = FOUND["gamma"]
    assert own["forecasts"] == 2000
    assert min(own["ks_p_value"], own["chi_square_p_value"]) > 0.01
    assert sum(own["histogram"]) == own["forecasts"]


def test_the_sentence_about_the_fleet_is_what_is_printed(guide):
    (printed,) = re.findall(r"^    (\d+) \((\d+)–(\d+)\) events in", guide, flags=re.MULTILINE)
    said = re.search(r"^Expect (\d+) failures, and between (\d+) and (\d+)", guide, re.M)
    assert said.groups() == printed


# -- the study itself ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def study(monkeypatch_module):
    monkeypatch_module.syspath_prepend(ROOT / "benchmarks")
    place = ROOT / "benchmarks" / "forecast_pit.py"
    spec = importlib.util.spec_from_file_location("forecast_pit", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_data_sets_depend_on_their_number_and_have_visits_to_forecast(study):
    first, again, other = (study.simulated(k, "gamma") for k in (3, 3, 4))
    assert first.count.tolist() == again.count.tolist() != other.count.tolist()
    assert first.n_subjects == study.N_TRAINING + study.N_HELD_OUT
    assert np.bincount(first.subject_index).min() >= 2
    assert first.window == (0.0, study.WEEKS)


def test_a_summary_tells_right_forecasts_from_wrong_ones(study):
    u = np.random.default_rng(0).uniform(size=2000)
    right = study.summarise({"0": {"lower": u, "upper": u, "pit": u}})
    assert min(right["ks_p_value"], right["chi_square_p_value"]) > 0.01
    assert right["inside_90%_interval"] == pytest.approx(0.9, abs=0.02)
    tails = np.concatenate([u[:1000], 0.03 * u[1000:1500], 1 - 0.03 * u[1500:]])
    wrong = study.summarise({"0": {"lower": tails, "upper": tails, "pit": tails}})
    assert wrong["ks_p_value"] < 1e-10
    assert wrong["below_0.05"] == pytest.approx(0.275, abs=0.02)
    assert wrong["inside_90%_interval"] == pytest.approx(0.45, abs=0.02)


def test_an_interrupted_study_resumes(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(study, "PARTIAL", tmp_path / "partial.json")
    made = []

    def tasks():
        for name in "ab":
            yield "gamma", name, lambda n=name: made.append(n) or {"pit": [0.5]}

    monkeypatch.setattr(study, "tasks", tasks)
    study.PARTIAL.write_text(json.dumps({"gamma": {"a": {"pit": [0.1]}}}))
    assert study.run() == {"gamma": {"a": {"pit": [0.1]}, "b": {"pit": [0.5]}}}
    assert made == ["b"]
    assert json.loads(study.PARTIAL.read_text())["gamma"]["b"] == {"pit": [0.5]}
