"""`gp4c compare`, `forecast`, `report`, `describe --by`: the library's numbers in one place."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.cli import app as program
from gp4c.estimators.forecasts.count_forecast import forecast
from gp4c.reporting.figures.curves import curves_of

QUICK = {"count_term": "pointwise", "hyper": "optimize", "n_inducing": 10}


@pytest.fixture(scope="module")
def table():
    panel, _ = gp4c.simulate_panel(
        0.5, window=(0, 8), n_subjects=12, n_intervals=3, frailty=0.5,
        covariates={"arm": ["a", "b"] * 6}, random_state=2,
    )  # fmt: skip
    return panel.to_frame().to_csv(index=False)


@pytest.fixture
def workplace(tmp_path, monkeypatch, table):
    """A folder with a table; estimators that take no second, as the commands build them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(table)

    def quick(options, seed):
        return gp4c.GP4C(effect="gamma", random_state=seed, **QUICK)

    monkeypatch.setattr("gp4c.cli.options.model_options.ModelOptions.build", quick)
    return tmp_path


def run(line, **options):
    return CliRunner().invoke(program, shlex.split(line), **options)


def words(text):
    return " ".join(text.split())


# -- compare ------------------------------------------------------------------------------------


def test_compare_says_what_the_library_says(workplace):
    done = run(
        "compare visits.csv --by arm --permutations 199 --reference b --seed 3 --out results"
    )
    assert done.exit_code == 0, done.output
    panel = gp4c.read_panel("visits.csv")
    model = gp4c.GP4C(effect="gamma", random_state=3, **QUICK)
    found = compare(panel, "arm", model, reference="b", n_permutations=199, random_state=3)
    assert words(done.stdout) == words(str(found))
    assert max(map(len, done.stdout.splitlines())) <= 80
    pairs = pd.read_csv("results/pairs.csv")
    assert pairs["p_value"].item() == pytest.approx(found.p_value)
    names = {p.name for p in (workplace / "results").iterdir()}
    assert {"ratios.csv", "cumulative.png", "ratio-cumulative.png", "comparison.json"} <= names
    document = json.loads((workplace / "results" / "comparison.json").read_text())
    assert document["groups"] == ["b", "a"]
    assert document["pairs"][0]["ratio"] == pytest.approx(pairs["ratio"].item())


def test_compare_prints_json_or_nothing(workplace):
    done = run("compare visits.csv --by arm --permutations 19 --json")
    assert json.loads(done.stdout)["by"] == "arm"
    assert run("compare visits.csv --by arm --permutations 19 --quiet").output == ""


@pytest.fixture
def ward(workplace):
    """The same subjects with centres, blocks, doses and a column that changes."""
    table = pd.read_csv("visits.csv")
    who = table["subject"] - 1
    table["centre"] = (who // 4).map({0: "x", 1: "y", 2: "z"})
    table["block"] = who // 2
    table["dose"] = (who % 3).map({0: "10 mg", 1: "5 mg", 2: "none"})
    table["state"] = ["ill" if k % 3 == 1 else "well" for k in range(len(table))]
    table["ward"] = "one"
    table["lone"] = table["centre"].where(who != 0, "w")
    table.to_csv("ward.csv", index=False)
    return workplace


def test_compare_within_strata_and_blocks(ward):
    done = run("compare ward.csv --by arm --strata centre --json")
    document = json.loads(done.stdout)
    assert document["strata"] == "centre"
    assert document["log10_labellings"] == pytest.approx(np.log10(6**3))
    assert document["exact"]
    assert (
        document["p_value"]
        == compare(
            gp4c.read_panel("ward.csv"), "arm", gp4c.GP4C(effect="gamma", **QUICK), strata="centre"
        ).p_value
    )
    said = words(run("compare ward.csv --by arm --strata centre --blocks block").stdout)
    assert (
        "all 64 ways to label the subjects within 3 strata of centre and 6 blocks of block" in said
    )


def test_compare_ordered_groups_early(ward):
    done = run("compare ward.csv --by dose --test trend --weights early --permutations 99 "
               "--reference none")  # fmt: skip
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert "(trend, early)" in said
    assert "scores: none 0, 5 mg 5, 10 mg 10" in said
    given = run('compare ward.csv --by dose --test trend --permutations 99 --json --scores '
                '"none=0,5 mg=1,10 mg=2"')  # fmt: skip
    document = json.loads(given.stdout)
    assert document["scores"] == [0.0, 1.0, 2.0]  # the lowest first
    assert document["trend"]["low"] < document["trend"]["factor"] < document["trend"]["high"]
    some = json.loads(run("compare ward.csv --by arm --test any --permutations 99 --json").stdout)
    assert some["trend"] is None
    assert set(some["parts"]) == {"level", "early", "late", "crossing", "curve"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--by arm --strata lone", "stratum 'w' of 'lone' has one group only, 'arm' = 'a'"),
        ("--by arm --strata block --blocks arm", "no block of 'arm' has two groups of 'arm'"),
        ("--by centre --strata centre", "'x' of 'centre' is in one stratum only"),
        ("--by ward", "'ward' has one level only, 'one': nothing to compare"),
        ("--by arm --strata ward", "'ward' has one level only, 'one': leave it out of the strata"),
        ("--by state", "'state' varies within a subject and cannot say which group it is in"),
        ("--by arm --strata state", "subject 1 has 'well' in"),
        ("--by arm --strata block --blocks ward", "'one': leave it out of the blocks"),
        ("--by arm --test trend", "--test trend needs a number for each group of 'arm'"),
        ("--by arm --test trend", """give scores, such as --scores "low=1,high=2\""""),
        ("--by arm --scores a=1,b=2", "--scores go with --test trend, not with --test level"),
        ("--by arm --cluster arm", "--cluster arm has 2 levels; a random effect takes 4 to 200"),
        ("--by dose --test trend --scores none=zero", "GROUP=NUMBER"),
        (
            "--by arm --test any --weights late",
            "--weights go with --test level and --test trend; --test any",
        ),
    ],
)
def test_columns_that_cannot_be_compared_are_one_sentence(options, message, ward):
    done = run(f"compare ward.csv {options}")
    assert done.exit_code == 2
    said = words(done.stderr.replace("│", " "))
    assert message in said
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare visits.csv --by sex", "no covariate 'sex'"),
        ("compare visits.csv --by arm --reference c", "no level 'c'"),
        ("compare visits.csv", "--by"),
        ("report visits.csv --by sex --out results", "no covariate 'sex'"),
        ("report nothing.json --out results", "there is no file"),
        ("report visits.csv --forecast-to 3 --out results", "must be after the data"),
        ("forecast fit.json --to 3", "--to must be after the data, which end at"),
        ("forecast fit.json --from 4 --to 3", "--from must be before --to"),
        ("forecast fit.json --to 12 --subjects nobody", "no subject 'nobody'"),
    ],
)
def test_mistakes_exit_with_2(line, message, workplace):
    gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.read_panel("visits.csv")).save("fit.json")
    done = run(line)
    assert done.exit_code == 2
    assert message in words(done.stderr.replace("│", " "))
    assert "Traceback" not in done.output
    assert not (workplace / "results").exists()


# -- forecast -----------------------------------------------------------------------------------


@pytest.fixture
def saved(workplace):
    model = gp4c.GP4C(effect="gamma", **QUICK).fit(gp4c.read_panel("visits.csv"))
    model.save(workplace / "fit.json")
    return model


def test_forecast_says_what_the_library_says(saved, workplace):
    done = run(
        "forecast fit.json --from 8 --to 10 --level 0.8 --subjects all --seed 4 --out results"
    )
    assert done.exit_code == 0, done.output
    found = forecast(saved, 8.0, 10.0, "all", level=0.8, random_state=4)
    assert words(done.stdout) == words(str(found)).replace('beyond="hold"', "--beyond hold")
    row = pd.read_csv("results/forecast.csv").iloc[0]
    assert (row["low"], row["high"]) == found.interval
    assert (workplace / "results" / "forecast.png").read_bytes().startswith(b"\x89PNG")


def test_forecast_of_subjects_named_on_the_command_line(saved):
    done = run("forecast fit.json --to 10 --subjects 3 --subjects 5 --json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["forecasts"]
    found = forecast(saved, 8.0, 10.0, [3, 5], random_state=0)
    assert [row["subject"] for row in rows] == [3, 5]
    assert [row["mean"] for row in rows] == pytest.approx(list(found.mean))


def test_one_subject_is_a_sentence(saved):
    said = run("forecast fit.json --to 10 --subjects 3").stdout
    assert said.startswith(str(forecast(saved, 8.0, 10.0, 3)).split("]")[0])
    assert "subject 3; 90% interval" in words(said)


@pytest.fixture
def dated(workplace):
    """A fit to visits with dates: 2024-01-01 to 2024-04-10, 100 days."""
    rows = (
        "a,2024-01-01,0",
        "a,2024-02-10,2",
        "a,2024-04-10,1",
        "b,2024-01-15,0",
        "b,2024-04-01,3",
    )
    (workplace / "dated.csv").write_text("\n".join(["id,date,n", *rows]))
    panel = gp4c.read_panel("dated.csv", time="date", origin=None)
    model = gp4c.GP4C(effect="gamma", **QUICK).fit(panel)
    model.save(workplace / "dated.json")
    return model


def test_times_may_be_dates_where_the_data_had_dates(dated, workplace):
    done = run("forecast dated.json --from 2024-04-10 --to 2024-05-10 --subjects all")
    assert done.exit_code == 0, done.output
    assert words(done.stdout) == words(str(forecast(dated, 100, 130, "all"))).replace(
        'beyond="hold"', "--beyond hold"
    )
    assert "2024-04-10 to 2024-05-10 (days 100 to 130)" in words(done.stdout)
    rows = json.loads(run("forecast dated.json --to 2024-05-10 --json").stdout)["forecasts"]
    assert (rows[0]["stop"], rows[0]["stop_date"]) == (130.0, "2024-05-10")
    assert "--beyond hold" in json.loads(run("forecast dated.json --to 130 --json").stdout)["note"]
    line = run("predict dated.json --at 2024-02-10").stdout.splitlines()[1]
    assert line.startswith("40.0,2024-02-10,")
    lines = run("predict dated.json --from 2024-01-11 --to 2024-01-31 --points 3").stdout
    assert [line.split(",")[0] for line in lines.splitlines()[1:]] == ["10.0", "20.0", "30.0"]
    options = "--time date --origin first --window 2024-01-01 2024-05-01"
    assert "2024-01-01 to 2024-05-01 (days 0 to 121)" in run(f"describe dated.csv {options}").stdout
    assert run("report dated.json --forecast-to 2024-05-10 --out r").exit_code == 0
    page = (workplace / "r" / "report.html").read_text()
    assert "2024-04-10 to 2024-05-10" in page
    assert "; 2024-01-01 to 2024-04-10 (days 0 to 100)" in page
    assert '"xlabel":"date"' in page
    assert "days since" not in page.split('id="data"')[0]
    assert "2024-01-01 to 2024-04-10 (days 0 to 100)" in words(str(dated.summary()))
    assert dated.plot().get_xlabel() == "date"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("forecast dated.json --to 2024-04-01", "end at 100 (2024-04-10); it is 91 (2024-04-01)"),
        ("forecast dated.json --to 10/05/2024", "a date must have one meaning"),
        ("forecast dated.json --to inf", "--to takes a finite number; found 'inf'"),
        ("predict dated.json --at 2025-01-01", "time 366 (2025-01-01) is outside"),
        ("report dated.json --forecast-to 2024-01-01 --out r", "which end at 100 (2024-04-10)"),
        ("forecast fit.json --to 2025-01-01", "--to takes a number, as the times of this fit are"),
        ("describe visits.csv --window 0 2024-01-01", "times are numbers, not dates"),
    ],
)
def test_dates_that_cannot_be(line, message, dated, saved):
    done = run(line)
    assert done.exit_code == 2
    assert message in words(done.stderr.replace("│", " "))


def test_exposures_are_kept_or_given_and_said(workplace):
    rows = ["a,0,5,2,8", "a,5,10,3,16", "b,0,10,1,4", "c,0,10,9,24"]
    (workplace / "m.csv").write_text("\n".join(["id,from,to,n,hours", *rows]))
    panel = gp4c.read_panel("m.csv", exposure="hours", time_unit="days")
    model = gp4c.GP4C(effect="gamma", **QUICK).fit(panel)
    model.save("m.json")
    fleet = run("forecast m.json --to 12 --subjects all").stdout
    assert "Exposure is as last observed, 4 to 24." in words(fleet)
    assert fleet.startswith(
        str(forecast(model, 10, 12, "all", exposure="last")).split(" events")[0]
    )
    new = words(run("forecast m.json --to 12").stdout)
    assert "Exposure is 1; in the data it was" in new
    chosen = run("forecast m.json --to 12 --exposure 20").stdout
    assert "Exposure" not in chosen
    assert chosen.startswith(str(forecast(model, 10, 12, exposure=20.0)).split(" events")[0])
    refused = run("forecast m.json --to 12 --exposure much")
    assert refused.stderr == "gp4c: --exposure takes a number or last; found 'much'\n"
    summary = str(model.summary())
    assert "per subject at exposure 1" in words(summary)
    assert "per day at exposure 1" in summary
    assert curves_of(model).rate_label == "events per day at exposure 1"
    report = run("report m.csv --exposure hours --time-unit days --forecast-to 12 --out r")
    assert report.exit_code == 0, report.output
    page = (workplace / "r" / "report.html").read_text()
    assert "events per subject at exposure 1 by 10 days" in page
    assert "Exposure is as last observed, 4 to 24." in page


@pytest.mark.parametrize("line", ["forecast {} --to 9", "predict {}"])
def test_a_table_in_place_of_a_fit_names_the_remedy(line, workplace):
    for table in ("visits.csv", "bladder"):
        done = run(line.format(table))
        assert done.exit_code == 2
        assert f"saved fit: `gp4c fit {table} --out DIR` writes DIR/fit.json" in done.stderr
    assert "saved fit" not in run(line.format("nothing.json")).stderr
    (workplace / "bad.json").write_text("{")
    assert run(line.format("bad.json")).stderr == "gp4c: 'bad.json' is not a JSON file\n"


# -- report -------------------------------------------------------------------------------------


def test_the_report_of_groups_has_all_sections(workplace):
    done = run("report visits.csv --by arm --forecast-to 10 --title 'Arms & <legs>' --out r/x.html")
    assert done.exit_code == 0, done.output
    text = (workplace / "r" / "x.html").read_text(encoding="utf-8")
    assert "<h1>Arms &amp; &lt;legs&gt;</h1>" in text
    keys = re.findall(r'<section id="(\w+)"', text)
    assert keys == [
        "results", "comparison", "forecast", "data", "models", "diagnostics", "method", "reproduce",
    ]  # fmt: skip


def test_the_report_of_a_saved_fit_says_what_it_can(saved, workplace):
    done = run("report fit.json --out results")
    assert done.exit_code == 0, done.output
    text = (workplace / "results" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="(\w+)"', text) == ["results", "models", "method", "reproduce"]
    assert f"{saved.cumulative(saved.window_[1]):#.3g}" in text


# -- describe by groups -------------------------------------------------------------------------


def test_describe_by_groups_says_what_the_library_says():
    table = gp4c.load_dataset("bladder").table(by="treatment")
    done = run("describe bladder --by treatment")
    assert (done.exit_code, done.stdout.strip()) == (0, str(table).strip())
    rows = json.loads(run("describe bladder --by treatment --json").stdout)["rows"]
    assert rows == json.loads(table.to_frame().to_json(orient="records", double_precision=15))
    printed = run("describe bladder --by treatment --csv").stdout
    assert printed.splitlines()[0] == "quantity,statistic,placebo,thiotepa,all"
    assert run("describe bladder --json --csv").exit_code == 2
    turned = run("describe bladder --by treatment --reference thiotepa --csv").stdout
    assert turned.splitlines()[0] == "quantity,statistic,thiotepa,placebo,all"
    assert "--by" in run("describe bladder --reference thiotepa").stderr


def test_describe_by_groups_writes_its_table(workplace):
    assert run("describe bladder --by treatment --out results").exit_code == 0
    names = sorted(p.name for p in (workplace / "results").iterdir())
    assert names == ["panel.png", "summary.csv", "table.csv"]


def test_describe_in_json_has_the_summary():
    found = json.loads(run("describe bladder --json").stdout)
    assert {"quantity": "events", "value": 402} in found["rows"]


def test_describe_refuses_a_column_that_is_not_there():
    done = run("describe bladder --by arm")
    assert done.exit_code == 2
    assert "there is no covariate 'arm' to group by" in done.stderr
