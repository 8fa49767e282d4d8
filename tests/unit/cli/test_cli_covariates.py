"""Covariates on the command line: the library's numbers in text, JSON, CSV and report."""

import json
import shlex
import warnings
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.exceptions import PanelDataError
from gp4c.reporting.effect_rows import effects_section
from gp4c.reporting.summary import summarise
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
            "n": rng.poisson(5 * np.repeat(np.exp(0.03 * (age - 50) - 0.7 * (arm == "b")), 3)),
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
    assert f"standard errors ({model.effects_['errors'][0]})" in page


def test_groups_have_effects_of_their_own():
    done = run("fit visits.csv --formula age --by arm --effect none --out results")
    assert done.exit_code == 0, done.output
    table = pd.read_csv("results/effects.csv")
    assert table["group"].tolist() == ["a", "b"]
    panel, model = gp4c.read_panel("visits.csv"), gp4c.GP4C(formula="age", effect=None)
    one = gp4c.compare(panel, "arm", model, n_permutations=9, bayes_factor=False).models["b"]
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
    assert "'age' is missing for 1 subject: 7; --drop-missing leaves them out" in done.output
    done = run("fit visits.csv --formula age --effect none --drop-missing")
    assert done.exit_code == 0, done.output
    assert "3 intervals without covariates left out, of 1 subject: 7" in done.output
    assert "39" in done.stdout


# -- predict and forecast at chosen covariates ---------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A saved fit with a number, a category of words and a category of numbers."""
    table = table_of_visits()
    table["stage"] = 1 + table["id"] % 2
    panel = gp4c.PanelCounts.from_frame(table, subject="id", start="from", stop="to", count="n")
    model = gp4c.GP4C(formula="age + arm + C(stage)", effect="gamma", bursts=False).fit(panel)
    place = tmp_path_factory.mktemp("fitted") / "fit.json"
    model.save(place)
    return model, place


def test_predictions_at_covariates_are_the_librarys(fitted):
    model, place = fitted
    done = run(
        f"predict {place} --from 0 --to 9 --points 4 --level 0.8 --covariate arm=b "
        "--covariate age=61.5 --covariate stage=2"
    )
    assert done.exit_code == 0, done.output
    table = pd.read_csv(StringIO(done.stdout))
    chosen = {"arm": "b", "age": 61.5, "stage": 2}
    times = np.array([0.0, 3.0, 6.0, 9.0])
    expected = {
        "rate": model.intensity(times, covariates=chosen),
        "cumulative": model.cumulative(times, covariates=chosen),
    }
    expected["rate_low"], expected["rate_high"] = model.intensity_band(
        times, 0.8, covariates=chosen
    )
    expected["cumulative_low"], expected["cumulative_high"] = model.cumulative_band(
        times, 0.8, covariates=chosen
    )
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values, rtol=1e-9, atol=1e-12)
    assert done.stderr == ""


def test_what_is_not_chosen_is_average_and_said_so(fitted):
    model, place = fitted
    done = run(f"predict {place} --at 5 --covariate arm=b")
    assert "at their average: age, stage" in done.stderr
    rate = pd.read_csv(StringIO(done.stdout))["rate"].item()
    assert rate == pytest.approx(model.intensity(5.0, covariates={"arm": "b"}), rel=1e-9)
    assert "at their average: age, arm, stage" in run(f"predict {place} --at 5").stderr


def test_forecasts_at_covariates_are_the_librarys(fitted):
    model, place = fitted
    done = run(
        f"forecast {place} --to 12 --seed 5 --json --covariate 'stage = 2.0' --covariate arm=a"
    )
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["forecasts"]
    found = model.forecast(9, 12, covariates={"stage": 2, "arm": "a"}, random_state=5)
    assert row["mean"] == pytest.approx(found.mean)
    assert (row["low"], row["high"]) == found.interval
    assert "at their average: age" in done.stderr
    done = run(f"forecast {place} --to 12 --subjects all")
    assert done.exit_code == 0, done.output
    assert "average" not in done.stderr  # known subjects have their own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--covariate arms=b", "there are 'age', 'arm', 'stage'; did you mean 'arm'?"),
        ("--covariate arm=c", "'arm' had no level 'c' in the fit; its levels were a, b"),
        ("--covariate stage=3", "'stage' had no level '3' in the fit; its levels were 1, 2"),
        ("--covariate age=old", "'age' was numeric in the fit; found 'old'"),
        ("--covariate age=nan", "'age' was numeric in the fit; found 'nan'"),
        ("--covariate arm", "--covariate takes NAME=VALUE, such as --covariate age=1; found 'arm'"),
        ("--covariate arm=", "--covariate takes NAME=VALUE"),
        ("--covariate arm=a --covariate arm=b", "two values of 'arm'"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "forecast --to 12"])
def test_covariates_that_cannot_be_are_refused_in_a_line(fitted, command, options, message):
    done = run(f"{command} {fitted[1]} {options}")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert done.stdout == ""


def test_covariates_belong_to_fits_with_a_formula(fitted):
    done = run(f"forecast {fitted[1]} --to 12 --subjects all --covariate arm=a")
    assert done.exit_code == 0  # what if all had been in this arm from now on
    assert "Covariates are as given: arm=a." in " ".join(done.stdout.split())
    gp4c.HomogeneousPoisson().fit(gp4c.read_panel("visits.csv")).save("fit.json")
    done = run("predict fit.json --covariate arm=a")
    assert done.exit_code == 2
    assert done.stderr.startswith("gp4c: --covariate needs a fit with covariates")


def test_true_and_false_are_values_of_yes_or_no_columns():
    table = table_of_visits().assign(smoker=lambda t: t["id"] % 3 == 0)
    table.to_csv("visits.csv", index=False)
    quick = {"effect": None, "bursts": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gp4c.exceptions.OverdispersionWarning)
        model = gp4c.GP4C(formula="smoker", **quick).fit(gp4c.read_panel("visits.csv"))
    model.save("fit.json")
    done = run("predict fit.json --at 5 --covariate smoker=True")
    assert done.exit_code == 0, done.output
    rate = pd.read_csv(StringIO(done.stdout))["rate"].item()
    assert rate == pytest.approx(model.intensity(5.0, covariates={"smoker": True}), rel=1e-9)


# -- what a new user stumbled over ---------------------------------------------------------------


def test_a_mark_for_missing_numbers_is_no_category(workplace):
    rows = [f"{k},0,4,{k % 3},{70 + k},{'ab'[k % 2]}" for k in range(1, 16)]
    rows[3] = "4,0,4,1,k.A.,b"
    (workplace / "w.csv").write_text("\n".join(["id,from,to,n,body weight,arm", *rows]))
    done = run("fit w.csv --formula '`body weight`'")
    assert done.exit_code == 2
    assert "'body weight' has 'k.A.' beside numbers, and would be a category with" in done.stderr
    assert "or write C(`body weight`) if a category is meant" in done.stderr
    refused = run("fit w.csv --formula 'arm + body weight'")
    assert "go in back quotes, such as `body weight`" in refused.stderr


def test_categories_of_numbers_and_names_are_still_categories():
    doses = ["5", "10", "placebo"] * 5
    table = pd.DataFrame({"dose": doses})
    design = FormulaDesign.learn("dose", table, np.full(15, 1 / 15))
    assert design.levels["dose"] == ("10", "5", "placebo")
    many = pd.DataFrame({"site": [f"{k}" for k in range(14)] + ["home"]})
    with pytest.raises(PanelDataError, match="'site' has 'home' beside numbers"):
        FormulaDesign.learn("site", many, np.full(15, 1 / 15))
    assert len(FormulaDesign.learn("C(site)", many, np.full(15, 1 / 15)).levels["site"]) == 15


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.ConvergenceWarning")  # names, not bands
@pytest.mark.parametrize(
    ("formula", "said"),
    [("arm + age", "arm: a"), ("C(arm, contr.treatment('b'))", "arm: b"), ("age", None)],
)
def test_the_reference_of_a_category_is_named(formula, said):
    quick = {"hyper": "optimize", "bursts": False, "effect": None}
    model = gp4c.GP4C(formula=formula, **quick).fit(gp4c.read_panel("visits.csv"))
    rows = {row.quantity: row.text for row in summarise(model).rows}
    assert rows.get("reference") == said
    page = "".join(effects_section({"all": model}, 0.95, None))
    assert (f"reference levels: {said}" in page) is (said is not None)
