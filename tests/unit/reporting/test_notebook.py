"""What notebooks show: the numbers of an object, and nothing that a text could smuggle in."""

import re

import pytest

import gp4c
from gp4c.analysis.compare_groups import compare

ATTACK = "<script>alert(1)</script>"
QUICK = gp4c.GP4C(effect="gamma", count_term="pointwise", hyper="optimize", n_inducing=8)


@pytest.fixture(scope="module")
def panel():
    frame = gp4c.load_dataset("bladder").to_frame().replace({"treatment": {"thiotepa": ATTACK}})
    frame = frame.rename(columns={"treatment": ATTACK})
    frame["subject"] = [f"{ATTACK}{label}" for label in frame["subject"]]
    return gp4c.PanelCounts.from_frame(frame, time_unit=ATTACK)


@pytest.fixture(scope="module")
def found(panel):
    return compare(panel, ATTACK, QUICK, n_permutations=99)


def shown(html):
    """Text of a page; it must have balanced tags and no script."""
    assert "<script" not in html
    assert "<img" not in html
    for tag in ("table", "tbody", "tr", "td", "th", "p", "ul", "li", "code"):
        opened = len(re.findall(rf"<{tag}[ >]", html))
        assert opened == html.count(f"</{tag}>"), tag
    return re.sub(r"<[^>]+>", " ", html)


def test_a_model_shows_its_parameters_then_its_summary(panel):
    fresh = gp4c.HomogeneousPoisson(effect="gamma")
    assert "not fitted yet" in shown(fresh._repr_html_())
    assert "effect=&#x27;gamma&#x27;" in fresh._repr_html_()
    text = shown(fresh.fit(panel)._repr_html_())
    assert "402" in text
    assert "constant event rate" in text


def test_every_estimator_has_one(panel):
    for model in (gp4c.NPMPLE(), gp4c.LocalEM(bandwidth=5.0), QUICK):
        assert "subjects" in shown(model.fit(panel)._repr_html_())


def test_a_comparison_shows_ratio_and_test(found):
    text = shown(found._repr_html_())
    row = found.pairwise().iloc[0]
    assert f"{row.ratio:#.3g}" in text
    assert f"p = {found.p_value:.4f}" in text
    assert "placebo (47)" in text


def test_several_groups_have_adjusted_p_values(panel):
    frame = panel.to_frame()
    frame["third"] = ["abc"[int(re.sub(r"\D", "", label)[1:]) % 3] for label in frame["subject"]]
    three = gp4c.PanelCounts.from_frame(frame)
    text = shown(compare(three, "third", QUICK, n_permutations=19)._repr_html_())
    assert "p (Holm)" in text
    assert "c relative to a" in text


def test_a_forecast_shows_mean_and_interval(found):
    model = found.models["placebo"]
    one = model.forecast(53, 60, subjects="all")
    low, high = one.interval
    assert f"{low:g} to {high:g}" in shown(one._repr_html_())
    many = model.forecast(53, 60, subjects=list(model.subjects_))
    assert "and 27 more" in shown(many._repr_html_())


def test_a_report_is_a_line(panel):
    report = gp4c.Report({"all patients": QUICK.fit(panel)}, panel, title="A trial")
    assert repr(report) == "<Report 'A trial' on all patients: save() writes it>"
