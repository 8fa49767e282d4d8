"""The questions about a fleet are one command each, and say what the library says."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app
from gp4c.exceptions import PanelDataError

runner = CliRunner()


@pytest.fixture(scope="module")
def records():
    """Machines with dated inspections: hours since the last one, retirement dates."""
    rng, rows = np.random.default_rng(5), []
    day = pd.Timestamp("2023-01-01")
    for k in range(30):
        t, daily, effect = 0, rng.uniform(4, 16), rng.gamma(2, 0.5)
        end = int(rng.integers(200, 500)) if k % 3 == 0 else 730
        rows.append((f"M{k:02}", day, 0, 0.0, None))
        while t < end:
            stop = min(t + int(rng.integers(30, 90)), end)
            hours = (stop - t) * daily
            count = rng.poisson(0.004 * effect * hours)
            gone = day + pd.Timedelta(days=end) if end < 730 else None
            rows.append((f"M{k:02}", day + pd.Timedelta(days=stop), count, hours, gone))
            t = stop
    return pd.DataFrame(rows, columns=["machine", "date", "failures", "hours", "retired_on"])


@pytest.fixture
def workplace(tmp_path, monkeypatch, records):
    monkeypatch.chdir(tmp_path)
    records.to_csv("inspections.csv", index=False)
    return tmp_path


READ = "--time date --origin first --usage hours --end retired_on --time-unit months"


def run(line):
    return runner.invoke(app, line.split())


@pytest.fixture
def fit(workplace):
    done = run(f"fit inspections.csv {READ} --model hpp --effect gamma --bursts no --out fleet")
    assert done.exit_code == 0, done.output
    assert "per hour of usage" in done.stdout
    return gp4c.load_model("fleet/fit.json")


def test_a_monthly_forecast_of_those_in_service_with_stock(fit):
    line = "forecast fleet/fit.json --to 2025-12-31 --every month --service 0.95"
    done = run(f"{line} --json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    found = fit.forecast(fit.window_[1], "2025-12-31", every="month", random_state=0)
    assert [row["mean"] for row in said["forecasts"]] == pytest.approx(found.mean.tolist())
    assert [row["stock"] for row in said["stock"]] == found.stock(0.95)["stock"].tolist()
    assert "20 of 30 subjects are in service" in said["note"]
    assert "--subjects all counts them" in said["note"]
    text = run(f"{line} --out f")
    assert "Parts that are enough with probability 95%:" in text.stdout
    assert len(pd.read_csv("f/forecast.csv")) == len(found.mean)
    assert pd.read_csv("f/stock.csv")["subject"].iloc[-1] == "total"


def test_every_machine_by_itself_is_printed_short(fit, workplace):
    done = run("forecast fleet/fit.json --to 2025-06-30 --every month --each --out f --service 0.9")
    assert done.exit_code == 0, done.output
    assert "more rows: --out writes all of them" in done.stdout
    assert "In all" in done.stdout
    assert len(pd.read_csv("f/forecast.csv")) == 20 * 6
    assert (workplace / "f" / "forecast.png").read_bytes().startswith(b"\x89PNG")


def test_additions_and_usage_are_options(fit):
    done = run(
        "forecast fleet/fit.json --to 2025-06-30 --new-units 5 --at 2025-03-01 --usage 300 --json"
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    found = fit.forecast(
        fit.window_[1], "2025-06-30", new_units=5, at="2025-03-01", usage=300.0, random_state=0
    )
    assert said["forecasts"][0]["mean"] == pytest.approx(found.mean)
    assert "5 from 2025-03-01 on" in said["note"]
    assert "Usage is as given, 300 hours per month." in said["note"]


def test_bad_actors_are_a_command(fit, workplace):
    done = run("units fleet/fit.json --out u")
    assert done.exit_code == 0, done.output
    ranking = fit.unit_ranking()
    assert done.stdout.splitlines()[1].split()[0] == ranking["subject"].iloc[0]
    assert "among the worst 10% of 30 units" in done.stdout
    assert pd.read_csv("u/units.csv")["subject"].tolist() == ranking["subject"].tolist()
    assert (workplace / "u" / "units.png").read_bytes().startswith(b"\x89PNG")
    whole = pd.read_csv(io.StringIO(run("units fleet/fit.json --csv").stdout))
    assert len(whole) == 30
    rows = json.loads(run("units fleet/fit.json --worst 0.2 --json").stdout)["units"]
    assert sum(row["probability"] for row in rows) == pytest.approx(6)


def test_the_report_of_a_fleet_has_its_units_and_those_in_service(workplace):
    done = run(
        f"report inspections.csv {READ} --model hpp --effect gamma --bursts no --bootstrap 0 "
        "--forecast-to 2025-06-30 --out r"
    )
    assert done.exit_code == 0, done.output
    page = (workplace / "r" / "report.html").read_text()
    assert "Units most likely among the worst tenth" in page
    assert "all subjects, in service" in page
    assert "20 of 30 subjects are in service" in page


def test_back_testing_is_a_command(workplace):
    done = run(
        f"backtest inspections.csv {READ} --model hpp --horizon 3 --origins 3 --json --out b"
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    names = ["hpp", "constant rate", "log-linear", "power-law"]
    assert [row["model"] for row in said["coverage"]] == names
    assert said["forecasts"][0]["origin_date"].startswith("2024-0")
    assert len(pd.read_csv("b/backtest.csv")) == len(said["forecasts"])
    assert (workplace / "b" / "backtest-pit.png").exists()


def test_back_tests_take_the_trend_and_the_season_of_the_fit(workplace, monkeypatch):
    tested = {}

    def backtest(models, *_, **__):
        tested.update(models)
        raise PanelDataError("that is enough")

    monkeypatch.setattr(gp4c, "backtest", backtest)
    parts = "--trend loglinear --season 12"
    done = run(f"backtest inspections.csv {READ} --horizon 3 {parts} --model gp4c --model hpp")
    assert "that is enough" in done.stderr
    assert (tested["gp4c"].trend, tested["gp4c"].season) == ("loglinear", 12.0)
    assert isinstance(tested["hpp"], gp4c.HomogeneousPoisson)
    refused = run(f"backtest inspections.csv {READ} --horizon 3 {parts} --model hpp")
    assert "--trend and --season go with --model gp4c" in refused.stderr


@pytest.mark.filterwarnings("default")
def test_hours_as_exposure_are_remarked_upon_in_terms_of_options(workplace):
    done = run("describe inspections.csv --time date --origin first --exposure hours")
    assert done.exit_code == 0
    assert "pass --usage 'hours'" in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("describe inspections.csv --time date --origin first --clock usage", "needs the column"),
        (
            f"backtest inspections.csv {READ} --model hpp --horizon 20 --origins 3",
            "3 origins of 20 each leave nothing to learn from",
        ),
        (
            "fit plain.csv --since-entry",
            "gp4c: --since-entry needs a table of visits, and this one has intervals from 'start' "
            "to 'stop'; name a column of visits with --time ...",
        ),
        ("fit plain.csv --cumulative", "gp4c: --cumulative needs a table of visits"),
        (
            "power --ratio 0.5 --pilot odd.csv",
            "has no column that looks like the count; there are 'tumours'; say which it is with "
            "--count ...); fit it first, `gp4c fit` with --out DIR, and pass --pilot DIR/fit.json",
        ),
        ("fit empty.csv", "the cell is missing; --drop-missing leaves it out (line 3)"),
        (f"fit inspections.csv {READ} --season 40", "a season of 40 months is longer than the"),
        (f"fit inspections.csv {READ} --season spring", "gp4c: --season must be a period in the"),
        (f"fit inspections.csv {READ} --season -1", "gp4c: --season must be a positive period"),
        ("fit plain.csv --season year", "gp4c: --season year needs dates, and the times of this"),
        ("fit plain.csv --season year", "in their unit, such as --season 12 for months"),
        ("fit early.csv --trend power", "count time from entry, or use --trend loglinear"),
        ("fit idle.csv --usage hours", "'hours' must be positive where there are events; found 0"),
        (
            "fit gone.csv --end gone",
            "'gone' must not be before the subject's last visit; subject a",
        ),
    ],
)
def test_mistakes_are_one_line(workplace, line, message):
    rows = [("a", 0, 3, 1), ("a", 3, 9, 2), ("b", 0, 4, 0), ("b", 4, 8, 1)]
    plain = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    plain.to_csv("plain.csv", index=False)
    plain.assign(start=plain["start"] - 5, stop=plain["stop"] - 5).to_csv("early.csv", index=False)
    plain.assign(hours=[0.0, 5, 5, 5]).to_csv("idle.csv", index=False)
    plain.assign(gone=[5.0, 5.0, 8.0, 8.0]).to_csv("gone.csv", index=False)
    plain.rename(columns={"count": "tumours"}).to_csv("odd.csv", index=False)
    plain.assign(count=[1, None, 0, 1]).to_csv("empty.csv", index=False)
    done = run(line)
    assert done.exit_code == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("gp4c: note: ")]
    assert len(said) == 1
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_the_clock_of_usage_is_an_option(workplace):
    done = run("describe inspections.csv --time date --origin first --usage hours --clock usage")
    assert done.exit_code == 0, done.output
    assert "time unit                 hours" in done.stdout


def test_dates_are_taken_where_time_is_counted_from_entry(workplace):
    """Every machine at its own age, from the last visit of any of them."""
    read = READ.replace("--origin first", "--origin first --since-entry")
    done = run(f"fit inspections.csv {read} --model hpp --effect gamma --bursts no --out aged")
    assert done.exit_code == 0, done.output
    line = "forecast aged/fit.json --to 2025-12-31"
    done = run(f"{line} --every quarter --json --out f")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    model = gp4c.load_model("aged/fit.json")
    found = model.forecast("2024-12-31", "2025-12-31", every="quarter", random_state=0)
    assert [row["mean"] for row in said["forecasts"]] == pytest.approx(found.mean.tolist())
    assert said["forecasts"][0]["start_date"] == "2024-12-31"
    assert "Each subject is at its own age" in said["note"]
    assert "repetition of the past" not in said["note"]
    assert run(f"{line} --out fan").exit_code == 0
    for more, message in [
        ("--from 30", "--from must be a date as --to is; found '30'"),
        ("--at 2025-03-01", "--at says when new units enter, and --new-units says how many"),
        ("--subjects M01 --new-units 2", "--new-units goes with the sums --subjects active and"),
        ("--usage 3 --exposure 3", "--usage and --exposure say the same"),
    ]:
        refused = run(f"{line} {more}")
        assert refused.exit_code == 2
        assert message in refused.stderr
