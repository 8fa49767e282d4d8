"""The table by groups: sums that add up, intervals that hold, covariates as pandas has them."""

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.summaries.panel_table import rate_interval, tabulate
from gp4c.exceptions import PanelDataError


@pytest.fixture
def bladder():
    return gp4c.load_dataset("bladder")


def small(**columns):
    table = {"subject": [1, 1, 2, 3], "start": [0, 2, 0, 1], "stop": [2, 5, 4, 3],
             "count": [1, 0, 0, 3]}  # fmt: skip
    return gp4c.PanelCounts.from_frame(table | columns)


def value(table, quantity, statistic, group):
    frame = table.to_frame().set_index(["quantity", "statistic"])
    return frame.loc[(quantity, statistic), group]


def test_numbers_are_those_of_the_rows(bladder):
    table, frame = bladder.table(by="treatment"), bladder.to_frame()
    length = frame["stop"] - frame["start"]
    for arm, rows in frame.groupby("treatment"):
        per_subject = rows.groupby("subject")
        total = per_subject["count"].sum()
        assert value(table, "subjects", "n", arm) == len(total)
        assert value(table, "follow-up, total (months)", "total", arm) == length[rows.index].sum()
        followed = length[rows.index].groupby(rows["subject"]).sum()
        median = value(table, "follow-up per subject (months)", "median", arm)
        assert median == followed.median()
        assert value(table, "intervals per subject", "high", arm) == per_subject.size().max()
        assert value(table, "length of intervals (months)", "low", arm) == length[rows.index].min()
        assert value(table, "events", "n", arm) == rows["count"].sum()
        assert value(table, "subjects without events", "share", arm) == (total == 0).mean()
        rate = rows["count"].sum() / length[rows.index].sum()
        assert value(table, "rate per month", "estimate", arm) == pytest.approx(rate)
        sizes = per_subject["initial_size"].first()
        assert value(table, "initial_size", "mean", arm) == pytest.approx(sizes.mean())
        assert value(table, "initial_size", "sd", arm) == pytest.approx(sizes.std())


def test_groups_add_up_to_everybody(bladder):
    frame = bladder.table(by="treatment").to_frame()
    sums = frame[frame["statistic"].isin(["n", "total"])]
    assert (sums["placebo"] + sums["thiotepa"]).tolist() == sums["all"].tolist()
    alone = bladder.table().to_frame().set_index(["quantity", "statistic"])["all"]
    both = frame.set_index(["quantity", "statistic"])["all"]
    assert both.to_dict() == {key: alone[key] for key in both.index}


def test_the_interval_is_the_jackknife_of_whole_subjects():
    totals, risk = np.array([0.0, 3.0, 1.0, 7.0]), np.array([2.0, 5.0, 4.0, 6.0])
    rate = totals.sum() / risk.sum()
    without = [np.delete(totals, k).sum() / np.delete(risk, k).sum() for k in range(len(totals))]
    error = np.sqrt(3 / 4 * np.sum((np.array(without) - rate) ** 2))
    found = rate_interval(totals, risk)
    assert np.log(found["high"] / rate) == pytest.approx(3.182446 * error / rate, rel=1e-6)
    assert found["low"] * found["high"] == pytest.approx(rate**2)


def test_intervals_hold_with_frailty_and_bursts_where_poisson_intervals_do_not(rng):
    # 40 subjects, frailty of variance 1, counts of twice the Poisson variance, unequal follow-up
    held = poisson = 0
    for _ in range(1000):
        risk = rng.uniform(2.0, 20.0, 40)
        mean = 0.5 * risk * rng.gamma(1.0, 1.0, 40)
        totals = rng.poisson(rng.gamma(mean)).astype(float)
        found = rate_interval(totals, risk)
        held += found["low"] <= 0.5 <= found["high"]
        factor = np.exp(1.96 / np.sqrt(totals.sum()))
        poisson += found["estimate"] / factor <= 0.5 <= found["estimate"] * factor
    assert 0.93 <= held / 1000 <= 0.97
    assert poisson / 1000 < 0.75


def test_an_interval_needs_two_subjects_and_an_event():
    for totals in ([3.0], [0.0, 0.0]):
        found = rate_interval(np.array(totals), np.ones(len(totals)))
        assert np.isnan(found["low"])
    assert "(–)" in str(small(arm=["a", "a", "a", "b"]).table(by="arm"))


def test_covariates_are_means_or_counts_and_what_is_missing_is_counted():
    panel = small(
        arm=["a", "a", "a", "b"], age=[50.0, 50.0, np.nan, 61.0], sex=["f", "f", None, "m"],
        fit=[True, True, False, True], mood=["up", "down", "up", "up"],
    )  # fmt: skip
    table = panel.table(by="arm")
    assert value(table, "age", "mean", "a") == 50.0
    assert np.isnan(value(table, "age", "sd", "a"))
    assert value(table, "age, missing", "n", "a") == 1
    assert value(table, "sex: f", "share", "a") == 0.5
    assert value(table, "sex: m", "n", "all") == 1
    assert value(table, "fit: True", "n", "a") == 1
    assert "mood" in table.notes[-1]
    assert not any(row[0].startswith("arm") for row in table.rows)


def test_a_covariate_of_many_levels_is_counted_only(rng):
    panel, _ = gp4c.simulate_panel(
        0.5, n_subjects=30, covariates={"town": [f"t{k}" for k in range(30)]}
    )
    assert value(panel.table(), "town, different values", "n", "all") == 30


def test_exposure_is_what_rates_are_per():
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1, 2], "start": [0, 0], "stop": [4, 4], "count": [2, 6], "units": [2.0, 3.0]},
        exposure="units",
    )
    table = panel.table()
    assert value(table, "exposure times length, total", "total", "all") == 20
    assert value(table, "rate per unit of time", "estimate", "all") == pytest.approx(8 / 20)


def test_it_prints_and_shows_the_same_cells(bladder):
    table = bladder.table(by="treatment")
    text, html = str(table), table._repr_html_()
    for row in table.rows:
        assert all(cell in text and cell in html for cell in row[1:])
    assert "Poisson intervals would be too narrow" in " ".join(text.split())


def test_a_group_may_be_called_all():
    table = small(arm=["all", "all", "<b>", "<b>"]).table(by="arm")
    assert table.columns[1:] == ("<b>", "arm: all", "all")
    assert table.to_frame().columns.is_unique
    assert "<b>" not in table._repr_html_()


@pytest.mark.parametrize(
    ("columns", "by", "words"),
    [
        ({"arm": list("aabb")}, "amr", "no covariate 'amr' to group by; .* did you mean 'arm'"),
        (
            {"arm": list("abbb")},
            "arm",
            r"'arm' varies within a subject .*: subject 1 has 'a' in "
            r"\(0, 2\] and 'b' in \(2, 5\] \(rows 1 and 2",
        ),
        ({"arm": ["a", "a", None, "b"]}, "arm", "'arm' is missing for 1 subject: 2; leave"),
    ],
)
def test_a_column_that_makes_no_groups_is_refused(columns, by, words):
    with pytest.raises(PanelDataError, match=words):
        small(**columns).table(by=by)


def test_groups_come_in_their_natural_order():
    doses = ["10 mg", "10 mg", "5 mg", "placebo"]
    assert small(dose=doses).table(by="dose").columns[1:] == ("5 mg", "10 mg", "placebo", "all")
    numbers = small(dose=[10, 10, 2.5, 0]).table(by="dose")
    assert numbers.columns[1:] == ("0.0", "2.5", "10.0", "all")
    assert value(numbers, "events", "n", "10.0") == 1
    order = pd.Categorical(["low", "low", "high", "mid"], ["low", "mid", "high"], ordered=True)
    panel = gp4c.PanelCounts.from_frame(small().to_frame().assign(dose=order))
    assert panel.table(by="dose").columns[1:] == ("low", "mid", "high", "all")


def test_the_reference_comes_first(bladder):
    table = bladder.table(by="treatment", reference="thiotepa")
    assert table.columns[1:] == ("thiotepa", "placebo", "all")
    other = bladder.table(by="treatment")
    assert [row[1] for row in table.rows] == [row[2] for row in other.rows]
    assert small(dose=[10, 10, 2.5, 0]).table(by="dose", reference=10.0).columns[1] == "10.0"
    with pytest.raises(PanelDataError, match="'treatment' has no level 'x'; it has"):
        bladder.table(by="treatment", reference="x")


def test_too_many_groups_are_refused():
    panel, _ = gp4c.simulate_panel(0.5, n_subjects=30, covariates={"id": list(range(30))})
    with pytest.raises(PanelDataError, match="30 different values"):
        panel.table(by="id")


def test_a_frame_has_numbers_only(bladder):
    frame = bladder.table(by="group").to_frame()
    assert all(pd.api.types.is_numeric_dtype(frame[name]) for name in ("A", "B", "all"))


def test_codes_have_no_mean():
    """A number that names a block or a centre is a category to a comparison within them."""
    panel = small(block=[101, 101, 102, 102])
    assert [row[0] for row in tabulate(panel).rows if "block" in row[0]] == ["block, mean (sd)"]
    coded = tabulate(panel, codes_of=["block"])
    assert [row[0] for row in coded.rows if "block" in row[0]] == ["block: 101", "block: 102"]
