"""`gp4c trend` and the growth models on the command line: the library's numbers."""

import json
import shlex

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["subject,start,stop,count,site"]
    for k in range(20):
        for a in range(6):
            lines.append(f"{k},{a},{a + 1},{rng.poisson(0.4 * (a + 1) * rng.gamma(1.0))},{k % 2}")
    (tmp_path / "fleet.csv").write_text("\n".join(lines))


def run(line):
    return CliRunner().invoke(program, shlex.split(line))


def test_trend_says_what_the_library_says(workplace):
    done = run("trend fleet.csv --permutations 199 --seed 3")
    assert done.exit_code == 0, done.output
    found = gp4c.trend_test(gp4c.read_panel("fleet.csv"), n_permutations=199, random_state=3)
    assert found.sentence in " ".join(done.stdout.split())
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    as_json = json.loads(run("trend fleet.csv --permutations 199 --seed 3 --json").stdout)
    assert as_json["p_value"] == found.p_value
    assert as_json["result"] == found.sentence
    assert_allclose([row["p_value"] for row in as_json["table"]], found.table["p_value"])


def test_trend_without_events_is_an_error_of_the_user(workplace, tmp_path):
    (tmp_path / "none.csv").write_text("subject,start,stop,count\n1,0,1,0\n1,1,2,0\n")
    done = run("trend none.csv")
    assert done.exit_code == 2
    assert "no subject with events was seen in two or more intervals" in done.stderr


@pytest.mark.parametrize(
    ("name", "kind"), [("power-law", gp4c.PowerLaw), ("log-linear", gp4c.LogLinear)]
)
def test_growth_models_are_fitted_and_forecast(workplace, name, kind):
    done = run(f"fit fleet.csv --model {name} --formula site --out results")
    assert done.exit_code == 0, done.output
    model = gp4c.load_model("results/fit.json")
    panel = gp4c.read_panel("fleet.csv")
    again = kind(effect="gamma", bursts=True, formula="site").fit(panel)
    assert_allclose(model.mtbf_, again.mtbf_)
    assert "MTBF now" in done.stdout
    done = run("forecast results/fit.json --from 6 --to 8")
    assert done.exit_code == 0, done.output
    assert "events in (6, 8]" in done.stdout


def test_a_report_of_a_growth_model(workplace):
    done = run("report fleet.csv --model power-law --out results")
    assert done.exit_code == 0, done.output
    with open("results/report.html", encoding="utf-8") as page:
        text = page.read()
    assert "Crow-AMSAA" in text
    assert "shape β" in text
