"""The page of a back-test."""

import re
from html import unescape

import pandas as pd
import pytest

import gp4c
from gp4c.analysis.backtests.backtest import Backtest
from gp4c.reporting.page.backtest_page import backtest_page


@pytest.fixture(scope="module")
def found():
    panel = gp4c.load_dataset("bladder")
    return gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=2)


def words(html):
    return unescape(
        re.sub(r"\s+", " ", re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.S))
    )


def test_every_total_stands_on_the_page(found):
    text = words(backtest_page(found))
    totals = found.to_frame().query("of == 'total'")
    assert len(totals) >= 2
    for row in totals.to_dict("records"):
        assert f"{row['model']} {row['events']:,.0f} " in text
        assert f"{row['low']:,.0f} to {row['high']:,.0f}" in text


def test_the_page_runs_and_loads_nothing(found):
    html = backtest_page(found)
    assert "<script" not in html
    assert "script-src 'none'" in html
    assert not re.search(r'(?:src|href)="(?!#|data:image/png)', html)


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ([4.0, 4.2, 3.8, 4.1], "more than chance explains"),
        ([9.0, -8.0, 7.0, -6.0], "which chance may explain"),
        ([-1.0, -1.1, -0.9, -1.0], "No model foretold the counts of single subjects better"),
    ],
)
def test_the_verdict_says_what_chance_may_explain(gain, said):
    rows = [
        {
            "model": model, "of": of, "origin": 1.0 + k, "subject": f"s{k}",
            "events": 3, "mean": 3.0, "low": 1, "high": 6, "pit_low": 0.4, "pit_high": 0.6,
            "log_score": -2.0 + (extra if model == "mine" else 0.0),
        }
        for model in ("mine", "constant rate") for of in ("subject", "total")
        for k, extra in enumerate(gain)
    ]  # fmt: skip
    table = Backtest(pd.DataFrame(rows), 0.9, 2.0, "constant rate", "months")
    assert said in words(backtest_page(table))


def test_a_page_is_saved_whole(found, tmp_path):
    found.save(tmp_path / "backtest.html")
    assert (tmp_path / "backtest.html").read_text(encoding="utf-8") == backtest_page(found)
