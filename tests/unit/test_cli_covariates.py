"""Covariates on the command line: the library's numbers in text, JSON, CSV and report."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.reporting.words import estimate

FORMULA = "age + arm"


def table_of_visits():
    """Forty subjects with three visits, an age and an arm each."""
    rng = np.random.default_rng(3)
    n = 40
    age, arm = rng.normal(50.0, 10.0, n).round(1), np.where(rng.uniform(size=n) < 0.5, "a", "b")
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(n), 3),
            "from": np.tile([0.0, 3.0, 5.0], n),
            "to": np.tile([3.0, 5.0, 9.0], n),
            "n": rng.poisson(np.repeat(np.exp(0.03 * (age - 50) - 0.7 * (arm == "b")), 3)),
            "age": np.repeat(age, 3),
            "arm": np.repeat(arm, 3),
        }
    )


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table_of_visits().to_csv("visits.csv", index=False)
    return tmp_path


def run(line):
    return CliRunner().invoke(program, shlex.split(line))


def test_the_same_effects_everywhere(workplace):
    done = run(f"fit visits.csv --formula '{FORMULA}' --effect gamma --level 0.9 --out results")
    assert done.exit_code == 0, done.output
    panel = gp4c.read_panel("visits.csv")
    model = gp4c.GP4C(formula=FORMULA, effect="gamma", random_state=0).fit(panel)
    expected = model.effect_table(0.9)
    table = pd.read_csv("results/effects.csv")
    assert table["covariate"].tolist() == ["age", "arm[b]"]
    pd.testing.assert_frame_equal(table.drop(columns="level"), expected)
    (saved,) = [gp4c.load_model("results/fit.json").effect_table(0.9)]
    pd.testing.assert_frame_equal(saved, expected)
    document = json.loads((workplace / "results" / "summary.json").read_text())
    for row, entry in zip(expected.itertuples(), document["effects"], strict=True):
        assert entry["rate_ratio"] == pytest.approx(row.rate_ratio, rel=1e-12)
        words = (
            f"times {estimate(row.rate_ratio)} (90% interval {estimate(row.low)} to "
            f"{estimate(row.high)})"
        )
        assert words in " ".join(done.stdout.split())
        summary = document["fits"][0]["summary"]["Rate ratios of covariates"][row.covariate]
        assert [summary[k] for k in ("value", "low", "high")] == pytest.approx(
            [row.rate_ratio, row.low, row.high]
        )
    assert "at average covariates" in " ".join(done.stdout.split())
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_report_has_the_table_and_says_how(workplace):
    done = run("report visits.csv --formula 'age + arm' --effect none --out results")
    assert done.exit_code == 0, done.output
    page = (workplace / "results" / "report.html").read_text()
    model = gp4c.GP4C(formula=FORMULA, effect=None).fit(gp4c.read_panel("visits.csv"))
    assert "Effects of covariates" in page
    for row in model.effects_.itertuples():
        assert f'<th scope="row">{row.covariate}</th>' in page
        assert f"{estimate(row.low)} to {estimate(row.high)}" in page
    assert "sandwich estimator over subjects" in page


def test_groups_have_effects_of_their_own():
    done = run("fit visits.csv --formula age --by arm --effect none --out results")
    assert done.exit_code == 0, done.output
    table = pd.read_csv("results/effects.csv")
    assert table["group"].tolist() == ["a", "b"]
    one = gp4c.GP4C(formula="age", effect=None).fit(gp4c.read_panel("visits.csv").where(arm="b"))
    assert table["coefficient"][1] == pytest.approx(one.effects_["coefficient"][0], rel=1e-9)


def test_without_a_formula_there_is_no_table(workplace):
    done = run("fit visits.csv --model hpp --json")
    assert "effects" not in json.loads(done.stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--formula 'agee'", "did you mean 'age'"),
        ("--formula 'age +'", "cannot be understood"),
        ("--formula \"{open('made', 'w')}\"", "not allowed"),
        ("--formula age --model hpp", "--formula goes with --model gp4c"),
        ("--formula age --effect weight", "--formula goes with --model gp4c"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(workplace, options, message):
    done = run(f"fit visits.csv {options}")
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())
    assert "Traceback" not in done.output
    assert not (workplace / "made").exists()


@pytest.mark.filterwarnings("always::gp4c.exceptions.GP4CWarning")
def test_missing_covariates_are_named_or_dropped():
    table = table_of_visits()
    table.loc[table["id"] == 7, "age"] = np.nan
    table.to_csv("visits.csv", index=False)
    done = run("fit visits.csv --formula age --effect none")
    assert done.exit_code == 2
    assert "'age' is missing for 1 subject: 7" in done.output
    done = run("fit visits.csv --formula age --effect none --drop-missing")
    assert done.exit_code == 0, done.output
    assert "3 intervals without covariates left out" in done.output
    assert "39" in done.stdout
