"""Types of events on the command line: reading, files, report, comparison, forecasts."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app
from typed_panels import simulated_types


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long and a wide table of the same counts, and a fit."""
    place = tmp_path_factory.mktemp("types")
    long = simulated_types(40, seed=2, n_visits=4).to_frame()
    long.to_csv(place / "long.csv", index=False)
    rows = ["subject", "start", "stop", "arm"]
    wide = long.pivot_table(index=rows, columns="event", values="count").reset_index()
    wide.astype({"first": int, "second": int}).to_csv(place / "wide.csv", index=False)
    run(
        "fit", place / "long.csv", "--event", "event", "--formula", "arm", "--bursts", "no",
        "--out", place / "fit", "--quiet", "--tables", "csv", "--figures", "svg",
    )  # fmt: skip
    return place


def run(*words, code=0):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, found.output
    return found.output if code else found.stdout


def test_a_column_of_types_and_a_column_for_each_are_one_panel(folder):
    long = run("describe", folder / "long.csv", "--event", "event")
    wide = run("describe", folder / "wide.csv", "--count", "first", "--count", "second")
    assert long.splitlines()[1:] == wide.splitlines()[1:]
    assert "first, second" in long


def test_what_a_fit_writes_has_every_type_and_their_total(folder):
    curves = pd.read_csv(folder / "fit" / "curves.csv")
    last = curves.groupby("group")["cumulative"].last()
    assert last["first"] + last["second"] == pytest.approx(last["all types"])
    effects = pd.read_csv(folder / "fit" / "effects.csv")
    assert effects["group"].tolist() == ["first", "second"]
    document = json.loads((folder / "fit" / "summary.json").read_text())
    assert set(document["fits"][0]["types"]) == {"first", "second"}


def test_predictions_and_forecasts_of_a_type(folder):
    fit = folder / "fit" / "fit.json"
    parts = [
        float(run("predict", fit, "--at", "5", "--covariate", "arm=b", *more).split(",")[-3])
        for more in ([], ["--event", "first"], ["--event", "second"])
    ]
    assert parts[0] == pytest.approx(parts[1] + parts[2])
    model = gp4c.load_model(fit)
    told = json.loads(
        run("forecast", fit, "--from", "7", "--to", "9", "--event", "first", "--json")
    )
    own = model.forecast(7, 9, None, event="first", random_state=0)
    assert told["forecasts"][0]["mean"] == pytest.approx(float(own.mean))


def test_a_forecast_of_a_new_subject_takes_its_covariates(folder):
    # covariates of nobody have no columns: this was an error
    model = gp4c.load_model(folder / "fit" / "fit.json")
    for arm in "ab":
        found = model.forecast(0, 9, None, covariates={"arm": arm}, random_state=1)
        expected = model.cumulative(9.0, covariates={"arm": arm})
        assert float(found.mean) == pytest.approx(expected, rel=0.1)


def test_the_json_of_a_comparison_has_every_type(folder):
    document = json.loads(run(
        "compare", folder / "wide.csv", "--count", "first", "--count", "second", "--by", "arm",
        "--permutations", "99", "--bursts", "no", "--effect", "none", "--json",
    ))  # fmt: skip
    assert [row["event"] for row in document["tests"]] == ["first", "second"]
    for row in document["tests"]:
        assert document["types"][row["event"]]["p_value"] == row["p_value"]


def test_a_type_that_is_not_there_is_named(folder):
    fit = folder / "fit" / "fit.json"
    assert "'second'" in run("predict", fit, "--at", "5", "--event", "secnd", code=2)
    lines = (folder / "long.csv").read_text().splitlines(keepends=True)
    (folder / "short.csv").write_text("".join([lines[0], *lines[2:]]))
    said = run("describe", folder / "short.csv", "--event", "event", code=2)
    assert "write 0 if none was seen, or pass --drop-missing" in said


@pytest.mark.filterwarnings("default::gp4c.exceptions.GP4CWarning")
def test_a_table_of_groups_has_each_type_and_leaves_out_who_has_no_group(folder):
    wide = pd.read_csv(folder / "wide.csv")
    nobody = wide["subject"].isin(wide["subject"].unique()[:2])
    wide.assign(arm=wide["arm"].where(~nobody)).to_csv(folder / "gaps.csv", index=False)
    words = ["describe", folder / "gaps.csv", "--count", "first", "--count", "second"]
    words += ["--by", "arm"]
    assert "'arm' is missing for 2 subjects" in run(*words, code=2)
    rows = json.loads(run(*words, "--json", "--drop-missing"))["rows"]
    events = {row["quantity"]: row for row in rows if row["statistic"] in ("n", "total")}
    assert events["subjects"]["all"] == wide["subject"].nunique() - 2
    for event in ("first", "second"):
        for arm in ("a", "b"):
            counted = wide[event][(wide["arm"] == arm) & ~nobody].sum()
            assert events[f"events, {event}"][arm] == counted


def test_what_knows_no_types_is_told_in_terms_of_the_command_line(folder):
    words = ["backtest", folder / "wide.csv", "--count", "first", "--count", "second"]
    said = run(*words, "--model", "hpp", "--horizon", "1", code=2)
    assert "give one --count column" in " ".join(said.split())
    assert "panel." not in said
