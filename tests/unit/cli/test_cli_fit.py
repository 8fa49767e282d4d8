"""`gp4c fit` and `gp4c predict`: the numbers of the library, in files that appear whole."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.reporting.csv_tables import to_csv
from gp4c.reporting.fit_result import file_names

VISITS = "id,from,to,n,arm\n1,0,3,2,a\n1,3,9,0,a\n2,1,7,1,b\n3,0,6,4,b\n4,0,5,0,a\n5,2,9,3,b\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    return tmp_path


def run(line, **options):
    return CliRunner().invoke(program, shlex.split(line), **options)


def test_the_default_fit_says_what_the_library_says(workplace):
    done = run("fit visits.csv --time-unit weeks --level 0.8 --out results")
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    names = {"fit.json", "curves.csv", "summary.txt", "summary.json"}
    plots = {f"{what}.{end}" for what in ("intensity", "cumulative") for end in ("png", "svg")}
    assert {p.name for p in (workplace / "results").iterdir()} == names | plots
    model = gp4c.load_model("results/fit.json")
    assert model.time_unit_ == "weeks"
    low, high = model.cumulative_band(9.0, 0.8)
    table = pd.read_csv("results/curves.csv")
    last = table.iloc[-1]
    np.testing.assert_allclose(
        last[["time", "rate", "cumulative", "cumulative_low", "cumulative_high"]],
        [9.0, model.intensity(9.0), model.cumulative(9.0), low, high],
    )
    assert f"{model.cumulative(9.0):#.3g} (80% band {low:#.3g} to {high:#.3g})" in done.stdout
    assert (workplace / "results" / "summary.txt").read_text() == done.stdout
    refit = gp4c.GP4C(random_state=0).fit(gp4c.read_panel("visits.csv", time_unit="weeks"))
    assert refit.cumulative(9.0) == model.cumulative(9.0)


def test_bursts_are_asked_for_and_written_down():
    done = run("fit visits.csv --bursts yes --effect gamma --json")
    assert done.exit_code == 0, done.output
    (fit,) = json.loads(done.stdout)["fits"]
    assert fit["law"] == "bursts"
    assert fit["dispersion"] > 1 < fit["burst_size"]
    assert fit["frailty_variance"] > 0
    assert fit["effective_draws"] > 100
    assert fit["pareto_k"] < 0.7
    assert set(fit["check"]) >= {"dispersion", "allowed", "p_value"}
    assert "come in bursts of" in fit["summary"]["Differences between visits"]["bursts"]["text"]
    plain = run("fit visits.csv --model hpp --bursts no --json")
    (fit,) = json.loads(plain.stdout)["fits"]
    assert (fit["law"], fit["dispersion"], fit["pareto_k"]) == ("poisson", 1.0, None)


def test_each_group_has_a_fit_of_its_own(workplace):
    done = run("fit visits.csv --by arm --model hpp --out results")
    assert done.exit_code == 0, done.output
    panel = gp4c.read_panel("visits.csv")
    table = pd.read_csv("results/curves.csv")
    for arm in "ab":
        model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel.where(arm=arm))
        saved = gp4c.load_model(f"results/fit-{arm}.json")
        assert saved.rate_ == model.rate_
        assert table.loc[table["group"] == arm, "rate"].iloc[0] == pytest.approx(model.rate_)
        assert f"== arm: {arm} ==" in done.stdout


def test_json_is_for_programs_and_quiet_is_quiet():
    done = run("fit visits.csv --model hpp --effect none --json")
    document = json.loads(done.stdout)
    (fitted,) = document["fits"]
    assert fitted["group"] is None
    rate = gp4c.HomogeneousPoisson().fit(gp4c.read_panel("visits.csv")).rate_
    assert fitted["summary"]["Result"]["average rate"]["value"] == pytest.approx(rate)
    done = run("fit visits.csv --model hpp --quiet --out results")
    assert done.exit_code == 0
    assert done.output == ""


@pytest.mark.parametrize("model", ["npmle", "npmplgf", "npmple"])
def test_step_functions_have_bootstrap_bands_and_no_intensity(workplace, model):
    done = run(f"fit bladder --model {model} --bootstrap 30 --seed 5 --out results")
    assert done.exit_code == 0, done.output
    assert "30 bootstrap samples" in done.stdout
    assert not (workplace / "results" / "intensity.png").exists()
    saved = gp4c.load_model("results/fit.json")
    assert saved.bootstrap_seed_ == 5
    table = pd.read_csv("results/curves.csv")
    assert "rate" not in table
    assert (table["cumulative_low"] <= table["cumulative_high"]).all()
    assert (table["cumulative_high"] > table["cumulative_low"]).any()


def test_local_em_without_bootstrap_says_that_it_has_no_bands():
    done = run("fit visits.csv --model local-em --bootstrap 0")
    assert done.exit_code == 0
    assert "no bands yet" in done.stdout


def test_standard_input_will_do():
    assert run("fit - --model hpp", input=VISITS).stdout == run("fit visits.csv --model hpp").stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit visits.csv --by sex", "no covariate 'sex' to group by; there are: arm"),
        ("fit visits.csv --model npmple --effect gamma", "takes --effect auto, none"),
        ("fit visits.csv --model gp4cw --effect gamma", "takes --effect auto, weight"),
        ("fit visits.csv --model npmle --bursts yes", "takes --bursts auto, no; not yes"),
        ("fit visits.csv --effect weight --bursts yes", "--bursts yes does not go with"),
        ("fit visits.csv --level 2", "--level"),
        ("fit nothing.csv", "there is no file"),
        ("predict nothing.json", "there is no file"),
        ("predict visits.csv", "is not a JSON file"),
    ],
)
def test_mistakes_exit_with_2_and_leave_nothing(line, message, workplace):
    done = run(line + " --out results")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.output
    assert not (workplace / "results").exists()


def test_too_many_groups_are_a_wrong_column(workplace):
    rows = "".join(f"{k},0,1,1,{k / 7}\n" for k in range(30))
    (workplace / "many.csv").write_text("id,from,to,n,weight\n" + rows)
    done = run("fit many.csv --by weight --model hpp")
    assert done.exit_code == 2
    assert "30 different values" in done.stderr


# -- predict ------------------------------------------------------------------------------------


@pytest.fixture
def saved(workplace):
    model = gp4c.HomogeneousPoisson().fit(gp4c.read_panel("visits.csv"))
    model.save(workplace / "fit.json")
    return model


def test_predict_prints_the_curves_at_the_times_asked_for(saved, tmp_path):
    done = run("predict fit.json --from 1 --to 3 --points 3 --level 0.9")
    (tmp_path / "p.csv").write_text(done.stdout)
    table = pd.read_csv("p.csv")
    assert table["time"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(table["cumulative_high"], saved.cumulative_band([1, 2, 3], 0.9)[1])
    done = run("predict fit.json --at 5 --at 2.5 --out more")
    assert done.exit_code == 0
    assert pd.read_csv("more/predictions.csv")["time"].tolist() == [2.5, 5]


def test_predict_leaves_the_window_only_if_asked(saved):
    done = run("predict fit.json --to 20 --points 2")
    assert done.exit_code == 2
    assert "--extrapolate" in done.stderr
    done = run("predict fit.json --to 20 --points 2 --extrapolate")
    assert done.stdout.splitlines()[-1].startswith("20.0,")
    assert run("predict fit.json --from 5 --to 5").exit_code == 2


# -- files --------------------------------------------------------------------------------------


def test_labels_cannot_become_formulas_in_a_spreadsheet(workplace):
    attack = '=HYPERLINK("x")'
    rows = f'1,0,3,2,"{attack.replace(chr(34), chr(34) * 2)}"\n2,1,7,1,@b\n3,0,6,4,-5\n'
    (workplace / "bad.csv").write_text("id,from,to,n,arm\n" + rows)
    done = run("fit bad.csv --by arm --model hpp --out results")
    assert done.exit_code == 0, done.output
    groups = pd.read_csv("results/curves.csv", dtype={"group": str})["group"].unique()
    assert set(groups) == {f"'{attack}", "'@b", "-5"}
    frame = pd.DataFrame({"=a": [1.5, -2.0], "b": ["+1+1", "-3"]})
    assert to_csv(frame) == "'=a,b\n1.5,'+1+1\n-2.0,-3\n"


def test_file_names_of_groups_are_plain_and_different():
    assert file_names([None]) == ["fit.json"]
    assert file_names(["a b", "a/b", "../c", "ü"]) == [
        "fit-a-b.json",
        "fit-a-b-2.json",
        "fit----c.json",
        "fit--.json",
    ]
    many = file_names(["x", "x", "X", "x-2", "x"])
    assert len({name.casefold() for name in many}) == len(many)


def test_the_help_names_every_estimator():
    from gp4c.cli.options.estimator_options import estimator_names

    words = run("fit --help").stdout.replace("│", " ").split()
    assert {name.strip(".,;") for name in words} >= set(estimator_names()) >= {"gp4c", "hpp"}


def test_an_unknown_estimator_is_refused_with_the_known_ones_before_the_table_is_read():
    done = run("fit no-such-file.csv --model magic")
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "'magic' is not one of " in said
    assert all(name in said for name in ("gp4c", "gp4cw", "hpp", "mixture"))
